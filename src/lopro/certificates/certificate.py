"""The certificate of a point for the user, and the outcome of a run with its proofs."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, field
from typing import Any

from lopro.certificates.bound import Bound
from lopro.certificates.emptiness import Emptiness
from lopro.certificates.rays import DescentRay
from lopro.certificates.tolerances import FEASIBLE, Scale, Target

__all__ = ["Certificate", "Outcome", "Status"]


@dataclass(frozen=True)
class Certificate:
    """The accuracy of a point, and its proof.

    Attributes
    ----------
    gap : float
        The value exceeds the optimal one by at most this; infinite if the point is not feasible or no bound
        is known. It includes ``charge``.
    relative_gap : float
        The gap over the sum of the absolute terms of the value; where that exceeds the tolerance, over a
        negligible share of a typical value if that is larger (`lopro.Problem`, ``gap_scale``).
    lower_bound : float
        No feasible point within ``radius`` of x has a smaller value.
    violation : float
        The largest relative violation: of a row ``a'x <= b`` that is
        ``(a'x - b)_+ / (sum_j |a_j| |x_j| + |b|)``, of a ball the excess over its own radius, of a
        matrix minus the least eigenvalue in units of its diagonal.
    source : str
        How the bound was proved.
    radius : float
        The bound holds for points within this distance of ``x``; infinite if it holds everywhere. A bound
        that decreases with the distance holds in every variable within ``1e4 max(|x_j|, s_j)``, where ``s_j``
        is the unit of the data (`lopro.certificates.reach_units`): the radius is the smallest of these.
    absolute_violation : float
        The largest violation in the units of its own row.
    charge : float
        The multipliers times the violations: ``fun`` may be below ``lower_bound`` by this amount.
    empty_within : float
        No point within this distance of zero satisfies the constraints, as multipliers prove; there may be
        one farther out. 0 if nothing is known.

    Examples
    --------
    >>> from lopro.certificates import Certificate
    >>> Certificate.of(fun=2.0, lower_bound=1.5, violation=0.0, source="", absolute=0.0).gap
    0.5

    A row ``1000 x <= 2000`` at ``x = 2.5`` is violated by 500, and compares 2500 with 2000:

    >>> import lopro
    >>> row = lopro.constraints.Polyhedron([[1000.0]], [2000.0])
    >>> import numpy as np
    >>> row.absolute_violation(np.array([2.5])), round(row.violation(np.array([2.5])), 6)
    (500.0, 0.111111)
    """

    gap: float
    relative_gap: float
    lower_bound: float
    violation: float
    source: str
    radius: float = math.inf
    absolute_violation: float = math.nan
    charge: float = 0.0
    empty_within: float = 0.0

    @staticmethod
    def of(
        fun: float,
        lower_bound: float,
        violation: float,
        source: str,
        target: Target | None = None,
        gained: float = 0.0,
        radius: float = math.inf,
        *,
        absolute: float,
        feasible: float = FEASIBLE,
        empty_within: float = 0.0,
        magnitude: float | None = None,
    ) -> Certificate:
        """Build the certificate of a point with value ``fun``; the target determines the relative gap.

        ``gained``, the charge for the violation, is a part of the gap. The lower bound may exceed the value
        by rounding or by the charge. A point with a relative violation of more than ``feasible`` has no
        finite gap: it proves nothing.
        """
        known = math.isfinite(lower_bound) and violation <= feasible
        gap = max(fun - lower_bound, 0.0) + gained if known else math.inf
        relative = (target or Target(0.0)).relative(gap, fun, magnitude)
        return Certificate(
            gap, relative, lower_bound, violation, source, radius, absolute, gained, empty_within
        )

    @staticmethod
    def unknown() -> Certificate:
        """Return the certificate that certifies nothing."""
        return Certificate(math.inf, math.inf, -math.inf, math.inf, "nothing is known")


class Status(enum.Enum):
    """The reason why a run ended; only the driver assigns it in `lopro.solve`."""

    CONVERGED = "feasible, and the certified gap is below tol"
    SCHEDULE_DONE = "the method's schedule is complete; the gap is not certified below tol"
    STALLED = "no further progress in floating point; the gap is not certified below tol"
    MAX_ITER = "the iteration limit was reached"
    MAX_PROJECTIONS = "the projection budget is spent"
    TIME_LIMIT = "the time limit was reached"
    INFEASIBLE = "the constraint set is empty"
    UNBOUNDED = "the objective is unbounded below on the set"
    NONFINITE = "NaN or inf appeared"
    PROJECTION_FAILED = "a projection could not be computed accurately enough"
    INTERRUPTED = "interrupted by the user"
    STOPPED = "stopped by the callback or the caller"


@dataclass(frozen=True)
class Outcome:
    """A point with its multipliers, and the bound that they prove.

    Attributes
    ----------
    status : Status
        CONVERGED, INFEASIBLE or UNBOUNDED if that is proved; STALLED; or STOPPED when the limits of time or
        steps were reached.
    x : array or tuple of arrays
        The point, in semidefinite programs the blocks of a matrix; the ray of a cone program that is
        UNBOUNDED.
    multipliers : array or sequence of arrays
        The multipliers of the rows, one array for each term if there are several; of a cone program that is
        INFEASIBLE those that exclude all points.
    fun : float
        The value at the point: of the smooth part and of the norms among the terms.
    bound : Bound
        The bound that the multipliers prove. In semidefinite programs its limit is the largest trace.
    charge : float
        The charge for the violation of the point.
    violation, absolute_violation : float
        The largest violation, relative to the terms of the row and in the units of the row.
    steps : int
        Newton steps, steps of the engine, or eigendecompositions.
    certificate : Emptiness or DescentRay, optional
        The checked certificate of a problem without solution, whose vector is ``ray``; if the status is
        STOPPED, the radius within which multipliers exclude all points.
    ray : optional
        The multipliers that exclude all points, or the direction of descent.
    engine : str
        The engine that computed the answer, if there are several.
    unit : float
        The denominator of the relative gap, if it is not the value.
    """

    status: Status
    x: Any
    multipliers: Any
    fun: float = math.nan
    bound: Bound = field(default_factory=lambda: Bound.everywhere(-math.inf))
    charge: float = 0.0
    violation: float = math.inf
    steps: int = 0
    certificate: Emptiness | DescentRay | None = None
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
        """The proved gap: the value is at most this much above the optimal one, violation included."""
        return self.fun + self.charge - self.bound.value

    def holds(self, tol: float, scale: Scale = 0.0, length: float = 0.0) -> bool:
        """Whether gap and charge are at most ``tol`` times the larger of the value and the scale.

        The gap is that of the bound over the region in which solutions are assumed (`Bound.around`).
        """
        return Target(tol, scale).reached(self.lacking(length), self.fun)

    def proves(
        self, tol: float, feasibility: float, scale: Scale = 0.0, length: float = 0.0
    ) -> bool:
        """Whether the point is feasible and its gap is proved; the parameters are those of `holds`."""
        return self.violation <= feasibility and self.holds(tol, scale, length)

    def better(self, other: Outcome, feasibility: float, length: float = 0.0) -> bool:
        """Whether this is closer to a proof: feasible before infeasible, then by what is lacking."""
        if (self.violation <= feasibility) != (other.violation <= feasibility):
            return self.violation <= feasibility
        return self.lacking(length) < other.lacking(length)

    def lacking(self, length: float = 0.0) -> float:
        """Return the gap, or the charge if that is larger, with the bound over `Bound.reach` of the point.

        ``length`` is a typical length of variables whose units are not known.
        """
        value = self.fun + self.charge
        return max(value - self.bound.around(self.x, length), self.gap, self.charge)
