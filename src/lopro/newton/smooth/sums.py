"""Sums of smooth functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from lopro.newton.arrays import Array, Image
from lopro.newton.curvature import Piece
from lopro.newton.smooth.base import Slope, Smooth

__all__ = ["Sum"]


class Sum:
    """The sum of smooth functions of the same size.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.newton.smooth import Linear, SquaredDistance, Sum
    >>> Sum([Linear(np.ones(2)), SquaredDistance(np.zeros(2))]).value(np.ones(2))
    3.0
    """

    def __init__(self, parts: Sequence[Smooth]) -> None:
        self.parts = tuple(parts)
        sizes = {part.size for part in self.parts}
        if len(sizes) != 1:
            raise ValueError(f"parts: all must have the same size, got {sorted(sizes)}")
        self.size = sizes.pop()
        self.images = sum(part.images for part in self.parts)

    def _shares(self, image: Image) -> Iterator[tuple[Smooth, Image]]:
        start = 0
        for part in self.parts:
            yield part, image[start : start + part.images]
            start += part.images

    def value(self, x: Array) -> float:
        return sum(part.value(x) for part in self.parts)

    def image(self, x: Array) -> Image:
        return tuple(y for part in self.parts for y in part.image(x))

    def gradient(self, x: Array, image: Image) -> Array:
        total = np.zeros(self.size)
        for part, share in self._shares(image):
            total += part.gradient(x, share)
        return total

    def curvature(self, x: Array, image: Image) -> tuple[Piece, ...]:
        return tuple(p for part, share in self._shares(image) for p in part.curvature(x, share))

    def along(self, x: Array, image: Image, d: Array, direction: Image) -> Slope:
        shares = zip(self._shares(image), self._shares(direction), strict=True)
        slopes = [part.along(x, y, d, e) for (part, y), (_, e) in shares]

        def derivatives(t: float) -> tuple[float, float]:
            pairs = [slope(t) for slope in slopes]
            return sum(first for first, _ in pairs), sum(second for _, second in pairs)

        return derivatives
