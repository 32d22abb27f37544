"""Matrices that are arrays of PyTorch, CuPy, JAX and other libraries, on their device."""

from __future__ import annotations

import sys
from functools import cached_property
from typing import Any

from array_api_compat import is_jax_array

from lopro.core.arrays import Array, from_numpy, is_complex, is_single, isfinite, namespace, take
from lopro.core.counting import count_product
from lopro.core.validation import check_array
from lopro.maps.algebra import adjoint_product, bytes_of, times_for, widened
from lopro.maps.base import LinearMap

__all__ = ["ArrayMap"]

#: Entries of a slab of rows, which is converted to double precision at a time: 64 MB.
_SLAB = 2**23


class ArrayMap(LinearMap):
    """A matrix that is an array; its entries stay on the device, and products do not synchronise with it.

    The first product with the adjoint, or the first use of `matrix`, checks for NaN and inf, so that the
    check needs no pass of its own.

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
        if is_jax_array(A) and not sys.modules["jax"].config.jax_enable_x64:
            raise TypeError(
                f"{name} is a JAX array, and JAX computes in 32 bits unless told otherwise: call "
                'jax.config.update("jax_enable_x64", True) before making arrays'
            )
        self._array: Array = check_array(name, A, ndim=2, finite=False)
        super().__init__(
            self._array, self._array.shape, self._array[0, :1], name, bytes_of(self._array)
        )
        self._conjugates = is_complex(self._array)
        self._times = times_for(self._array)
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
        """Yield the rows in slabs, each with its range."""
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
