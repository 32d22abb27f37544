"""What the Newton method asks of the smooth part ``f`` of an objective."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from lopro.newton.arrays import Array, Image
from lopro.newton.curvature import Piece

__all__ = ["Slope", "Smooth"]

#: First and second derivative along a line, as a function of the step.
Slope: TypeAlias = Callable[[float], tuple[float, float]]


class Smooth(Protocol):
    """A convex, twice differentiable function.

    Its derivatives are functions of the point and of linear images of it, which are carried along:
    a step along a line then needs one product for the direction, none for the point.
    """

    size: int
    #: How many arrays `image` returns.
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

    def curvature(self, x: Array, image: Image) -> tuple[Piece, ...]:
        """Return the Hessian at ``x``, in pieces."""
        ...

    def along(self, x: Array, image: Image, d: Array, direction: Image) -> Slope:
        """Return the derivatives of ``t -> f(x + t d)``; ``direction`` is the image of ``d``."""
        ...
