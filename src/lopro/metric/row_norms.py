"""The sum of the norms of the rows of a matrix: a penalty that makes features vanish."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np

from lopro.core.validation import check_count, check_number
from lopro.functions import Ball, Constant
from lopro.functions.atoms import GroupNorm
from lopro.objectives.of_atom import NormOfImage

__all__ = ["RowNorms", "row_prox"]

Matrix: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"

#: Newton steps for the length of a row (quadratic convergence: some ten), and their relative accuracy.
_STEPS, _ACCURACY = 60, 1e-14


class RowNorms(NormOfImage):
    """``f(A) = weight * sum_i |A_i|``, with the Euclidean norms of the rows, the diagonal included.

    Parameters
    ----------
    dim : int
        Number of rows, and of columns.
    weight : float
        Nonnegative.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.metric.row_norms import RowNorms
    >>> f = RowNorms(2, 0.5)
    >>> f.value(np.array([[3.0, 4.0], [0.0, 0.0]]))
    2.5
    >>> f.prox(np.array([[3.0, 4.0], [0.1, 0.0]]), 2.0)
    array([[2.4, 3.2],
           [0. , 0. ]])
    """

    def __init__(self, dim: int, weight: Any) -> None:
        dim, weight = check_count("dim", dim), check_number("weight", weight, minimum=0.0)
        super().__init__(GroupNorm(dim, weight), shape=(dim, dim))
        self._steepness = weight * math.sqrt(dim)

    def lipschitz(self, ball: Ball | None = None) -> Constant:
        return self._times_map(self._steepness, "weight times root of the number of rows")


def row_prox(V: Matrix, weights: Matrix, units: Matrix) -> Matrix:
    """Return, row by row, ``argmin_g |g - v|^2 / 2 + weight |units * g|``.

    Where units are equal it is a shrinkage. Otherwise ``g_j = v_j / (1 + weight u_j^2 / nu)`` with the
    length ``nu`` of ``units * g``, at which ``sum_j (u_j v_j)^2 / (nu + weight u_j^2)^2`` is 1: Newton's
    method finds it from below.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.metric.row_norms import row_prox
    >>> row_prox(np.array([[3.0, 4.0]]), np.array([1.0]), np.ones(2))
    array([[2.4, 3.2]])
    """
    squares, shifts = np.square(V * units), weights[:, None] * np.square(units)
    vanish = np.square(V / units).sum(axis=1) <= np.square(weights)
    nu = np.zeros((len(V), 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(_STEPS):
            inverse = 1.0 / (nu + shifts)
            h = (squares * inverse**2).sum(axis=1, keepdims=True)
            slope = (squares * inverse**3).sum(axis=1, keepdims=True)
            step = np.where(vanish[:, None], 0.0, (np.sqrt(h) - 1.0) * h / slope)
            nu = nu + step
            if np.all(np.abs(step) <= _ACCURACY * nu):
                break
        shrunk = V * nu / (nu + shifts)
    return np.where(vanish[:, None], 0.0, shrunk)
