"""Lower bounds from multipliers: ``f_* >= min_x f(x) + sum <v_i, D_i x> - sum g_i^*(v_i)``.

Near its minimiser the Lagrangian has a slope r that is rounding or little more. What r can cost is known
where f is strongly convex, ``|r|^2 / (2 mu)``, and for variables in a box; for the others the bound loses
``|r|`` for each unit of distance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lopro.newton.arrays import EPS, Array
from lopro.newton.bounds.enclose import Enclosure, enclose, enclose_conjugate
from lopro.newton.bounds.rounding import Estimate, adjoint_product, dot, length
from lopro.newton.maps import Dense, Identity, Sparse
from lopro.newton.parts import Interval
from lopro.newton.problem import Composite, Term

__all__ = ["LowerBound", "lagrangian", "lower_bound"]


@dataclass(frozen=True)
class LowerBound:
    """``objective(z) >= value - slope |z - center|`` for every ``z``; a slope of zero holds everywhere.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.newton.bounds import LowerBound
    >>> bound = LowerBound(value=2.0, slope=1e-12, center=np.zeros(2))
    >>> bound.within(1e6), bound.radius(1e-3)
    (1.999999, 1000000000.0)
    """

    value: float
    slope: float
    center: Array

    def within(self, radius: float) -> float:
        """Return the bound over the ball of this radius around the centre."""
        return self.value - (self.slope * radius if self.slope > 0.0 else 0.0)

    def radius(self, allowance: float) -> float:
        """Return how far from the centre the bound loses at most ``allowance``."""
        return math.inf if self.slope == 0.0 else allowance / self.slope


def lagrangian(problem: Composite, x: Array, multipliers: Sequence[Array]) -> Enclosure:
    """Return ``f(x) + sum <v_i, D_i x> - g_i^*(v_i)`` and its gradient in x, with their rounding errors.

    The multipliers must be in the domains of the conjugates; elsewhere the value is minus infinity.
    """
    result = enclose(problem.smooth, x)
    for term, v in zip(problem.terms, multipliers, strict=True):
        normal, error = _adjoint(term, v)
        own = dot(normal, x, error) - enclose_conjugate(term.part, v)
        result = result + Enclosure(own, normal, error)
    return result


def _adjoint(term: Term, v: Array) -> tuple[Array, Array]:
    if isinstance(term.D, Identity):
        return v, np.zeros(len(v))
    if isinstance(term.D, Dense | Sparse):
        return adjoint_product(term.D.M, v)
    # An operator is taken at its word: its result is charged as if summed in the order of the rows.
    normal = term.D.adjoint(v)
    return normal, np.full(len(normal), EPS * float(term.D.row_norms() @ np.abs(v)))


def lower_bound(
    problem: Composite, x: Array, multipliers: Sequence[Array], convexity: float = 0.0
) -> LowerBound:
    """Return the bound that multipliers prove, less the rounding of its own evaluation.

    Parameters
    ----------
    problem : Composite
        The problem.
    x : array
        Any point; near a minimiser of the Lagrangian the bound is best.
    multipliers : sequence of arrays
        One for each term; moved into the domains of the conjugates first.
    convexity : float
        A proved ``mu`` such that ``f - mu/2 |x|^2`` is convex, or 0.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.newton import Composite
    >>> from lopro.newton.bounds import lower_bound
    >>> from lopro.newton.parts import Interval
    >>> from lopro.newton.smooth import SquaredDistance
    >>> problem = Composite(SquaredDistance(np.array([3.0])), [(Interval(upper=np.ones(1)), None)])
    >>> bound = lower_bound(problem, np.array([1.0]), [np.array([2.0])], convexity=1.0)
    >>> abs(bound.value - 2.0) < 1e-14, bound.slope
    (True, 0.0)
    """
    inside = [t.part.into_domain(v) for t, v in zip(problem.terms, multipliers, strict=True)]
    at_x = lagrangian(problem, x, inside)
    slope = at_x.slope()
    if not math.isfinite(slope) or not math.isfinite(at_x.value.value):
        return LowerBound(-math.inf, 0.0, x)
    if convexity > 0.0:
        charge = Estimate(slope) * slope / (2.0 * convexity)
        return LowerBound((at_x.value - charge).lower(), 0.0, x)
    reach = _reach(problem, x)
    bounded = np.isfinite(reach)
    sizes = np.abs(at_x.gradient) + at_x.error
    cost = dot(sizes[bounded], reach[bounded])
    left = length(at_x.gradient[~bounded], at_x.error[~bounded])
    return LowerBound((at_x.value - Estimate(cost.upper())).lower(), left, x)


def _reach(problem: Composite, x: Array) -> Array:
    """Return how far each variable can be from ``x`` within the box among the terms, if there is one."""
    reach = np.full(problem.size, np.inf)
    for term in problem.terms:
        if isinstance(term.D, Identity) and isinstance(term.part, Interval):
            farthest = np.maximum(term.part.upper - x, x - term.part.lower)
            # One rounding of a difference; a point outside of the box is no harm.
            reach = np.minimum(reach, np.maximum(farthest, 0.0) * (1.0 + EPS))
    return reach
