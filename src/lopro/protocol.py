"""The interface between driver and methods: messages, targets, certificates."""

from lopro.certificates import Certificate, Target
from lopro.driver.candidate import (
    Candidate,
    Claim,
    Evidence,
    Multiplier,
    PenalisedMinimum,
    ProvedBound,
    Verdict,
)
from lopro.driver.fit import Cost, Fit, fit_of, next_candidate, required_fit
from lopro.driver.method import Candidates, Card, InnerAlgorithm, Method, Stepper, Workbench

__all__ = [
    "Candidate",
    "Candidates",
    "Card",
    "Certificate",
    "Claim",
    "Cost",
    "Evidence",
    "Fit",
    "InnerAlgorithm",
    "Method",
    "Multiplier",
    "PenalisedMinimum",
    "ProvedBound",
    "Stepper",
    "Target",
    "Verdict",
    "Workbench",
    "fit_of",
    "next_candidate",
    "required_fit",
]
