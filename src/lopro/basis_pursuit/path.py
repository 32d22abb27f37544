"""The path of solutions for falling alpha: its first piece in closed form, and its breakpoints.

On the first piece the solution has one nonzero. Where sigma is close to ``|y|``, ``x`` is so short that the
residual hardly differs from ``y``, and a difference of two residuals is rounding; the formula has none.

For ``alpha`` from its largest value down, the solution of ``alpha w'|x| + |A x - y|^2 / 2`` is piecewise
linear in ``alpha``. On a piece with support ``S`` and signs ``s`` it is ``x = p - alpha q`` with
``p = G^-1 A'y`` and ``q = G^-1 (w s)``, and correlations are ``u + alpha v`` with ``u = A'(y - A p)`` and
``v = A'A q``. The piece ends where an entry of ``x`` vanishes, where a correlation outside comes up to
``alpha w``, or where the residual has the required length. There are about as many pieces as nonzeros in the
end, and each costs a few short vectors.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from lopro.basis_pursuit.blocks import BlockNorm
from lopro.basis_pursuit.columns import Vector, cholesky_routines
from lopro.basis_pursuit.problem import SparseProblem, images_at
from lopro.constraints.base import ValidInequality
from lopro.core.arrays import Array, asarray_like, eps, norm, to_numpy, widest
from lopro.core.exact import square_beyond
from lopro.objectives import L1Norm
from lopro.protocol import Candidate, Multiplier, Workbench

__all__ = ["FEW_COLUMNS", "FEW_ROWS", "one_nonzero", "signs_at_radius"]


_CLOSE_TO_Y = 0.9  # of |y|: below, one nonzero is hardly ever enough
_CANCELS = 1e9  # of the rounding of |y|^2: what is less is computed exactly


def one_nonzero(bench: Workbench, sparse: SparseProblem, x0: Array) -> Candidate | None:
    """Return the solution if it has one nonzero and proves to be good enough; None costs three products.

    The column that correlates most with ``y``, in units of its weight, enters first. Where ``a`` is that
    column and ``c = a^H y``, its coefficient has the phase of ``c`` and the smaller root ``t`` of
    ``|y - t a c / |c||^2 = sigma^2`` as its modulus. A block enters along its correlations.
    """
    ball = sparse.ball
    length = norm(ball.y)
    if not _CLOSE_TO_Y * length < ball.sigma < length:
        return None
    sparse, y = replace(sparse, weights=to_numpy(sparse.weights)), to_numpy(ball.y)
    like = widest((ball.y, ball.like))
    correlations = to_numpy(ball.pullback((asarray_like(y, like),)))
    j = int(np.argmax(sparse.excess(correlations)))
    block = _block_of(j, sparse.objective)
    c = np.maximum(correlations[block], 0.0) if sparse.nonneg else correlations[block]
    size = norm(c)
    if size == 0.0 or not math.isfinite(size):
        return None
    x = np.zeros(ball.A.shape[1], dtype=correlations.dtype)
    x[block] = c / size
    column = to_numpy(ball.image(asarray_like(x, x0))[0])
    rest = (length - ball.sigma) * (length + ball.sigma)
    if rest < _CANCELS * eps(y) * length * length:
        rest = square_beyond(y, ball.sigma)
    depth = size * size - norm(column) * norm(column) * rest
    if depth < 0.0 or not math.isfinite(depth):
        return None
    t = rest / (size + math.sqrt(depth))
    x[block] *= t
    image = t * column
    r = y - image
    g = to_numpy(ball.pullback((asarray_like(r, like),)))
    found = sparse.proved(r, g, stretch=max(norm(correlations) / norm(y), norm(column)))
    fun = t * float(sparse.weights[j])
    if found is None or fun + found.support > 0.5 * bench.target.gap(fun):
        return None
    bench.tick()
    return _candidate(bench, found, asarray_like(x, x0), asarray_like(image, like))


def _block_of(j: int, objective: L1Norm | BlockNorm) -> Any:
    """Return the entries that leave zero together with one of them."""
    return objective.labels == objective.labels[j] if isinstance(objective, BlockNorm) else [j]


def _candidate(bench: Workbench, found: ValidInequality, x: Array, image: Array) -> Candidate:
    """Return the point as it is: a projection would move it inside by more than it is long."""
    assert found.dual is not None
    multiplier = ValidInequality(
        asarray_like(found.direction, x),
        found.support,
        tuple(asarray_like(v, image if v.shape == image.shape else x) for v in found.dual),
    )
    return Candidate(x, Multiplier(multiplier), image=images_at(x, image, bench.problem.constraint))


#: Rows and columns up to which the path is followed: each breakpoint costs a product with all columns, and
#: Newton's method changes many signs at once. 20 x 50 and 40 x 200 take two products instead of five or six.
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
    >>> from lopro.basis_pursuit.path import signs_at_radius
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
