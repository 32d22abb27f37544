"""Half the squared distance from a point."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.arrays import Array, Companion, asarray_like, copy, inner, is_array, namespace, norm
from lopro.core.validation import check_array, check_shape
from lopro.functions import Ball, Constant, Source
from lopro.functions.atoms import HalfSquare
from lopro.functions.term import Term
from lopro.maps import linear_map
from lopro.objectives.base import Objective

__all__ = ["SquaredDistance"]


class SquaredDistance(Objective):
    """``f(x) = 1/2 |x - z|^2`` for vectors, matrices, real and complex: ``mu = L = 1``.

    Its minimiser over a set is the projection of z on the set. With weights it is
    ``1/2 sum w_i |x_i - z_i|^2``.

    Parameters
    ----------
    z : array
        The point; it is copied.
    weights : array of the shape of z, optional
        One nonnegative number for each entry; 0 for entries to be ignored. Ones by default.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.objectives import SquaredDistance
    >>> f = SquaredDistance(np.array([2.0, 0.0]))
    >>> f.value(np.zeros(2))
    2.0
    >>> f.prox(np.zeros(2), 1.0)
    array([1., 0.])
    >>> SquaredDistance(np.array([2.0, 1.0]), weights=np.array([3.0, 0.0])).value(np.zeros(2))
    6.0
    """

    smooth = True
    proximable = True

    def __init__(self, z: Any, weights: Any = None) -> None:
        self._z = Companion(copy(check_array("z", z)))
        self.shape = tuple(self._z.array.shape)
        self.like = self._z.array if is_array(z) else None
        self._weights: Companion | None = None
        if weights is not None:
            given = copy(check_array("weights", weights, allow_complex=False))
            check_shape("weights", given, self.shape)
            if float(namespace(given).min(given)) < 0.0:
                raise ValueError("weights must not be negative")
            self._weights = Companion(given)

    @property
    def z(self) -> Array:
        """The point; do not write on it."""
        return self._z.array

    @property
    def weights(self) -> Array | None:
        """One number for each entry, or None for ones; do not write on it."""
        return None if self._weights is None else self._weights.array

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        if self._weights is None:
            return (Term(HalfSquare(), offset=self.z),)
        if self._z.array.ndim != 1 or not isinstance(self._weights.array, np.ndarray):
            return super().terms
        roots = np.sqrt(np.asarray(self._weights.array, dtype=np.float64))
        offset = self._z.array * asarray_like(roots, self._z.array)
        return (Term(HalfSquare(), linear_map(scipy.sparse.diags_array(roots)), offset),)

    def value(self, x: Array) -> float:
        if self._weights is None:
            return self.terms[0].value(x)
        away = x - self._z.beside(x)
        return 0.5 * inner(self._weights.beside(x) * away, away)

    def subgradient(self, x: Array) -> Array:
        if self._weights is None:
            return self.terms[0].slope(x)
        return self._weights.beside(x) * (x - self._z.beside(x))

    def prox(self, x: Array, step: float) -> Array:
        if self._weights is None:
            return self.terms[0].prox(x, float(step))
        share = float(step) * self._weights.beside(x)
        return x - share / (1.0 + share) * (x - self._z.beside(x))

    def typical_size(self) -> float | None:
        return norm(self._z.array) or None

    def lipschitz(self, ball: Ball | None = None) -> Constant | None:
        if ball is None or not math.isfinite(ball.radius):
            return None
        reach = norm(ball.center - self._z.beside(ball.center)) + ball.radius
        return Constant(
            reach * self._most, Source.DERIVED, "largest distance from z on the ball, weighted"
        )

    @cached_property
    def _least(self) -> float:
        w = self.weights
        return 1.0 if w is None else float(namespace(w).min(w))

    @cached_property
    def _most(self) -> float:
        w = self.weights
        return 1.0 if w is None else float(namespace(w).max(w))

    def smoothness(self) -> Constant:
        return Constant(self._most, Source.DERIVED, "half a squared distance")

    def strong_convexity(self) -> Constant | None:
        if self._least == 0.0:
            return None
        return Constant(self._least, Source.DERIVED, "half a squared distance")

    def infimum(self) -> Constant:
        return Constant(0.0, Source.DERIVED, "a square")

    def sublevel_radius(self, level: float) -> Constant | None:
        if self._least == 0.0:
            return None
        radius = norm(self._z.array) + math.sqrt(2.0 * max(level, 0.0) / self._least)
        return Constant(radius, Source.DERIVED, "a ball around z")
