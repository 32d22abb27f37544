"""Sums over a block of a matrix in double precision, without a copy of the block in double precision.

Blocks of other dtypes or byte orders are converted in pieces that fit in the cache of the processor, so that
sums of single precision numbers are accurate at the speed of reading the block.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from lopro.core.arrays import Matrix

__all__ = ["adjoint_product", "product", "squares", "wide_dtype"]

#: Entries of a piece along the contiguous direction and across it: 1 MB of doubles, which fits in an L2
#: cache.
_ALONG, _ACROSS = 1024, 128


def wide_dtype(dtype: Any) -> np.dtype[Any]:
    """Return the double precision dtype, real or complex, that holds numbers of this dtype.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.maps.double import wide_dtype
    >>> wide_dtype(np.complex64), wide_dtype(np.int16)
    (dtype('complex128'), dtype('float64'))
    """
    return np.dtype(np.complex128 if np.dtype(dtype).kind == "c" else np.float64)


def product(block: Matrix, X: Matrix) -> Matrix:
    """Return ``block X`` for a vector or a block of vectors, summed in double precision."""
    if X.dtype.kind == "c" and block.dtype.kind != "c":
        return _as_complex(product(block, _as_reals(X)), X)
    total = np.zeros((block.shape[0], *X.shape[1:]), dtype=_sum_dtype(block, X))
    for rows, columns, piece in _pieces(block):
        total[rows] += piece @ X[columns]
    return total


def adjoint_product(block: Matrix, Y: Matrix) -> Matrix:
    """Return ``block^H Y`` for a vector or a block of vectors, summed in double precision."""
    if block.dtype.kind == "c":
        # Conjugating the vectors avoids a conjugate copy of the block.
        return _transposed_product(block, Y.conj()).conj()
    if Y.dtype.kind == "c":
        return _as_complex(_transposed_product(block, _as_reals(Y)), Y)
    return _transposed_product(block, Y)


def _transposed_product(block: Matrix, Y: Matrix) -> Matrix:
    total = np.zeros((block.shape[1], *Y.shape[1:]), dtype=_sum_dtype(block, Y))
    for rows, columns, piece in _pieces(block):
        total[columns] += piece.T @ Y[rows]
    return total


def squares(block: Matrix, axis: int) -> Matrix:
    """Return the sums of the squared moduli of the columns (axis 0) or of the rows (axis 1)."""
    total = np.zeros(block.shape[1 - axis])
    for rows, columns, piece in _pieces(block):
        total[columns if axis == 0 else rows] += _squares(axis, piece)
    return total


def _squares(axis: int, piece: Matrix) -> Matrix:
    sums = "ij,ij->j" if axis == 0 else "ij,ij->i"
    with np.errstate(over="ignore", under="ignore"):
        squares = np.einsum(sums, piece.real, piece.real)
        if piece.dtype.kind == "c":
            squares = squares + np.einsum(sums, piece.imag, piece.imag)
    return np.asarray(squares)


def _sum_dtype(block: Matrix, vectors: Matrix) -> np.dtype[Any]:
    return np.result_type(wide_dtype(block.dtype), wide_dtype(vectors.dtype))


def _as_reals(X: Matrix) -> Matrix:
    """Return complex vectors as twice as many real ones, so that a real block stays real."""
    wide = np.ascontiguousarray(X, dtype=np.complex128).reshape(len(X), -1)
    return wide.view(np.float64)


def _as_complex(reals: Matrix, like: Matrix) -> Matrix:
    return reals.view(np.complex128).reshape(len(reals), *like.shape[1:])


def _pieces(block: Matrix) -> Iterator[tuple[slice, slice, Matrix]]:
    """Yield the block in double precision, in pieces with their places, which must not be modified."""
    rows, columns = block.shape
    dtype = wide_dtype(block.dtype)
    if block.dtype == dtype and block.flags.aligned:
        yield slice(0, rows), slice(0, columns), block
        return
    by_columns = abs(block.strides[0]) < abs(block.strides[1])
    height, width = (_ALONG, _ACROSS) if by_columns else (_ACROSS, _ALONG)
    shape = (min(height, rows), min(width, columns))
    buffer = np.empty(shape, dtype=dtype, order="F" if by_columns else "C")
    corners = [(i, j) for i in range(0, rows, height) for j in range(0, columns, width)]
    for i, j in sorted(corners, key=lambda corner: corner[::-1]) if by_columns else corners:
        part = block[i : i + height, j : j + width]
        piece = buffer[: part.shape[0], : part.shape[1]]
        np.copyto(piece, part)
        yield slice(i, i + part.shape[0]), slice(j, j + part.shape[1]), piece
