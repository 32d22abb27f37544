"""The exact path of solutions of small problems, breakpoint by breakpoint, to the signs at a radius."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lopro.basis_pursuit.columns import support_newton
from lopro.basis_pursuit.columns.pieces import Vector, cholesky_routines
from lopro.maps import LinearMap, NumPyMap

__all__ = ["SETTINGS", "fits_path", "signs_at_radius"]


@dataclass(frozen=True)
class Settings:
    """Limits of the path."""

    #: The largest matrix: each breakpoint costs a product with all columns, and Newton's method changes many
    #: signs at once. 20 x 50 and 40 x 200 take 2 products, not 5 or 6.
    few_rows: int = 48
    few_columns: int = 256
    #: The maximal number of breakpoints for each row: in the worst case it is exponential. A
    #: tenth takes twice the products of 20 x 50, ten times as many change no count of `benchmarks.constants`.
    breakpoints: int = 4


SETTINGS = Settings()


def fits_path(A: LinearMap) -> bool:
    """Whether a matrix is small enough for the path to cost less than Newton's method."""
    few = A.shape[0] <= SETTINGS.few_rows and A.shape[1] <= SETTINGS.few_columns
    return few and isinstance(A, NumPyMap)


def signs_at_radius(
    A: Vector, y: Vector, weights: Vector, sigma: float, nonneg: bool
) -> Vector | None:
    """Return the signs of the solution whose residual has the length ``sigma``, by following the path.

    The solution is piecewise linear in ``alpha`` (M. Osborne, B. Presnell and B. Turlach, A new approach to
    variable selection in least squares problems, 2000). On a piece with support ``S``
    and signs ``s`` it is ``x = p - alpha q`` with ``p = G^-1 A'y`` and ``q = G^-1 (w s)``, and correlations
    are ``u + alpha v`` with ``u = A'(y - A p)`` and ``v = A'A q``. The piece ends where an entry of ``x``
    vanishes, where a correlation outside of the support reaches ``alpha w``, or where the residual has the
    required length. There are about as many pieces as nonzeros at the end, and each costs a few short
    vectors.

    None where the path ends before, columns are dependent, or two breakpoints coincide.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.basis_pursuit.columns.exact_path import signs_at_radius
    >>> A = np.array([[1.0, 0.0, 1.0], [0.0, -1.0, 1.0]])
    >>> signs_at_radius(A, np.array([2.0, 0.7]), np.array([1.0, 1.0, 3.0]), 0.3, nonneg=False)
    array([ 1., -1.,  0.])
    """
    gram, pulled = A.T @ A, A.T @ y
    missing = float(y @ y) - sigma * sigma
    sizes = (pulled if nonneg else np.abs(pulled)) / weights
    support = [int(sizes.argmax())]
    alpha = float(sizes[support[0]])
    signs = np.zeros(len(pulled))
    signs[support] = math.copysign(1.0, pulled[support[0]])
    _, _, _, posv = cholesky_routines("d")
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for _ in range(SETTINGS.breakpoints * len(y)):
            rows, pull = gram.take(support, axis=0), (weights * signs).take(support)
            own = pulled.take(support)
            _, solved, info = posv(rows.take(support, axis=1), np.array([own, pull]).T)
            if info != 0:
                return None
            p, q = solved.T
            limit = (1.0 - support_newton.SETTINGS.close) * alpha
            leaves, when = _largest_below(limit, p / q)
            u, v = pulled - p @ rows, q @ rows
            u[support] = 0.0
            # Where |u + alpha v| = alpha w, with the sign of u.
            side = 1.0 if nonneg else np.sign(u)
            enters, then = _largest_below(limit, side * u / (weights - side * v))
            alpha = max(when, then)
            # |y - A x|^2 = |y|^2 - p'A'y + alpha^2 q'G q
            room = float(own @ p) - missing
            if room >= 0.0 and math.sqrt(room) >= alpha * math.sqrt(max(0.0, float(pull @ q))):
                return signs
            if not 0.0 < alpha < math.inf:
                return None
            if alpha == when:
                signs[support.pop(leaves)] = 0.0
                if not support:
                    return None
            else:
                support.append(enters)
                signs[enters] = math.copysign(1.0, u[enters])
    return None


def _largest_below(limit: float, candidates: Vector) -> tuple[int, float]:
    """Return the position of the largest number below a limit, and the number, 0 where there is none."""
    below = np.where(candidates < limit, candidates, 0.0)
    i = int(below.argmax())
    return i, max(0.0, float(below[i]))
