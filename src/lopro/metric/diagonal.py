"""The optimal diagonal metric, and a weight of the norm above which it is optimal among all metrics.

Figures at constants are iterations of ``python -m benchmarks.constants metric`` with a tenth of the value and
with ten times it, relative to those with the value; "lost" means that a fit is not certified in 20 s.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from lopro.core.arrays import asarray_like, to_numpy
from lopro.core.deadline import current_deadline
from lopro.metric.loss import PairLoss

__all__ = ["best_diagonal", "diagonal_from"]

Vector: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"

#: Most sweeps over the features, and the accuracy of the slopes, in units of the largest: 1.00, 1.00 for
#: each.
SWEEPS, ACCURACY = 1000, 1e-7
#: Features added at a time to the working set of wide samples: 1.00, 1.01.
JOIN = 50


def best_diagonal(loss: PairLoss, trace: float = 0.0) -> Vector:
    """Return the ``a >= 0`` that minimises the loss of ``diag(a)`` plus ``trace`` times the sum of ``a``.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.metric.diagonal import best_diagonal
    >>> from lopro.metric.loss import PairLoss
    >>> loss = PairLoss.from_differences(np.array([[1.0, 0.0], [0.0, 2.0]]), [0.0, 2.0])
    >>> best_diagonal(loss)
    array([0. , 0.5])
    """
    b = loss.diagonal_of_adjoint(loss.targets) / loss.count - trace
    N, d = loss.X.shape
    if d <= N:
        return _nonnegative(loss.diagonal_normal() / loss.count, b, np.zeros(d))
    return _on_working_set(loss.listed(), b, trace)


def _on_working_set(loss: PairLoss, b: Vector, trace: float) -> Vector:
    """Return the optimal diagonal for wide samples: most of its entries are zero, so few columns are needed.

    Features are added by their slopes, which take products with the samples; squares of differences are
    formed for the working set alone.
    """
    X = to_numpy(loss.X).astype(np.float64)
    targets = to_numpy(loss.targets).astype(np.float64)
    sizes = loss.diagonal_of_adjoint(loss.ones())
    roots = np.where(sizes > 0.0, sizes, 1.0) / loss.count
    used, a = np.zeros(0, dtype=np.intp), np.zeros(0)
    allowed = ACCURACY * float(np.max(np.abs(b) / roots))
    full = np.zeros(len(b))
    for _ in range(SWEEPS):
        squares = _squares(X[:, used], loss.pairs)
        residuals = asarray_like(targets - squares @ a, loss.X)
        slopes = trace - loss.diagonal_of_adjoint(residuals) / loss.count
        missed = np.where(sizes > 0.0, -slopes / roots, 0.0)
        missed[used] = 0.0
        if missed.max(initial=0.0) <= allowed:
            break
        joining = np.argsort(-missed)[:JOIN]
        used = np.append(used, joining[missed[joining] > 0.0])
        squares = _squares(X[:, used], loss.pairs)
        start = np.append(a, np.zeros(len(used) - len(a)))
        a = _nonnegative(squares.T @ squares / loss.count, b[used], start)
    full[used] = a
    return full


def _squares(X: Vector, pairs: tuple[Any, Any]) -> Vector:
    """Return the squared differences of the pairs in these features."""
    current_deadline().check()
    return np.asarray(np.square(X[pairs[0]] - X[pairs[1]]))


def _nonnegative(H: Vector, b: Vector, a: Vector) -> Vector:
    """Minimise ``1/2 a'H a - b'a`` over ``a >= 0`` by coordinate descent, from a start."""
    curvatures = H.diagonal()
    features = np.flatnonzero(curvatures > 0.0)
    a = a.copy()
    slopes = H @ a - b
    roots = np.sqrt(np.where(curvatures > 0.0, curvatures, 1.0))
    for _ in range(SWEEPS):
        current_deadline().check()
        for i in features:
            step = max(-slopes[i] / curvatures[i], -a[i])
            if step != 0.0:
                a[i] += step
                slopes += step * H[i]
        misfit = np.where(a > 0.0, np.abs(slopes), np.maximum(-slopes, 0.0)) / roots
        if misfit.max(initial=0.0) <= ACCURACY * np.max(np.abs(b) / roots, initial=0.0):
            break
    return a


def diagonal_from(loss: PairLoss, trace: float = 0.0) -> float:
    """Return a value of ``l1`` above which the optimal metric is diagonal.

    With the residuals ``w`` of the optimal diagonal metric, ``Y = off(M(w))`` proves that it is optimal for
    every weight not below the largest absolute entry of ``Y``; on features in use ``Y`` is unique.

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
    a = best_diagonal(loss, trace)
    used = np.flatnonzero(a)
    # The distances of a diagonal metric are Euclidean distances of the scaled features in use.
    X = to_numpy(loss.X)[:, used] * np.sqrt(a[used])
    scaled = loss.with_samples(asarray_like(X, loss.X))
    w = scaled.residuals(asarray_like(np.eye(len(used)), loss.X)) / loss.count
    return loss.largest_off_diagonal(w)
