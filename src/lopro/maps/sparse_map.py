"""Maps of scipy.sparse matrices; blocks of columns and rows are sparse too."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from array_api_compat import is_cupy_array, is_torch_array

from lopro.core.arrays import Array, from_numpy, on_host, to_numpy
from lopro.core.counting import count, count_product
from lopro.maps.algebra import bytes_of, checked_indices
from lopro.maps.base import LinearMap
from lopro.maps.torch_sparse import TorchSparseMap

__all__ = ["SparseMap"]


class SparseMap(LinearMap):
    """A scipy.sparse array or matrix; points of other libraries on the host are converted to NumPy.

    For points of PyTorch or CuPy on a device the matrix is copied to each device once, so that vectors are
    not transferred. `columns` returns csc blocks, `rows` csr blocks.

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
        copied = self._copied_beside(X)
        if copied is not None:
            return copied.multiply(X)
        return from_numpy(self._sparse @ to_numpy(X), X)

    def multiply_adjoint(self, Y: Array) -> Array:
        copied = self._copied_beside(Y)
        if copied is not None:
            return copied.multiply_adjoint(Y)
        return from_numpy(self._adjoint @ to_numpy(Y), Y)

    def _copied_beside(self, X: Array) -> Any:
        """Return the matrix on the device of an array; None on the host and for other libraries."""
        if isinstance(X, np.ndarray) or on_host(X):
            return None
        if not (is_torch_array(X) or is_cupy_array(X)):
            return None
        key = str(X.device)
        if key not in self._copies:
            count("transfers")
            count("bytes_transferred", self.nbytes)
            copied = _on_torch_device if is_torch_array(X) else _OnCuPyDevice
            self._copies[key] = copied(self._by_rows, X)
        return self._copies[key]

    @cached_property
    def _copies(self) -> dict[str, Any]:
        return {}

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


def _on_torch_device(A: Any, like: Any) -> LinearMap:
    """Return the map of a matrix of SciPy on the device of a tensor."""
    import torch

    start, places, values = (
        torch.asarray(part, device=like.device) for part in (A.indptr, A.indices, A.data)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch calls its sparse layouts a beta version
        return TorchSparseMap(torch.sparse_csr_tensor(start, places, values, size=A.shape))


class _OnCuPyDevice:
    """Products with a matrix of SciPy on the device of an array of CuPy."""

    def __init__(self, A: Any, like: Any) -> None:
        import cupyx.scipy.sparse

        with like.device:
            self.matrix = cupyx.scipy.sparse.csr_matrix(A)
            self.adjoint = self.matrix.conj().T.tocsr()

    def multiply(self, X: Array) -> Array:
        return self.matrix @ X

    def multiply_adjoint(self, Y: Array) -> Array:
        return self.adjoint @ Y


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
        # Products sum duplicate entries, norms do not.
        A = A.copy()
        A.sum_duplicates()
    return A
