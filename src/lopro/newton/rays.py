"""Where certificates of emptiness and of unboundedness come from: the directions in which runs diverge.

Without a feasible point the multipliers grow along Farkas multipliers; without a lower bound the points
move along a ray of descent. What is found here is checked elsewhere (`lopro.newton.bounds.certificates`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lopro.newton.arrays import Array, Image, norm
from lopro.newton.bounds.certificates import Descent, Emptiness, check_descent, check_empty
from lopro.newton.curvature import Diagonal, Gram, Piece
from lopro.newton.maps import Dense, Identity, Sparse
from lopro.newton.multipliers import Iterate
from lopro.newton.parts import Interval, Part
from lopro.newton.problem import Composite
from lopro.newton.smooth import Linear, Quadratic
from lopro.newton.systems import SingularSystem, choose_system

__all__ = ["descent_ray", "farkas_multipliers", "interval_rows"]

#: Rounds of correcting the multipliers and moving them back into their cone.
_ROUNDS = 4
#: What rounded numbers must promise before a certificate is checked exactly: a radius, flatness.
_PROMISING = 1e3
_FLAT = 1e-6


def interval_rows(problem: Composite) -> list[tuple[object, Array, Array]] | None:
    """Return the rows ``lower <= A x <= upper`` of a problem whose terms are all of this kind, else None."""
    rows: list[tuple[object, Array, Array]] = []
    for term in problem.terms:
        part = term.part
        if not isinstance(part, Interval) or not isinstance(term.D, Identity | Dense | Sparse):
            return None
        A = None if isinstance(term.D, Identity) else term.D.M
        rows.append((A, part.lower, part.upper))
    return rows


def farkas_multipliers(
    problem: Composite, before: Sequence[Array], after: Sequence[Array]
) -> tuple[Image, Emptiness] | None:
    """Return multipliers along which a run diverges, and what they prove, if the problem has rows only.

    Parameters
    ----------
    problem : Composite
        A problem with rows ``lower <= A x <= upper``.
    before, after : sequences of arrays
        Multipliers of two outer steps, the later ones last.
    """
    rows = interval_rows(problem)
    moved = [b - a for a, b in zip(before, after, strict=True)]
    size = max((float(np.abs(y).max(initial=0.0)) for y in moved), default=0.0)
    if rows is None or size == 0.0:
        return None
    y = _repaired(problem, [m / size for m in moved])
    support = sum(t.part.conjugate(v) for t, v in zip(problem.terms, y, strict=True))
    residual = _residual(problem, y)
    # The exact check takes long; it is made only where rounded numbers promise something.
    if not support < -_PROMISING * norm(residual):
        return None
    return tuple(y), check_empty(rows, y, problem.size)


def _residual(problem: Composite, y: Sequence[Array]) -> Array:
    total = np.zeros(problem.size)
    for term, v in zip(problem.terms, y, strict=True):
        total = total + term.D.adjoint(v)
    return total


def _repaired(problem: Composite, y: list[Array]) -> list[Array]:
    """Return multipliers near ``y`` with a smaller ``sum A'y``: least squares on their support."""
    for _ in range(_ROUNDS):
        y = [t.part.into_domain(v) for t, v in zip(problem.terms, y, strict=True)]
        residual = _residual(problem, y)
        pieces: list[Piece] = []
        for term, v in zip(problem.terms, y, strict=True):
            weights = (v != 0.0) / np.maximum(term.D.row_norms() ** 2, np.finfo(float).tiny)
            matrix = term.D.M if isinstance(term.D, Dense | Sparse) else None
            pieces.append(Diagonal(weights) if matrix is None else Gram(matrix, weights))
        try:
            step = choose_system(problem.size, pieces).solve(pieces, 1e-12, residual, 1e-12)
        except SingularSystem:
            return y
        y = [
            v - (v != 0.0) * term.D.forward(step) / np.maximum(term.D.row_norms() ** 2, 1e-300)
            for term, v in zip(problem.terms, y, strict=True)
        ]
    return [t.part.into_domain(v) for t, v in zip(problem.terms, y, strict=True)]


def descent_ray(
    problem: Composite, before: Iterate, after: Iterate
) -> tuple[Array, Descent] | None:
    """Return the direction in which the points of a run move, and what it proves (quadratic objectives)."""
    rows = interval_rows(problem)
    f = problem.smooth
    d = after.point.x - before.point.x
    if rows is None or not isinstance(f, Linear | Quadratic) or norm(d) == 0.0:
        return None
    P = f.P if isinstance(f, Quadratic) else None
    gradient = f.gradient(after.point.x, after.point.image)
    d = d / norm(d)
    flat = P is None or float(d @ (P @ d)) * norm(after.point.x) <= _FLAT * norm(gradient)
    staying = all(
        _leaves(term.part, term.D.forward(d)) <= _FLAT * term.D.row_norms().max(initial=0.0)
        for term in problem.terms
    )
    # As above: exact only where rounded numbers promise something.
    if not (flat and staying and gradient @ d < 0.0):
        return None
    return d, check_descent(P, gradient, rows, d)


def _leaves(part: Part, image: Array) -> float:
    """Return how fast a direction with this image leaves an interval."""
    assert isinstance(part, Interval)
    up = np.where(np.isfinite(part.upper), image, 0.0).max(initial=0.0)
    down = np.where(np.isfinite(part.lower), -image, 0.0).max(initial=0.0)
    return float(max(up, down))
