"""Matrices that are NumPy arrays in memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from lopro.core.arrays import Array, is_single, to_numpy
from lopro.core.counting import count_product
from lopro.core.validation import check_array
from lopro.maps import double
from lopro.maps.algebra import adjoint_product
from lopro.maps.arrays import ArrayMap

__all__ = ["NumPyMap"]

#: Columns that are picked out and held at a time.
_PIECE = 256
#: Entries from which on a look at all of them takes longer than what surrounds it.
_MANY_ENTRIES = 2**20
#: Bytes from which on a product takes the rows in slabs: BLAS goes through all rows several times, for some
#: columns each, and the addresses of so many pages are not at hand the next time.
_LARGE = 2**28


class NumPyMap(ArrayMap):
    """A matrix that is a NumPy array, or becomes one: a list, for example.

    Parameters
    ----------
    A : array_like
        An array of floating point numbers is never copied. It is checked for NaN and inf: a large one in its
        first product, which reads all of it anyway.
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
        array = check_array(name, A, ndim=2, finite=False)
        super().__init__(array, name)
        self._in_slabs = array.nbytes >= _LARGE and array.flags.c_contiguous
        if array.size < _MANY_ENTRIES:
            self._check_finite()

    def _check_finite(self) -> None:
        with np.errstate(invalid="ignore", over="ignore"):
            super()._check_finite()

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
        return self._forward(X) if self._known_finite else self._first(self._forward, X)

    def multiply_adjoint(self, Y: Array) -> Array:
        return self._adjoint(Y) if self._known_finite else self._first(self._adjoint, Y)

    def _forward(self, X: Array) -> Array:
        if self._in_slabs and X.ndim == 1:
            return np.concatenate([slab @ X for _, slab in self._slabs()])
        return self._array @ X

    def _adjoint(self, Y: Array) -> Array:
        if self._in_slabs and Y.ndim == 1:
            return sum(adjoint_product(slab, Y[at]) for at, slab in self._slabs())
        return adjoint_product(self._array, Y) if self._conjugates else self._array.T @ Y

    def _first(self, multiply: Callable[[Array], Array], factor: Array) -> Array:
        """Return a product, and raise where it or a look at all entries tells that some are not finite."""
        with np.errstate(invalid="ignore", over="ignore"):
            product = multiply(factor)
            # BLAS may skip what meets a zero.
            if np.count_nonzero(factor) == factor.size:
                self._look_at(product)
            else:
                self._check_finite()
        return product

    def multiply_adjoint_exactly(self, Y: Array) -> Array:
        Y = to_numpy(Y)
        if not is_single(self._array) or is_single(Y):
            return self.multiply_adjoint(Y)
        return double.adjoint_product(self._array, Y)

    def read_columns(self, indices: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        matrix = self._array
        if matrix.flags.f_contiguous:
            return np.take(matrix.T, indices, axis=0).T
        # Column by column: half of the time that `take` needs, and columns lie together.
        return np.asarray(matrix[:, indices])

    @cached_property
    def column_norms(self) -> np.ndarray[Any, Any]:
        count_product("columns", 0, 1, self.nbytes)
        return np.sqrt(double.squares(self._array, axis=0))
