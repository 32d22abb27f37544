"""Huber's function: squares of small residuals, absolute values of large ones."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

from lopro.core.arrays import Array, Companion, copy, is_complex, norm
from lopro.core.validation import check_array, check_number, check_shape, checked_shape
from lopro.functions import Ball, Constant, Image, Source, atoms
from lopro.functions.term import Term
from lopro.objectives.of_image import OfImage

__all__ = ["Huber"]


class Huber(OfImage):
    """``f(x) = sum_i h((D x - b)_i)``, squares up to ``delta`` and lines beyond.

    ``h(r) = r^2 / 2`` where ``|r| <= delta``, and ``delta |r| - delta^2 / 2`` elsewhere.

    Parameters
    ----------
    D : array, scipy.sparse matrix, LinearOperator or LinearMap of shape (m, d), optional
        Real. Not copied. Without it the residual is ``x - b``, and there is a prox.
    b : array, optional
        What residuals are taken from; zero if not given. Copied.
    delta : float
        Where squares end; positive.
    shape : tuple of int, optional
        Shape of the points, where neither ``D`` nor ``b`` tells it.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.objectives import Huber
    >>> f = Huber(delta=1.0)
    >>> x = np.array([0.5, -3.0])
    >>> f.value(x), f.subgradient(x)
    (2.625, array([ 0.5, -1. ]))
    >>> f.prox(x, 1.0)
    array([ 0.25, -2.  ])
    """

    smooth = True

    def __init__(self, D: Any = None, b: Any = None, delta: float = 1.0, shape: Any = None) -> None:
        super().__init__(D, None if shape is None else checked_shape(shape))
        self.delta = check_number("delta", delta, minimum=0.0, exclusive=True)
        self.proximable = self.D is None
        self._b: Companion | None = None
        if b is not None:
            array = copy(check_array("b", b, allow_complex=False))
            if self.D is not None:
                check_shape("b", array, (self.D.shape[0],))
            elif self.shape is not None:
                check_shape("b", array, self.shape)
            self._b = Companion(array)
            if self.D is None:
                self.shape, self.like = tuple(array.shape), array

    def shaped(self, shape: tuple[int, ...]) -> Huber:
        return self if self.shape is not None else Huber(delta=self.delta, shape=shape)

    def image(self, x: Array) -> Image:
        if is_complex(x):
            raise TypeError(f"x must be real, got dtype {x.dtype}")
        return super().image(x)

    @property
    def b(self) -> Array | None:
        """What residuals are taken from, or None for zero; do not write on it."""
        return None if self._b is None else self._b.array

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        return (Term(atoms.Huber(self.delta), self.D, self.b),)

    def prox(self, x: Array, step: float) -> Array:
        return self.terms[0].prox(x, float(step))

    def minorant(self, x: Array, target: Array) -> tuple[float, Array]:
        if self.D is not None:
            return super().minorant(x, target)
        g = self.terms[0].into_domain(target)
        return -self.terms[0].conjugate(g), 1.0 * g

    def sublevel_radius(self, level: float) -> Constant | None:
        if self.D is not None:
            return None
        # Squares add up to at most twice the level, what is beyond delta to at most 2 level / delta.
        level = max(level, 0.0)
        radius = math.sqrt(2.0 * level) + 2.0 * level / self.delta
        radius += 0.0 if self._b is None else norm(self._b.array)
        return Constant(radius, Source.DERIVED, "residuals of this sum")

    def lipschitz(self, ball: Ball | None = None) -> Constant | None:
        shape = self.shape if self.D is None else (self.D.shape[0],)
        if shape is None and ball is not None:
            shape = tuple(ball.center.shape)
        if shape is None:
            return None
        most = self.delta * math.sqrt(math.prod(shape))
        return self._times_map(most, Source.DERIVED, "delta in each residual")

    def smoothness(self) -> Constant:
        if self.D is None:
            return Constant(1.0, Source.DERIVED, "the curvature of squares")
        s = self.D.largest_singular_value
        return Constant(s.value**2, s.source, f"squared {s.note}")

    def infimum(self) -> Constant:
        return Constant(0.0, Source.DERIVED, "a sum of nonnegative terms")
