"""The cone program of the squared loss on pairs."""

from __future__ import annotations

from typing import Any

import numpy as np

from lopro.core.arrays import to_numpy
from lopro.functions.atoms import Opaque
from lopro.functions.cone_program import ConeBuilder, RealImage, add_half_square

__all__ = ["PairSquares"]


class PairSquares(Opaque):
    """A `PairLoss` as an atom of the matrix with the rows of a cone program, for interior point methods."""

    function: Any

    def add_to_cone_program(self, program: ConeBuilder, image: RealImage, scale: float) -> None:
        f = self.function.listed()
        X, (i, j) = to_numpy(f.X).astype(np.float64), f.pairs
        Z = X[i] - X[j]
        squares = (Z[:, :, None] * Z[:, None, :]).reshape(len(Z), -1)
        targets = np.asarray(to_numpy(f.targets), dtype=np.float64)
        add_half_square(program, RealImage(squares, targets), scale / len(Z))
