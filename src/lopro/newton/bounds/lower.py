"""Lower bounds from multipliers: ``f_* >= min_x f(x) + sum <v_i, D_i x> - sum g_i^*(v_i)``.

Near its minimiser the gradient c of the Lagrangian is little more than rounding, except at bounds of
variables. Their best multipliers are known: over ``x_j >= l_j`` a slope ``c_j >= 0`` reduces the bound by
``c_j (x_j - l_j)``. Rows imply bounds of variables that have none, and so does the objective: points with
a value above a ceiling need no bound, so ``f(z) <= ceiling`` is one more row. The remaining slope reduces the
bound by ``|c|^2 / (2 mu)`` if f is strongly convex, else by ``|c_j|`` per unit of distance in variable j.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.certificates import Bound, Units, VariableBounds, bound_from
from lopro.certificates.bound import bound_over_rows, sharpened, unabsorbed
from lopro.certificates.units import curvature_units
from lopro.certificates.units import reach_units as units_of_blocks
from lopro.functions.atoms import Interval
from lopro.functions.term import Term
from lopro.linalg.dense import Array, Matrix, norm
from lopro.linalg.products import enclose_adjoint
from lopro.linalg.rounding import Enclosure, dot, length
from lopro.maps import LinearMap
from lopro.maps.host import entries_of, host_matrix, host_vector
from lopro.newton.losses import Loss
from lopro.newton.problem import Composite
from lopro.newton.quadratic_form import QuadraticForm

__all__ = ["bounds_variables", "box_of", "implied_box", "lagrangian", "lower_bound", "reach_units"]

_REACH: weakref.WeakKeyDictionary[Composite, Units] = weakref.WeakKeyDictionary()


def reach_units(problem: Composite) -> Units:
    """Return the units of the variables from the maps, offsets and bounds of all terms; computed once.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.functions.atoms import HalfSquare
    >>> from lopro.functions.term import Term
    >>> from lopro.maps import linear_map
    >>> from lopro.newton import Composite
    >>> from lopro.newton.bounds.lower import reach_units
    >>> square = Term(HalfSquare(), linear_map(np.diag([1.0, 1e-12])), np.array([3.0, 4.0]))
    >>> reach_units(Composite.of([square], 2)).known
    array([3.5e+00, 3.5e+12])
    """
    if problem not in _REACH:
        blocks: list[tuple[Any, Array]] = []
        for part in problem.parts:
            if isinstance(part, Loss):
                blocks.append(_one_row(part.term))
        for term in problem.terms:
            blocks += _of_term(term)
        forms = [part for part in problem.parts if isinstance(part, QuadraticForm)]
        _REACH[problem] = units_of_blocks(blocks, problem.size, _of_curvature(forms, problem.size))
    return _REACH[problem]


def _of_term(term: Term) -> Iterator[tuple[Any, Array]]:
    """Yield matrix and sides of an interval with entries on the host; other terms count as one row."""
    if not isinstance(term.atom, Interval):
        yield _one_row(term)
        return
    entries = host_matrix(term.D)
    sides = term.atom.lower, term.atom.upper
    if entries is None and not term.is_identity:
        sizes = [norm(b[np.isfinite(b)]) for b in sides]
        yield from ((_column_norms(term.D)[None, :], np.array([size])) for size in sizes)
    else:
        yield from ((entries, side) for side in sides)


def _one_row(term: Term) -> tuple[Array, Array]:
    """Return a term as one row: the norms of its columns, and the size of its offset and of its set."""
    offset = np.zeros(0) if term.offset is None else np.abs(host_vector(term.offset))
    size, extent = norm(offset), term.atom.extent
    if term.atom.separable:
        # For losses the median, which a few outliers do not change.
        root = math.sqrt(term.size)
        median = float(np.median(offset[offset > 0.0])) if size > 0.0 else 0.0
        size, extent = min(size, root * median), root * extent
    return _column_norms(term.D)[None, :], np.array([size + extent])


def _column_norms(D: LinearMap) -> Array:
    """Return the norms of the columns, which are assumed to be equal for an operator."""
    if D.is_identity:
        return np.ones(D.shape[1])
    if entries_of(D) is None:
        return np.full(D.shape[1], length(D.row_norms) / math.sqrt(D.shape[1]))
    return host_vector(D.column_norms)


def _of_curvature(forms: list[QuadraticForm], size: int) -> Array:
    """Return the units that follow from the sum of the quadratic forms."""
    diagonal, q = np.zeros(size), np.zeros(size)
    for form in forms:
        q = q + form.q
        if form.map is not None and host_matrix(form.map) is not None:
            diagonal = diagonal + host_matrix(form.map).diagonal()
    return curvature_units(np.maximum(diagonal, 0.0), q)


def bounds_variables(term: Term) -> bool:
    """Return whether a term bounds single variables."""
    return term.is_identity and isinstance(term.atom, Interval)


def box_of(problem: Composite) -> VariableBounds:
    """Return the intersection of all bounds of variables among the terms of a problem."""
    return VariableBounds(*problem.box)


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


def lower_bound(
    problem: Composite, x: Array, multipliers: Sequence[Array], convexity: float = 0.0
) -> Bound:
    """Return the bound that multipliers prove, less the rounding of its own evaluation.

    Parameters
    ----------
    problem : Composite
        The problem.
    x : array
        Any point; the bound is best at a minimiser of the Lagrangian.
    multipliers : sequence of arrays
        One for each term; they are projected onto the domains of the conjugates. Those of bounds of variables
        are not used: the best ones follow from the others.
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
    if convexity > 0.0 and not problem.boxed:
        return bound_from(at_x, x, None, convexity)
    box = box_of(problem)
    if convexity == 0.0 and unabsorbed(at_x, box).any():
        return _over_implied_box(problem, x, _sharpened(problem, x, inside, at_x), box)
    return bound_from(at_x, x, box if problem.boxed else None, convexity)


def _over_implied_box(problem: Composite, x: Array, at_x: Enclosure, box: VariableBounds) -> Bound:
    """Return the bound over the variables' own bounds and those that the rows imply for them."""
    f = problem.smooth
    linear = isinstance(f, QuadraticForm) and f.P is None and not problem.norms
    objective = f.enclose(x) if linear else None
    rows = partial(_matrix_rows, problem)
    implied, units = implied_box(problem), reach_units(problem)
    return bound_over_rows(at_x, x, box, implied, rows, units, objective)


def _sharpened(
    problem: Composite, x: Array, multipliers: Sequence[Array], at_x: Enclosure
) -> Enclosure:
    """Return the Lagrangian with its gradient computed in extended precision, if all rows are sparse."""
    products = []
    for term, v in zip(problem.terms, multipliers, strict=True):
        if bounds_variables(term):
            continue
        M = host_matrix(term.D)
        if not scipy.sparse.issparse(M):
            return at_x
        products.append((M, v))
    return sharpened(at_x.value, problem.smooth.enclose(x), products)


_IMPLIED: weakref.WeakKeyDictionary[Composite, VariableBounds] = weakref.WeakKeyDictionary()


def implied_box(problem: Composite) -> VariableBounds:
    """Return the bounds of variables and those that rows imply; computed once for each problem."""
    if problem not in _IMPLIED:
        _IMPLIED[problem] = box_of(problem).implied(_matrix_rows(problem))
    return _IMPLIED[problem]


def _matrix_rows(problem: Composite) -> list[tuple[Matrix, Array, Array]]:
    """Return the rows of intervals with entries on the host."""
    rows = []
    for term in problem.terms:
        if isinstance(term.atom, Interval) and not term.is_identity:
            M = host_matrix(term.D)
            if M is not None:
                rows.append((M, term.atom.lower, term.atom.upper))
    return rows
