"""Sparse systems and a few dense rows: the rows are taken out and brought back by Woodbury's identity."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy  # parts of it load when first used

from lopro.linalg.cholesky import SingularSystem
from lopro.newton.arrays import Array
from lopro.newton.curvature import LowRank, Piece
from lopro.newton.systems.base import System
from lopro.newton.systems.refinement import refined

__all__ = ["CorrectedSystem"]

#: Corrections by the residual, and the residual to reach; they bring back digits that the identity costs.
_CORRECTIONS = 3
_WANTED = 1e-10


class CorrectedSystem:
    """Solves with ``H + V' C V`` for few rows ``V`` through another system that solves with ``H``."""

    def __init__(self, base: System) -> None:
        self.base = base
        self.factorisations = 0
        self.products = 0

    def solve(
        self, pieces: Sequence[Piece], shift: float, rhs: Array, accuracy: float = 0.0
    ) -> Array:
        """Return the solution, corrected by its residual."""
        rest = [p for p in pieces if not isinstance(p, LowRank)]
        low = [p for p in pieces if isinstance(p, LowRank)]
        V = np.concatenate([p.rows for p in low])
        if len(V) == 0:
            return self.base.solve(rest, shift, rhs, accuracy)
        images = np.stack([self.base.solve(rest, shift, row, accuracy) for row in V])
        # (I + C V H^-1 V')^-1 C takes cores that are singular, or zero.
        core = scipy.linalg.block_diag(*(p.core for p in low))
        middle = np.eye(len(V)) + core @ (V @ images.T)

        def woodbury(r: Array) -> Array:
            x = self.base.solve(rest, shift, r, accuracy)
            self.factorisations = self.base.factorisations
            return np.asarray(x - np.linalg.solve(middle, core @ (V @ x)) @ images)

        try:
            return refined(
                self, woodbury, pieces, shift, rhs, corrections=_CORRECTIONS, wanted=_WANTED
            )
        except np.linalg.LinAlgError as error:
            raise SingularSystem(str(error)) from None
