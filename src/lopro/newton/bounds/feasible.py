"""Violations of a point, their charge to the gap, and points with smaller violations.

The charge bounds the decrease of the value by the violations. Violated rows are corrected by changes of the
variables in proportion to their size.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.certificates import (
    FEASIBLE,
    Units,
    VariableBounds,
    Violation,
    column_units,
    of_rows,
)
from lopro.certificates.violation import ball_size, relative
from lopro.functions.atoms import Ball, Interval, L1Ball
from lopro.functions.term import Term
from lopro.linalg.dense import EPS, Array, Matrix, norm
from lopro.linalg.sparse import affords_gram, sparse_factors
from lopro.maps.host import entries_of, host_matrix
from lopro.newton.bounds.lower import box_of
from lopro.newton.problem import Composite

__all__ = [
    "made_feasible",
    "relative_violation",
    "units_of",
    "violation",
    "violation_charge",
    "within_bounds",
]


def violation_charge(problem: Composite, x: Array, multipliers: Sequence[Array]) -> float:
    """Return ``sum |v_i| viol_i``, an upper bound of the optimal value minus ``f(x)``.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.functions.atoms import Interval, Linear
    >>> from lopro.functions.term import Term
    >>> from lopro.newton import Composite
    >>> from lopro.newton.bounds import violation_charge
    >>> terms = [Term(Linear(np.array([-2.0]))), Term(Interval([-np.inf], [1.0]))]
    >>> problem = Composite.of(terms, 1)
    >>> charge = violation_charge(problem, np.array([1.5]), [np.array([2.0])])
    >>> abs(charge - 1.0) < 1e-14
    True
    """
    charge = 0.0
    for term, v in zip(problem.terms, multipliers, strict=True):
        excess = term.distance(term.image(x))
        sizes = np.abs(v) if term.separable else np.sqrt(v @ v)
        charge += float(np.sum(sizes * excess)) * (1.0 + (term.size + 4) * EPS)
    return charge


def relative_violation(problem: Composite, x: Array) -> float:
    """Return the largest violation, relative to the terms of its row or the data of its ball."""
    return violation(problem, x).relative


def violation(problem: Composite, x: Array, units: Units | None = None) -> Violation:
    """Return the violation of the sets among the terms, as defined in `lopro.certificates.violation`.

    ``units`` are those of the variables; by default they follow from the data.
    """
    worst = Violation()
    for term in problem.terms:
        if not term.is_set:
            continue
        image = term.image(x)
        if isinstance(term.atom, Interval):
            current = _of_interval(problem, term, x, image, units)
        else:
            excess = float(term.distance(image))
            current = Violation(excess / _size(term, x, image) if excess > 0.0 else 0.0, excess)
        worst = worst.and_also(current)
    return worst


def _of_interval(
    problem: Composite, term: Term, x: Array, image: Array, units: Units | None
) -> Violation:
    part = term.atom
    assert isinstance(part, Interval)
    worst = Violation()
    for excess, side in ((image - part.upper, part.upper), (part.lower - image, part.lower)):
        if excess.max(initial=0.0) <= 0.0:
            continue
        entries = entries_of(term.D)
        if entries is None and not term.is_identity:
            # For operators, estimated norms of the rows times the norm of the point.
            sizes = term.row_norms * norm(x) + np.abs(np.where(excess > 0.0, side, 0.0))
            current = Violation(float(relative(excess, sizes).max()), float(excess.max()))
        else:
            current = of_rows(entries, x, excess, side, lambda: units or units_of(problem))
        worst = worst.and_also(current)
    return worst


def _size(term: Term, x: Array, image: Array) -> float:
    """Return the unit of a ball or a cone: the size of its data, or of the products if these are 0."""
    products = norm(term.row_norms) * norm(x)
    offset = 0.0 if term.offset is None else norm(term.offset)
    if isinstance(term.atom, Ball | L1Ball):
        return ball_size(term.atom.radius, offset, lambda: products)
    return norm(image) + offset or products


_UNITS: weakref.WeakKeyDictionary[Composite, Units] = weakref.WeakKeyDictionary()


def units_of(problem: Composite) -> Units:
    """Return the units of the variables; computed once for each problem."""
    if problem not in _UNITS:
        blocks = []
        for term in problem.terms:
            entries = entries_of(term.D)
            if isinstance(term.atom, Interval) and (entries is not None or term.is_identity):
                blocks += [(entries, term.atom.lower), (entries, term.atom.upper)]
        _UNITS[problem] = column_units(blocks, problem.size)
    return _UNITS[problem]


#: Maximum number of corrections: each removes the rounding of the last one and adds rows that it violates. 0
#: changes 3 % of the steps of ``python -m benchmarks.constants newton``, 80 nothing.
_ROUNDS = 8


def made_feasible(
    problem: Composite, x: Array, tolerance: float, units: Units | None = None
) -> Array:
    """Return a point near ``x`` with a smaller relative violation; ``x`` itself if there is none.

    Variables outside of their bounds are moved onto them. Then the residuals of equations and violated rows
    are removed by the shortest step, measured for each variable in its unit, or in its absolute value if that
    is larger. Variables on a bound stay there unless the others alone make no progress. ``units`` are those
    of the variables; by default they follow from the data.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.functions.atoms import Interval, Linear
    >>> from lopro.functions.term import Term
    >>> from lopro.maps import linear_map
    >>> from lopro.newton import Composite
    >>> from lopro.newton.bounds.feasible import made_feasible
    >>> total = Term(Interval([1.0], [1.0]), linear_map(np.ones((1, 3))))
    >>> signs = Term(Interval(np.zeros(3), np.full(3, np.inf)))
    >>> problem = Composite.of([Term(Linear(np.ones(3))), total, signs], 3)
    >>> made_feasible(problem, np.array([0.6, 0.3, -1e-6]), 1e-9).round(6) + 0.0
    array([0.65, 0.35, 0.  ])
    """
    rows = _rows(problem)
    if rows is None:
        return x
    A, lower, upper = rows
    box = box_of(problem)
    best, least = x, violation(problem, x, units).relative
    known = units or units_of(problem)
    x = np.clip(x, box.lower, box.upper)
    # Skipped for cones, where all sides are 0 and every column would be a remnant.
    x = x if units is not None else _without_remnants(problem, x, rows, known.groups)
    active, last = lower == upper, math.inf
    for _ in range(_ROUNDS):
        now = violation(problem, x, units).relative
        if now < least:
            best, least = x, now
        if now <= tolerance or not np.isfinite(now):
            break
        image = np.asarray(A @ x)
        missed = image - np.clip(image, lower, upper)
        active = active | (missed != 0.0)
        room = np.maximum(np.abs(x), known.at(x))
        between = (x > box.lower) & (x < box.upper)
        move = partial(_step, A[active], missed=missed[active])
        step = move(room * between) if now < 0.5 * last else None
        if step is None:
            step = _inwards(move, room, x, box)
        if step is None:
            break
        x, last = np.clip(x - step, box.lower, box.upper), now
    return best


def _without_remnants(
    problem: Composite, x: Array, rows: tuple[Matrix, Array, Array], groups: Any
) -> Array:
    """Return the point with zeros in those columns of violated rows whose rows all have the side 0.

    Zeros satisfy these rows, whereas rounding left by a step would be large relative to their terms. The
    point is replaced only if its value does not change.
    """
    A, lower, upper = rows
    image = np.asarray(A @ x)
    missed = (image < lower) | (image > upper)
    hit = np.unique(groups[np.unique(A[missed].indices)])
    y = np.where(np.isin(groups, hit[hit >= 0]), 0.0, x)
    if np.array_equal(y, x):
        return x
    y, before = np.clip(y, *problem.box), problem.value(x)
    return y if abs(problem.value(y) - before) <= FEASIBLE * abs(before) else x


def within_bounds(problem: Composite, x: Array) -> Array:
    """Return the projection of a point onto the bounds of variables."""
    if not problem.boxed:
        return x
    box = box_of(problem)
    return np.asarray(np.clip(x, box.lower, box.upper))


def _rows(problem: Composite) -> tuple[Matrix, Array, Array] | None:
    """Return all rows except bounds of variables; None if a term is not given by entries on the host."""
    matrices, lower, upper = [], [], []
    for term in problem.terms:
        part, entries = term.atom, host_matrix(term.D)
        if isinstance(part, Interval) and term.is_identity:
            continue
        if not isinstance(part, Interval) or entries is None:
            return None
        matrices.append(scipy.sparse.csr_array(entries))
        lower.append(part.lower)
        upper.append(part.upper)
    if not matrices:
        return scipy.sparse.csr_array((0, problem.size)), np.zeros(0), np.zeros(0)
    return (
        scipy.sparse.vstack(matrices, format="csr"),
        np.concatenate(lower),
        np.concatenate(upper),
    )


def _inwards(
    move: Callable[[Array], Array | None], room: Array, x: Array, box: VariableBounds
) -> Array | None:
    """Return a step that also moves those variables on a bound that it moves inwards."""
    moving = (box.lower < box.upper).astype(np.float64)
    for _ in range(_ROUNDS):
        step = move(room * moving)
        if step is None:
            return None
        outwards = ((x <= box.lower) & (step > 0.0)) | ((x >= box.upper) & (step < 0.0))
        if not outwards.any():
            return step
        moving[outwards] = 0.0
    return step


def _step(A: Matrix, room: Array, missed: Array) -> Array | None:
    """Return the step with the smallest ``|step / room|`` that changes the rows by ``missed``."""
    scaled = scipy.sparse.csr_array(A @ scipy.sparse.diags_array(room))
    if not affords_gram(scaled):
        return None
    sizes = np.sqrt(np.asarray(scaled.multiply(scaled).sum(axis=1)).ravel())
    free = np.flatnonzero(sizes > 0.0)
    if len(free) == 0:
        return None
    scaled = scipy.sparse.diags_array(1.0 / sizes[free]) @ scaled[free]
    # For rows of unit length a shift by some roundings makes the matrix of dependent rows regular.
    gram = scaled @ scaled.T + 64.0 * EPS * scipy.sparse.eye_array(len(free))
    factors = sparse_factors(scipy.sparse.csc_array(gram))
    if factors is None:
        return None
    y = factors.solve(missed[free] / sizes[free])
    step = room * (scaled.T @ y)
    return np.asarray(step) if np.isfinite(step).all() else None
