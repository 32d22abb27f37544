"""Lower bounds that stay where they were proved."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lopro.core.real_vectors import Vector
from lopro.linalg.rounding import EPS, length

__all__ = ["Bound"]


@dataclass(frozen=True, eq=False)
class Bound:
    """``objective(z) >= value - slope |z - centre|`` for every ``z`` that satisfies the constraints.

    A slope of 0 and no limit: it holds everywhere. What is claimed of other points goes through `around`: a
    bound is never compared with a point, or with an optimum, outside of the ball in which it was evaluated.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.certificates import Bound
    >>> bound = Bound(value=2.0, slope=1e-12, centre=np.zeros(2))
    >>> bound.within(1e6), bound.radius(1e-3)
    (1.999999, 1000000000.0)
    >>> bound.around(np.array([3e6, 4e6]), 1e6) < bound.within(5.9e6)
    True
    """

    value: float
    slope: float
    centre: Vector
    #: It is known to hold for points within this distance of the centre only.
    limit: float = math.inf

    def within(self, radius: float) -> float:
        """Return the bound over the ball of this radius around the centre."""
        return self.value - (self.slope * radius if self.slope > 0.0 else 0.0)

    def around(self, x: Vector, radius: float) -> float:
        """Return the bound over the ball of this radius around another point."""
        if self.slope == 0.0:
            return self.value
        away = length(np.ravel(x) - np.ravel(self.centre)) * (1.0 + 4.0 * EPS)
        return self.within(away + radius)

    def reach(self, x: Vector, wanted: float) -> float:
        """Return the radius around a point, up to the one wanted, in which the bound may be used; 0 for none.

        A bound without a slope is used as far out as it holds.
        """
        if self.slope == 0.0 and math.isinf(self.limit):
            return math.inf
        left = self.limit - length(np.ravel(x) - np.ravel(self.centre)) * (1.0 + 4.0 * EPS)
        return max(0.0, min(left, wanted if self.slope > 0.0 else math.inf))

    def radius(self, allowance: float) -> float:
        """Return how far from the centre the bound loses at most ``allowance``."""
        return math.inf if self.slope == 0.0 else allowance / self.slope
