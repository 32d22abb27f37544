"""Units in which all features have similar size, and the first penalty weight in them.

Figures at constants are iterations of ``python -m benchmarks.constants metric`` with a tenth of the value and
with ten times it, relative to those with the value; "lost" means that a fit is not certified in 20 s.
"""

from __future__ import annotations

import math

from lopro.core.arrays import Array, namespace
from lopro.metric.loss import PairLoss
from lopro.metric.objective import SparseMetric

__all__ = ["feature_sizes", "first_weight", "rescaled"]

#: The range of the first ``beta``, in units of the curvature of the loss: 1.01, 1.00 at both ends.
FIRST_BETA = (1e-6, 1.0)


def feature_sizes(objective: SparseMetric) -> Array:
    """Return the size of each feature, a power of two; 1 where no pair differs."""
    xp = namespace(objective.spread.diagonal)
    squares = objective.spread.diagonal / objective.loss.count
    present = squares > 0.0
    exponents = xp.round(0.5 * xp.log2(xp.where(present, squares, 0.0 * squares + 1.0)))
    return xp.pow(0.0 * squares + 2.0, exponents)


def rescaled(loss: PairLoss, sizes: Array) -> PairLoss:
    """Return the loss of features divided by their sizes."""
    X = loss.X / namespace(loss.X).astype(sizes, loss.X.dtype, copy=False)[None, :]
    return loss.with_samples(X)


def first_weight(l1: float, sizes: Array, start: float, curvature: float) -> float:
    """Return a ``beta`` with which the soft threshold of a typical entry is a tenth of the norm of the start.

    Residual balancing adapts it by factors of two, which takes many iterations from a value far off.
    """
    low, high = (factor * max(curvature, 1e-300) for factor in FIRST_BETA)
    if l1 == 0.0 or start == 0.0:
        return math.sqrt(low * high)
    xp = namespace(sizes)
    typical = math.log(l1) - 2.0 * float(xp.mean(xp.log(sizes)))
    target = typical + math.log(10.0) - math.log(start)
    return math.exp(min(max(target, math.log(low)), math.log(high)))
