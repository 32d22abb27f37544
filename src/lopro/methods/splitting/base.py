"""The options of splitting methods, and the rule by which their penalties change."""

from __future__ import annotations

import math

from lopro.core.validation import check_fields, check_number
from lopro.methods.splitting.settings import SETTINGS

__all__ = ["SplittingMethod", "balancing_factor"]


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
        """Return the number of steps at the next certificate: this share more than ``steps``."""
        return steps + max(self.every, int(share * steps))


def balancing_factor(primal: float, dual: float) -> float:
    """Return the factor for a penalty that makes both relative residuals equal.

    The primal residual decreases and the dual residual increases in proportion to the penalty.

    Examples
    --------
    >>> from lopro.methods.splitting.base import balancing_factor
    >>> balancing_factor(4.0, 1.0), balancing_factor(1e6, 1.0), balancing_factor(0.0, 1.0)
    (2.0, 5.0, 1.0)
    """
    if not (primal > 0.0 and dual > 0.0):
        return 1.0
    return min(max(math.sqrt(primal / dual), 1.0 / SETTINGS.change), SETTINGS.change)
