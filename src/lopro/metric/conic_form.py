"""The loss on pairs as an atom with a conic form, for interior point methods."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lopro.core.arrays import to_numpy
from lopro.functions.atoms import Opaque
from lopro.functions.cone_program import ConeBuilder, RealImage, add_half_square

if TYPE_CHECKING:
    from lopro.metric.loss import PairLoss

__all__ = ["PairSquares"]


class PairSquares(Opaque):
    """The loss of `PairLoss`: half the mean square of distances of pairs less their targets."""

    function: PairLoss

    def add_to_cone_program(self, program: ConeBuilder, image: RealImage, scale: float) -> None:
        f = self.function.listed()
        X, (i, j) = to_numpy(f.X).astype(np.float64), f.pairs
        Z = X[i] - X[j]
        squares = (Z[:, :, None] * Z[:, None, :]).reshape(len(Z), -1)
        targets = np.asarray(to_numpy(f.targets), dtype=np.float64)
        add_half_square(program, RealImage(squares, targets), scale / len(Z))
