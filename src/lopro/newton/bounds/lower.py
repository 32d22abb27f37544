"""Lower bounds from multipliers: ``f_* >= min_x f(x) + sum <v_i, D_i x> - sum g_i^*(v_i)``.

Near its minimiser the Lagrangian has a slope c that is rounding or little more, except at bounds of
variables. There the best multiplier is known: over ``x_j >= l_j`` a slope ``c_j >= 0`` costs
``c_j (x_j - l_j)`` and nothing more. What is left of the slope costs ``|c|^2 / (2 mu)`` where f is strongly
convex; elsewhere the bound loses ``|c|`` for each unit of distance.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.certificates import Bound
from lopro.functions.atoms import Interval
from lopro.functions.term import Term
from lopro.linalg.products import enclose_adjoint
from lopro.linalg.rounding import Enclosure, Estimate, dot, length, total
from lopro.maps.host import host_matrix
from lopro.newton.arrays import EPS, Array, Matrix
from lopro.newton.bounds.reach import reach_units
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
        lower, upper = np.full(problem.size, -np.inf), np.full(problem.size, np.inf)
        for term in problem.terms:
            if bounds_variables(term):
                assert isinstance(term.atom, Interval)
                lower = np.maximum(lower, term.atom.lower)
                upper = np.minimum(upper, term.atom.upper)
        return Box(lower, upper)

    @staticmethod
    def implied(problem: Composite) -> Box:
        """Return the bounds that rows with a single entry imply as well, rounded outwards; found once."""
        if problem not in _IMPLIED:
            box = Box.of(problem)
            for term in problem.terms:
                matrix = host_matrix(term.D)
                if isinstance(term.atom, Interval) and matrix is not None:
                    box = box._with_rows(matrix, term.atom)
            _IMPLIED[problem] = box
        return _IMPLIED[problem]

    def _with_rows(self, A: Matrix, rows: Interval) -> Box:
        alone = np.flatnonzero(_entries_of_rows(A) == 1)
        if len(alone) == 0:
            return self
        few = scipy.sparse.coo_array(A[alone])
        present = few.data != 0.0
        i, j, a = alone[few.row[present]], few.col[present], few.data[present]
        one, other = rows.lower[i] / a, rows.upper[i] / a
        least, most = np.minimum(one, other), np.maximum(one, other)
        lower, upper = self.lower.copy(), self.upper.copy()
        np.maximum.at(lower, j, np.where(np.isfinite(least), np.nextafter(least, -np.inf), least))
        np.minimum.at(upper, j, np.where(np.isfinite(most), np.nextafter(most, np.inf), most))
        return Box(lower, upper)


def _entries_of_rows(A: Matrix) -> Any:
    """Return the numbers of nonzeros of rows."""
    if scipy.sparse.issparse(A):
        rows = scipy.sparse.coo_array(A)
        return np.asarray(np.bincount(rows.row[rows.data != 0.0], minlength=A.shape[0]))
    return np.asarray(np.count_nonzero(A, axis=1))


_IMPLIED: weakref.WeakKeyDictionary[Composite, Box] = weakref.WeakKeyDictionary()


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
        return Bound.everywhere(-math.inf)
    # Strong convexity pays for a slope, too, and less for a small one.
    box = Box.of(problem) if convexity > 0.0 else Box.implied(problem)
    left = Remainder.of(box, x, at_x.gradient, at_x.error)
    value = at_x.value - left.cost
    if convexity > 0.0:
        slope = length(left.rise)
        return Bound.everywhere((value - Estimate(slope) * slope / (2.0 * convexity)).lower())
    return Bound(value.lower(), left.rise, x, reach_units(problem) if left.rise.any() else None)
