"""Sparse systems whose rows would fill up a matrix of normal equations: rows and variables in one system."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy  # parts of it load when first used

from lopro.linalg.cholesky import SingularSystem
from lopro.linalg.sparse import sparse_factors
from lopro.newton.arrays import Array
from lopro.newton.curvature import Constant, Diagonal, Gram, Piece
from lopro.newton.systems.refinement import refined

__all__ = ["AugmentedSystem"]

#: Corrections by the residual, and the residual to reach.
_CORRECTIONS = 3
_WANTED = 1e-12


class AugmentedSystem:
    """Solves with ``E + B' W B`` through ``[[E, B'], [B, -W^-1]]``, whose factors stay sparse."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.factorisations = 0
        self.products = 0

    def solve(
        self, pieces: Sequence[Piece], shift: float, rhs: Array, accuracy: float = 0.0
    ) -> Array:
        """Return ``H^-1 rhs``, corrected by its residual."""
        K, rows = self._formed(pieces, shift)
        factors = sparse_factors(K)
        if factors is None:
            raise SingularSystem("singular, or there is no time for its factors")
        self.factorisations += 1

        def solved(r: Array) -> Array:
            return np.asarray(factors.solve(np.concatenate([r, np.zeros(rows)]))[: self.size])

        return refined(self, solved, pieces, shift, rhs, corrections=_CORRECTIONS, wanted=_WANTED)

    def _formed(self, pieces: Sequence[Piece], shift: float) -> tuple[object, int]:
        """Return the matrix and how many rows it has beside the variables."""
        on_diagonal = np.full(self.size, shift)
        constants, grams, weights = [], [], [np.zeros(0)]
        for piece in pieces:
            if isinstance(piece, Diagonal):
                on_diagonal = on_diagonal + piece.values
            elif isinstance(piece, Constant):
                constants.append(piece.matrix)
            elif isinstance(piece, Gram):
                used = np.flatnonzero(piece.weights)
                grams.append(piece.B.tocsr()[used])
                weights.append(piece.weights[used])
            else:
                raise TypeError("only diagonals and sparse matrices have an augmented system")
        E = sum(constants, scipy.sparse.diags_array(on_diagonal, format="csr"))
        if not grams:
            return E.tocsc(), 0
        B = scipy.sparse.vstack(grams, format="csr")
        below = scipy.sparse.diags_array(-1.0 / np.concatenate(weights))
        return scipy.sparse.block_array([[E, B.T], [B, below]], format="csc"), B.shape[0]
