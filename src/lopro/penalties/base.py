"""The protocol of penalties, and the base class of penalties that are functions of ``c(x)``."""

from __future__ import annotations

import math
from typing import Protocol

from lopro.constraints.base import Constraint, ValidInequality
from lopro.core.arrays import Array
from lopro.functions import Image, Linearization

__all__ = ["Penalty", "ScalarPenalty"]


class Penalty(Protocol):
    """A penalty ``h`` of a constraint, which is added to the objective."""

    @property
    def above(self) -> float | None:
        """The largest value of ``h`` on the feasible set; None if it is not known."""
        ...

    @property
    def weight(self) -> float:
        """The weight or stiffness, for the history; NaN if there are several."""
        ...

    def image(self, constraint: Constraint, x: Array) -> Image:
        """Return the linear part of the penalty term at ``x``."""
        ...

    def linearize_at(self, constraint: Constraint, image: Image) -> Linearization:
        """Return ``h`` and, on demand, its gradient; the gradient is None where it is zero."""
        ...

    def valid_inequality(self, constraint: Constraint, x: Array) -> ValidInequality:
        """Return the valid inequality whose multiplier is the slope of ``h`` at ``x``."""
        ...


class ScalarPenalty:
    """A penalty ``phi(c(x))`` with a nondecreasing convex ``phi``."""

    @property
    def above(self) -> float | None:
        """The largest value on the feasible set; None if it is not known."""
        return None

    @property
    def weight(self) -> float:
        """The weight, for the history; NaN by default."""
        return math.nan

    def phi(self, c: float) -> float:
        """Return the penalty for the constraint value ``c``."""
        raise NotImplementedError

    def slope(self, c: float) -> float:
        """Return the derivative of `phi`: the multiplier of the constraint in the gradient of F."""
        raise NotImplementedError

    def image(self, constraint: Constraint, x: Array) -> Image:
        return constraint.image(x)

    def linearize_at(self, constraint: Constraint, image: Image) -> Linearization:
        c, gradient = constraint.linearize_at(image)
        slope = self.slope(c)
        return self.phi(c), lambda: slope * gradient() if slope else None

    def valid_inequality(self, constraint: Constraint, x: Array) -> ValidInequality:
        return constraint.valid_inequality(x, self.slope(constraint.value(x)))
