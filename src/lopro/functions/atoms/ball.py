"""Euclidean balls."""

from __future__ import annotations

import math

import numpy as np

from lopro.core.arrays import Array, norm
from lopro.functions.atoms.base import SetAtom, Step
from lopro.functions.complements import DiagonalPlusRows
from lopro.linalg.rounding import Estimate, length

__all__ = ["Ball"]


class Ball(SetAtom):
    """The set ``|z| <= radius``; its centre is the offset of the term.

    Outside, with ``n = z/|z|``, the Jacobian of the projection is ``J = radius/|z| (I - nn')``.

    Parameters
    ----------
    radius : float
        Nonnegative.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.functions.atoms import Ball
    >>> Ball(2.0).prox(np.array([5.0, 0.0]), 1.0), Ball(2.0).conjugate(np.array([3.0, 4.0]))
    (array([2., 0.]), 10.0)
    """

    def __init__(self, radius: float) -> None:
        if not 0.0 <= radius < math.inf:
            raise ValueError(f"radius must be finite and not negative, got {radius}")
        self.radius = self.extent = float(radius)

    def value(self, z: Array) -> float:
        return 0.0 if norm(z) <= self.radius else math.inf

    def prox(self, w: Array, step: Step) -> Array:
        size = norm(w)
        return w if size <= self.radius else (self.radius / size) * w

    def complement(self, w: Array, step: Step) -> DiagonalPlusRows:
        size = norm(w)
        # A radius of 0 stands for equations, which are active even at the centre.
        outside = size > self.radius or self.radius == 0.0
        share = self.radius / size if outside and size > 0.0 else 0.0
        normal = w / size if size > 0.0 else w
        values = np.full(len(w), 1.0 - share if outside else 0.0)
        return DiagonalPlusRows(values, normal[None, :], np.array([share]))

    def conjugate(self, v: Array) -> float:
        return self.radius * norm(v)

    def into_domain(self, v: Array) -> Array:
        return v

    def distance(self, z: Array) -> Array:
        return np.asarray(max(0.0, norm(z) - self.radius))

    def enclose_conjugate(self, v: Array) -> Estimate:
        # `length` is an upper bound already; the product with an Estimate charges its own rounding.
        return Estimate(length(v)) * self.radius
