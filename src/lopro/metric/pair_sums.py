"""Weights of all pairs of samples without a list of pairs: sums of targets, constants and distances."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

__all__ = ["Distances", "PairSum"]

Matrix: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"


@dataclass(frozen=True)
class Distances:
    """Distances in a metric: ``a``, ``F = X A`` and the samples ``X``, so that ``K = F X'``."""

    a: Matrix
    F: Matrix
    X: Matrix

    def inner(self, other: Distances) -> float:
        """Return the inner product with other distances of the same samples over all pairs."""
        straight = len(self.a) * float(self.a @ other.a)
        crossed = float(self.a.sum()) * float(other.a.sum())
        # <K, L> in the form with matrices of d x d instead of N x N entries.
        return straight + crossed + 2.0 * float(np.vdot(self.F.T @ other.F, self.X.T @ other.X))

    @property
    def largest(self) -> float:
        """An upper bound of the absolute distances, by Cauchy and Schwarz with scaled features."""
        sizes = np.sqrt(np.square(self.X).mean(axis=0))
        sizes = np.where(sizes > 0.0, sizes, 1.0)
        lengths = (
            math.sqrt(float(np.square(M).sum(axis=1).max()))
            for M in (self.F * sizes, self.X / sizes)
        )
        return 2.0 * float(np.abs(self.a).max()) + 2.0 * math.prod(lengths)


@dataclass(frozen=True)
class PairSum:
    """Weights of all pairs: a multiple of the targets, a constant and multiples of distances."""

    target: float = 0.0
    constant: float = 0.0
    distances: tuple[tuple[float, Distances], ...] = ()

    def __mul__(self, factor: float) -> PairSum:
        scaled = tuple((factor * c, parts) for c, parts in self.distances)
        return PairSum(factor * self.target, factor * self.constant, scaled)

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> PairSum:
        return self * (1.0 / divisor)

    def __add__(self, other: PairSum | float) -> PairSum:
        if not isinstance(other, PairSum):
            return PairSum(self.target, self.constant + float(other), self.distances)
        return PairSum(
            self.target + other.target,
            self.constant + other.constant,
            self.distances + other.distances,
        )

    def __sub__(self, other: PairSum | float) -> PairSum:
        return self + (-1.0) * other
