"""Dense Cholesky, with Gram matrices that are updated by the rows whose weight has changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lopro.linalg.cholesky import cholesky, cholesky_solve
from lopro.newton.arrays import Array, Matrix, weighted_gram
from lopro.newton.curvature import Blocks, Constant, Diagonal, Gram, LowRank, Piece, Product

__all__ = ["DenseSystem"]

#: After so many updates a Gram matrix is formed afresh, so that rounding does not pile up.
_UPDATES = 50


class _UpdatedGram:
    """``B' diag(h) B`` for one ``B``, kept for the last ``h``."""

    def __init__(self, B: Matrix) -> None:
        self.B = B
        self.weights: Array | None = None
        self.matrix: Array = np.zeros((B.shape[1], B.shape[1]))
        self.updates = 0

    def update(self, weights: Array) -> bool:
        """Bring the matrix to these weights; return whether anything changed."""
        old = self.weights
        self.weights = weights
        if old is not None:
            changed = np.flatnonzero(weights != old)
            if len(changed) == 0:
                return False
            # Updating costs twice as much per row: the weights have both signs, so there is no square root.
            if 2 * len(changed) < np.count_nonzero(weights) and self.updates < _UPDATES:
                rows = self._rows(changed)
                self.matrix += rows.T @ ((weights - old)[changed, None] * rows)
                self.updates += 1
                return True
        used = np.flatnonzero(weights)
        full = len(used) == len(weights)
        self.matrix = (
            weighted_gram(self._rows(slice(None)), weights)
            if full
            else weighted_gram(self._rows(used), weights[used])
        )
        self.updates = 0
        return True

    def _rows(self, index: Any) -> Array:
        rows = self.B[index]
        return rows if isinstance(rows, np.ndarray) else np.asarray(rows.toarray())


class DenseSystem:
    """Solves by dense Cholesky factors."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.factorisations = 0
        self.products = 0
        self._grams: dict[int, _UpdatedGram] = {}
        self._factor: Array | None = None
        self._last: tuple[Any, ...] = ()

    def solve(
        self, pieces: Sequence[Piece], shift: float, rhs: Array, accuracy: float = 0.0
    ) -> Array:
        """Return ``H^-1 rhs``; the factor of an unchanged ``H`` is used again."""
        if self._changed(pieces, shift) or self._factor is None:
            self._factor = None
            self._factor = cholesky(self._assembled(pieces, shift))
            self.factorisations += 1
        return cholesky_solve(self._factor, rhs)

    def assembled(self, pieces: Sequence[Piece], shift: float) -> Array:
        """Return the sum of the pieces, to be factorised elsewhere."""
        self._changed(pieces, shift)
        return self._assembled(pieces, shift)

    def _changed(self, pieces: Sequence[Piece], shift: float) -> bool:
        grams = [p for p in pieces if isinstance(p, Gram)]
        changed = any(isinstance(p, Product | LowRank | Blocks) for p in pieces)
        for gram in grams:
            if id(gram.B) not in self._grams:
                self._grams[id(gram.B)] = _UpdatedGram(gram.B)
            changed |= self._grams[id(gram.B)].update(gram.weights)
        diagonals = tuple(p.values for p in pieces if isinstance(p, Diagonal))
        constants = tuple(id(p.matrix) for p in pieces if isinstance(p, Constant))
        last, self._last = self._last, (shift, constants, diagonals)
        return changed or not (
            len(last) == 3
            and last[:2] == self._last[:2]
            and len(last[2]) == len(diagonals)
            and all(np.array_equal(a, b) for a, b in zip(last[2], diagonals, strict=True))
        )

    def _assembled(self, pieces: Sequence[Piece], shift: float) -> Array:
        total = np.zeros((self.size, self.size))
        on_diagonal = np.full(self.size, shift)
        for piece in pieces:
            if isinstance(piece, Diagonal):
                on_diagonal += piece.values
            elif isinstance(piece, Product):
                total += np.array([piece.apply(e) for e in np.eye(self.size)])
            elif isinstance(piece, Constant):
                dense = isinstance(piece.matrix, np.ndarray)
                total += piece.matrix if dense else piece.matrix.toarray()
            elif isinstance(piece, LowRank):
                total += piece.rows.T @ (piece.core @ piece.rows)
            elif isinstance(piece, Blocks):
                product = piece.B.T @ (piece.middle @ piece.B)
                total += product if isinstance(product, np.ndarray) else product.toarray()
            elif isinstance(piece, Gram):
                total += self._grams[id(piece.B)].matrix
            else:
                raise TypeError("a matrix on a device is not fetched")
        total.flat[:: self.size + 1] += on_diagonal
        return total
