"""Half the squared distance from a point."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

from lopro.core.arrays import Array, Companion, copy, is_array, norm
from lopro.core.validation import check_array
from lopro.functions import Ball, Constant, Source
from lopro.functions.atoms import HalfSquare
from lopro.functions.term import Term
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

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        return (Term(HalfSquare(), offset=self.z),)

    def value(self, x: Array) -> float:
        return self.terms[0].value(x)

    def subgradient(self, x: Array) -> Array:
        return self.terms[0].slope(x)

    def prox(self, x: Array, step: float) -> Array:
        return self.terms[0].prox(x, float(step))

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
