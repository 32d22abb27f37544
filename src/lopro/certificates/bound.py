"""Lower bounds that stay where they were proved."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from lopro.certificates.tolerances import FARTHER
from lopro.certificates.units import Units
from lopro.core.real_vectors import Vector
from lopro.linalg.rounding import EPS, length

__all__ = ["Bound"]


@dataclass(frozen=True, eq=False)
class Bound:
    """``objective(z) >= value - sum_j slopes_j |z_j - centre_j|`` for every ``z`` in the constraints.

    Without slopes and limit it holds everywhere. What is claimed of other points goes through `around`: a
    bound is never compared with a point, or with an optimum, farther out than it was evaluated.

    Solutions are taken to lie within ``R_j = 1e4 max(|x_j|, s_j)`` of a point ``x``, where ``s_j`` is the
    unit of column j: so the charge ``sum_j slopes_j R_j`` is the same in all units of the variables.

    Parameters
    ----------
    value : float
        What is proved at the centre.
    slopes : array
        What the bound loses with the distance, by variable; an empty array where it loses nothing. Without
        units only their norm counts, so that one number will do.
    centre : array
        From where.
    units : Units, optional
        The units of the variables; None where the data cannot be read: then solutions are taken to lie
        within ``1e4 |x|``, one radius for all variables.
    limit : float
        It is known to hold for points within this distance of the centre only.

    Examples
    --------
    The second variable is counted in units of 1e-6: its slope costs a millionth of what the first one costs.

    >>> import numpy as np
    >>> from lopro.certificates import Bound, Units
    >>> units = Units.given(np.array([1.0, 1e-6]))
    >>> bound = Bound(2.0, np.array([1e-7, 1e-7]), np.zeros(2), units)
    >>> round(bound.around(np.zeros(2)), 12), bound.reach(np.zeros(2))
    (1.998999999, array([1.e+04, 1.e-02]))
    """

    value: float
    slopes: Vector
    centre: Vector
    units: Units | None = field(default=None, repr=False)
    limit: float = math.inf

    @staticmethod
    def everywhere(value: float) -> Bound:
        """Return a bound that holds everywhere."""
        return Bound(value, np.zeros(0), np.zeros(0))

    @property
    def slope(self) -> float:
        """The norm of the slopes: what the bound loses with the distance at most."""
        return length(self.slopes)

    @property
    def flat(self) -> bool:
        """Whether nothing is lost with the distance."""
        return not self.slopes.any()

    @property
    def holds_everywhere(self) -> bool:
        """Whether it holds for all points, without a loss."""
        return self.flat and math.isinf(self.limit)

    def within(self, radius: float) -> float:
        """Return the bound over the ball of this radius around the centre."""
        return self.value if self.flat else self.value - self.slope * radius

    def reach(self, x: Vector, fallback: float = 0.0) -> Vector:
        """Return how far from a point solutions may be, by variable.

        ``fallback`` is a length that is typical of variables whose units are not known.
        """
        x = np.ravel(x)
        if self.units is None:
            return np.full(len(x), FARTHER * max(length(x), fallback))
        return FARTHER * self.units.sizes(x, fallback)

    def around(self, x: Vector, fallback: float = 0.0) -> float:
        """Return the bound as far around a point as solutions may be; minus infinity beyond its limit."""
        if self.holds_everywhere:
            return self.value
        if not self.radius(x, fallback) > 0.0:
            return -math.inf
        if self.flat:
            return self.value
        way = np.ravel(x) - np.ravel(self.centre)
        if self.units is None:
            lost = self.slope * (length(way) + FARTHER * max(length(np.ravel(x)), fallback))
        else:
            lost = float(self.slopes @ (np.abs(way) + self.reach(x, fallback)))
        return math.nextafter(self.value - lost * (1.0 + (len(way) + 8) * EPS), -math.inf)

    def radius(self, x: Vector, fallback: float = 0.0) -> float:
        """Return the radius of the largest ball around a point in which `around` holds; 0 for none."""
        if self.holds_everywhere:
            return math.inf
        away = length(np.ravel(x) - np.ravel(self.centre)) * (1.0 + 4.0 * EPS)
        left = max(0.0, self.limit - away)
        if self.flat:
            return left
        used = slice(None) if self.units is None else self.slopes > 0.0
        return min(left, float(self.reach(x, fallback)[used].min()))
