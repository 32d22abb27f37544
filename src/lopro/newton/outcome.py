"""What a run of the Newton method or of an engine has proved."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from lopro.certificates import Bound, Descent, Emptiness
from lopro.newton.arrays import Array, Image

__all__ = ["Outcome", "Status"]


class Status(enum.Enum):
    """How a run ended."""

    CONVERGED = "the gap is proved"
    EMPTY = "no point satisfies the constraints within the radius that the certificate states"
    UNBOUNDED = "the objective falls without end along the ray"
    STOPPED = "time or steps were used up"


@dataclass(frozen=True)
class Outcome:
    """A point, its multipliers and what they prove.

    Attributes
    ----------
    status : Status
        How the run ended.
    x, multipliers : arrays
        The point, and one multiplier for each term.
    fun : float
        The smooth part at the point, and the norms among the terms.
    bound : Bound
        What the multipliers prove.
    charge : float
        What the violation of the point can have gained.
    violation : float
        Largest relative violation.
    certificate : Emptiness or Descent, optional
        The checked certificate of a problem without solution, whose vector is ``ray``; where the status is
        STOPPED, the radius within which multipliers exclude all points.
    steps : int
        Newton steps.
    """

    status: Status
    x: Array
    multipliers: Image
    fun: float
    bound: Bound
    charge: float
    violation: float
    steps: int
    certificate: Emptiness | Descent | None = None
    ray: object = None

    @property
    def gap(self) -> float:
        """What is proved: the value is at most so far above the optimal one, violation included."""
        return self.fun + self.charge - self.bound.value

    def holds(self, tol: float, scale: float = 0.0, length: float = 0.0) -> bool:
        """Whether gap and charge are small, as far out as solutions may be.

        Small means at most ``tol`` times the value or the scale, whichever is larger.
        """
        return self.lacking(length) <= tol * max(abs(self.fun), scale)

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
