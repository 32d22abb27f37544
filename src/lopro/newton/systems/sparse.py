"""Sparse systems: banded Cholesky where the band is narrow, SuperLU without pivoting elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.linalg.cholesky import SingularSystem
from lopro.newton.arrays import EPS, Array
from lopro.newton.curvature import Piece
from lopro.newton.systems.pattern import FixedPattern

__all__ = ["SparseSystem"]

#: Bands up to this width are solved by LAPACK; measured against SuperLU on rows of random bands.
WIDEST = 40


class SparseSystem:
    """Solves with sparse pieces whose pattern is that of the first call."""

    def __init__(self, size: int, pieces: Sequence[Piece]) -> None:
        self.size = size
        self.factorisations = 0
        self.products = 0
        self.pattern = FixedPattern(size, pieces)
        self._order = self._narrowest()
        place = np.empty(size, dtype=np.int64)
        place[self._order] = np.arange(size)
        rows, columns = place[self.pattern.rows], place[self.pattern.columns]
        self._rows, self._columns = np.maximum(rows, columns), np.minimum(rows, columns)
        self.width = int((self._rows - self._columns).max(initial=0))
        self._natural = bool(np.array_equal(self._order, np.arange(size)))
        # Where each entry of the lower triangle goes in LAPACK's band, column by column.
        self._places = self._columns * (self.width + 1) + (self._rows - self._columns)
        self._factor: Any = None
        self._entries: Array | None = None

    def _narrowest(self) -> Any:
        """Return the natural order, or that of Cuthill and McKee where its band is narrower."""
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
        """Return ``H^-1 rhs``; the factor of an unchanged ``H`` is used again."""
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
    """Refuse factors in which nothing but rounding is left of a pivot."""
    if not pivots.min() > EPS * pivots.max():
        raise SingularSystem("a pivot is lost to rounding")
