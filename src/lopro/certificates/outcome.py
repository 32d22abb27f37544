"""What a run of a method or of an engine has proved."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, field
from typing import Any

from lopro.certificates.bound import Bound
from lopro.certificates.emptiness import Emptiness
from lopro.certificates.rays import Descent

__all__ = ["Outcome", "Status"]


class Status(enum.Enum):
    """How a run ended."""

    CONVERGED = "the gap is proved"
    EMPTY = "multipliers prove that no point satisfies the constraints"
    UNBOUNDED = "the objective falls without end along the ray"
    STOPPED = "time or steps were used up"
    STALLED = "no further progress in floating point"


@dataclass(frozen=True)
class Outcome:
    """A point, its multipliers and what they prove.

    Attributes
    ----------
    status : Status
        How the run ended.
    x : array or tuple of arrays
        The point, in semidefinite programs the blocks of a matrix; the ray of a cone program that is
        UNBOUNDED.
    multipliers : array or sequence of arrays
        Of the rows, one array for each term where there are several; of a cone program that is EMPTY those
        that exclude all points.
    fun : float
        The value at the point: of the smooth part and of the norms among the terms.
    bound : Bound
        What the multipliers prove. In semidefinite programs its limit is the largest trace.
    charge : float
        What the violation of the point can have gained.
    violation, absolute_violation : float
        The largest violation, relative to what the rows compare and in the units of its own row.
    steps : int
        Newton steps, steps of the engine, or eigendecompositions.
    certificate : Emptiness or Descent, optional
        The checked certificate of a problem without solution, whose vector is ``ray``; where the status is
        STOPPED, the radius within which multipliers exclude all points.
    ray : optional
        The multipliers that exclude all points, or the direction of descent.
    engine : str
        What found the answer, where there are several.
    unit : float
        What the gap is relative to, where it is not the value.
    """

    status: Status
    x: Any
    multipliers: Any
    fun: float = math.nan
    bound: Bound = field(default_factory=lambda: Bound.everywhere(-math.inf))
    charge: float = 0.0
    violation: float = math.inf
    steps: int = 0
    certificate: Emptiness | Descent | None = None
    ray: object = None
    engine: str = ""
    absolute_violation: float = math.nan
    unit: float = 1.0

    @property
    def lower_bound(self) -> float:
        """The value of the bound; it holds for points within ``radius``."""
        return self.bound.value

    @property
    def radius(self) -> float:
        """The limit of the bound."""
        return self.bound.limit

    @property
    def gap(self) -> float:
        """What is proved: the value is at most so far above the optimal one, violation included."""
        return self.fun + self.charge - self.bound.value

    def holds(self, tol: float, scale: float = 0.0, length: float = 0.0) -> bool:
        """Whether gap and charge are small, as far out as solutions may be.

        Small means at most ``tol`` times the value or the scale, whichever is larger.
        """
        return self.lacking(length) <= tol * max(abs(self.fun), scale)

    def proves(
        self, tol: float, feasibility: float, scale: float = 0.0, length: float = 0.0
    ) -> bool:
        """Whether the point is feasible and its gap is proved; the parameters are those of `holds`."""
        return self.violation <= feasibility and self.holds(tol, scale, length)

    def better(self, other: Outcome, feasibility: float, length: float = 0.0) -> bool:
        """Whether this comes closer to a proof: feasible first, then what is lacking."""
        if (self.violation <= feasibility) != (other.violation <= feasibility):
            return self.violation <= feasibility
        return self.lacking(length) < other.lacking(length)

    def lacking(self, length: float = 0.0) -> float:
        """Return the gap (the charge if larger) as far out as solutions may be.

        ``length`` is one that is typical of variables whose units are not known.
        """
        value = self.fun + self.charge
        return max(value - self.bound.around(self.x, length), self.gap, self.charge)
