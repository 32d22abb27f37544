"""The penalties of the paper, hinge and softplus, and the quadratic hinge, which is optimal (P3).

Each is a function of ``c(x)`` that satisfies condition (4) of the paper,

    lam [c]_+ <= h   everywhere,      h <= above   where c <= 0,

in which ``above`` is the paper's ``C gamma``. None of them overflows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from lopro.core.validation import check_number
from lopro.penalties.base import ScalarPenalty

__all__ = ["Hinge", "QuadraticHinge", "Softplus", "expit", "softplus"]


def softplus(s: float) -> float:
    """Return ``log(1 + exp(s))`` without overflow."""
    return max(s, 0.0) + math.log1p(math.exp(-abs(s)))


def expit(s: float) -> float:
    """Return ``1 / (1 + exp(-s))`` without overflow."""
    decay = math.exp(-abs(s))
    return (1.0 if s >= 0 else decay) / (1.0 + decay)


@dataclass(frozen=True)
class Hinge(ScalarPenalty):
    """``lam [c]_+``: exact if ``lam`` is above the multiplier; not smooth.

    Examples
    --------
    >>> from lopro.penalties import Hinge
    >>> Hinge(2.0).phi(0.5), Hinge(2.0).phi(-1.0)
    (1.0, 0.0)
    """

    lam: float

    def __post_init__(self) -> None:
        check_number("lam", self.lam, minimum=0.0)

    @property
    def weight(self) -> float:
        """``lam``, for the history."""
        return self.lam

    @property
    def above(self) -> float:
        """The largest value on the feasible set."""
        return 0.0

    def phi(self, c: float) -> float:
        return self.lam * c if c > 0.0 else 0.0

    def slope(self, c: float) -> float:
        return self.lam if c > 0.0 else 0.0


@dataclass(frozen=True)
class Softplus(ScalarPenalty):
    """``gamma log(1 + exp(lam c / gamma))``: the smooth penalty of the paper (Prop 1).

    It is ``lam L_c + lam^2 G_c^2 / (4 gamma)``-smooth, and ``C = log 2``.

    Examples
    --------
    >>> from lopro.penalties import Softplus
    >>> round(Softplus(lam=1.0, gamma=1e-9).phi(3.0), 6)
    3.0
    """

    lam: float
    gamma: float

    def __post_init__(self) -> None:
        check_number("lam", self.lam, minimum=0.0)
        check_number("gamma", self.gamma, minimum=0.0, exclusive=True)

    @property
    def weight(self) -> float:
        """``lam``, for the history."""
        return self.lam

    @property
    def above(self) -> float:
        """The largest value on the feasible set."""
        return self.gamma * math.log(2.0)

    def phi(self, c: float) -> float:
        return self.gamma * softplus(self.lam * c / self.gamma)

    def slope(self, c: float) -> float:
        return self.lam * expit(self.lam * c / self.gamma)

    def curvature(self, squared_slope: float) -> float:
        """Return the contribution to the smoothness constant of F if ``|grad c|^2 <= squared_slope``."""
        return self.lam**2 * squared_slope / (4.0 * self.gamma)


@dataclass(frozen=True)
class QuadraticHinge(ScalarPenalty):
    """The hinge, smoothed by a parabola on ``|c| <= gamma / lam``: the optimal smoothing (P3).

    ``C = 1/4`` with curvature ``lam^2 G_c^2 / (2 gamma)``: their product, 1/8, is the least possible
    for a smooth function above the hinge (softplus has log(2)/4 = 0.173).

    Examples
    --------
    >>> from lopro.penalties import QuadraticHinge
    >>> h = QuadraticHinge(lam=2.0, gamma=1.0)
    >>> h.phi(-0.5), h.phi(0.0), h.phi(0.5)
    (0.0, 0.25, 1.0)
    """

    lam: float
    gamma: float

    def __post_init__(self) -> None:
        check_number("lam", self.lam, minimum=0.0, exclusive=True)
        check_number("gamma", self.gamma, minimum=0.0, exclusive=True)

    @property
    def weight(self) -> float:
        """``lam``, for the history."""
        return self.lam

    @property
    def above(self) -> float:
        """The largest value on the feasible set."""
        return self.gamma / 4.0

    def phi(self, c: float) -> float:
        delta = self.gamma / self.lam
        if c >= delta:
            return self.lam * c
        return self.lam * (c + delta) ** 2 / (4.0 * delta) if c > -delta else 0.0

    def slope(self, c: float) -> float:
        delta = self.gamma / self.lam
        return self.lam * min(1.0, max(0.0, (c + delta) / (2.0 * delta)))

    def curvature(self, squared_slope: float) -> float:
        """Return the contribution to the smoothness constant of F if ``|grad c|^2 <= squared_slope``."""
        return self.lam**2 * squared_slope / (2.0 * self.gamma)
