"""The loss on pairs as a part of a conic program, for interior point methods."""

from __future__ import annotations

import numpy as np

from lopro.conic_forms.objectives import add_half_square, add_objective
from lopro.conic_forms.sets import real_vector
from lopro.core.arrays import Array, to_numpy
from lopro.engines import ConicProgram
from lopro.metric.loss import PairLoss

__all__: list[str] = []


@add_objective.register
def _(f: PairLoss, program: ConicProgram, factor: float, zero: Array) -> None:
    f = f.listed()
    X, (i, j) = to_numpy(f.X).astype(np.float64), f.pairs
    Z = X[i] - X[j]
    squares = (Z[:, :, None] * Z[:, None, :]).reshape(len(Z), -1)
    add_half_square(program, squares, real_vector(f.targets, False), factor / len(Z))
