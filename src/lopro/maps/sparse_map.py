"""scipy.sparse matrices: everything but vectors stays sparse."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from lopro.core.arrays import Array, from_numpy, to_numpy
from lopro.core.counting import count, count_product
from lopro.maps.algebra import bytes_of, checked_indices
from lopro.maps.base import LinearMap

__all__ = ["SparseMap"]


class SparseMap(LinearMap):
    """A scipy.sparse array or matrix; points of other libraries are converted to NumPy.

    `columns` returns csc blocks, `rows` csr blocks.

    Parameters
    ----------
    A : scipy.sparse array or matrix
        In csr or csc format it is not copied, unless it has integer or duplicate entries.
    name : str
        Its name in error messages.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> from lopro.maps import linear_map
    >>> A = linear_map(scipy.sparse.csr_array(np.array([[1.0, 0.0, 2.0]])))
    >>> A.forward(np.ones(3)), A.columns([0, 2]).nnz
    (array([3.]), 2)
    """

    may_be_empty = True

    def __init__(self, A: Any, name: str = "A") -> None:
        self._sparse = _checked(A, name)
        like = np.zeros(1, dtype=self._sparse.dtype)
        super().__init__(self._sparse, self._sparse.shape, like, name, bytes_of(self._sparse))

    @property
    def explicit(self) -> bool:
        return True

    @property
    def matrix(self) -> Any:
        return self._sparse

    def toarray(self) -> Array:
        return self._sparse.toarray()

    @property
    def _entries_per_row(self) -> float:
        return float(self._sparse.nnz / self.shape[0])

    @cached_property
    def _adjoint(self) -> Any:
        return self._sparse.conj(copy=False).T

    @cached_property
    def _by_rows(self) -> Any:
        return self._sparse.tocsr()

    @cached_property
    def _by_columns(self) -> Any:
        return self._sparse.tocsc()

    def multiply(self, X: Array) -> Array:
        return from_numpy(self._sparse @ to_numpy(X), X)

    def multiply_adjoint(self, Y: Array) -> Array:
        return from_numpy(self._adjoint @ to_numpy(Y), Y)

    def read_columns(self, indices: np.ndarray[Any, Any]) -> Any:
        return self._by_columns[:, indices]

    def read_rows(self, indices: np.ndarray[Any, Any]) -> Any:
        return self._by_rows[indices]

    def pull_through_rows(self, rows: Any, x: Array, weigh: Callable[[Array], Array]) -> Array:
        R = self.read_rows(checked_indices("rows", rows, self.shape[0]))
        count("bytes_read", bytes_of(R))
        weighed = weigh(from_numpy(R @ to_numpy(x), x))
        return from_numpy(R.conj(copy=False).T @ to_numpy(weighed), x)

    @cached_property
    def row_norms(self) -> np.ndarray[Any, Any]:
        return self._norms(axis=1)

    @cached_property
    def column_norms(self) -> np.ndarray[Any, Any]:
        return self._norms(axis=0)

    def _norms(self, axis: int) -> np.ndarray[Any, Any]:
        count_product("rows", 0, 1, self.nbytes)
        return np.asarray(np.sqrt(np.asarray(abs(self._sparse).power(2).sum(axis=axis)))).ravel()


def _checked(A: Any, name: str) -> Any:
    if A.ndim != 2:
        raise ValueError(f"{name} must have 2 dimensions, got shape {A.shape}")
    if A.dtype.kind not in "biufc":
        raise TypeError(f"{name} must hold numbers, got dtype {A.dtype}")
    A = A if A.format in ("csr", "csc") else A.tocsr()
    if A.dtype.char not in "fdFD":
        A = A.astype(np.complex128 if A.dtype.kind == "c" else np.float64)
    if not np.isfinite(A.data).all():
        raise ValueError(f"{name} must be finite, but it contains NaN or inf")
    if not A.has_canonical_format:
        # Duplicate entries add up in products but not in norms.
        A = A.copy()
        A.sum_duplicates()
    return A
