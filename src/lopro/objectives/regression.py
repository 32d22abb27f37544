"""Quantile and Poisson regression: mean losses of rows with a target each, with ridge penalty."""

from __future__ import annotations

from typing import Any

import numpy as np

from lopro.core.arrays import Array, to_numpy
from lopro.core.validation import check_number
from lopro.functions import Constant, Source, atoms
from lopro.objectives.sample_loss import SampleLoss, checked_targets

__all__ = ["PinballLoss", "Poisson"]


class PinballLoss(SampleLoss):
    """``f(x) = mean_i q [b_i - a_i'x]_+ + (1 - q) [a_i'x - b_i]_+ + l2/2 |x|^2`` for a quantile ``q``.

    Its minimiser predicts the ``q``-quantile of ``b``; the median for 1/2, where it is half the mean absolute
    deviation.

    Parameters
    ----------
    A : array, scipy.sparse matrix, LinearOperator or LinearMap of shape (n, d)
        One sample per row; real. Not copied. A column of ones gives an intercept.
    b : array of shape (n,)
        Targets; copied.
    quantile : float
        Between 0 and 1, both excluded.
    l2 : float
        Weight of the ridge, nonnegative.
    batch_size : int
        Number of rows, drawn uniformly with replacement, for a stochastic subgradient; explicit
        matrices only.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> f = lopro.objectives.PinballLoss(np.ones((5, 1)), [1.0, 2.0, 3.0, 4.0, 9.0], quantile=0.7)
    >>> result = lopro.solve(lopro.Problem(f))
    >>> result.success, result.x.round(6)
    (True, array([4.]))
    """

    def __init__(
        self, A: Any, b: Any, quantile: float = 0.5, l2: float = 0.0, batch_size: int = 1
    ) -> None:
        super().__init__(A, l2, batch_size)
        #: The targets; do not write on them.
        self.b: Array = checked_targets("b", b, self.X.shape[0], self.X.like)
        self.targets = self.b
        self.quantile = check_number("quantile", quantile, minimum=0.0, exclusive=True)
        if not self.quantile < 1.0:
            raise ValueError(f"quantile must be below 1, got {quantile}")
        self.steepest = max(self.quantile, 1.0 - self.quantile)

    def loss(self, targets: Array) -> tuple[atoms.Atom, Array | None]:
        n = targets.shape[0]
        return atoms.L1((1.0 - self.quantile) / n, self.quantile / n), targets

    def typical_size(self) -> float | None:
        return None


class Poisson(SampleLoss):
    """``f(w) = mean_i exp(x_i'w) - k_i x_i'w + l2/2 |w|^2``.

    The negative log-likelihood of counts ``k_i`` with rates ``exp(x_i'w)``, up to a constant. Neither it
    nor its gradient has a global Lipschitz constant.

    Parameters
    ----------
    X : array, scipy.sparse matrix, LinearOperator or LinearMap of shape (n, d)
        One sample per row; real. Not copied. A column of ones gives an intercept.
    counts : array of shape (n,)
        Nonnegative; copied.
    l2 : float
        Weight of the ridge, nonnegative.
    batch_size : int
        Number of rows, drawn uniformly with replacement, for a stochastic gradient; explicit
        matrices only.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> f = lopro.objectives.Poisson(np.ones((4, 1)), [0, 1, 2, 5])
    >>> result = lopro.solve(lopro.Problem(f))
    >>> result.success, np.exp(result.x).round(6)
    (True, array([2.]))
    """

    smooth = True

    def __init__(self, X: Any, counts: Any, l2: float = 0.0, batch_size: int = 1) -> None:
        super().__init__(X, l2, batch_size)
        #: The counts; do not write on them.
        self.counts: Array = checked_targets("counts", counts, self.X.shape[0], self.X.like)
        self.targets = self.counts
        least = float(to_numpy(self.counts).min())
        if least < 0.0:
            raise ValueError(f"counts must be nonnegative, but one of them is {least:g}")

    def loss(self, targets: Array) -> tuple[atoms.Atom, Array | None]:
        return atoms.Poisson(targets), None

    def infimum(self) -> Constant:
        # The minimum of exp(z) - k z is at z = log k.
        k = np.asarray(to_numpy(self.counts), dtype=np.float64)
        logs = np.log(np.where(k > 0.0, k, 1.0))
        value = float(np.mean(k - k * logs))
        return Constant(
            value - 1e-14 * float(np.mean(k * (1.0 + np.abs(logs)))),
            Source.DERIVED,
            "each loss at the logarithm of its count",
        )
