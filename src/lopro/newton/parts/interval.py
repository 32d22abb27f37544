"""Boxes ``lower <= z <= upper``, equalities where both agree: rows of linear constraints."""

from __future__ import annotations

from typing import Any

import numpy as np

from lopro.newton.arrays import Array
from lopro.newton.parts.base import Steps
from lopro.newton.parts.complements import Mask

__all__ = ["Interval"]


class Interval:
    """The indicator function of ``lower <= z <= upper``.

    Parameters
    ----------
    lower, upper : array or float or None
        None and infinities stand for no bound. Where both agree the entry is fixed.
    size : int
        Needed if both are numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.newton.parts import Interval
    >>> box = Interval(lower=0.0, upper=np.array([1.0, np.inf]))
    >>> box.prox(np.array([2.0, -3.0]), 1.0)
    array([1., 0.])
    >>> box.conjugate(np.array([3.0, -1.0]))
    3.0
    """

    separable = True
    steepness = 0.0

    def __init__(self, lower: Any = None, upper: Any = None, size: int | None = None) -> None:
        lo = np.asarray(-np.inf if lower is None else lower, dtype=np.float64)
        up = np.asarray(np.inf if upper is None else upper, dtype=np.float64)
        shape = np.broadcast_shapes(lo.shape, up.shape, () if size is None else (size,))
        if len(shape) != 1:
            raise ValueError(f"lower, upper: one of them must be a vector, or size given: {shape}")
        self.lower: Array = np.broadcast_to(lo, shape)
        self.upper: Array = np.broadcast_to(up, shape)
        self.size = shape[0]
        self._fixed = self.lower == self.upper
        # The comparison is False for NaN, which is refused here as well.
        if not bool(np.all(self.lower <= self.upper)):
            raise ValueError(
                "lower, upper: a lower bound exceeds its upper bound, or is not a number"
            )
        if bool(np.any(self.lower == np.inf)) or bool(np.any(self.upper == -np.inf)):
            raise ValueError("lower, upper: a lower bound of inf or an upper of -inf excludes all")

    def value(self, z: Array) -> float:
        return 0.0 if bool(np.all((self.lower <= z) & (z <= self.upper))) else np.inf

    def prox(self, w: Array, steps: Steps) -> Array:
        return np.minimum(np.maximum(w, self.lower), self.upper)

    def complement(self, w: Array, steps: Steps) -> Mask:
        # Fixed entries count as active even where w happens to hit them.
        active = (w < self.lower) | (w > self.upper) | self._fixed
        return Mask(active.astype(np.float64))

    def conjugate(self, v: Array) -> float:
        up, lo = v > 0.0, v < 0.0
        return float(v[up] @ self.upper[up]) + float(v[lo] @ self.lower[lo])

    def into_domain(self, v: Array) -> Array:
        highest = np.where(self.upper < np.inf, np.inf, 0.0)
        lowest = np.where(self.lower > -np.inf, -np.inf, 0.0)
        return np.minimum(np.maximum(v, lowest), highest)

    def violation(self, z: Array) -> Array:
        return np.maximum(np.maximum(self.lower - z, z - self.upper), 0.0)
