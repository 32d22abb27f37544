"""Huber's function: squares of small residuals, absolute values of large ones."""

from __future__ import annotations

import math
from typing import Any

from lopro.core.arrays import Array, is_complex, norm
from lopro.core.validation import check_array, check_number
from lopro.functions import Ball, Constant, Image, Source, atoms
from lopro.objectives.of_atom import OfAtom

__all__ = ["Huber"]


class Huber(OfAtom):
    """``f(x) = sum_i h((D x - b)_i)``, quadratic up to ``delta`` and linear beyond.

    ``h(r) = r^2 / 2`` where ``|r| <= delta``, and ``delta |r| - delta^2 / 2`` elsewhere.

    Parameters
    ----------
    D : array, scipy.sparse matrix, LinearOperator or LinearMap of shape (m, d), optional
        Real. Not copied. Without it the residual is ``x - b``, and there is a prox.
    b : array, optional
        Subtracted from ``D x``; zero if not given. Copied.
    delta : float
        Largest residual that is squared; positive.
    shape : tuple of int, optional
        Shape of the points, where neither ``D`` nor ``b`` determines it.

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

    def __init__(self, D: Any = None, b: Any = None, delta: float = 1.0, shape: Any = None) -> None:
        self.delta = check_number("delta", delta, minimum=0.0, exclusive=True)
        residuals_from = None if b is None else check_array("b", b, allow_complex=False)
        super().__init__(atoms.Huber(self.delta), D, residuals_from, shape)

    def image(self, x: Array) -> Image:
        if is_complex(x):
            raise TypeError(f"x must be real, got dtype {x.dtype}")
        return super().image(x)

    @property
    def b(self) -> Array | None:
        """The vector subtracted from the image, or None for zero; read-only."""
        return self.offset

    def minorant(self, x: Array, target: Array) -> tuple[float, Array]:
        if self.D is not None:
            return super().minorant(x, target)
        g = self.terms[0].into_domain(target)
        return -self.terms[0].conjugate(g), 1.0 * g

    def sublevel_radius(self, level: float) -> Constant | None:
        if self.D is not None:
            return None
        # The squares of small residuals add up to at most 2 level, the moduli of large ones to 2 level /
        # delta.
        level = max(level, 0.0)
        radius = math.sqrt(2.0 * level) + 2.0 * level / self.delta
        radius += 0.0 if self.offset is None else norm(self.offset)
        return Constant(radius, Source.DERIVED, "residuals of this sum")

    def lipschitz(self, ball: Ball | None = None) -> Constant | None:
        shape = self.shape if self.D is None else (self.D.shape[0],)
        if shape is None and ball is not None:
            shape = tuple(ball.center.shape)
        if shape is None:
            return None
        most = self.delta * math.sqrt(math.prod(shape))
        return self._times_map(most, "delta in each residual")

    def smoothness(self) -> Constant:
        if self.D is None:
            return Constant(1.0, Source.DERIVED, "the curvature of squares")
        s = self.D.largest_singular_value
        return Constant(s.value**2, s.source, f"squared {s.note}")

    def infimum(self) -> Constant:
        return Constant(0.0, Source.DERIVED, "a sum of nonnegative terms")
