"""What Newton's method requires of the smooth part of a problem, and sums of such functions.

Derivatives are functions of the point and of linear images of it, which are updated together: a step along a
line takes one product for the direction and none for the point. Points are on the host; images with the
length of the data stay on the device of the data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeAlias

import numpy as np

from lopro.core.arrays import norm
from lopro.linalg.dense import EPS, Array
from lopro.linalg.rounding import Enclosure
from lopro.newton.curvature import Piece

__all__ = ["Image", "Slope", "Smooth", "SmoothSum", "larger", "parabola"]

#: Linear images of a point, kept with it so that moving along a line costs no products.
Image: TypeAlias = tuple[Array, ...]
#: First and second derivative along a line, as a function of the step.
Slope: TypeAlias = Callable[[float], tuple[float, float]]


class Smooth(Protocol):
    """A convex, (almost everywhere) twice differentiable function of a vector."""

    size: int
    #: The number of arrays that `image` returns.
    images: int

    def value(self, x: Array) -> float:
        """Return ``f(x)``."""
        ...

    def image(self, x: Array) -> Image:
        """Return the linear images of ``x`` (or of a direction) that the derivatives need."""
        ...

    def gradient(self, x: Array, image: Image) -> Array:
        """Return the gradient at ``x``."""
        ...

    def sized_gradient(self, x: Array, image: Image) -> tuple[Array, float]:
        """Return the gradient, and the size of its terms, to which it is compared where they cancel."""
        ...

    def curvature(self, x: Array, image: Image) -> tuple[Piece, ...]:
        """Return the Hessian at ``x``, in pieces."""
        ...

    def along(self, x: Array, image: Image, d: Array, direction: Image) -> Slope:
        """Return the derivatives of ``t -> f(x + t d)``; ``direction`` is the image of ``d``."""
        ...

    def enclose(self, x: Array) -> Enclosure:
        """Return value and gradient at ``x`` of an affine minorant of f, with error bounds.

        It equals f at ``x`` if `strong_convexity` is positive, else at ``x`` or within rounding of it.
        """
        ...

    def strong_convexity(self) -> float:
        """Return a proved ``mu`` such that ``f - mu/2 |x|^2`` is convex, or 0."""
        ...


def parabola(slope: float, curvature: float) -> Slope:
    """Return the derivatives of a parabola along a line."""
    return lambda t: (slope + t * curvature, curvature)


def larger(*vectors: Array) -> float:
    """Return the largest norm."""
    return max(norm(v) for v in vectors)


class SmoothSum:
    """The sum of smooth functions of the same size.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.newton.quadratic_form import QuadraticForm
    >>> from lopro.newton.smooth import SmoothSum
    >>> parts = [QuadraticForm(None, np.ones(2)), QuadraticForm(np.eye(2), np.zeros(2))]
    >>> SmoothSum(parts).value(np.ones(2))
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
        return tuple(array for part in self.parts for array in part.image(x))

    def gradient(self, x: Array, image: Image) -> Array:
        total = np.zeros(self.size)
        for part, own in self._shares(image):
            total += part.gradient(x, own)
        return total

    def sized_gradient(self, x: Array, image: Image) -> tuple[Array, float]:
        total, largest = np.zeros(self.size), 0.0
        for part, own in self._shares(image):
            gradient, size = part.sized_gradient(x, own)
            total += gradient
            largest = max(largest, size)
        return total, max(largest, norm(total))

    def curvature(self, x: Array, image: Image) -> tuple[Piece, ...]:
        return tuple(p for part, own in self._shares(image) for p in part.curvature(x, own))

    def along(self, x: Array, image: Image, d: Array, direction: Image) -> Slope:
        pairs = zip(self._shares(image), self._shares(direction), strict=True)
        slopes = [part.along(x, own, d, moved) for (part, own), (_, moved) in pairs]

        def derivatives(t: float) -> tuple[float, float]:
            values = [slope(t) for slope in slopes]
            return sum(first for first, _ in values), sum(second for _, second in values)

        return derivatives

    def enclose(self, x: Array) -> Enclosure:
        first, *others = (part.enclose(x) for part in self.parts)
        return sum(others, start=first)

    def strong_convexity(self) -> float:
        return math.fsum(part.strong_convexity() for part in self.parts) * (1.0 - 4.0 * EPS)
