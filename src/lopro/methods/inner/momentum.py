"""Rules for the extrapolation step of accelerated gradient descent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from lopro.core.validation import check_number

__all__ = ["ConstantMomentum", "Momentum", "NesterovMomentum", "NoMomentum"]


class Momentum(Protocol):
    """A rule for the extrapolation step."""

    def advance(self, tau: float, L: float) -> tuple[float, float]:
        """Return the next ``tau`` and the factor ``beta`` of ``y = x + beta (x - x_old)``."""
        ...


@dataclass(frozen=True)
class NesterovMomentum:
    """``tau+ = (1 + sqrt(1 + 4 tau^2)) / 2``, ``beta = (tau - 1) / tau+``: for convex F.

    Examples
    --------
    >>> from lopro.methods.inner import NesterovMomentum
    >>> NesterovMomentum().advance(1.0, 1.0)[1]
    0.0
    """

    def advance(self, tau: float, L: float) -> tuple[float, float]:
        following = (1.0 + math.sqrt(1.0 + 4.0 * tau * tau)) / 2.0
        return following, (tau - 1.0) / following


@dataclass(frozen=True)
class ConstantMomentum:
    """``beta = (sqrt(L) - sqrt(mu)) / (sqrt(L) + sqrt(mu))`` with L of F: for mu-strongly convex F.

    Examples
    --------
    >>> from lopro.methods.inner import ConstantMomentum
    >>> ConstantMomentum(mu=1.0).advance(1.0, 9.0)[1]
    0.5
    """

    mu: float

    def __post_init__(self) -> None:
        check_number("mu", self.mu, minimum=0.0, exclusive=True)

    def advance(self, tau: float, L: float) -> tuple[float, float]:
        root, small = math.sqrt(L), math.sqrt(min(self.mu, L))
        return tau, (root - small) / (root + small)


@dataclass(frozen=True)
class NoMomentum:
    """Plain (proximal) gradient descent.

    Examples
    --------
    >>> from lopro.methods.inner import NoMomentum
    >>> NoMomentum().advance(1.0, 9.0)[1]
    0.0
    """

    def advance(self, tau: float, L: float) -> tuple[float, float]:
        return tau, 0.0
