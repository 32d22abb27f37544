"""Lower and upper bounds of entries: rows of linear constraints, boxes, equations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lopro.core.arrays import Array, Companion, namespace
from lopro.functions.atoms.base import SetAtom, Step
from lopro.functions.complements import DiagonalComplement
from lopro.linalg.rounding import Estimate, dot

__all__ = ["Interval"]


class Interval(SetAtom):
    """The set ``lower <= z <= upper``, entry by entry; entries with equal bounds are fixed.

    Parameters
    ----------
    lower, upper : array
        Of one shape; infinite where there is no bound.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.functions.atoms import Interval
    >>> box = Interval(np.zeros(2), np.array([1.0, np.inf]))
    >>> box.prox(np.array([2.0, -3.0]), 1.0), box.conjugate(np.array([3.0, -1.0]))
    (array([1., 0.]), 3.0)
    """

    separable = True

    def __init__(self, lower: Any, upper: Any) -> None:
        low, high = np.asarray(lower, dtype=np.float64), np.asarray(upper, dtype=np.float64)
        if low.shape != high.shape:
            raise ValueError(f"lower and upper must have one shape, got {low.shape}, {high.shape}")
        # The comparison is False for NaN, which is refused here as well.
        if not np.logical_and.reduce(low <= high, axis=None):
            raise ValueError("lower must not exceed upper, and neither may hold NaN")
        most = np.maximum.reduce(np.maximum(low, -high), axis=None, initial=-np.inf)
        if not most < np.inf:
            raise ValueError("lower must be below +inf and upper above -inf everywhere")
        self._lower, self._upper = Companion(low), Companion(high)

    @property
    def lower(self) -> np.ndarray[Any, Any]:
        """The lower bounds, on the host; do not write on them."""
        return np.asarray(self._lower.array)

    @property
    def upper(self) -> np.ndarray[Any, Any]:
        """The upper bounds, on the host; do not write on them."""
        return np.asarray(self._upper.array)

    def bounds_beside(self, z: Array) -> tuple[Array, Array]:
        """Return the bounds in the library and precision of an array; do not write on them."""
        return self._lower.beside(z), self._upper.beside(z)

    def value(self, z: Array) -> float:
        low, high = self.bounds_beside(z)
        return 0.0 if bool(namespace(z).all((low <= z) & (z <= high))) else math.inf

    def prox(self, w: Array, step: Step) -> Array:
        low, high = self.bounds_beside(w)
        if isinstance(w, np.ndarray):
            return np.minimum(np.maximum(w, low), high)
        xp = namespace(w)
        raised = xp.where(w < low, low, w)
        return xp.where(raised > high, high, raised)

    def complement(self, w: Array, step: Step) -> DiagonalComplement:
        # Fixed entries are active even where w equals their bound.
        active = (w < self.lower) | (w > self.upper) | (self.lower == self.upper)
        return DiagonalComplement(active.astype(np.float64))

    def conjugate(self, v: Array) -> float:
        xp = namespace(v)
        low, high = self.bounds_beside(v)
        sides = xp.where(v > 0.0, high, low)
        return float(xp.sum(v * xp.where(v != 0.0, sides, 0.0 * v)))

    def into_domain(self, v: Array) -> Array:
        xp = namespace(v)
        low, high = self.bounds_beside(v)
        return xp.where(xp.isinf(xp.where(v > 0.0, high, low)), 0.0 * v, v)

    def distance(self, z: Array) -> Array:
        xp = namespace(z)
        low, high = self.bounds_beside(z)
        return xp.where(z < low, low - z, xp.where(z > high, z - high, 0.0 * z))

    def enclose_conjugate(self, v: Array) -> Estimate:
        sides = np.where(v > 0.0, self.upper, self.lower)
        used = v != 0.0
        if not bool(np.all(np.isfinite(sides[used]))):
            return Estimate(np.inf)
        return dot(v[used], sides[used])
