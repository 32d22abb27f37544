"""Semidefinite programs: a method of multipliers with Newton steps, engines, proofs of their answers."""

from lopro.certificates.certificate import Outcome, Status
from lopro.newton.sdp.judge import DualBound, Judge, PrimalValue
from lopro.newton.sdp.program import SemidefiniteBlock, SemidefiniteProgram
from lopro.newton.sdp.sdpa import read_sdpa
from lopro.newton.sdp.solve import solve

__all__ = [
    "DualBound",
    "Judge",
    "Outcome",
    "PrimalValue",
    "SemidefiniteBlock",
    "SemidefiniteProgram",
    "Status",
    "read_sdpa",
    "solve",
]
