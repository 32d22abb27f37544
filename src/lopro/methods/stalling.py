"""The test whether a run still makes progress."""

from __future__ import annotations

import math

__all__ = ["StallCheck"]


class StallCheck:
    """Whether a gap, or another measure of optimality, has stopped decreasing.

    Parameters
    ----------
    patience : int
        Number of consecutive checks without progress that are accepted.
    share : float
        A value below this share of the value at the last progress counts as progress.

    Examples
    --------
    >>> from lopro.methods.stalling import StallCheck
    >>> check = StallCheck(patience=1)
    >>> [check.stalled(gap) for gap in (1.0, 0.95, 0.89, 0.88, 0.87)]
    [False, False, False, False, True]
    """

    def __init__(self, patience: int, share: float = 0.9) -> None:
        self.patience, self.share = patience, share
        self.best, self.idle = math.inf, 0

    def stalled(self, gap: float) -> bool:
        """Add the value of a check; return whether more checks than accepted made no progress."""
        progress = gap < self.share * self.best
        self.best, self.idle = (gap, 0) if progress else (self.best, self.idle + 1)
        return self.idle > self.patience
