"""Losses of data on a device: what is as long as the data stays there, what is as long as x does not."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from lopro.core.arrays import to_numpy
from lopro.newton.arrays import Array, Image
from lopro.newton.curvature import ConstantOnDevice, GramOnDevice, Piece
from lopro.newton.maps import OnDevice
from lopro.newton.smooth.base import Slope
from lopro.newton.smooth.least_squares import LeastSquares
from lopro.newton.smooth.logistic import Logistic
from lopro.newton.smooth.quadratic import Quadratic, straight

__all__ = ["LeastSquaresOnDevice", "LogisticOnDevice", "QuadraticOnDevice"]

#: Up to this size the normal matrix is formed: half a gigabyte.
_FORMED = 8192


class LeastSquaresOnDevice(LeastSquares):
    """``1/2 |Bx - b|^2`` with ``B`` on a device."""

    map: OnDevice

    @cached_property
    def _b(self) -> Any:
        return self.map.there(self.b)

    @cached_property
    def normal_matrix(self) -> OnDevice | None:
        """``B'B``, unless it is large."""
        B = self.map.M
        return OnDevice(B.T @ B) if self.size <= _FORMED else None

    def value(self, x: Array) -> float:
        residual = self.map.M @ self.map.there(x) - self._b
        return 0.5 * float(residual @ residual)

    def image(self, x: Array) -> Image:
        P = self.normal_matrix
        return (self.map.M @ self.map.there(x) if P is None else P.forward(x),)

    def gradient(self, x: Array, image: Image) -> Array:
        if self.normal_matrix is None:
            return to_numpy(self.map.M.T @ (image[0] - self._b))
        return image[0] + self.q

    def curvature(self, x: Array, image: Image) -> tuple[Piece, ...]:
        P = self.normal_matrix
        if P is not None:
            return (ConstantOnDevice(P),)
        return (GramOnDevice(self.map, self.map.xp.ones_like(self._b)),)

    def along(self, x: Array, image: Image, d: Array, direction: Image) -> Slope:
        if self.normal_matrix is None:
            e = direction[0]
            return straight(float(e @ (image[0] - self._b)), float(e @ e))
        return super().along(x, image, d, direction)


class LogisticOnDevice(Logistic):
    """``sum weights_i log(1 + exp(-labels_i <a_i, x>))`` with the samples on a device."""

    map: OnDevice

    @cached_property
    def _labels(self) -> Any:
        return self.map.there(self.labels)

    @cached_property
    def _weights(self) -> Any:
        return self.map.there(np.array(self.weights))

    def _odds(self, scores: Any) -> tuple[Any, Any]:
        """Return the probabilities p of the wrong label at these scores, and ``p (1 - p)``."""
        xp = self.map.xp
        small = xp.exp(-xp.abs(scores))
        right = self._labels * scores > 0.0
        return xp.where(right, small, xp.ones_like(small)) / (1.0 + small), small / (
            1.0 + small
        ) ** 2

    def value(self, x: Array) -> float:
        xp = self.map.xp
        margins = self._labels * (self.map.M @ self.map.there(x))
        losses = xp.log1p(xp.exp(-xp.abs(margins))) + xp.where(
            margins < 0.0, -margins, 0.0 * margins
        )
        return float(self._weights @ losses)

    def image(self, x: Array) -> Image:
        return (self.map.M @ self.map.there(x),)

    def gradient(self, x: Array, image: Image) -> Array:
        slopes = -self._weights * self._labels * self._odds(image[0])[0]
        return to_numpy(self.map.M.T @ slopes)

    def curvature(self, x: Array, image: Image) -> tuple[Piece, ...]:
        return (GramOnDevice(self.map, self._weights * self._odds(image[0])[1]),)

    def along(self, x: Array, image: Image, d: Array, direction: Image) -> Slope:
        scores, e = image[0], direction[0]
        first, second = -self._weights * self._labels * e, self._weights * e * e

        def derivatives(t: float) -> tuple[float, float]:
            p, spread = self._odds(scores + t * e)
            return float(first @ p), float(second @ spread)

        return derivatives


class QuadraticOnDevice(Quadratic):
    """``1/2 x'Px + q'x + constant`` with ``P`` on a device."""

    def __init__(self, P: OnDevice, q: Array, constant: float = 0.0) -> None:
        self.map = OnDevice(0.5 * (P.M + P.M.T))
        self.q, self.size, self.constant = q, len(q), float(constant)

    def value(self, x: Array) -> float:
        return float(x @ (0.5 * self.map.forward(x) + self.q)) + self.constant

    def image(self, x: Array) -> Image:
        return (self.map.forward(x),)

    def curvature(self, x: Array, image: Image) -> tuple[Piece, ...]:
        return (ConstantOnDevice(self.map),)
