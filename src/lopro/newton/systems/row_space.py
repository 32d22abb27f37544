"""Systems with fewer rows than variables: a diagonal and ``B' diag(h) B``, solved in the space of rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lopro.linalg.cholesky import SingularSystem, cholesky, cholesky_solve
from lopro.newton.arrays import EPS, Array
from lopro.newton.curvature import Diagonal, Gram, Piece
from lopro.newton.systems.refinement import refined

__all__ = ["RowSpaceSystem"]

#: Corrections by the residual; large weights beside a small diagonal cost digits that they bring back.
_CORRECTIONS = 5
_WANTED = 1e-8


class RowSpaceSystem:
    """Solves with ``E + B' diag(h) B``, ``E`` diagonal, by a system with one row for each positive ``h``."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.factorisations = 0
        self.products = 0

    def solve(
        self, pieces: Sequence[Piece], shift: float, rhs: Array, accuracy: float = 0.0
    ) -> Array:
        """Return ``H^-1 rhs`` by the identity of Woodbury, corrected by its residual."""
        E = np.full(self.size, shift)
        for piece in pieces:
            if isinstance(piece, Diagonal):
                E += piece.values
        if E.min() <= EPS * E.max():
            raise SingularSystem("the diagonal has zeros")
        root = np.sqrt(E)
        rows = [_scaled_rows(p) for p in pieces if isinstance(p, Gram)]
        S = np.concatenate([np.zeros((0, self.size)), *rows]) / root
        M = S @ S.T
        M.flat[:: len(M) + 1] += 1.0
        factor = cholesky(M) if len(M) else M
        self.factorisations += 1

        def woodbury(r: Array) -> Array:
            scaled = r / root
            if len(M):
                scaled = scaled - cholesky_solve(factor, S @ scaled) @ S
            return np.asarray(scaled / root)

        return refined(self, woodbury, pieces, shift, rhs, corrections=_CORRECTIONS, wanted=_WANTED)


def _scaled_rows(gram: Gram) -> Array:
    used = np.flatnonzero(gram.weights)
    rows = gram.B[used]
    dense = rows if isinstance(rows, np.ndarray) else rows.toarray()
    return np.asarray(np.sqrt(gram.weights[used])[:, None] * dense)
