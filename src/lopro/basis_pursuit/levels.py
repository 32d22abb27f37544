"""What fixes alpha: the length of the residual, the weight of a penalty, or the ratio of the two.

The solutions of ``min alpha w'|x| + |A x - y|^2 / 2`` for falling ``alpha`` are one path. Basis pursuit
denoising asks for its point whose residual is ``sigma`` long, the LASSO for the one with ``alpha = lam``, the
square-root LASSO for the one with ``alpha = lam |A x - y|``. With known signs the residual is
``rest + alpha tail``, and each of them is an equation for ``alpha`` alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

__all__ = ["Level", "Penalty", "Radius", "Ratio"]

_EPS = float(np.finfo(np.float64).eps)


class Level(Protocol):
    """Where on the path a solution is asked for."""

    @property
    def least(self) -> float:
        """No smaller ``alpha`` is the solution's, as far as that is known before."""
        ...

    @property
    def equations(self) -> bool:
        """Whether the end of the path is asked for, where the residual vanishes."""
        ...

    def alpha(
        self, curvature: float, slope: float, length: float, size: float, at: float = 0.0
    ) -> float | None:
        """Return the ``alpha`` that is asked for, None where there is none.

        The square of the residual is ``length^2 + 2 slope t + curvature t^2`` for ``alpha = at + t``, and
        ``size`` is the length of ``y``.
        """
        ...


@dataclass(frozen=True)
class Radius:
    """``|A x - y| = sigma``.

    Examples
    --------
    >>> from lopro.basis_pursuit.levels import Radius
    >>> round(Radius(5.0).alpha(curvature=4.0, slope=0.0, length=3.0, size=5.0), 6)
    2.0
    """

    sigma: float
    least = 0.0

    @property
    def equations(self) -> bool:
        return self.sigma == 0.0

    def alpha(
        self, curvature: float, slope: float, length: float, size: float, at: float = 0.0
    ) -> float | None:
        if self.equations:
            return None
        # 1e-12 inside the ball, so that the point is feasible in floating point as well.
        inside = max(self.sigma * (1.0 - 1e-12) - 4.0 * _EPS * size, 0.0)
        a, b, c = curvature, slope, (length - inside) * (length + inside)
        if a <= 0.0 or b * b - a * c < 0.0 or (at == 0.0 and c > 0.0):
            return None
        return at + (math.sqrt(b * b - a * c) - b) / a


@dataclass(frozen=True)
class Penalty:
    """``alpha = lam``."""

    lam: float
    equations = False

    @property
    def least(self) -> float:
        return self.lam

    def alpha(
        self, curvature: float, slope: float, length: float, size: float, at: float = 0.0
    ) -> float | None:
        return self.lam


@dataclass(frozen=True)
class Ratio:
    """``alpha = lam |A x - y|``.

    Examples
    --------
    >>> from lopro.basis_pursuit.levels import Ratio
    >>> round(Ratio(0.6).alpha(curvature=1.0, slope=0.0, length=4.0, size=5.0), 6)
    3.0
    """

    lam: float
    least = 0.0
    equations = False

    def alpha(
        self, curvature: float, slope: float, length: float, size: float, at: float = 0.0
    ) -> float | None:
        # (at + t)^2 = lam^2 (length^2 + 2 slope t + curvature t^2)
        square, seen = self.lam * self.lam, self.lam * length
        a, b = 1.0 - square * curvature, at - square * slope
        c = (at - seen) * (at + seen)
        if a <= 0.0 or b * b - a * c < 0.0 or seen <= 4.0 * _EPS * self.lam * size:
            return None  # no residual is long enough: the solution meets the equations
        return at + (math.sqrt(b * b - a * c) - b) / a
