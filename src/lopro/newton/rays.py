"""Certificates of emptiness and of unboundedness, from the directions in which iterates diverge.

If no point is feasible the multipliers diverge along Farkas multipliers; without a lower bound the points
diverge along a ray of descent. `lopro.certificates` checks both.

A tenth and ten times of the constants below change nothing in the problems of ``python -m
benchmarks.constants newton``, except that without any round the empty problem is not recognised.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lopro.certificates import DescentRay, Emptiness, Units, VariableBounds, check_descent, exclude
from lopro.certificates.emptiness import interval_rows
from lopro.functions.atoms import Interval
from lopro.functions.term import Term
from lopro.linalg.dense import Array, Matrix, norm
from lopro.linalg.rounding import gamma
from lopro.maps import linear_map
from lopro.maps.host import entries_of
from lopro.newton.bounds.feasible import made_feasible
from lopro.newton.bounds.lower import box_of
from lopro.newton.complement_pieces import weighted
from lopro.newton.curvature import Piece, is_host_matrix
from lopro.newton.multipliers import OuterIterate
from lopro.newton.problem import Composite
from lopro.newton.quadratic_form import QuadraticForm
from lopro.newton.smooth import Image
from lopro.newton.systems import SingularSystem, choose_system

__all__ = [
    "descent_ray",
    "farkas_multipliers",
    "farkas_of_rows",
    "ray_of_rows",
]

#: Rounds of correcting the multipliers and projecting them onto their cone.
_ROUNDS = 4
#: Estimates from which on a certificate is checked with rounding bounds: its radius, its curvature.
_PROMISING = 1e3
_FLAT = 1e-6


def farkas_multipliers(
    problem: Composite, before: Sequence[Array], after: Sequence[Array]
) -> tuple[Image, Emptiness] | None:
    """Return the direction in which multipliers of sets diverge, and what it proves; None if nothing.

    Parameters
    ----------
    problem : Composite
        A problem whose sets are given by matrices.
    before, after : sequences of arrays
        Multipliers of two consecutive outer steps.
    """
    pairs = zip(problem.terms, before, after, strict=True)
    moves = [(term, b - a) for term, a, b in pairs if term.is_set]
    sets = [term for term, _ in moves]
    size = max((float(np.abs(y).max(initial=0.0)) for _, y in moves), default=0.0)
    known = all(t.is_identity or entries_of(t.D) is not None for t in sets)
    if not known or size == 0.0:
        return None
    y = _corrected(sets, [move / size for _, move in moves], problem.size)
    support = sum(t.conjugate(v) for t, v in zip(sets, y, strict=True))
    residual = _residual(sets, y, problem.size)
    # The check with rounding bounds is expensive: it is made where the estimate suggests success.
    if not support < -_PROMISING * norm(residual):
        return None
    return tuple(y), exclude(sets, y, problem.size)


def _residual(sets: Sequence[Term], y: Sequence[Array], size: int) -> Array:
    total = np.zeros(size)
    for term, v in zip(sets, y, strict=True):
        total = total + term.pullback(v)
    return total


def _corrected(sets: Sequence[Term], y: list[Array], size: int) -> list[Array]:
    """Return multipliers near ``y`` with a smaller ``sum A'y``: least squares on their support."""
    for _ in range(_ROUNDS):
        y = [t.into_domain(v) for t, v in zip(sets, y, strict=True)]
        residual = _residual(sets, y, size)
        pieces: list[Piece] = []
        for term, v in zip(sets, y, strict=True):
            weights = (v != 0.0) / np.maximum(term.row_norms**2, np.finfo(float).tiny)
            pieces.append(weighted(term.D, weights))
        try:
            step = choose_system(size, pieces).solve(pieces, 1e-12, residual, 1e-12)
        except SingularSystem:
            return y
        y = [
            v - (v != 0.0) * term.image(step) / np.maximum(term.row_norms**2, 1e-300)
            for term, v in zip(sets, y, strict=True)
        ]
    return [t.into_domain(v) for t, v in zip(sets, y, strict=True)]


def farkas_of_rows(
    A: Matrix, lower: Array, upper: Array, box: VariableBounds, y: Array
) -> tuple[Array, Array]:
    """Return multipliers of rows and of bounds near ``y`` with ``A'y + w`` as small as rounding, if possible.

    The multiplier of a bound absorbs the residual of its variable. Where a bound is infinite, ``A'y`` must
    have the sign of the other one, or vanish: the multipliers are corrected in proportion to their size.
    """
    signs = Interval(
        np.where(np.isfinite(lower), -np.inf, 0.0), np.where(np.isfinite(upper), np.inf, 0.0)
    )
    left = Interval(
        np.where(np.isfinite(box.upper), -np.inf, 0.0),
        np.where(np.isfinite(box.lower), np.inf, 0.0),
    )
    cone = Composite(
        QuadraticForm(None, np.zeros(len(y))), [Term(left, linear_map(A.T)), Term(signs)]
    )
    y = _on_cone(cone, y)
    leftover = -np.asarray(A.T @ y)
    return y, Interval(box.lower, box.upper).into_domain(leftover)


def ray_of_rows(
    P: Matrix | None, A: Matrix, lower: Array, upper: Array, box: VariableBounds, d: Array
) -> Array:
    """Return a recession direction of the rows near ``d`` with ``P d = 0``, up to rounding."""

    def cone(least: Array, most: Array) -> Interval:
        return Interval(
            np.where(np.isfinite(least), 0.0, -np.inf), np.where(np.isfinite(most), 0.0, np.inf)
        )

    terms = [Term(cone(box.lower, box.upper))]
    if len(lower):
        terms.append(Term(cone(lower, upper), linear_map(A)))
    if P is not None:
        flat = np.zeros(len(d))
        terms.append(Term(Interval(flat, flat), linear_map(P)))
    return _on_cone(Composite(QuadraticForm(None, np.zeros(len(d))), terms), d)


def _on_cone(cone: Composite, v: Array) -> Array:
    """Return a point of a polyhedral cone near ``v``; violations are relative to the terms of each row."""
    alone = Units.given(np.zeros(len(v)))
    return made_feasible(cone, v, gamma(len(v)), alone)


def descent_ray(
    problem: Composite, before: OuterIterate, after: OuterIterate
) -> tuple[Array, DescentRay] | None:
    """Return the direction between two points, and what it proves for quadratic objectives; else None."""
    rows = interval_rows(problem.terms)
    f = problem.smooth
    d = after.point.x - before.point.x
    if rows is None or not isinstance(f, QuadraticForm) or norm(d) == 0.0:
        return None
    P = f.P
    if P is not None and not is_host_matrix(P):
        return None  # the check with rounding bounds is made on the host
    gradient = f.gradient(after.point.x, after.point.image)
    d = d / norm(d)
    flat = P is None or float(d @ (P @ d)) * norm(after.point.x) <= _FLAT * norm(gradient)
    staying = all(
        _exit_rate(term, term.image(d)) <= _FLAT * term.row_norms.max(initial=0.0)
        for term in problem.terms
    )
    # As above, the check with rounding bounds is made where the estimate suggests success.
    if not (flat and staying and gradient @ d < 0.0):
        return None
    mapped = [each for each in rows if each[0] is not None]
    if len(mapped) == 1:
        d = ray_of_rows(P, *mapped[0], box_of(problem), d)
    return d, check_descent(P, gradient, rows, d)


def _exit_rate(term: Term, image: Array) -> float:
    """Return the rate at which a direction with this image leaves an interval."""
    assert isinstance(term.atom, Interval)
    up = np.where(np.isfinite(term.atom.upper), image, 0.0).max(initial=0.0)
    down = np.where(np.isfinite(term.atom.lower), -image, 0.0).max(initial=0.0)
    return float(max(up, down))
