"""The l-infinity norm: the largest modulus of an entry."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

from lopro.core.arrays import Array, norm
from lopro.core.validation import checked_shape
from lopro.functions import Ball, Constant, Source, atoms
from lopro.functions.term import Term
from lopro.objectives.of_image import OfImage

__all__ = ["LInfNorm"]


class LInfNorm(OfImage):
    """``f(x) = max_i |x_i|``, or ``max_i |(D x - b)_i|`` with a map and an offset.

    Parameters
    ----------
    D : array, scipy.sparse matrix, LinearOperator or LinearMap of shape (m, d), optional
        Real. Not copied. With a map points are vectors, and there is no prox.
    shape : tuple of int, optional
        Shape of the points, where there is no map; any shape will do if it is not given.
    b : array, optional
        What is taken off before the norm; zero if not given. Copied.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.objectives import LInfNorm
    >>> f = LInfNorm()
    >>> x = np.array([3.0, -4.0])
    >>> f.value(x), f.prox(x, 3.0)
    (4.0, array([ 2., -2.]))

    The largest deviation from some measurements:

    >>> LInfNorm(np.ones((3, 1)), b=np.array([1.0, 2.0, 7.0])).value(np.array([4.0]))
    3.0
    """

    def __init__(self, D: Any = None, shape: Any = None, b: Any = None) -> None:
        super().__init__(D, None if shape is None else checked_shape(shape), b)
        self.proximable = self.D is None

    def shaped(self, shape: tuple[int, ...]) -> LInfNorm:
        return self if self.shape is not None else LInfNorm(shape=shape)

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        return (Term(atoms.LInf(), self.D, self.offset),)

    def prox(self, x: Array, step: float) -> Array:
        return self.terms[0].prox(x, float(step))

    def minorant(self, x: Array, target: Array) -> tuple[float, Array]:
        if self.D is not None:
            return super().minorant(x, target)
        return self.least_minorant(target)

    def scale_into_domain(self, v: Array) -> float | None:
        if self.D is not None or self.offset is not None:
            return None
        total = atoms.LInf().gauge(v)
        return 1.0 if total <= 1.0 else 1.0 / total

    def lipschitz(self, ball: Ball | None = None) -> Constant:
        return self._times_map(1.0, Source.DERIVED, "below the Euclidean norm")

    def infimum(self) -> Constant:
        return Constant(0.0, Source.DERIVED, "a norm")

    def sublevel_radius(self, level: float) -> Constant | None:
        if self.D is not None or self.shape is None:
            return None
        centre = 0.0 if self.offset is None else norm(self.offset)
        radius = max(level, 0.0) * math.sqrt(math.prod(self.shape)) + centre
        return Constant(radius, Source.DERIVED, "root of the dimension times the largest entry")
