"""Callables as the Newton method takes them, with second derivatives or without."""

from __future__ import annotations

import math

import numpy as np

from lopro.core.arrays import eps
from lopro.core.counting import count
from lopro.functions.atoms import Opaque
from lopro.linalg.rounding import Enclosure, Estimate
from lopro.newton import curvature
from lopro.newton.arrays import EPS, Array, Image, norm
from lopro.newton.curvature import Piece, Product
from lopro.newton.secants import Secants
from lopro.newton.smooth import Slope

__all__ = ["SmoothCallable"]

#: Roundings that a user's function is trusted to make, in its value and in each entry of its gradient.
_ROUNDINGS = 64.0
#: The first difference of gradients is taken over this share of the point, or over this length at zero.
_PROBE = 1e-6


class SmoothCallable:
    """``factor * f`` for a function of a user, whose derivatives are taken at their word.

    Without second derivatives these are those of L-BFGS, from the gradients that are asked for.
    """

    images = 0

    def __init__(self, atom: Opaque, size: int, factor: float) -> None:
        self.f, self.size, self.factor = atom.function, size, factor
        self._secants = None if self.f.has_hessian else Secants(size)
        self._last: tuple[Array, Array] | None = None
        self._largest = 0.0
        #: The rounding unit of what the function computes.
        self._unit = EPS if self.f.like is None else eps(self.f.like)

    def value(self, x: Array) -> float:
        return self.factor * float(self.f.value(x))

    def image(self, x: Array) -> Image:
        return ()

    def gradient(self, x: Array, image: Image) -> Array:
        """Return the gradient; that of the last point is remembered, and what has changed since."""
        if self._last is not None and np.array_equal(self._last[0], x):
            return self._last[1]
        found = self._gradient(x)
        if self._secants is not None and self._last is not None:
            self._secants.add(x - self._last[0], found - self._last[1])
        self._last = (x.copy(), found)
        return found

    def _gradient(self, x: Array) -> Array:
        count("gradients")
        return np.asarray(self.factor * self.f.subgradient(x), dtype=np.float64)

    def sized_gradient(self, x: Array, image: Image) -> tuple[Array, float]:
        # Nothing is known of the terms; gradients of other points tell how large they can be.
        gradient = self.gradient(x, image)
        self._largest = max(self._largest, norm(gradient))
        return gradient, self._largest

    def curvature(self, x: Array, image: Image) -> tuple[Piece, ...]:
        if self._secants is not None:
            if len(self._secants) == 0:
                self._probe(x)
            return self._secants.pieces()
        H = self.f.hessian_at(x)
        signs = np.random.default_rng(0).choice([-1.0, 1.0], size=self.size)
        # The mean of s'Hs over random signs is the trace.
        mean = self.factor * float(signs @ H(signs)) / self.size
        return (Product(lambda s: self.factor * np.asarray(H(s)), max(mean, 0.0), self.size),)

    def _probe(self, x: Array) -> None:
        """Take a first difference, against the gradient: without one there is no curvature to begin with."""
        assert self._secants is not None
        gradient = self.gradient(x, ())
        slope = norm(gradient)
        if slope > 0.0:
            share = max(_PROBE, math.sqrt(self._unit))
            s = (-share * (norm(x) or 1.0) / slope) * gradient
            self._secants.add(s, self._gradient(x + s) - gradient)

    def along(self, x: Array, image: Image, d: Array, direction: Image) -> Slope:
        model = None
        if self._secants is not None:
            model = float(d @ curvature.apply(self._secants.pieces(), d))

        def slope(t: float) -> tuple[float, float]:
            z = x + t * d
            first = float(self._gradient(z) @ d)
            if model is not None:
                return first, model
            return first, self.factor * float(d @ self.f.hessian_product(z, d))

        return slope

    def enclose(self, x: Array) -> Enclosure:
        value, gradient = self.value(x), self.gradient(x, ())
        error = _ROUNDINGS * self._unit * np.abs(gradient)
        return Enclosure(Estimate(value, _ROUNDINGS * self._unit * abs(value)), gradient, error)

    def strong_convexity(self) -> float:
        mu = self.f.strong_convexity()
        return 0.0 if mu is None else self.factor * float(mu.value)
