"""An iterate of basis pursuit denoising with what has been computed of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lopro.core.arrays import Array, inner, namespace, norm, to_numpy

__all__ = ["Point", "how_many"]


def how_many(mask: Array) -> int:
    """Return how many entries are true."""
    if isinstance(mask, np.ndarray):
        return int(np.count_nonzero(mask))
    return int(namespace(mask).count_nonzero(mask))


@dataclass(frozen=True, eq=False)
class Point:
    """An iterate with what has been computed of it."""

    x: Array
    r: Array  # y - A x
    g: Array  # A^H r
    alpha: float
    fun: float  # f(x)
    everywhere: Array | None = None  # A^H r, where x and g have some of its entries only
    measured: bool = False  # whether r comes of a product with x, and not of sums of residuals

    @property
    def whole(self) -> Array:
        """All of ``A^H r``."""
        return self.g if self.everywhere is None else self.everywhere

    # Numbers that are asked for again and again: each has to come from the device.

    @cached_property
    def active(self) -> Array:
        """Where x is not zero."""
        return self.x != 0

    @cached_property
    def nonzeros(self) -> int:
        """How many entries are not zero."""
        return how_many(self.active)

    @cached_property
    def square(self) -> float:
        """The square of the length of the residual."""
        return inner(self.r, self.r)

    @cached_property
    def length(self) -> float:
        """The length of the residual."""
        return math.sqrt(self.square) if 1e-20 < self.square < 1e30 else norm(self.r)

    def differs(self, others: list[Point]) -> list[int]:
        """Return for each of them in how many places it is zero and this one is not, or the reverse."""
        if not others or isinstance(self.x, np.ndarray):
            return [how_many(self.active ^ other.active) for other in others]
        # All numbers in one journey from the device.
        xp = namespace(self.active)
        apart = xp.stack([other.active for other in others]) ^ self.active
        return [int(n) for n in to_numpy(xp.count_nonzero(apart, axis=1))]
