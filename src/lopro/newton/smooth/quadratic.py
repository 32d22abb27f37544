"""Quadratic functions: general ones, linear ones, squared distances."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.newton.arrays import Array, Image, Matrix
from lopro.newton.curvature import Constant, Diagonal, Piece
from lopro.newton.smooth.base import Slope

__all__ = ["Linear", "Quadratic", "SquaredDistance", "straight"]


def straight(slope: float, curvature: float) -> Slope:
    """Return the derivatives of a parabola along a line."""
    return lambda t: (slope + t * curvature, curvature)


class Quadratic:
    """``1/2 x'Px + q'x + constant`` with a positive semidefinite ``P``, dense or sparse.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.newton.smooth import Quadratic
    >>> Quadratic(np.diag([2.0, 4.0]), np.array([1.0, 0.0])).value(np.array([1.0, 1.0]))
    4.0
    """

    images = 1

    def __init__(self, P: Any, q: Any, constant: float = 0.0) -> None:
        self.q: Array = np.asarray(q, dtype=np.float64)
        self.size = len(self.q)
        sparse = scipy.sparse.issparse(P)
        self.P: Matrix = (
            scipy.sparse.csr_array(P, dtype=np.float64) if sparse else np.asarray(P, np.float64)
        )
        if abs(self.P - self.P.T).max() != 0.0:
            self.P = 0.5 * (self.P + self.P.T)
        self.constant = float(constant)

    def value(self, x: Array) -> float:
        return float(x @ (0.5 * (self.P @ x) + self.q)) + self.constant

    def image(self, x: Array) -> Image:
        return (np.asarray(self.P @ x),)

    def gradient(self, x: Array, image: Image) -> Array:
        return image[0] + self.q

    def curvature(self, x: Array, image: Image) -> tuple[Piece, ...]:
        return (Constant(self.P),)

    def along(self, x: Array, image: Image, d: Array, direction: Image) -> Slope:
        return straight(float(d @ (image[0] + self.q)), float(d @ direction[0]))


class Linear:
    """``q'x``.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.newton.smooth import Linear
    >>> Linear(np.array([1.0, -2.0])).value(np.array([3.0, 1.0]))
    1.0
    """

    images = 0

    def __init__(self, q: Any) -> None:
        self.q: Array = np.asarray(q, dtype=np.float64)
        self.size = len(self.q)

    def value(self, x: Array) -> float:
        return float(self.q @ x)

    def image(self, x: Array) -> Image:
        return ()

    def gradient(self, x: Array, image: Image) -> Array:
        return self.q

    def curvature(self, x: Array, image: Image) -> tuple[Piece, ...]:
        return ()

    def along(self, x: Array, image: Image, d: Array, direction: Image) -> Slope:
        return straight(float(self.q @ d), 0.0)


class SquaredDistance:
    """``1/2 sum weights_j (x_j - center_j)^2`` with weights that are not negative.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.newton.smooth import SquaredDistance
    >>> SquaredDistance(np.array([3.0, 4.0])).value(np.zeros(2))
    12.5
    """

    images = 0

    def __init__(self, center: Any, weights: Any = 1.0) -> None:
        self.center: Array = np.asarray(center, dtype=np.float64)
        self.size = len(self.center)
        self.weights: Array = np.broadcast_to(np.asarray(weights, np.float64), self.center.shape)

    def value(self, x: Array) -> float:
        difference = x - self.center
        return 0.5 * float(difference @ (self.weights * difference))

    def image(self, x: Array) -> Image:
        return ()

    def gradient(self, x: Array, image: Image) -> Array:
        return np.asarray(self.weights * (x - self.center))

    def curvature(self, x: Array, image: Image) -> tuple[Piece, ...]:
        return (Diagonal(self.weights),)

    def along(self, x: Array, image: Image, d: Array, direction: Image) -> Slope:
        return straight(float(d @ self.gradient(x, image)), float(d @ (self.weights * d)))
