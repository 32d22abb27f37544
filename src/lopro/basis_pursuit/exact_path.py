"""The path of solutions, breakpoint by breakpoint: which signs a small problem has at its radius.

For ``alpha`` from its largest value down, the solution of ``alpha w'|x| + |A x - y|^2 / 2`` is piecewise
linear in ``alpha``. On a piece with support ``S`` and signs ``s`` it is ``x = p - alpha q`` with
``p = G^-1 A'y`` and ``q = G^-1 (w s)``, and correlations are ``u + alpha v`` with ``u = A'(y - A p)`` and
``v = A'A q``. The piece ends where an entry of ``x`` vanishes, where a correlation outside comes up to
``alpha w``, or where the residual has the wanted length. There are about as many pieces as nonzeros in the
end, each costs a few short vectors, and nothing is guessed.
"""

from __future__ import annotations

import math

import numpy as np

from lopro.basis_pursuit.columns import Vector, cholesky_routines

__all__ = ["FEW_COLUMNS", "FEW_ROWS", "signs_at_radius"]

#: With more rows or columns guessing many signs at once is quicker.
FEW_ROWS, FEW_COLUMNS = 48, 256
#: Breakpoints for each row after which it is given up: in the worst case there are very many.
_MOST = 4
#: Breakpoints that are closer to each other, relatively, are taken for the same.
_CLOSE = 1e-10


def signs_at_radius(
    A: Vector, y: Vector, weights: Vector, sigma: float, nonneg: bool
) -> Vector | None:
    """Return the signs of the solution whose residual has the length ``sigma``, or None.

    None where the path does not get there, columns are dependent, or two things happen at once.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.basis_pursuit.exact_path import signs_at_radius
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
        for _ in range(_MOST * len(y)):
            rows, pull = gram.take(support, axis=0), (weights * signs).take(support)
            own = pulled.take(support)
            _, solved, info = posv(rows.take(support, axis=1), np.array([own, pull]).T)
            if info != 0:
                return None
            p, q = solved.T
            limit = (1.0 - _CLOSE) * alpha
            leaves, when = _largest_below(limit, p / q)
            u, v = pulled - p @ rows, q @ rows
            u[support] = 0.0
            # Where |u + alpha v| = alpha w: on the side of u, as it is below that now.
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
    """Return which of some numbers is the largest below a limit, and that number; 0 where there is none."""
    below = np.where(candidates < limit, candidates, 0.0)
    i = int(below.argmax())
    return i, max(0.0, float(below[i]))
