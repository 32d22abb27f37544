"""The accuracy a run aims at: the only gap arithmetic there is."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["Target"]


@dataclass(frozen=True)
class Target:
    """A relative accuracy and the least scale it is relative to.

    Parameters
    ----------
    tol : float
        The relative gap to reach.
    scale : float
        Gaps are relative to ``max(scale, |f(x)|)``, or to ``max(scale, m)`` where the magnitude ``m`` of
        the terms of ``f(x)`` is told.

    Examples
    --------
    >>> from lopro.certificates import Target
    >>> target = Target(tol=1e-3, scale=1.0)
    >>> target.gap(50.0), target.relative(0.5, fun=50.0), target.reached(0.06, fun=50.0)
    (0.05, 0.01, False)
    >>> target.gap(0.0, magnitude=20.0)
    0.02
    """

    tol: float
    scale: float = 1.0

    def unit(self, fun: float, magnitude: float | None = None) -> float:
        """Return what the gap of a point with value ``fun`` is compared with."""
        return max(self.scale, abs(fun) if magnitude is None else magnitude)

    def gap(self, fun: float, magnitude: float | None = None) -> float:
        """Return the gap at which a point with value ``fun`` has converged."""
        return self.tol * self.unit(fun, magnitude)

    def relative(self, gap: float, fun: float, magnitude: float | None = None) -> float:
        """Return a gap in units of the scale."""
        unit = self.unit(fun, magnitude)
        if unit > 0.0:
            return gap / unit
        return 0.0 if gap == 0.0 else math.inf

    def reached(self, gap: float, fun: float, magnitude: float | None = None) -> bool:
        """Whether a point with this gap has converged."""
        return self.relative(gap, fun, magnitude) <= self.tol
