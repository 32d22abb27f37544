"""Logistic loss."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.newton.arrays import Array, Image
from lopro.newton.curvature import Piece, weighted
from lopro.newton.maps import as_map
from lopro.newton.smooth.base import Slope

__all__ = ["Logistic"]


class Logistic:
    """``sum weights_i log(1 + exp(-labels_i <a_i, x>))`` with labels -1 and 1.

    Parameters
    ----------
    A : array, scipy.sparse array or map, shape (samples, features)
        The samples.
    labels : array, shape (samples,)
        -1 or 1.
    weights : array or float
        Positive; ``1 / samples`` for the mean.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.newton.smooth import Logistic
    >>> round(Logistic(np.array([[1.0]]), np.array([1.0])).value(np.array([0.0])), 6)
    0.693147
    """

    images = 1

    def __init__(self, A: Any, labels: Any, weights: Any = 1.0) -> None:
        self.map = as_map(A)
        self.labels: Array = np.asarray(labels, dtype=np.float64)
        self.weights: Array = np.broadcast_to(np.asarray(weights, np.float64), self.labels.shape)
        self.size: int = self.map.shape[1]

    def value(self, x: Array) -> float:
        margins = self.labels * self.map.forward(x)
        return float(self.weights @ np.logaddexp(0.0, -margins))

    def image(self, x: Array) -> Image:
        return (self.map.forward(x),)

    def odds(self, scores: Array) -> Array:
        """Return the probabilities of the wrong label at these scores ``A x``."""
        return np.asarray(scipy.special.expit(-self.labels * scores))

    def gradient(self, x: Array, image: Image) -> Array:
        return self.map.adjoint(-self.weights * self.labels * self.odds(image[0]))

    def curvature(self, x: Array, image: Image) -> tuple[Piece, ...]:
        p = self.odds(image[0])
        return (weighted(self.map, self.weights * p * (1.0 - p)),)

    def along(self, x: Array, image: Image, d: Array, direction: Image) -> Slope:
        scores, e = image[0], direction[0]
        first, second = -self.weights * self.labels * e, self.weights * e * e

        def derivatives(t: float) -> tuple[float, float]:
            p = self.odds(scores + t * e)
            return float(first @ p), float(second @ (p * (1.0 - p)))

        return derivatives
