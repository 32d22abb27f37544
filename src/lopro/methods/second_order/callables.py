"""Callables with second derivatives, as the Newton method takes them."""

from __future__ import annotations

import numpy as np

from lopro.newton.arrays import EPS, Array, Image
from lopro.newton.bounds.convexity import strong_convexity
from lopro.newton.bounds.enclose import Enclosure, enclose
from lopro.newton.bounds.rounding import Estimate
from lopro.newton.curvature import Piece, Product
from lopro.newton.smooth.base import Slope
from lopro.objectives import FunctionObjective

__all__ = ["SmoothCallable"]

#: Roundings that a user's function is trusted to make, in its value and in each entry of its gradient.
_ROUNDINGS = 64.0


class SmoothCallable:
    """``factor * f`` for a function of a user, whose derivatives are taken at their word."""

    images = 0

    def __init__(self, f: FunctionObjective, size: int, factor: float) -> None:
        self.f, self.size, self.factor = f, size, factor

    def value(self, x: Array) -> float:
        return self.factor * self.f.value(x)

    def image(self, x: Array) -> Image:
        return ()

    def gradient(self, x: Array, image: Image) -> Array:
        return np.asarray(self.factor * self.f.subgradient(x), dtype=np.float64)

    def curvature(self, x: Array, image: Image) -> tuple[Piece, ...]:
        H = self.f.hessian_at(x)
        signs = np.random.default_rng(0).choice([-1.0, 1.0], size=self.size)
        # The mean of s'Hs over random signs is the trace.
        mean = self.factor * float(signs @ H(signs)) / self.size
        return (Product(lambda s: self.factor * np.asarray(H(s)), max(mean, 0.0), self.size),)

    def along(self, x: Array, image: Image, d: Array, direction: Image) -> Slope:
        def slope(t: float) -> tuple[float, float]:
            z = x + t * d
            first = float(self.gradient(z, ()) @ d)
            return first, self.factor * float(d @ self.f.hessian_product(z, d))

        return slope


@enclose.register
def _(f: SmoothCallable, x: Array) -> Enclosure:
    value, gradient = f.value(x), f.gradient(x, ())
    error = _ROUNDINGS * EPS * np.abs(gradient)
    return Enclosure(Estimate(value, _ROUNDINGS * EPS * abs(value)), gradient, error)


@strong_convexity.register
def _(f: SmoothCallable) -> float:
    mu = f.f.strong_convexity()
    return 0.0 if mu is None else f.factor * mu.value
