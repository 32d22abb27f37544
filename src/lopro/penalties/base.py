"""What a penalty is: the protocol, and the functions of ``c(x)`` alone."""

from __future__ import annotations

from typing import Protocol

from lopro._arrays import Array
from lopro.constraints.base import Constraint, Normal
from lopro.functions import Image, Linearization

__all__ = ["Penalty", "ScalarPenalty"]


class Penalty(Protocol):
    """What a penalised objective needs to know of a penalty."""

    def image(self, constraint: Constraint, x: Array) -> Image:
        """Return the linear part of the penalty term at ``x``."""
        ...

    def linearize_at(self, constraint: Constraint, image: Image) -> Linearization:
        """Return ``h`` and, on demand, its gradient; the gradient is None where it vanishes."""
        ...

    def normal(self, constraint: Constraint, x: Array) -> Normal:
        """Return the multiplier that the slope of ``h`` at ``x`` stands for."""
        ...


class ScalarPenalty:
    """A penalty ``phi(c(x))`` with a nondecreasing convex ``phi``."""

    def phi(self, c: float) -> float:
        """Return the penalty for the constraint value ``c``."""
        raise NotImplementedError

    def slope(self, c: float) -> float:
        """Return the derivative of `phi`: the multiplier this penalty puts on the constraint."""
        raise NotImplementedError

    def image(self, constraint: Constraint, x: Array) -> Image:
        return constraint.image(x)

    def linearize_at(self, constraint: Constraint, image: Image) -> Linearization:
        c, gradient = constraint.linearize_at(image)
        slope = self.slope(c)
        return self.phi(c), lambda: slope * gradient() if slope else None

    def normal(self, constraint: Constraint, x: Array) -> Normal:
        return constraint.normal(x, self.slope(constraint.value(x)))
