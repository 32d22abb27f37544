"""The l1 norm of what is off the diagonal: sparse graphs and metrics."""

from __future__ import annotations

from typing import Any

import numpy as np

from lopro._validation import check_count, check_number
from lopro.objectives.l1 import L1Norm

__all__ = ["OffDiagonalL1"]


class OffDiagonalL1(L1Norm):
    """``f(A) = weight * sum over i != j of |A_ij|`` on square matrices (both triangles).

    It is `L1Norm` with weights that vanish on the diagonal: the prox leaves the diagonal alone,
    slopes are zero there, and ``G = weight * sqrt(d (d - 1))``.

    Parameters
    ----------
    dim : int
        Number of rows, and of columns.
    weight : float
        Nonnegative.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.objectives import OffDiagonalL1
    >>> f = OffDiagonalL1(2, 0.5)
    >>> A = np.array([[3.0, 1.0], [-2.0, 3.0]])
    >>> f.value(A)
    1.5
    >>> f.prox(A, 2.0)
    array([[ 3.,  0.],
           [-1.,  3.]])
    """

    def __init__(self, dim: int, weight: Any = 1.0) -> None:
        self.dim = check_count("dim", dim)
        self.weight = check_number("weight", weight, minimum=0.0)
        self._number = None
        # The diagonal costs nothing, so it is not bounded by the value.
        self._least = 0.0
        self._set_weights(self.weight * (1.0 - np.eye(self.dim)))
