"""Multipliers that rounding cannot make infeasible: a little inside of what is allowed.

At a variable with a lower bound only, the Lagrangian may rise but not fall. Where it should be flat, rounding
makes it fall on every other variable, and the bound then holds within a radius only. Moving the
multipliers so that it rises by a little more than the rounding costs that little times the variable, and
no radius is left.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lopro.certificates import Box
from lopro.certificates.residual import unabsorbed
from lopro.functions.atoms import Interval
from lopro.maps import SparseMap
from lopro.newton.arrays import Array, Image, Pattern, norm
from lopro.newton.bounds.lower import bounds_variables, implied_box, lagrangian
from lopro.newton.curvature import Constant, Diagonal, Gram, Piece, diagonal, weighted
from lopro.newton.problem import Composite
from lopro.newton.systems import AugmentedSystem, SingularSystem, choose_system
from lopro.newton.systems.pattern import is_sparse

__all__ = ["can_be_strict", "strictly_feasible"]

#: How many times their error the slopes are moved inside, and how often that is tried.
_MARGIN = 4.0
_ROUNDS = 4
#: Weights of variables that are to stay where they are, and of all, relative to the mean curvature.
_HELD = 1e4
_SHIFTS = (1e-13, 1e-11, 1e-9)
#: Up to this size dense factors are the faster ones.
_SMALL = 100


def can_be_strict(problem: Composite) -> bool:
    """Whether every variable has a bound: where one has none, some rounding of its slope is left."""
    box = implied_box(problem)
    return bool(np.all(np.isfinite(box.lower) | np.isfinite(box.upper)))


def strictly_feasible(
    problem: Composite, x: Array, multipliers: Sequence[Array], thorough: bool = True
) -> tuple[Array, Image] | None:
    """Return a point and multipliers near these at which no slope falls towards a missing bound.

    Parameters
    ----------
    problem : Composite
        A problem whose terms are all intervals.
    x, multipliers : arrays
        A solution, up to little.
    thorough : bool
        Whether to try normal equations where a sparse system does not get there: they round in another way.

    Returns
    -------
    x, multipliers
        None where nothing has to be moved.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.functions.atoms import Interval, Linear
    >>> from lopro.functions.term import Term
    >>> from lopro.maps import linear_map
    >>> from lopro.newton import Composite
    >>> from lopro.certificates.residual import unabsorbed
    >>> from lopro.newton.bounds import lagrangian, strictly_feasible
    >>> from lopro.newton.bounds.lower import implied_box
    >>> row = Term(Interval([1.0], [np.inf]), linear_map([[1.0, 1.0]]))
    >>> orthant = Term(Interval(np.zeros(2), np.full(2, np.inf)))
    >>> problem = Composite.of([Term(Linear(np.array([1.0, 2.0]))), row, orthant], 2)
    >>> x, v = np.array([1.0, 0.0]), [np.array([-1.0 - 1e-12]), np.zeros(2)]
    >>> unabsorbed(lagrangian(problem, x, v), implied_box(problem)).round(13)
    array([1.e-12, 0.e+00])
    >>> moved = strictly_feasible(problem, x, v)
    >>> unabsorbed(lagrangian(problem, *moved), implied_box(problem))
    array([0., 0.])
    """
    if not all(isinstance(term.atom, Interval) for term in problem.terms):
        return None
    first = [t.into_domain(u) for t, u in zip(problem.terms, multipliers, strict=True)]
    at_x = lagrangian(problem, x, first)
    if not unabsorbed(at_x, implied_box(problem)).any():
        return None
    found, done = _moved(problem, x, first, quick=True)
    if done or not thorough or not _sparse(problem, x):
        return found
    return _moved(problem, x, first, quick=False)[0]


def _moved(
    problem: Composite, x: Array, v: list[Array], quick: bool
) -> tuple[tuple[Array, Image], bool]:
    """Return the point and the multipliers after some rounds, and whether nothing is left to be moved."""
    box, last = implied_box(problem), np.inf
    for _ in range(_ROUNDS):
        at_x = lagrangian(problem, x, v)
        size = norm(unabsorbed(at_x, box))
        if size == 0.0 or size > 0.5 * last:
            return (x, tuple(v)), size == 0.0
        last = size
        moving, wanted = _wanted(box, x, at_x.gradient, at_x.error)
        step, weights = _step(problem, x, v, moving, wanted, quick)
        if step is None:
            break
        x = x + step
        terms = zip(problem.terms, v, weights, strict=True)
        v = [t.into_domain(u + w * t.image(step)) for t, u, w in terms]
    return (x, tuple(v)), False


def _step(
    problem: Composite, x: Array, v: Sequence[Array], moving: Pattern, wanted: Array, quick: bool
) -> tuple[Array | None, list[Array]]:
    """Return a step of the point that changes the slopes as wanted, and weights: those of its multipliers."""
    weights = _weights(problem, v)
    pieces = _pieces(problem, x, weights)
    mean = float(diagonal(pieces, problem.size).mean())
    pieces = [*pieces, Diagonal(np.where(moving, 0.0, _HELD * mean))]
    # The step is one of few, so a pattern of normal equations would not pay, and they may fill up.
    augmented = quick and _sparse(problem, x)
    system = AugmentedSystem(problem.size) if augmented else choose_system(problem.size, pieces)
    for shift in _SHIFTS:
        try:
            return system.solve(pieces, shift * mean, wanted, 1e-12), weights
        except SingularSystem:
            continue
    return None, weights


def _sparse(problem: Composite, x: Array) -> bool:
    """Whether rows and curvature are sparse, and the system is not a small one."""
    own = problem.smooth.curvature(x, problem.smooth.image(x))
    known = all(isinstance(piece, Diagonal | Constant | Gram) for piece in own) and is_sparse(own)
    rows = all(term.is_identity or isinstance(term.map, SparseMap) for term in problem.terms)
    return known and rows and problem.size > _SMALL


def _wanted(box: Box, x: Array, slope: Array, error: Array) -> tuple[Pattern, Array]:
    """Return which slopes should be flat, and by how much each has to change to be a little inside.

    Up over lower bounds, down under upper ones; the variable tells which of the slopes should be flat.
    """
    below, above = np.isfinite(box.lower), np.isfinite(box.upper)
    room = np.where(below, x - np.where(below, box.lower, 0.0), np.where(above, box.upper, 0.0) - x)
    one_sided = below ^ above
    free = ~below & ~above
    largest = float(np.abs(slope).max(initial=0.0)), float(room[one_sided].max(initial=0.0))
    flat = one_sided & (room * largest[0] > np.abs(slope) * largest[1])
    falling = one_sided & (np.where(below, slope, -slope) < error)
    inside = np.where(below, _MARGIN, -_MARGIN) * error
    moving = flat | falling | free
    return moving, np.where(moving, np.where(free, 0.0, inside) - slope, 0.0)


def _weights(problem: Composite, v: Sequence[Array]) -> list[Array]:
    """Return a weight for each row whose multiplier may move: in use, or that of an equality."""
    found = []
    for term, u in zip(problem.terms, v, strict=True):
        assert isinstance(term.atom, Interval)
        norms = term.row_norms
        usable = (u != 0.0) | (term.atom.lower == term.atom.upper)
        usable &= not bounds_variables(term)
        found.append(usable / np.where(norms > 0.0, norms * norms, 1.0))
    return found


def _slope_over_length(problem: Composite, x: Array) -> float:
    """Return a curvature in the units of the problem, for objectives that have none."""
    slope, length = norm(problem.smooth.gradient(x, problem.smooth.image(x))), norm(x)
    return slope / length if slope > 0.0 and length > 0.0 else 1.0


def _pieces(problem: Composite, x: Array, weights: Sequence[Array]) -> list[Piece]:
    """Return the curvature of the objective and of the rows, in comparable units."""
    own = problem.smooth.curvature(x, problem.smooth.image(x))
    scale = float(diagonal(own, problem.size).mean()) or _slope_over_length(problem, x)
    for w in weights:
        w *= scale
    terms = zip(problem.terms, weights, strict=True)
    return [*own, *(weighted(t.D, w) for t, w in terms if not bounds_variables(t))]
