"""The common interface of objectives and constraints: values, slopes, constants, and images.

A function is called in two ways. Formulas use ``value(x)`` and
``subgradient(x)``. Algorithms take two steps: ``image(x)`` does the expensive linear part
(``A x``), then ``linearize_at(image)`` gives the value and, on demand, the subgradient. Because the
image is linear in ``x``, an accelerated method gets the image of its extrapolated point from two
images it already has, and a hinge that is inactive never pays for a gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from lopro.core.arrays import Array
from lopro.core.constants import Ball, Constant

__all__ = ["Function", "Image", "Linearization", "MappedFunction"]

#: The image of a point under the linear part of a function: one array per linear map.
Image: TypeAlias = tuple[Array, ...]

#: A value, and a function that returns the subgradient there when it is needed.
Linearization: TypeAlias = tuple[float, Callable[[], Array]]


class Function:
    """A convex function of an array: the base of objectives and constraints.

    Subclasses define `value` and `subgradient`; constants that are not known stay ``None``.
    """

    #: Shape of the points, or None where any shape will do.
    shape: tuple[int, ...] | None = None
    #: An array whose library, dtype and device the points should have, if there is one.
    like: Array | None = None
    #: The number of arrays that `image` returns.
    image_length: int = 1
    #: Whether `subgradient` returns a new array each time, which the caller may overwrite.
    fresh_slopes: bool = False

    def value(self, x: Array) -> float:
        """Return the value at ``x``."""
        raise NotImplementedError

    def subgradient(self, x: Array) -> Array:
        """Return one subgradient at ``x`` (the gradient where it exists)."""
        raise NotImplementedError

    def add_subgradient(self, x: Array, total: Array) -> Array:
        """Return ``total`` plus a subgradient at ``x``; ``total`` may be overwritten."""
        return total + self.subgradient(x)

    def image(self, x: Array) -> Image:
        """Return the image of ``x`` under the linear part of the function."""
        return (x,)

    def linearize_at(self, image: Image) -> Linearization:
        """Return the value at the point with this image, and its subgradient on demand."""
        (x,) = image
        return self.value(x), lambda: self.subgradient(x)

    def lipschitz(self, ball: Ball | None = None) -> Constant | None:
        """Return a Lipschitz constant on the whole space, or on ``ball`` if one is given, or None."""
        return None

    def smoothness(self) -> Constant | None:
        """Return a Lipschitz constant of the gradient, or None."""
        return None


class MappedFunction(Function):
    """A function of a linear image, ``phi(A x)``: define `image` and `linearize_at`."""

    def value(self, x: Array) -> float:
        return self.linearize_at(self.image(x))[0]

    def subgradient(self, x: Array) -> Array:
        return self.linearize_at(self.image(x))[1]()

    def image(self, x: Array) -> Image:
        raise NotImplementedError

    def linearize_at(self, image: Image) -> Linearization:
        raise NotImplementedError
