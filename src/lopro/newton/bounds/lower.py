"""Lower bounds from multipliers: ``f_* >= min_x f(x) + sum <v_i, D_i x> - sum g_i^*(v_i)``.

Near its minimiser the Lagrangian has a slope c that is rounding or little more, except at bounds of
variables. There the best multiplier is known: over ``x_j >= l_j`` a slope ``c_j >= 0`` costs
``c_j (x_j - l_j)`` and nothing more. What is left of the slope costs ``|c|^2 / (2 mu)`` where f is strongly
convex; elsewhere the bound loses ``|c|`` for each unit of distance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lopro.certificates import Bound
from lopro.functions.atoms import Interval
from lopro.functions.term import Term
from lopro.linalg.products import enclose_adjoint
from lopro.linalg.rounding import Enclosure, Estimate, dot, length, total
from lopro.maps import Identity
from lopro.maps.host import Transferred, host_vector
from lopro.newton.arrays import EPS, Array
from lopro.newton.problem import Composite

__all__ = ["Box", "Remainder", "bounds_variables", "lagrangian", "lower_bound"]


@dataclass(frozen=True)
class Box:
    """The bounds of single variables among the terms of a problem."""

    lower: Array
    upper: Array

    @staticmethod
    def of(problem: Composite) -> Box:
        """Return the intersection of all bounds of variables."""
        return Box(*problem.box)


def bounds_variables(term: Term) -> bool:
    """Whether a term is a bound of single variables."""
    return term.is_identity and isinstance(term.atom, Interval)


def lagrangian(problem: Composite, x: Array, multipliers: Sequence[Array]) -> Enclosure:
    """Return ``f(x) + sum <v_i, D_i x> - g_i^*(v_i)`` and its gradient in x, with their rounding errors.

    The sum is over all terms but bounds of variables. The multipliers must be in the domains of the
    conjugates; elsewhere the value is minus infinity.
    """
    result = problem.smooth.enclose(x)
    for term, v in zip(problem.terms, multipliers, strict=True):
        if bounds_variables(term):
            continue
        normal, error = enclose_adjoint(term.D, v)
        own = dot(normal, x, error) - term.enclose_conjugate(v)
        result = result + Enclosure(own, normal, error)
    return result


@dataclass(frozen=True)
class Remainder:
    """What a linear function loses over a box, below its value at x.

    Over the box, ``<c, z - x> >= -cost - <rise, |z - x|>``, for every ``c`` within its error.
    """

    cost: Estimate
    rise: Array

    @staticmethod
    def of(box: Box, x: Array, slope: Array, error: Array) -> Remainder:
        """Split the slope into what the bounds of the variables carry and what is left."""
        least, most = slope - error, slope + error
        below, above = np.isfinite(box.lower), np.isfinite(box.upper)
        if not (below.any() or above.any()):
            return Remainder(Estimate(0.0), np.maximum(most, -least) * (1.0 + EPS))
        # Going down from x costs the positive part of the slope, up to the lower bound; and the reverse.
        down = np.where(below, np.maximum(most, 0.0) * (x - np.where(below, box.lower, x)), 0.0)
        up = np.where(above, np.maximum(-least, 0.0) * (np.where(above, box.upper, x) - x), 0.0)
        both = np.maximum(down, up)
        rise = np.maximum(
            np.where(below, 0.0, np.maximum(most, 0.0)),
            np.where(above, 0.0, np.maximum(-least, 0.0)),
        )
        return Remainder(total(both, 2.0 * EPS * np.abs(both)), rise * (1.0 + EPS))


def lower_bound(
    problem: Composite, x: Array, multipliers: Sequence[Array], convexity: float = 0.0
) -> Bound:
    """Return the bound that multipliers prove, less the rounding of its own evaluation.

    Parameters
    ----------
    problem : Composite
        The problem.
    x : array
        Any point; near a minimiser of the Lagrangian the bound is best.
    multipliers : sequence of arrays
        One for each term; moved into the domains of the conjugates first. Those of bounds of variables are
        not used: the best ones follow from the others.
    convexity : float
        A proved ``mu`` such that ``f - mu/2 |x|^2`` is convex, or 0.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.functions.atoms import HalfSquare, Interval
    >>> from lopro.functions.term import Term
    >>> from lopro.maps import linear_map
    >>> from lopro.newton import Composite
    >>> from lopro.newton.bounds import lower_bound
    >>> square = Term(HalfSquare(), offset=np.array([3.0]))
    >>> row = Term(Interval([-np.inf], [1.0]), linear_map([[1.0]]))
    >>> problem = Composite.of([square, row], 1)
    >>> bound = lower_bound(problem, np.array([1.0]), [np.array([2.0])], convexity=1.0)
    >>> abs(bound.value - 2.0) < 1e-13, bound.slope
    (True, 0.0)
    """
    inside = [t.into_domain(v) for t, v in zip(problem.terms, multipliers, strict=True)]
    at_x = lagrangian(problem, x, inside)
    if not (math.isfinite(at_x.slope()) and math.isfinite(at_x.value.value)):
        return Bound(-math.inf, 0.0, x)
    left = Remainder.of(Box.of(problem), x, at_x.gradient, at_x.error)
    value = at_x.value - left.cost
    slope = length(left.rise)
    if convexity > 0.0:
        return Bound((value - Estimate(slope) * slope / (2.0 * convexity)).lower(), 0.0, x)
    return Bound(value.lower(), slope * _column_spread(problem), x)


def _column_spread(problem: Composite) -> float:
    """Return the ratio of the longest to the shortest column of the data where no set bounds the variables.

    One radius for all variables means little where they are counted in units that differ by as much: the
    slope is then taken to be so many times as large, which is what it amounts to with columns of one length.
    """
    if any(term.is_set for term in problem.terms):
        return 1.0
    smooth = getattr(problem.smooth, "parts", (problem.smooth,))
    maps = [getattr(part, "map", None) for part in smooth] + [t.map for t in problem.terms]
    spread = 1.0
    for D in maps:
        if D is None or isinstance(D, Identity) or (isinstance(D, Transferred) and not D.on_device):
            continue
        lengths = host_vector(D.column_norms)
        used = lengths[lengths > 0.0]
        if len(used):
            spread = max(spread, float(used.max() / used.min()))
    return spread
