"""Quantities of ``M1``, the sum of ``z z'`` over all pairs, for repairs of dual points."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lopro.core.arrays import Array, from_numpy, namespace
from lopro.core.counting import count
from lopro.core.diagonals import (
    diagonal_of,
    inverse_roots,
    scaled,
    without_diagonal,
)
from lopro.metric.loss import PairLoss
from lopro.metric.white import RANK_TOLERANCE, LargeFeatures, White, blocks, white_pairs
from lopro.projections.psd import full_spectrum

__all__ = ["SMALL", "Spread"]

#: Up to this size all eigenvalues are computed. At 400 rows they take 5 ms; a Cholesky factor takes 2.5 ms,
#: which suffices for psd matrices, and 34 ms with a Lanczos run for others. At 800 rows: 29, 12 and 174 ms.
SMALL = 400


@dataclass(frozen=True)
class Spread:
    """Quantities of ``M1 = sum_e z_e z_e'`` that repairs of dual points need."""

    diagonal: Array
    largest: float  # max over i != j of |M1_ij|
    #: The largest norm of a row of M1 without its diagonal.
    rows: float
    #: ``V`` with ``V'M1 V = I`` that spans the range of M1; None where it is too expensive.
    whitening: Array | None
    full_rank: bool
    #: The least eigenvalue that ``V`` inverts, of M1 with a diagonal of ones.
    least: float = 1.0
    #: The ratio of the terms that cancel in the entries of M1 to these entries.
    cancelling: float = 1.0
    #: Without the norm: the pairs in coordinates of the range of M1 in which ``M1 = I``.
    white: White | None = None
    #: Repairs for features that are so large that the norm is negligible.
    blocks: tuple[LargeFeatures, ...] = ()

    @staticmethod
    def of(loss: PairLoss, tau: float, others: float = 0.0) -> Spread:
        """Return the quantities that these weights of the norms require, in double precision."""
        d = loss.X.shape[1]
        if d > SMALL and isinstance(loss.X, np.ndarray) and max(tau, others) > 0.0:
            return Spread._by_rows(loss)
        M1 = loss.adjoint(loss.ones())
        xp = namespace(M1)
        diagonal = diagonal_of(M1) + 0.0  # a copy: M1 is overwritten below
        cancelling = loss.growth(diagonal)
        if tau == 0.0 and others == 0.0:
            found = white_pairs(loss, diagonal)
            if found is not None:
                ones_there = from_numpy(np.ones(found.loss.X.shape[1]), found.loss.X)
                cancelling = max(cancelling, found.loss.growth(ones_there))
            return Spread(diagonal, 0.0, 0.0, None, False, cancelling=cancelling, white=found)
        values, vectors = full_spectrum(scaled(M1, diagonal)) if d <= SMALL else (None, None)
        parts = blocks(loss, tau, M1, diagonal) if d <= SMALL and tau > 0.0 else ()
        M1 = without_diagonal(M1)
        largest = max(float(xp.max(M1)), -float(xp.min(M1)))
        # On the host without a matrix of squares: passes over large matrices take most of the time.
        host = isinstance(M1, np.ndarray)
        squares = np.einsum("ij,ij->i", M1, M1) if host else xp.sum(M1 * M1, axis=1)
        rows = math.sqrt(float(xp.max(squares)))
        if values is None or vectors is None:
            return Spread(diagonal, largest, rows, None, False, cancelling=cancelling)
        for block in parts:
            ones_there = from_numpy(np.ones(block.loss.X.shape[1]), block.loss.X)
            cancelling = max(cancelling, block.loss.growth(ones_there))
        kept = int(xp.count_nonzero(values > RANK_TOLERANCE * float(values[-1])))
        V = inverse_roots(diagonal)[:, None] * vectors[:, d - kept :] / xp.sqrt(values[d - kept :])
        least = float(values[d - kept]) if kept else 1.0
        return Spread(
            diagonal, largest, rows, V if kept else None, kept == d, least, cancelling, blocks=parts
        )

    @staticmethod
    def _by_rows(loss: PairLoss) -> Spread:
        """Return the spread for many features, from blocks of rows of M1."""
        count("rmatvecs")
        ones = loss.ones()
        diagonal = loss.diagonal_of_adjoint(ones)
        largest, squares = 0.0, np.zeros(len(diagonal))
        for start, M in loss.adjoint_above_diagonal(ones):
            largest = max(largest, float(M.max()), -float(M.min()))
            squares[start : start + len(M)] += np.einsum("ij,ij->i", M, M)
            squares[start:] += np.einsum("ij,ij->j", M, M)
        rows = math.sqrt(float(squares.max()))
        cancelling = loss.growth(diagonal)
        return Spread(diagonal, largest, rows, None, False, cancelling=cancelling)

    def rounding(self, largest: float) -> float:
        """Bound the rounding error of ``M(w)`` for weights up to ``largest`` and features of size one."""
        size: int = self.diagonal.shape[0]
        return 8.0 * size * float(np.finfo(np.float64).eps) * self.cancelling * largest
