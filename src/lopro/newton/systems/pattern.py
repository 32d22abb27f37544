"""Sparse matrices ``sum of pieces`` whose pattern is known once and for all: filling in is a product.

``B' diag(h) B`` is linear in ``h``: with the pattern fixed, its entries are a sparse matrix times ``h``.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.newton.arrays import Array, Matrix
from lopro.newton.curvature import Constant, Diagonal, Gram, Piece, Product

__all__ = ["FixedPattern", "is_sparse", "pair_count"]


def is_sparse(pieces: Sequence[Piece]) -> bool:
    """Whether every piece is diagonal or a sparse matrix."""
    for piece in pieces:
        if isinstance(piece, Constant) and not scipy.sparse.issparse(piece.matrix):
            return False
        if isinstance(piece, Gram) and not (piece.fixed and scipy.sparse.issparse(piece.B)):
            return False
        if isinstance(piece, Product):
            return False
    return True


def pair_count(pieces: Sequence[Piece]) -> int:
    """Return the number of products that the entries of all ``B'B`` take."""
    grams = [p.B for p in pieces if isinstance(p, Gram)]
    return sum(int((np.diff(B.tocsr().indptr).astype(np.int64) ** 2).sum()) for B in grams)


class FixedPattern:
    """The lower triangle of a sum of pieces, as positions and a linear map from weights to entries."""

    def __init__(self, size: int, pieces: Sequence[Piece]) -> None:
        self.size = size
        everywhere = np.arange(size)
        sources = [_Source(everywhere, everywhere, np.ones(size), everywhere)]
        sources += [_source(size, piece) for piece in pieces]
        keys = [s.rows.astype(np.int64) + size * s.columns.astype(np.int64) for s in sources]
        unique, index = np.unique(np.concatenate(keys), return_inverse=True)
        self.rows, self.columns = unique % size, unique // size
        self._diagonal = index[:size]
        starts = np.cumsum([0, *(len(s.values) for s in sources)])
        places = [index[a:b] for a, b in itertools.pairwise(starts)]
        self._maps = [self._map(p, s) for p, s in zip(places[1:], sources[1:], strict=True)]

    def _map(self, where: Any, source: _Source) -> Matrix:
        """Return the entries of a constant piece, or the matrix that makes them of its weights."""
        if source.own is None:
            return np.bincount(where, weights=source.values, minlength=len(self.rows))
        shape = (len(self.rows), source.weights)
        return scipy.sparse.coo_array((source.values, (where, source.own)), shape=shape).tocsr()

    def entries(self, pieces: Sequence[Piece], shift: float) -> Array:
        """Return the entries of the lower triangle, in the order of `rows` and `columns`."""
        total = np.zeros(len(self.rows))
        total[self._diagonal] = shift
        for piece, entry_map in zip(pieces, self._maps, strict=True):
            if isinstance(piece, Diagonal):
                total += entry_map @ piece.values
            elif isinstance(piece, Gram):
                total += entry_map @ piece.weights
            else:
                total += entry_map
        return total


@dataclass(frozen=True)
class _Source:
    """Entries of a piece: places, values, and the weight that each is multiplied with (None: constant)."""

    rows: Any
    columns: Any
    values: Array
    own: Any = None
    weights: int = 0


def _source(size: int, piece: Piece) -> _Source:
    if isinstance(piece, Constant):
        coo = scipy.sparse.tril(piece.matrix).tocoo()
        return _Source(coo.coords[0], coo.coords[1], coo.data)
    if isinstance(piece, Gram):
        return _pairs(piece.B)
    if isinstance(piece, Diagonal):
        return _Source(np.arange(size), np.arange(size), np.ones(size), np.arange(size), size)
    raise TypeError("products have no pattern")


def _pairs(B: Matrix) -> _Source:
    """Return the lower entries of all ``b_i b_i'``."""
    B = B.tocsr()
    counts = np.diff(B.indptr)
    own = np.repeat(np.arange(B.shape[0]), counts)
    repeats = counts[own]
    first = np.repeat(np.arange(B.nnz), repeats)
    ends = np.cumsum(repeats)
    within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - repeats, repeats)
    second = np.repeat(B.indptr[own], repeats) + within
    rows, columns = B.indices[first], B.indices[second]
    lower = rows >= columns
    values = (B.data[first] * B.data[second])[lower]
    return _Source(rows[lower], columns[lower], values, own[first][lower], B.shape[0])
