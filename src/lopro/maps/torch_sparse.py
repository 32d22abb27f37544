"""Sparse matrices of PyTorch (``torch.sparse_csr``), on their device."""

from __future__ import annotations

import warnings
from functools import cached_property
from typing import Any

import numpy as np
from array_api_compat import is_torch_array

from lopro.core.arrays import Array, asarray_like, from_numpy, is_complex, is_single, namespace
from lopro.maps.base import LinearMap

__all__ = ["TorchSparseMap", "is_torch_sparse"]


def is_torch_sparse(A: Any) -> bool:
    """Whether an object is a sparse tensor of PyTorch, of any layout."""
    return bool(is_torch_array(A)) and "sparse" in str(A.layout)


class TorchSparseMap(LinearMap):
    """A sparse tensor in the layout ``torch.sparse_csr``; others are converted once.

    Products run on the device. The transpose is formed for the first product with the adjoint, or the first
    columns that are read, and cached. Columns and rows are returned as dense blocks.

    Parameters
    ----------
    A : sparse tensor
        Not copied, unless it has another layout.
    name : str
        Its name in error messages.
    """

    def __init__(self, A: Any, name: str = "A") -> None:
        if A.ndim != 2:
            raise ValueError(f"{name} must have 2 dimensions, got shape {tuple(A.shape)}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            csr = (A if "csr" in str(A.layout) else A.to_sparse_csr()).detach()
        entries = _values(csr)
        if not entries.dtype.is_floating_point and not entries.dtype.is_complex:
            raise TypeError(f"{name} must hold floating-point numbers, got dtype {entries.dtype}")
        if not bool(entries.isfinite().all()):
            raise ValueError(f"{name} must be finite, but it contains NaN or inf")
        parts = (entries, csr.col_indices(), csr.crow_indices())
        nbytes = sum(int(part.numel()) * int(part.element_size()) for part in parts)
        like = entries.new_zeros(1)
        super().__init__(csr, tuple(csr.shape), like, name, nbytes)

    @property
    def in_memory(self) -> bool:
        return True

    @property
    def kind(self) -> str:
        return "a sparse tensor"

    @cached_property
    def _adjoint(self) -> Any:
        """The conjugate transpose, by rows."""
        import torch

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch calls its sparse layouts a beta version
            transposed = self.source.transpose(0, 1).to_sparse_csr()
            if not is_complex(self.like):
                return transposed
            values = _values(transposed).conj().resolve_conj()
            places = transposed.crow_indices(), transposed.col_indices()
            return torch.sparse_csr_tensor(*places, values, size=transposed.shape)

    def multiply(self, X: Array) -> Array:
        return self._times(self.source, X)

    def multiply_adjoint(self, Y: Array) -> Array:
        return self._times(self._adjoint, Y)

    def multiply_adjoint_exactly(self, Y: Array) -> Array:
        if is_single(self.like) and is_torch_array(Y) and not is_single(Y):
            xp = namespace(Y)
            wide = xp.complex128 if is_complex(self.like) else xp.float64
            return self._times(self._adjoint.to(wide), Y)
        return self.multiply_adjoint(Y)

    def _times(self, matrix: Any, X: Array) -> Array:
        """Return a product; vectors of the host are copied to the device first."""
        if not is_torch_array(X):
            X = asarray_like(X, self.like)
        if is_complex(X) and not matrix.dtype.is_complex:
            return self._times(matrix, X.real) + 1j * self._times(matrix, X.imag)
        X = X.to(matrix.dtype)
        return (matrix @ X[:, None])[:, 0] if X.ndim == 1 else matrix @ X.contiguous()

    def read_rows(self, indices: Any) -> Array:
        return _dense_rows(self.source, indices)

    def read_columns(self, indices: Any) -> Array:
        return namespace(self.like).matrix_transpose(
            _dense_rows(self._adjoint, indices).conj().resolve_conj()
        )

    @cached_property
    def row_norms(self) -> Array:
        return _row_norms(self.source)

    @cached_property
    def column_norms(self) -> Array:
        return _row_norms(self._adjoint)


def _values(csr: Any) -> Array:
    """Return the entries; complex ones are copied, because the view has no real and imaginary parts."""
    values = csr.values()
    return values.clone() if values.dtype.is_complex else values


def _dense_rows(csr: Any, indices: Any) -> Array:
    """Return some rows as a dense block: the entries between the pointers of each row."""
    values, start = _values(csr), csr.crow_indices()
    rows = from_numpy(np.asarray(indices), values)
    first, counts = start[rows], start[rows + 1] - start[rows]
    block = values.new_zeros((len(rows), csr.shape[1]))
    where = counts.new_ones(len(rows)).cumsum(0) - 1
    of_entry = where.repeat_interleave(counts)
    # Places within a row, shifted by the start of the row.
    before = counts.cumsum(0) - counts
    places = counts.new_ones(len(of_entry)).cumsum(0) - 1 - before[of_entry] + first[of_entry]
    block[of_entry, csr.col_indices()[places]] = values[places]
    return block


def _row_norms(csr: Any) -> Array:
    values, start = csr.values(), csr.crow_indices()
    counts = start[1:] - start[:-1]
    rows = (counts.new_ones(len(counts)).cumsum(0) - 1).repeat_interleave(counts)
    squares = values.abs().double() ** 2
    return squares.new_zeros(len(counts)).index_add_(0, rows, squares).sqrt().to(values.abs().dtype)
