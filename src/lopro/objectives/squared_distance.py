"""Half the squared distance from a point."""

from __future__ import annotations

import math
from typing import Any

from lopro.core.arrays import Array, Companion, copy, inner, is_array, norm
from lopro.core.validation import check_array
from lopro.functions import Ball, Constant, Source
from lopro.objectives.base import Objective

__all__ = ["SquaredDistance"]


class SquaredDistance(Objective):
    """``f(x) = 1/2 |x - z|^2`` for vectors, matrices, real and complex: ``mu = L = 1``.

    Minimising it over a set is projecting on the set.

    Parameters
    ----------
    z : array
        The point; it is copied.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.objectives import SquaredDistance
    >>> f = SquaredDistance(np.array([2.0, 0.0]))
    >>> f.value(np.zeros(2))
    2.0
    >>> f.prox(np.zeros(2), 1.0)
    array([1., 0.])
    """

    smooth = True
    proximable = True

    def __init__(self, z: Any) -> None:
        self._z = Companion(copy(check_array("z", z)))
        self.shape = tuple(self._z.array.shape)
        self.like = self._z.array if is_array(z) else None

    @property
    def z(self) -> Array:
        """The point; do not write on it."""
        return self._z.array

    def value(self, x: Array) -> float:
        away = x - self._z.beside(x)
        return 0.5 * inner(away, away)

    def subgradient(self, x: Array) -> Array:
        return x - self._z.beside(x)

    def prox(self, x: Array, step: float) -> Array:
        # As a step from x, so that a tiny step moves x by a tiny amount and no rounding more.
        return x + (step / (1.0 + step)) * (self._z.beside(x) - x)

    def typical_size(self) -> float | None:
        return norm(self._z.array) or None

    def lipschitz(self, ball: Ball | None = None) -> Constant | None:
        if ball is None or not math.isfinite(ball.radius):
            return None
        value = norm(ball.center - self._z.beside(ball.center)) + ball.radius
        return Constant(value, Source.DERIVED, "largest distance from z on the ball")

    def smoothness(self) -> Constant:
        return Constant(1.0, Source.DERIVED, "half a squared distance")

    def strong_convexity(self) -> Constant:
        return Constant(1.0, Source.DERIVED, "half a squared distance")

    def infimum(self) -> Constant:
        return Constant(0.0, Source.DERIVED, "a square")

    def sublevel_radius(self, level: float) -> Constant:
        radius = norm(self._z.array) + math.sqrt(2.0 * max(level, 0.0))
        return Constant(radius, Source.DERIVED, "a ball around z")
