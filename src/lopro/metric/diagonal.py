"""The best diagonal metric, and the weight of the norm from which on no other is better."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from lopro.core.arrays import asarray_like, to_numpy
from lopro.core.deadline import current_deadline
from lopro.metric.loss import PairLoss

__all__ = ["best_diagonal", "diagonal_from"]

Vector: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"

#: Sweeps over the features, and how far from optimal the slopes may be, in units of the largest.
SWEEPS, ACCURACY = 1000, 1e-7


def best_diagonal(loss: PairLoss, trace: float = 0.0) -> Vector:
    """Return the ``a >= 0`` for which ``diag(a)`` has the least loss, plus ``trace`` times its sum.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.metric.diagonal import best_diagonal
    >>> from lopro.metric.loss import PairLoss
    >>> loss = PairLoss.from_differences(np.array([[1.0, 0.0], [0.0, 2.0]]), [0.0, 2.0])
    >>> best_diagonal(loss)
    array([0. , 0.5])
    """
    H = loss.diagonal_normal() / loss.count
    b = to_numpy(loss.adjoint(loss.targets)).diagonal() / loss.count - trace
    curvatures = H.diagonal()
    features = np.flatnonzero(curvatures > 0.0)
    a, slopes = np.zeros(len(b)), -b.astype(np.float64)
    roots = np.sqrt(np.where(curvatures > 0.0, curvatures, 1.0))
    # Coordinate descent: nothing is cheaper where most entries stay zero.
    for _ in range(SWEEPS):
        current_deadline().check()
        for i in features:
            step = max(-slopes[i] / curvatures[i], -a[i])
            if step != 0.0:
                a[i] += step
                slopes += step * H[i]
        misfit = np.where(a > 0.0, np.abs(slopes), np.maximum(-slopes, 0.0)) / roots
        if misfit.max() <= ACCURACY * np.max(np.abs(b) / roots):
            break
    return a


def diagonal_from(loss: PairLoss, trace: float = 0.0) -> float:
    """Return an ``l1`` from which on the best metric is diagonal.

    With the residuals ``w`` of the best diagonal metric, ``Y = off(M(w))`` proves that it is optimal for
    every weight that is not below the largest entry of ``Y``; for features in use no other ``Y`` would do.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from lopro.metric import PairLoss, diagonal_from
    >>> X = np.random.default_rng(0).standard_normal((6, 3))
    >>> loss = PairLoss(X, np.triu_indices(6, 1), np.tile([0.0, 2.0, 2.0], 5))
    >>> l1 = diagonal_from(loss)
    >>> A = lopro.solve(lopro.metric.metric_problem(loss, 1.01 * l1), tol=1e-8).x
    >>> bool(abs(A - np.diag(np.diag(A))).max() < 1e-6)
    True
    """
    A = asarray_like(np.diag(best_diagonal(loss, trace)), loss.X)
    M = np.abs(to_numpy(loss.adjoint(loss.residuals(A) / loss.count)))
    np.fill_diagonal(M, 0.0)
    return float(M.max())
