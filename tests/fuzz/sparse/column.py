"""One problem ``min sum w_i |x_i|  s.t. |A x - y| <= sigma`` for the judge, without library code."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import mpmath
import numpy as np

from fuzz.judge.wide import length, norm, residual_length, wide

__all__ = ["Array", "Column"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Column:
    """The exact data that were passed to the library."""

    A: Array
    y: Array
    sigma: float
    weights: Array
    nonneg: bool
    eps: float

    def value(self, x: Any) -> Any:
        """Return the objective in long double."""
        return np.sum(wide(self.weights) * np.abs(wide(x)))

    @cached_property
    def size(self) -> float:
        """The length of ``y``."""
        return float(norm(self.y))

    def holds(self, x: Any) -> bool:
        """Whether ``x`` is feasible, without any tolerance."""
        if self.nonneg and (np.asarray(x) < 0).any():
            return False
        found = residual_length(self.A, x, self.y)
        if found.high <= self.sigma:
            return True
        if found.low > self.sigma:
            return False
        return bool(length(self.A, x, self.y) <= mpmath.mpf(self.sigma))

    def violation(self, x: Any) -> float:
        """Return how far ``x`` is outside in units of the problem, less what rounding explains."""
        x = wide(x)
        excess = residual_length(self.A, x, self.y).low - self.sigma
        excess -= 8.0 * self.eps * (norm(np.abs(wide(self.A)) @ np.abs(x)) + self.size)
        scale = max(self.sigma, 1e-6 * self.size) if self.sigma > 0.0 else self.size
        found = 0.0
        if excess > 0.0:
            # ``A x = 0`` has no size of its own: compare with the largest possible product.
            found = float(excess / (scale if scale > 0.0 else self.spectrum[1][0] * norm(x)))
        if self.nonneg:
            # Beside entries of 0: compare with the coefficient of the longest column at the length of y.
            longest = float(np.sqrt((np.abs(wide(self.A)) ** 2).sum(axis=0).max(initial=0.0)))
            reach = self.size / longest if longest > 0.0 else 0.0
            largest = max(np.abs(x).max(initial=0.0), reach)
            found = max(found, float(-x.min(initial=0.0) / largest) if largest > 0.0 else 0.0)
        return found

    @cached_property
    def spectrum(self) -> tuple[Array, Array, Array]:
        """The singular value decomposition in double precision."""
        A = self.A.astype(np.complex128 if self.A.dtype.kind == "c" else np.float64)
        return np.linalg.svd(A, full_matrices=False)
