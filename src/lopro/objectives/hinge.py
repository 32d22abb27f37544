"""Support vector machines: the mean hinge loss of labelled rows, and its square, with ridge penalty."""

from __future__ import annotations

from typing import Any

import numpy as np

from lopro.core.arrays import Array, namespace
from lopro.functions import atoms
from lopro.objectives.sample_loss import LabelledLoss, take_rows

__all__ = ["HingeLoss", "SquaredHingeLoss"]


class HingeLoss(LabelledLoss):
    """``f(w) = mean_i [1 - y_i x_i'w]_+ + l2/2 |w|^2``: a linear support vector machine.

    Parameters
    ----------
    X : array, scipy.sparse matrix, LinearOperator or LinearMap of shape (n, d)
        One sample per row; real. Not copied. A column of ones makes an intercept.
    labels : array of shape (n,)
        -1 and 1, or 0 and 1.
    l2 : float
        Weight of the ridge, nonnegative: ``1 / (n C)`` for the ``C`` of other libraries.
    batch_size : int
        How many rows, drawn uniformly with replacement, make a stochastic subgradient; explicit
        matrices only.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> X, y = np.array([[2.0], [-1.0], [0.5]]), np.array([1, -1, 1])
    >>> f = lopro.objectives.HingeLoss(X, y, l2=0.1)
    >>> result = lopro.solve(lopro.Problem(f))
    >>> result.success, result.x.round(6)
    (True, array([1.666667]))
    """

    steepest = 1.0

    def sample(self, rows: np.ndarray[Any, Any] | None = None) -> tuple[atoms.Atom, Array | None]:
        """Return ``mean [1 - y z]_+``: with ``z - y`` in place of z, weights for one sign each."""
        y = take_rows(self.labels, rows)
        xp, n = namespace(y), y.shape[0]
        zero = 0.0 * y
        up, down = xp.where(y < 0.0, zero + 1.0 / n, zero), xp.where(y > 0.0, zero + 1.0 / n, zero)
        return atoms.L1(up, down), y


class SquaredHingeLoss(LabelledLoss):
    """``f(w) = mean_i [1 - y_i x_i'w]_+^2 + l2/2 |w|^2``: smooth, with ``L = 2 |X|^2 / n + l2``.

    Parameters
    ----------
    X : array, scipy.sparse matrix, LinearOperator or LinearMap of shape (n, d)
        One sample per row; real. Not copied.
    labels : array of shape (n,)
        -1 and 1, or 0 and 1.
    l2 : float
        Weight of the ridge, nonnegative.
    batch_size : int
        How many rows, drawn uniformly with replacement, make a stochastic gradient; explicit
        matrices only.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.objectives import SquaredHingeLoss
    >>> f = SquaredHingeLoss(np.array([[1.0], [-2.0]]), np.array([1, 1]))
    >>> f.value(np.ones(1)), f.subgradient(np.ones(1))
    (4.5, array([6.]))
    """

    smooth = True
    sharpest = 2.0

    def sample(self, rows: np.ndarray[Any, Any] | None = None) -> tuple[atoms.Atom, Array | None]:
        return atoms.SquaredHinge(take_rows(self.labels, rows)), None
