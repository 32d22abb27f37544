"""The sum of the norms of the rows of a matrix: a penalty that makes features vanish."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np

from lopro.core.arrays import Array, namespace
from lopro.core.validation import check_count, check_number
from lopro.functions import Ball, Constant, Source
from lopro.objectives.base import Objective

__all__ = ["RowNorms", "row_prox", "within_rows"]

Matrix: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"

#: Newton steps for the length of a row, and the accuracy at which they stop.
_STEPS, _ACCURACY = 60, 1e-14


class RowNorms(Objective):
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

    proximable = True

    def __init__(self, dim: int, weight: Any) -> None:
        self.dim = check_count("dim", dim)
        self.weight = check_number("weight", weight, minimum=0.0)
        self.shape = (self.dim, self.dim)

    def value(self, x: Array) -> float:
        return self.weight * float(namespace(x).sum(_lengths(x)))

    def subgradient(self, x: Array) -> Array:
        lengths = _lengths(x)
        return self.weight * x / namespace(x).where(lengths > 0.0, lengths, 0.0 * lengths + 1.0)

    def prox(self, x: Array, step: float) -> Array:
        return x - within_rows(x, float(step) * self.weight)

    def lipschitz(self, ball: Ball | None = None) -> Constant:
        value = self.weight * math.sqrt(self.dim)
        return Constant(value, Source.DERIVED, "weight times root of the number of rows")

    def infimum(self) -> Constant:
        return Constant(0.0, Source.DERIVED, "a norm")


def within_rows(R: Array, most: float) -> Array:
    """Return the nearest matrix whose rows are not longer than this."""
    xp = namespace(R)
    lengths = _lengths(R)
    ones = 0.0 * lengths + 1.0
    return R * xp.where(lengths > most, most / xp.where(lengths > most, lengths, ones), ones)


def _lengths(x: Array) -> Array:
    xp = namespace(x)
    return xp.sqrt(xp.sum(x * x, axis=1, keepdims=True))


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
