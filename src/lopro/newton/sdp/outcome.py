"""How a semidefinite program was answered."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

from lopro.newton.arrays import Array

__all__ = ["Outcome", "Status"]


class Status(enum.Enum):
    """How a run ended."""

    CONVERGED = "the gap is proved"
    EMPTY = "no X is feasible"
    UNBOUNDED = "no multipliers are feasible: there is no lower bound"
    STOPPED = "time was used up"
    STALLED = "no further progress in floating point"


@dataclass(frozen=True)
class Outcome:
    """A point, multipliers and what they prove, in the units of the program.

    Attributes
    ----------
    status : Status
        How the run ended.
    X : tuple of arrays
        The point, or the ray where the status is UNBOUNDED.
    y : array
        The multipliers, or those that prove that the status is EMPTY.
    fun : float
        ``<C, X>``.
    lower_bound : float
        No feasible X with a trace up to ``radius`` has a smaller value.
    charge : float
        What the violation of the point may have gained.
    violation : float
        The largest relative violation of a row or of the cone.
    radius : float
        The largest trace of X (norm of y for UNBOUNDED) for which the proof holds; often infinite.
    engine : str
        What found the answer.
    decompositions : int
        Eigendecompositions made by Newton's method.
    seconds : float
        Time used.
    """

    status: Status
    X: tuple[Array, ...]
    y: Array
    fun: float = math.nan
    lower_bound: float = -math.inf
    charge: float = 0.0
    violation: float = math.inf
    radius: float = math.inf
    engine: str = ""
    decompositions: int = 0
    seconds: float = 0.0

    @property
    def gap(self) -> float:
        """What is proved: the value is at most so far above the optimal one, violation included."""
        return self.fun + self.charge - self.lower_bound
