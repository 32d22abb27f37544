"""The augmented Lagrangian of the dual of a semidefinite program, at a point.

``L(y) = -b'y + |P_+(W)|^2 / (2 sigma)`` with ``W = X - sigma (C - A*y)``, up to a constant. Its gradient is
``A P_+(W) - b``, and ``P_+(W)`` is the next X.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lopro.core.arrays import Array as AnyArray
from lopro.core.arrays import namespace
from lopro.linalg.dense import Array, norm
from lopro.newton.sdp.program import SemidefiniteProgram
from lopro.newton.spectral import Spectrum

__all__ = ["Centre", "DualPoint", "Signs"]


class Signs:
    """The positive part of a vector, with the interface of `Spectrum`."""

    def __init__(self, w: Array) -> None:
        self.M = w
        self.size = len(w)
        self.active = w > 0.0
        self.rank = int(np.count_nonzero(self.active))

    def positive_part(self) -> Array:
        """Return the positive part."""
        return np.maximum(self.M, 0.0)

    def jacobian(self, s: Array) -> Array:
        """Return its derivative in a direction."""
        return np.where(self.active, s, 0.0)


@dataclass(frozen=True)
class Centre:
    """The centre X of the augmented Lagrangian and the penalty sigma."""

    X: tuple[AnyArray, ...]
    sigma: float


@dataclass(frozen=True)
class DualPoint:
    """Multipliers with one eigendecomposition of each block.

    Matrix blocks are on the device of the centre, multipliers and gradient on the host.
    """

    y: Array
    spectra: tuple[Spectrum | Signs, ...]
    X: tuple[AnyArray, ...]
    value: float
    gradient: Array
    moved: float

    @staticmethod
    def of(program: SemidefiniteProgram, centre: Centre, y: Array) -> DualPoint:
        """Evaluate the augmented Lagrangian."""
        slack = program.slack(y)
        targets = [x - centre.sigma * s for x, s in zip(centre.X, slack, strict=True)]
        spectra = tuple(
            Signs(w) if p.diagonal else Spectrum(w)
            for p, w in zip(program.blocks, targets, strict=True)
        )
        X = tuple(s.positive_part() for s in spectra)
        square = sum(_square(x) for x in X)
        value = 0.5 * square / centre.sigma - float(program.b @ y)
        moved = _distance(X, centre.X)
        return DualPoint(y, spectra, X, value, program.rows(X) - program.b, moved)

    @property
    def primal_residual(self) -> float:
        """``|A X - b|``."""
        return norm(self.gradient)

    def slack(self, centre: Centre) -> list[AnyArray]:
        """Return ``S``, the negative parts over sigma: positive semidefinite, near ``C - A*y``."""
        pairs = zip(self.X, self.spectra, strict=True)
        return [(x - s.M) / centre.sigma for x, s in pairs]


def _distance(X: Sequence[AnyArray], other: Sequence[AnyArray]) -> float:
    return math.sqrt(sum(_square(a - b) for a, b in zip(X, other, strict=True)))


def _square(x: AnyArray) -> float:
    """Return the sum of squares; only this number is copied from a device."""
    return float(namespace(x).sum(x * x))
