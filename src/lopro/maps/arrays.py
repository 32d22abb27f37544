"""Maps of dense arrays: of NumPy in memory, of PyTorch, CuPy, JAX and others on their device."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from array_api_compat import is_jax_array

from lopro.core.arrays import (
    Array,
    Companion,
    from_numpy,
    is_complex,
    is_single,
    isfinite,
    namespace,
    on_host,
    take,
    to_numpy,
)
from lopro.core.counting import count, count_product
from lopro.core.validation import check_array
from lopro.maps import double
from lopro.maps.algebra import adjoint_product, bytes_of, times_for, widened
from lopro.maps.base import PIECE, LinearMap
from lopro.maps.settings import SETTINGS

__all__ = ["ArrayMap", "NumPyMap"]

#: Entries of a slab of rows that is converted to double precision at a time: 64 MB.
_SLAB = 2**23


class ArrayMap(LinearMap):
    """A matrix that is an array; its entries stay on the device, and products do not synchronise with it.

    The first product with the adjoint, or the first use of `matrix`, checks for NaN and inf, so that the
    check needs no separate pass.

    Parameters
    ----------
    A : array
        Not copied. A JAX array needs JAX's 64-bit mode.
    name : str
        Its name in error messages.

    Examples
    --------
    >>> import array_api_strict
    >>> from lopro.maps import linear_map
    >>> A = linear_map(array_api_strict.asarray([[1.0, 2.0]]))
    >>> A.forward(array_api_strict.asarray([1.0, 1.0]))
    Array([3.], dtype=array_api_strict.float64)
    """

    def __init__(self, A: Any, name: str = "A") -> None:
        plain = isinstance(A, np.ndarray)
        if not plain and is_jax_array(A) and not sys.modules["jax"].config.jax_enable_x64:
            raise TypeError(
                f"{name} is a JAX array, and JAX computes in 32 bits by default: call "
                'jax.config.update("jax_enable_x64", True) before making arrays'
            )
        self._array: Array = check_array(name, A, ndim=2, finite=False)
        array = self._array
        nbytes = array.nbytes if plain else bytes_of(array)
        super().__init__(array, array.shape, array[0, :1], name, nbytes)
        self._conjugates = is_complex(array)
        self._times = operator.matmul if plain else times_for(array)
        self._known_finite = False

    def _check_finite(self) -> None:
        """Raise if an entry is NaN or infinite."""
        if self._known_finite:
            return
        # A finite sum has finite terms; otherwise entries are checked slab by slab.
        total = namespace(self._array).sum(self._array)
        if not isfinite(total) and not all(isfinite(slab) for _, slab in self._slabs()):
            raise ValueError(f"{self.name} must be finite, but it contains NaN or inf")
        self._known_finite = True

    def _slabs(self) -> Any:
        """Yield slabs of rows, each with its range."""
        rows, columns = self.shape
        step = max(1, _SLAB // columns)
        for start in range(0, rows, step):
            at = slice(start, min(start + step, rows))
            yield at, self._array[at, :]

    @property
    def explicit(self) -> bool:
        return True

    @property
    def matrix(self) -> Array:
        if not self._known_finite:
            self._check_finite()
        return self._array

    def toarray(self) -> Array:
        return self.matrix

    def multiply(self, X: Array) -> Array:
        return self._times(self._array, X)

    def multiply_adjoint(self, Y: Array) -> Array:
        g = adjoint_product(self._array, Y, self._times)
        self._check_product(g)
        return g

    def _check_product(self, g: Array) -> None:
        """Check the entries by a product with all of them: NaN and inf propagate through sums."""
        if not self._known_finite:
            self._known_finite = isfinite(namespace(g).sum(g))
            self._check_finite()

    def multiply_adjoint_exactly(self, Y: Array) -> Array:
        xp = namespace(Y)
        if is_complex(Y) and not self._conjugates:
            real, imaginary = (self.multiply_adjoint_exactly(p) for p in (xp.real(Y), xp.imag(Y)))
            return real + 1j * imaginary
        if is_single(Y):
            # Not every library combines different dtypes.
            return self.multiply_adjoint(xp.astype(Y, self._array.dtype))
        if self._conjugates:
            Y = xp.astype(Y, xp.complex128)
        if not is_single(self._array):
            return self.multiply_adjoint(Y)
        g = sum(adjoint_product(widened(slab), Y[at, ...]) for at, slab in self._slabs())
        self._check_product(g)
        return g

    def read_columns(self, indices: Any) -> Array:
        xp = namespace(self._array)
        return xp.take(self._array, from_numpy(indices, self._array), axis=1)

    def read_rows(self, indices: Any) -> Array:
        return take(self._array, indices)

    @cached_property
    def row_norms(self) -> Array:
        count_product("rows", 0, 1, self.nbytes)
        xp = namespace(self._array)
        return xp.sqrt(xp.sum(xp.abs(self.matrix) ** 2, axis=1))

    @cached_property
    def column_norms(self) -> Array:
        count_product("columns", 0, 1, self.nbytes)
        xp = namespace(self._array)
        return xp.sqrt(sum(xp.sum(xp.abs(widened(slab)) ** 2, axis=0) for _, slab in self._slabs()))


class NumPyMap(ArrayMap):
    """A matrix that is a NumPy array or is converted to one, such as a list.

    Parameters
    ----------
    A : array_like
        An array of floating point numbers is not copied. It is checked for NaN and inf, a large array in
        its first product, which reads all entries.
    name : str
        Its name in error messages.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.maps import linear_map
    >>> A = linear_map(np.array([[1.0, 2.0]]))
    >>> A.forward(np.array([1.0, 1.0])), A.adjoint(np.array([2.0]))
    (array([3.]), array([2., 4.]))
    """

    def __init__(self, A: Any, name: str = "A") -> None:
        super().__init__(A, name)
        array = self._array
        self._in_slabs = array.nbytes >= SETTINGS.slab_bytes and array.flags.c_contiguous
        if array.size < SETTINGS.many_entries:
            self._known_finite = isfinite(array)
            self._check_finite()

    def _check_finite(self) -> None:
        if self._known_finite:
            return
        with np.errstate(invalid="ignore", over="ignore"):
            self._known_finite = bool(np.isfinite(np.add.reduce(self._array, axis=None)))
            super()._check_finite()

    @cached_property
    def _column_cost(self) -> int:
        """Cost of an entry of single columns relative to one in a product; 0 to use products always."""
        if self.shape[1] <= PIECE:
            return 0
        contiguous = self._array.flags.f_contiguous
        return SETTINGS.contiguous_column if contiguous else SETTINGS.strided_column

    def forward(self, x: Array) -> Array:
        """Return ``A x``, or ``A X`` for a block of vectors; each vector is counted as a matvec.

        For a vector with few nonzeros only the corresponding columns are read; they are counted as columns
        instead of a product with ``A``.
        """
        if self._column_cost and isinstance(x, np.ndarray) and x.ndim == 1:
            support = np.flatnonzero(x)
            if self._column_cost * support.size < x.size:
                parts = np.array_split(support, 1 + support.size // PIECE)  # no large copy
                return sum(self.columns(part) @ x[part] for part in parts)
        if self._at_once and isinstance(x, np.ndarray) and x.ndim == 1:
            count_product("matvecs", 1, 1, self.nbytes)
            return self._array @ x
        return super().forward(x)

    def adjoint(self, y: Array) -> Array:
        if self._at_once and not self._conjugates and isinstance(y, np.ndarray) and y.ndim == 1:
            count_product("rmatvecs", 1, 1, self.nbytes)
            return self._array.T @ y
        return super().adjoint(y)

    @property
    def _at_once(self) -> bool:
        """Whether a product is one call of BLAS without a check of the entries."""
        return self._known_finite and not self._in_slabs

    # Products of small matrices take no longer than the attribute look-ups of the general code: hence these
    # direct calls.

    def multiply(self, X: Array) -> Array:
        if not isinstance(X, np.ndarray):
            matrix = self._beside(X)
            return times_for(matrix)(matrix, X)
        return self._forward(X) if self._known_finite else self._first(self._forward, X)

    def multiply_adjoint(self, Y: Array) -> Array:
        if not isinstance(Y, np.ndarray):
            matrix = self._beside(Y)
            return adjoint_product(matrix, Y, times_for(matrix))
        return self._adjoint(Y) if self._known_finite else self._first(self._adjoint, Y)

    @cached_property
    def _elsewhere(self) -> Companion:
        return Companion(self.matrix)

    def _beside(self, X: Array) -> Array:
        """Return the matrix in the library and on the device of an array; a copy to a device is counted."""
        last = self._elsewhere.latest
        copied = self._elsewhere.beside(X)
        if copied is not last and not on_host(X):
            count("transfers")
            count("bytes_transferred", self.nbytes)
        return copied

    def _forward(self, X: Array) -> Array:
        if self._in_slabs and X.ndim == 1:
            return np.concatenate([slab @ X for _, slab in self._slabs()])
        return self._array @ X

    def _adjoint(self, Y: Array) -> Array:
        if self._in_slabs and Y.ndim == 1:
            return sum(adjoint_product(slab, Y[at]) for at, slab in self._slabs())
        return adjoint_product(self._array, Y) if self._conjugates else self._array.T @ Y

    def _first(self, multiply: Callable[[Array], Array], factor: Array) -> Array:
        """Return a product; raise if an entry of the matrix is NaN or infinite."""
        with np.errstate(invalid="ignore", over="ignore"):
            product = multiply(factor)
            # BLAS may skip entries that are multiplied by zero.
            if np.count_nonzero(factor) == factor.size:
                self._check_product(product)
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
        # Indexing returns contiguous columns and takes half of the time of `take`.
        return np.asarray(matrix[:, indices])

    @cached_property
    def column_norms(self) -> np.ndarray[Any, Any]:
        count_product("columns", 0, 1, self.nbytes)
        return np.sqrt(double.squares(self._array, axis=0))
