"""Columns as they are read and held, in several arrays, and their Gram matrices, on every array library."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.arrays import Array, from_numpy, namespace
from lopro.maps import LinearMap
from lopro.maps.algebra import widened

__all__ = [
    "Pieces",
    "Vector",
    "at_rank",
    "bordered",
    "cholesky_routines",
    "largest",
    "submatrix",
    "take_columns",
]

Vector: TypeAlias = "np.ndarray[Any, Any]"

#: The largest share of nonzeros for sparse columns. Products of 2000 x 200 columns and their Gram matrix take
#: 0.2, 0.5 and 0.6 of the time of dense ones at this share, 0.6, 1.0 and 1.5 at a tenth.
_SPARSE = 0.03


class Pieces(list[Any]):
    """Columns side by side in several arrays, so that appending does not copy those that are held."""

    def append_columns(self, new: Any, most: int) -> None:
        """Append an array; join neighbours of at most ``most`` columns together: products call each array."""
        self.append(new)
        joined: list[Any] = []
        for piece in self:
            dense = joined and not (
                scipy.sparse.issparse(piece) or scipy.sparse.issparse(joined[-1])
            )
            if dense and joined[-1].shape[1] + piece.shape[1] <= most:
                piece = namespace(piece).concat([joined.pop(), piece], axis=1)
            joined.append(piece)
        self[:] = joined

    def placed(self) -> Iterator[tuple[slice, Any]]:
        """Yield the arrays, each with the positions of its columns."""
        at = 0
        for piece in self:
            yield slice(at, at + piece.shape[1]), piece
            at += piece.shape[1]

    def keep(self, stays: Vector) -> None:
        """Drop the columns for which ``stays`` is false."""
        for i, (at, piece) in enumerate(self.placed()):
            if not stays[at].all():
                self[i] = take_columns(piece, np.flatnonzero(stays[at]))
        self[:] = [piece for piece in self if piece.shape[1] > 0]


def take_columns(block: Any, positions: Vector) -> Any:
    """Return some columns of an array, sparse or not, of any library."""
    if scipy.sparse.issparse(block):
        return block[:, positions]
    if isinstance(block, np.ndarray):
        # By rows of the transpose: columns that were read are contiguous.
        return np.take(block.T, positions, axis=0).T
    return namespace(block).take(block, from_numpy(positions, block), axis=1)


def bordered(gram: Any, beside: list[Any], corner: Any) -> Any:
    """Return a Gram matrix with more columns: their products with those held, and with each other."""
    if isinstance(gram, np.ndarray):
        n = len(gram)
        grown = np.empty((n + len(corner), n + len(corner)), dtype=gram.dtype)
        grown[:n, :n], grown[n:, n:] = gram, corner
        grown[n:, :n] = np.concatenate(beside, axis=1) if beside else 0.0
        grown[:n, n:] = grown[n:, :n].conj().T
        return grown
    if not beside:
        return corner
    xp = namespace(gram)
    border = xp.concat(beside, axis=1)
    upper = xp.concat([gram, border.T], axis=1)
    return xp.concat([upper, xp.concat([border, corner], axis=1)], axis=0)


def submatrix(matrix: Array, positions: Vector) -> Array:
    """Return the rows and columns at some positions; on the host, columns first and then rows is fastest."""
    if isinstance(matrix, np.ndarray):
        return matrix.take(positions, axis=1).take(positions, axis=0)
    there, xp = from_numpy(positions, matrix), namespace(matrix)
    return xp.take(xp.take(matrix, there, axis=0), there, axis=1)


def largest(sizes: Vector, count: int) -> Vector:
    """Return the positions of the ``count`` largest entries, in no order."""
    if count >= len(sizes):
        return np.arange(len(sizes))
    return np.argpartition(-sizes, count)[:count]


@functools.cache
def cholesky_routines(dtype: str) -> tuple[Any, Any, Any, Any]:
    """Return LAPACK's potrf, potrs, pstrf and posv for a type: a look-up takes as long as a small factor."""
    names = ("potrf", "potrs", "pstrf", "posv")
    return tuple(scipy.linalg.get_lapack_funcs(names, dtype=np.dtype(dtype)))


def thinned(block: Any) -> Any:
    """Return a sparse block in double precision: by columns if products are faster that way, or as an array.

    Arrays are returned unchanged.
    """
    if not scipy.sparse.issparse(block):
        return block
    block = widened(block)
    few = block.nnz <= _SPARSE * math.prod(block.shape)
    return scipy.sparse.csc_array(block) if few else block.toarray()


def columns_of(A: LinearMap, indices: Vector) -> Any:
    """Return columns, as an array, or in sparse form if they have few entries; of operators by products."""
    if not A.has_columns:
        units = np.zeros((A.shape[1], len(indices)))
        units[indices, np.arange(len(indices))] = 1.0
        return np.asarray(A.forward(units))
    return thinned(A.columns(indices))


def at_rank(sizes: Array, rank: int) -> float:
    """Return the entry of a rank in descending order; 0 beyond the last one."""
    if rank >= sizes.shape[0]:
        return 0.0
    if isinstance(sizes, np.ndarray):
        return float(np.partition(sizes, sizes.size - rank)[sizes.size - rank])
    return float(namespace(sizes).sort(sizes)[sizes.shape[0] - rank])
