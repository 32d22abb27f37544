"""Sparse systems: banded Cholesky factors where the band is narrow, else SuperLU without pivoting.

``B' diag(h) B`` is linear in ``h``: its entries are a constant sparse matrix times ``h``.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.linalg.dense import EPS, Array, Matrix, SingularSystem
from lopro.newton.curvature import ConstantMatrix, Diagonal, Piece
from lopro.newton.systems.iterative import System

__all__ = ["FixedPattern", "SparseSystem", "is_sparse", "pair_count"]


def is_sparse(pieces: Sequence[Piece]) -> bool:
    """Return whether every piece is diagonal or a sparse matrix."""
    return all(piece.sparse for piece in pieces)


def pair_count(pieces: Sequence[Piece]) -> int:
    """Return the number of products of two entries that form all ``B'B``."""
    found = [(p.factor.tocsr(), p.height) for p in pieces if p.factor is not None]
    counts = [np.diff(B.indptr[::height]).astype(np.int64) for B, height in found]
    return sum(int((count**2).sum()) for count in counts)


class FixedPattern:
    """The pattern of the lower triangle of a sum of pieces, and the map from coefficients to its entries."""

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
        """Return the entries of a constant piece, or the matrix that maps coefficients to entries."""
        if source.own is None:
            return np.bincount(where, weights=source.values, minlength=len(self.rows))
        shape = (len(self.rows), source.weights)
        return scipy.sparse.coo_array((source.values, (where, source.own)), shape=shape).tocsr()

    def entries(self, pieces: Sequence[Piece], shift: float) -> Array:
        """Return the entries of the lower triangle, in the order of `rows` and `columns`."""
        total = np.zeros(len(self.rows))
        total[self._diagonal] = shift
        for piece, entry_map in zip(pieces, self._maps, strict=True):
            changing = piece.coefficients
            total += entry_map if changing is None else entry_map @ changing
        return total


@dataclass(frozen=True)
class _Source:
    """Entries of a piece: places, values, and the index of the coefficient of each (None: constant)."""

    rows: Any
    columns: Any
    values: Array
    own: Any = None
    weights: int = 0


def _source(size: int, piece: Piece) -> _Source:
    if piece.factor is not None:
        return _pairs(piece.factor, piece.height)
    if isinstance(piece, ConstantMatrix):
        coo = scipy.sparse.tril(piece.matrix).tocoo()
        return _Source(coo.coords[0], coo.coords[1], coo.data)
    if isinstance(piece, Diagonal):
        return _Source(np.arange(size), np.arange(size), np.ones(size), np.arange(size), size)
    raise TypeError("an operator known by its products has no pattern")


def _pairs(B: Matrix, size: int = 1) -> _Source:
    """Return the lower entries of all ``b_i b_j'`` with i and j in the same group of ``size`` rows."""
    B = B.tocsr()
    starts = B.indptr[::size]  # the rows of a group are consecutive
    counts = np.diff(starts)
    group = np.repeat(np.arange(len(counts)), counts)
    repeats = counts[group]
    first = np.repeat(np.arange(B.nnz), repeats)
    ends = np.cumsum(repeats)
    within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - repeats, repeats)
    second = np.repeat(starts[group], repeats) + within
    rows, columns = B.indices[first], B.indices[second]
    lower = rows >= columns
    first, second = first[lower], second[lower]
    place = np.repeat(np.arange(B.shape[0]), np.diff(B.indptr))  # the row of every entry
    # Coefficients are the entries of the blocks, one block after the other, each row by row.
    own = size * place[first] + place[second] % size
    values = B.data[first] * B.data[second]
    return _Source(rows[lower], columns[lower], values, own, size * B.shape[0])


#: Bands up to this width are factorised by LAPACK, in ``n (width + 1)`` doubles. Time over that of SuperLU,
#: for rows with 4 random entries in a band, n = 10,000, one core: 0.08, 0.10, 0.14, 0.13, 0.19 for widths of
#: 10, 20, 40, 80, 160: the limit is one of memory.
WIDEST = 40


class SparseSystem(System):
    """Solves with sparse pieces that have the pattern of the first call."""

    def __init__(self, size: int, pieces: Sequence[Piece]) -> None:
        super().__init__(size)
        self.pattern = FixedPattern(size, pieces)
        self._order = self._narrowest()
        place = np.empty(size, dtype=np.int64)
        place[self._order] = np.arange(size)
        rows, columns = place[self.pattern.rows], place[self.pattern.columns]
        self._rows, self._columns = np.maximum(rows, columns), np.minimum(rows, columns)
        self.width = int((self._rows - self._columns).max(initial=0))
        self._natural = bool(np.array_equal(self._order, np.arange(size)))
        # Places of the entries of the lower triangle in LAPACK's band storage, column by column.
        self._places = self._columns * (self.width + 1) + (self._rows - self._columns)
        self._factor: Any = None
        self._entries: Array | None = None

    def _narrowest(self) -> Any:
        """Return the reverse Cuthill-McKee order where its band is narrower, else the natural one."""
        natural = np.arange(self.size)
        rows, columns = self.pattern.rows, self.pattern.columns
        width = int((rows - columns).max(initial=0))
        if width <= WIDEST:
            return natural
        ones = np.ones(len(rows))
        graph = scipy.sparse.coo_array((ones, (rows, columns)), shape=(self.size, self.size))
        order = scipy.sparse.csgraph.reverse_cuthill_mckee(
            scipy.sparse.csr_array(graph + graph.T), symmetric_mode=True
        )
        place = np.empty(self.size, dtype=np.int64)
        place[order] = natural
        narrow = int(np.abs(place[rows] - place[columns]).max(initial=0))
        return np.asarray(order) if narrow < width else natural

    def solve(
        self, pieces: Sequence[Piece], shift: float, rhs: Array, accuracy: float = 0.0
    ) -> Array:
        """Return ``H^-1 rhs``; the factor of an unchanged ``H`` is reused."""
        entries = self.pattern.entries(pieces, shift)
        last = self._entries
        if self._factor is None or last is None or not np.array_equal(entries, last):
            self._factor = None
            self._factor = self._banded(entries) if self.width <= WIDEST else self._lu(entries)
            self._entries = entries
            self.factorisations += 1
        if self._natural:
            return np.asarray(self._factor(rhs))
        x = np.empty(self.size)
        x[self._order] = self._factor(rhs[self._order])
        return x

    def _banded(self, entries: Array) -> Any:
        flat = np.zeros(self.size * (self.width + 1))
        flat[self._places] = entries
        band = flat.reshape(self.size, self.width + 1).T
        lapack = scipy.linalg.lapack
        if self.width == 1:
            pivots, lower, info = lapack.dpttrf(band[0], band[1, :-1])
        else:
            factor, info = lapack.dpbtrf(band, lower=1, overwrite_ab=1)
            pivots = factor[0] ** 2
        if info != 0:
            raise SingularSystem(f"minor {info} is not positive")
        _check(pivots)
        if self.width == 1:
            return lambda rhs: lapack.dpttrs(pivots, lower, rhs)[0]
        return lambda rhs: lapack.dpbtrs(factor, rhs, lower=1)[0]

    def _lu(self, entries: Array) -> Any:
        rows, columns = self._rows, self._columns
        off = rows != columns
        matrix = scipy.sparse.coo_array(
            (
                np.concatenate([entries, entries[off]]),
                (np.concatenate([rows, columns[off]]), np.concatenate([columns, rows[off]])),
            ),
            shape=(self.size, self.size),
        ).tocsc()
        try:
            factor = scipy.sparse.linalg.splu(
                matrix,
                permc_spec="MMD_AT_PLUS_A",
                diag_pivot_thresh=0.0,
                options={"SymmetricMode": True},
            )
        except RuntimeError as error:
            raise SingularSystem(str(error)) from None
        _check(factor.U.diagonal())
        return factor.solve


def _check(pivots: Array) -> None:
    """Raise SingularSystem if a pivot is lost to rounding."""
    if not pivots.min() > EPS * pivots.max():
        raise SingularSystem("a pivot is lost to rounding")
