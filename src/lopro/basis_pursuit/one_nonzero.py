"""The solution of basis pursuit denoising with one nonzero, in closed form, for sigma close to ``|y|``."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from lopro.basis_pursuit.block_norm import BlockNorm
from lopro.basis_pursuit.problem import SparseProblem, images_at
from lopro.core.arrays import Array, asarray_like, eps, norm, to_numpy, widest
from lopro.core.exact import square_beyond
from lopro.objectives import L1Norm
from lopro.protocol import Candidate, Candidates, Workbench

__all__ = ["one_nonzero"]

#: In roundings of ``|y|^2``: a smaller ``|y|^2 - sigma^2`` is computed exactly, to keep nine digits.
_CANCELS = 1e9


def one_nonzero(bench: Workbench, sparse: SparseProblem, x0: Array) -> Candidates:
    """Propose the solution if it has one nonzero and its gap is small enough; else spend three products.

    Where sigma is close to ``|y|``, ``x`` is so short that the residual hardly differs from ``y``, and a
    difference of two residuals is rounding; the formula takes no such difference.

    The column that correlates most with ``y``, in units of its weight, enters first. Where ``a`` is that
    column and ``c = a^H y``, its coefficient has the phase of ``c`` and the smaller root ``t`` of
    ``|y - t a c / |c||^2 = sigma^2`` as its modulus. A block enters along its correlations.
    """
    candidate = _candidate(bench, sparse, x0) if sparse.is_close_to_y else None
    if candidate is not None:
        yield candidate


def _candidate(bench: Workbench, sparse: SparseProblem, x0: Array) -> Candidate | None:
    ball = sparse.ball
    length = norm(ball.y)
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
    t = _smaller_root(y, ball.sigma, length, size, norm(column))
    if t is None:
        return None
    x[block] *= t
    image = t * column
    r = y - image
    g = to_numpy(ball.pullback((asarray_like(r, like),)))
    found = sparse.proved(r, g, stretch=max(norm(correlations) / norm(y), norm(column)))
    fun = t * float(sparse.weights[j])
    if found is None or fun + found.support > 0.5 * bench.target.gap(fun):
        return None
    bench.tick()
    # Without a projection, which would move the point inside by more than its length.
    x, evidence = asarray_like(x, x0), sparse.evidence(sparse.as_given(found, x0))
    images = images_at(x, asarray_like(image, like), bench.problem.constraint)
    return Candidate(x, evidence, image=images)


def _smaller_root(
    y: Array, sigma: float, length: float, size: float, of_column: float
) -> float | None:
    """Return the smaller ``t`` with ``|y|^2 - 2 t |c| + t^2 |a|^2 = sigma^2``; None where there is none."""
    rest = (length - sigma) * (length + sigma)
    if rest < _CANCELS * eps(y) * length * length:
        rest = square_beyond(y, sigma)
    depth = size * size - of_column * of_column * rest
    if depth < 0.0 or not math.isfinite(depth):
        return None
    return rest / (size + math.sqrt(depth))


def _block_of(j: int, objective: L1Norm | BlockNorm) -> Any:
    """Return the entries that leave zero together with entry ``j``."""
    return objective.labels == objective.labels[j] if isinstance(objective, BlockNorm) else [j]
