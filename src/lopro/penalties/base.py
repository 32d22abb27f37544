"""What a penalty is: the protocol, and the functions of ``c(x)`` alone."""

from __future__ import annotations

import math
from typing import Protocol

from lopro.constraints.base import Constraint, ValidInequality
from lopro.core.arrays import Array
from lopro.functions import Image, Linearization

__all__ = ["Penalty", "ScalarPenalty"]


class Penalty(Protocol):
    """What a penalised objective needs to know of a penalty."""

    @property
    def above(self) -> float | None:
        """The largest value of ``h`` on the feasible set; None where it is not known."""
        ...

    @property
    def weight(self) -> float:
        """The weight or stiffness, for the records; NaN where there is no single one."""
        ...

    def image(self, constraint: Constraint, x: Array) -> Image:
        """Return the linear part of the penalty term at ``x``."""
        ...

    def linearize_at(self, constraint: Constraint, image: Image) -> Linearization:
        """Return ``h`` and, on demand, its gradient; the gradient is None where it vanishes."""
        ...

    def valid_inequality(self, constraint: Constraint, x: Array) -> ValidInequality:
        """Return the multiplier that the slope of ``h`` at ``x`` stands for."""
        ...


class ScalarPenalty:
    """A penalty ``phi(c(x))`` with a nondecreasing convex ``phi``."""

    @property
    def above(self) -> float | None:
        """The largest value on the feasible set; None where it is not known."""
        return None

    @property
    def weight(self) -> float:
        """A number for the records."""
        return math.nan

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

    def valid_inequality(self, constraint: Constraint, x: Array) -> ValidInequality:
        return constraint.valid_inequality(x, self.slope(constraint.value(x)))
