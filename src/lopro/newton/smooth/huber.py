"""Huber's loss: squares of small residuals, absolute values of large ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.newton.arrays import Array, Image, Matrix
from lopro.newton.curvature import Gram, Piece
from lopro.newton.smooth.base import Slope

__all__ = ["Huber"]


class Huber:
    """``weight * sum h((A x - b)_i)``, ``h(r) = r^2/2`` up to ``delta`` and ``delta |r| - delta^2/2`` beyond.

    Its second derivative jumps, so that Newton steps are semismooth ones.

    Parameters
    ----------
    A : array or scipy.sparse array, shape (residuals, variables)
        The map.
    b : array, shape (residuals,)
        What residuals are taken from.
    delta : float
        Where squares end.
    weight : float
        Positive.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.newton.smooth.huber import Huber
    >>> Huber(np.array([[1.0], [1.0]]), np.array([0.0, 3.0]), 1.0).value(np.array([0.5]))
    2.125
    """

    images = 1

    def __init__(self, A: Any, b: Any, delta: float, weight: float = 1.0) -> None:
        sparse = scipy.sparse.issparse(A)
        self.A: Matrix = (
            scipy.sparse.csr_array(A, dtype=np.float64) if sparse else np.asarray(A, np.float64)
        )
        self.b: Array = np.asarray(b, dtype=np.float64)
        self.delta, self.weight = float(delta), float(weight)
        self.size: int = self.A.shape[1]

    def slopes(self, residual: Array) -> Array:
        """Return the derivatives of the loss at residuals, without the weight."""
        return np.clip(residual, -self.delta, self.delta)

    def value(self, x: Array) -> float:
        r = self.A @ x - self.b
        s = self.slopes(r)
        return self.weight * float(s @ (r - 0.5 * s))

    def image(self, x: Array) -> Image:
        return (np.asarray(self.A @ x),)

    def gradient(self, x: Array, image: Image) -> Array:
        return np.asarray((self.weight * self.slopes(image[0] - self.b)) @ self.A)

    def curvature(self, x: Array, image: Image) -> tuple[Piece, ...]:
        small = np.abs(image[0] - self.b) <= self.delta
        return (Gram(self.A, self.weight * small.astype(np.float64)),)

    def along(self, x: Array, image: Image, d: Array, direction: Image) -> Slope:
        r, e = image[0] - self.b, direction[0]

        def derivatives(t: float) -> tuple[float, float]:
            now = r + t * e
            small = np.abs(now) <= self.delta
            first = self.weight * float(self.slopes(now) @ e)
            return first, self.weight * float(e[small] @ e[small])

        return derivatives
