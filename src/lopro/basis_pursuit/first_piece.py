"""Solutions with one nonzero: the first piece of the path, where sigma is close to ``|y|``.

There ``x`` is so short that the residual hardly differs from ``y``, and whatever is computed as a difference
of two residuals is rounding. On this piece the solution is a formula in which nothing cancels.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from lopro.basis_pursuit.block_norm import BlockNorm
from lopro.basis_pursuit.problem import SparseProblem, images_at
from lopro.constraints.base import ValidInequality
from lopro.core.arrays import Array, asarray_like, eps, norm, to_numpy, widest
from lopro.core.exact import square_beyond
from lopro.objectives import L1Norm
from lopro.protocol import Candidate, Multiplier, Workbench

__all__ = ["first_piece"]

_CLOSE = 0.9  # of |y|: below, one nonzero is hardly ever enough
_CANCELS = 1e9  # of the rounding of |y|^2: what is less is computed exactly


def first_piece(bench: Workbench, sparse: SparseProblem, x0: Array) -> Candidate | None:
    """Return the solution if it has one nonzero and proves to be good enough; None costs three products.

    The column that correlates most with ``y``, in units of its weight, enters first. Where ``a`` is that
    column and ``c = a^H y``, its coefficient has the phase of ``c`` and the smaller root ``t`` of
    ``|y - t a c / |c||^2 = sigma^2`` as its modulus. A block enters along its correlations.
    """
    ball = sparse.ball
    length = norm(ball.y)
    if not _CLOSE * length < ball.sigma < length:
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
