"""Logistic regression: the mean logistic loss of labelled rows, with ridge penalty."""

from __future__ import annotations

from typing import Any

import numpy as np

from lopro.core.arrays import Array
from lopro.functions import atoms
from lopro.objectives.sample_loss import LabelledLoss, take_rows

__all__ = ["Logistic"]


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
        How many rows, drawn uniformly with replacement, make a stochastic gradient; explicit
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

    def sample(self, rows: np.ndarray[Any, Any] | None = None) -> tuple[atoms.Atom, Array | None]:
        return atoms.Logistic(take_rows(self.labels, rows)), None
