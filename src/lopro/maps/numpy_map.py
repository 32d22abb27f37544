"""Matrices that are NumPy arrays in memory."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from lopro._util.arrays import Array, is_single, to_numpy
from lopro._util.counting import count_product
from lopro._util.validation import check_array
from lopro.maps import double
from lopro.maps.algebra import adjoint_product
from lopro.maps.arrays import ArrayMap

__all__ = ["NumPyMap"]

#: Columns that are picked out and held at a time.
_PIECE = 256


class NumPyMap(ArrayMap):
    """A matrix that is a NumPy array, or becomes one: a list, for example.

    Parameters
    ----------
    A : array_like
        An array of floating point numbers is never copied. It is checked for NaN and inf at once.
    name : str
        What error messages call it.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.maps import linear_map
    >>> A = linear_map(np.array([[1.0, 2.0]]))
    >>> A.forward(np.array([1.0, 1.0])), A.adjoint(np.array([2.0]))
    (array([3.]), array([2., 4.]))
    """

    def __init__(self, A: Any, name: str = "A") -> None:
        super().__init__(check_array(name, A, ndim=2), name)
        self._known_finite = True

    @cached_property
    def _column_advantage(self) -> int:
        """How much dearer an entry is when columns are picked out than in a product; 0 for never."""
        if self.shape[1] <= 256:
            return 0
        return 2 if self._array.flags.f_contiguous else 40

    def forward(self, x: Array) -> Array:
        """Return ``A x``, or ``A X`` for a block of vectors; a matvec on the ledger for each of them.

        A vector that is almost all zeros touches only the columns it needs; those are counted as columns
        and not as a product with all of ``A``.
        """
        if self._column_advantage and isinstance(x, np.ndarray) and x.ndim == 1:
            support = np.flatnonzero(x)
            if self._column_advantage * support.size < x.size:
                parts = np.array_split(support, 1 + support.size // _PIECE)  # never a large copy
                return sum(self.columns(part) @ x[part] for part in parts)
        return super().forward(x)

    # In small problems a product is as quick as the look-ups on the way to it: hence once more, and plain.

    def multiply(self, X: Array) -> Array:
        return self._array @ X

    def multiply_adjoint(self, Y: Array) -> Array:
        return adjoint_product(self._array, Y) if self._conjugates else self._array.T @ Y

    def multiply_adjoint_exactly(self, Y: Array) -> Array:
        Y = to_numpy(Y)
        if not is_single(self._array) or is_single(Y):
            return self.multiply_adjoint(Y)
        return double.adjoint_product(self._array, Y)

    def read_columns(self, indices: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        matrix = self._array
        if matrix.flags.f_contiguous:
            return np.take(matrix.T, indices, axis=0).T
        return np.take(matrix, indices, axis=1)

    @cached_property
    def column_norms(self) -> np.ndarray[Any, Any]:
        count_product("columns", 0, 1, self.nbytes)
        return np.sqrt(double.column_squares(self._array))
