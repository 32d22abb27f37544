"""The conditions that select a solution on the path: the norm of the residual, a penalty, or their ratio.

The solutions of ``min alpha w'|x| + |A x - y|^2 / 2`` for decreasing ``alpha`` are one path. Basis pursuit
denoising is the point whose residual is ``sigma`` long, the LASSO the one with ``alpha = lam``, the
square-root LASSO the one with ``alpha = lam |A x - y|``. With known signs the residual is ``rest + alpha
tail``, and each of them is an equation for ``alpha`` alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

__all__ = ["Level", "Penalty", "Radius", "Ratio", "target_residual"]

_EPS = float(np.finfo(np.float64).eps)
#: The share of the allowed gap that is spent on a target inside the ball, so that points converging to it are
#: feasible after finitely many steps; and the largest distance of the target as a share of sigma.
_SPENT, _NEAREST = 0.1, 0.01


class Level(Protocol):
    """The condition that determines alpha."""

    @property
    def least(self) -> float:
        """A lower bound of alpha that is known before the solution."""
        ...

    @property
    def equations(self) -> bool:
        """Whether the solution is the end of the path, where alpha and the residual vanish."""
        ...

    def alpha(
        self, curvature: float, slope: float, length: float, size: float, at: float = 0.0
    ) -> float | None:
        """Return the required ``alpha``, None where there is none.

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
        # Inside the ball by 1e-12 and four roundings of y, so that the computed residual is short enough.
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
            return None  # the residual is rounding: the solution satisfies the equations
        return at + (math.sqrt(b * b - a * c) - b) / a


def target_residual(sigma: Any, allowed: Any, alpha: Any, rounding: Any = 0.0) -> Any:
    """Return the residual to aim at: inside the ball by a share of the allowed gap, at most by 1 %.

    The slope of the optimum in sigma is ``-sigma / alpha``: a residual shorter by ``t sigma`` costs
    ``t sigma^2 / alpha``.

    Parameters
    ----------
    sigma, allowed, alpha, rounding : floats, or arrays of them
        Radius, allowed gap, multiplier, and rounding errors to add to the distance.
    """
    inside = np.minimum(_NEAREST, _SPENT * allowed * alpha / sigma**2)
    return np.maximum(0.0, sigma * (1.0 - inside) - rounding)
