"""What the driver and the methods both know: the messages between them, targets, certificates."""

from lopro.certificates import Certificate, Target
from lopro.protocol.candidate import (
    Candidate,
    Claim,
    Evidence,
    Multiplier,
    PenalisedMinimum,
    ProvedBound,
    Verdict,
)
from lopro.protocol.card import Card
from lopro.protocol.inner_algorithm import InnerAlgorithm, Stepper
from lopro.protocol.method import Candidates, Method, Workbench, next_candidate

__all__ = [
    "Candidate",
    "Candidates",
    "Card",
    "Certificate",
    "Claim",
    "Evidence",
    "InnerAlgorithm",
    "Method",
    "Multiplier",
    "PenalisedMinimum",
    "ProvedBound",
    "Stepper",
    "Target",
    "Verdict",
    "Workbench",
    "next_candidate",
]
