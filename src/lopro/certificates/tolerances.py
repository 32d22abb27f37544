"""The tolerances of claims, each defined once, and the required accuracy of a run.

They define which points count as feasible, where a bound must hold, and which numbers count as rounding. None
of them steers an algorithm. All relative gaps are computed by `Target`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from lopro.core.arrays import Array, eps
from lopro.linalg.rounding import EPS

__all__ = [
    "BEYOND",
    "FARTHER",
    "FEASIBLE",
    "NEGLIGIBLE",
    "NOISE",
    "REMNANTS",
    "TOUCHING",
    "Scale",
    "Target",
    "feasibility_tolerance",
    "negligible_share",
]

#: Relative violation up to which a point counts as feasible: residuals of sums whose terms cancel to seven
#: digits still meet it in double precision.
FEASIBLE = 1e-9
#: Required ratio of the radius in which a bound holds to the size of the point, entry by entry: a slope of
#: 1e-12 of the objective's then costs 1e-8 of the value. 1e3 and 1e5 certify the same problems of ``python -m
#: benchmarks.constants certificates``, with at most 4 % more steps of one.
FARTHER = 1e4
#: A proof that there is no solution must hold for points this many times larger than the data suggest: the
#: distance that `FARTHER` allows from a point that is itself `FARTHER` units away.
BEYOND = FARTHER * FARTHER
#: A number below this share of those it was computed from is rounding: the error of a sum of 128 terms, at
#: most 64 eps of the sum of their sizes (theory: rows of zeros, optima of 0).
NOISE = 64.0 * EPS
#: Sets that contradict each other by less than this share of the numbers compared touch: users compute sides
#: in double precision, and this is the error after cancellation of numbers 5e5 times larger (1e-10 = 4.5e5
#: eps).
TOUCHING = 1e-10
#: Shares of the largest entry of a ray below which others are tried as zeros: none, and 10 and 1e4 times the
#: residuals of 1e-10 that engines leave. Proofs are checked afterwards, so these only decide what is tried.
REMNANTS = (0.0, 1e-9, 1e-6)


#: Values below this share of a typical value of the objective count as zero in relative gaps: half of the
#: digits of double precision have cancelled in such a value.
NEGLIGIBLE = 1e-8


def feasibility_tolerance(x: Array) -> float:
    """Return the relative violation up to which a point counts as feasible: 1e-9 in double precision.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.certificates import feasibility_tolerance
    >>> feasibility_tolerance(np.zeros(2)), feasibility_tolerance(np.zeros(2, np.float32))
    (1e-09, 7.62939453125e-06)
    """
    return max(FEASIBLE, 64.0 * eps(x))


def negligible_share(tol: float) -> float:
    """Return the share of a typical value of an objective below which values count as zero in relative gaps.

    It is 1e-8, and at least so much that a gap of 64 roundings of the typical value is within ``tol``.

    Examples
    --------
    >>> from lopro.certificates.tolerances import negligible_share
    >>> negligible_share(1e-3), negligible_share(0.0), negligible_share(1e-10) > 1e-4
    (1e-08, 1e-08, True)
    """
    return max(NEGLIGIBLE, NOISE / tol) if tol > 0.0 else NEGLIGIBLE


#: The least denominator of relative gaps: a number, or a function that returns it.
Scale: TypeAlias = float | Callable[[], float]


@dataclass(frozen=True)
class Target:
    """A required relative gap, and the least denominator of relative gaps.

    Parameters
    ----------
    tol : float
        The relative gap to reach.
    least : float or callable
        The scale: gaps are relative to ``max(scale, |f(x)|)``, or to ``max(scale, m)`` if the magnitude ``m``
        of the terms of ``f(x)`` is given. A callable returns it. It is called, once, only where a gap exceeds
        ``tol m``: smaller gaps have converged with any scale, and are relative to ``m``.

    Examples
    --------
    >>> from lopro.certificates import Target
    >>> target = Target(1e-3, 1.0)
    >>> target.gap(50.0), target.relative(0.5, fun=50.0), target.reached(0.06, fun=50.0)
    (0.05, 0.01, False)
    >>> target.gap(0.0, magnitude=20.0)
    0.02
    >>> (
    ...     Target(1e-3, lambda: 4.0).relative(0.5, fun=2.0),
    ...     Target(1e-3, lambda: 4.0).relative(0.001, fun=2.0),
    ... )
    (0.125, 0.0005)
    """

    tol: float
    least: Scale = 1.0

    @cached_property
    def scale(self) -> float:
        """The least denominator of relative gaps."""
        return self.least() if callable(self.least) else self.least

    def unit(self, fun: float, magnitude: float | None = None) -> float:
        """Return the denominator of the relative gap of a point with value ``fun``."""
        return max(self.scale, abs(fun) if magnitude is None else magnitude)

    def gap(self, fun: float, magnitude: float | None = None) -> float:
        """Return the gap at which a point with value ``fun`` has converged."""
        return self.tol * self.unit(fun, magnitude)

    def relative(self, gap: float, fun: float, magnitude: float | None = None) -> float:
        """Return the relative gap of a point with value ``fun``."""
        unit = abs(fun) if magnitude is None else magnitude
        if not (callable(self.least) and gap <= self.tol * unit):
            unit = self.unit(fun, magnitude)
        if unit > 0.0:
            return gap / unit
        return 0.0 if gap == 0.0 else math.inf

    def reached(self, gap: float, fun: float, magnitude: float | None = None) -> bool:
        """Whether a point with this gap has converged."""
        return self.relative(gap, fun, magnitude) <= self.tol
