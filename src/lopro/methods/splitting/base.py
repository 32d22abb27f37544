"""The options of splitting methods, and when they give up."""

from __future__ import annotations

import math

from lopro.core.validation import check_fields, check_number
from lopro.methods.splitting.settings import SETTINGS

__all__ = ["Progress", "SplittingMethod", "balancing_factor"]


class SplittingMethod:
    """Base of dataclasses with the options of a splitting method."""

    every: int
    relaxation: float
    patience: int

    def __post_init__(self) -> None:
        check_fields(self, counts=("every", "patience"))
        check_number("relaxation", self.relaxation, minimum=1.0, maximum=2.0)
        if self.relaxation == 2.0:
            raise ValueError("relaxation must be below 2, got 2")

    def next_certificate(self, steps: int, share: float) -> int:
        """Return the number of steps at the next certificate, after a share of the steps made."""
        return steps + max(self.every, int(share * steps))


class Progress:
    """Whether the certified gap still falls: by a tenth within so many certificates."""

    def __init__(self, patience: int) -> None:
        self.patience, self.best, self.idle = patience, math.inf, 0

    def stalled(self, gap: float) -> bool:
        """Add the gap of a certificate; return whether there were too many without progress."""
        self.best, self.idle = (gap, 0) if gap < 0.9 * self.best else (self.best, self.idle + 1)
        return self.idle > self.patience


def balancing_factor(primal: float, dual: float) -> float:
    """Return by how much to change a penalty for relative residuals of the same size.

    A large penalty makes the primal residual small and the dual one large, both in proportion.

    Examples
    --------
    >>> from lopro.methods.splitting.base import balancing_factor
    >>> balancing_factor(4.0, 1.0), balancing_factor(1e6, 1.0), balancing_factor(0.0, 1.0)
    (2.0, 5.0, 1.0)
    """
    if not (primal > 0.0 and dual > 0.0):
        return 1.0
    return min(max(math.sqrt(primal / dual), 1.0 / SETTINGS.change), SETTINGS.change)
