"""Losses of labelled rows: logistic regression and support vector machines, with ridge penalty."""

from __future__ import annotations

from typing import Any

import numpy as np

from lopro.core.arrays import Array, from_numpy, namespace, to_numpy
from lopro.core.validation import check_array, check_shape
from lopro.functions import atoms
from lopro.objectives.sample_loss import SampleLoss

__all__ = ["HingeLoss", "Logistic", "SquaredHingeLoss", "checked_signs"]


class LabelledLoss(SampleLoss):
    """A loss of samples with labels -1 and 1, which may be given as 0 and 1."""

    def __init__(self, X: Any, labels: Any, l2: float = 0.0, batch_size: int = 1) -> None:
        super().__init__(X, l2, batch_size)
        #: The labels as -1 and 1; do not write on them.
        self.labels: Array = checked_signs(labels, self.X.shape[0], self.X.like)
        self.targets = self.labels


class Logistic(LabelledLoss):
    """``f(w) = mean_i log(1 + exp(-y_i x_i'w)) + l2/2 |w|^2``.

    Constants: ``L = |X|^2 / (4 n) + l2``, ``mu = l2``, and without the ridge a global Lipschitz
    constant, the mean norm of the rows.

    Parameters
    ----------
    X : array, scipy.sparse matrix, LinearOperator or LinearMap of shape (n, d)
        One sample per row; real. Not copied.
    labels : array of shape (n,)
        -1 and 1, or 0 and 1.
    l2 : float
        Weight of the ridge, nonnegative.
    batch_size : int
        Number of rows, drawn uniformly with replacement, for a stochastic gradient; explicit
        matrices only.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.objectives import Logistic
    >>> f = Logistic(np.array([[1.0], [-2.0]]), np.array([1, -1]))
    >>> round(f.value(np.zeros(1)), 6)
    0.693147
    >>> f.lipschitz().value
    1.5
    """

    smooth = True
    steepest, sharpest = 1.0, 0.25

    def loss(self, targets: Array) -> tuple[atoms.Atom, Array | None]:
        return atoms.Logistic(targets), None


class HingeLoss(LabelledLoss):
    """``f(w) = mean_i [1 - y_i x_i'w]_+ + l2/2 |w|^2``: a linear support vector machine.

    Parameters
    ----------
    X : array, scipy.sparse matrix, LinearOperator or LinearMap of shape (n, d)
        One sample per row; real. Not copied. A column of ones gives an intercept.
    labels : array of shape (n,)
        -1 and 1, or 0 and 1.
    l2 : float
        Weight of the ridge, nonnegative: ``1 / (n C)`` for the ``C`` of other libraries.
    batch_size : int
        Number of rows, drawn uniformly with replacement, for a stochastic subgradient; explicit
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

    def loss(self, targets: Array) -> tuple[atoms.Atom, Array | None]:
        """Return ``mean [1 - y z]_+`` as a one-sided l1 norm of ``z - y`` with weights for the sign of y."""
        xp, n, y = namespace(targets), targets.shape[0], targets
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
        Number of rows, drawn uniformly with replacement, for a stochastic gradient; explicit
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

    def loss(self, targets: Array) -> tuple[atoms.Atom, Array | None]:
        return atoms.SquaredHinge(targets), None


def checked_signs(labels: Any, n: int, like: Array) -> Array:
    """Return labels of -1 and 1, or of 0 and 1, as -1 and 1."""
    y = to_numpy(check_array("labels", labels, ndim=1, allow_complex=False))
    check_shape("labels", y, (n,))
    values = {float(label) for label in np.unique(y)}
    if not (values <= {-1.0, 1.0} or values <= {0.0, 1.0}):
        shown = ", ".join(f"{label:g}" for label in sorted(values)[:5])
        raise ValueError(f"labels must be -1 and 1, or 0 and 1; among them are {shown}")
    return from_numpy(np.where(y > 0.0, 1.0, -1.0), like)
