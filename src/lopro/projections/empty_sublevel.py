"""Proofs that ``{c <= 0}`` is empty, from linearisations of a smooth function near its minimiser.

At every point of the set, ``c(z) + <g, v - z> <= 0`` for every ``z`` with gradient ``g``. Where ``c`` is
positive and its gradient nearly vanishes, one such inequality excludes all points within ``c(z) / |g|`` of
``z``. Linearisations at points around ``z`` contradict each other, which excludes all points.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lopro.certificates import BEYOND, NOISE
from lopro.core.deadline import current_deadline
from lopro.core.real_vectors import Vector
from lopro.engines.cones import halfspace_rows
from lopro.errors import InfeasibleError, ProjectionError
from lopro.projections.cuts import Cut
from lopro.projections.emptiness import cones_exclude
from lopro.projections.halfspaces import HalfSpaces

__all__ = ["EmptinessCheck"]

#: Share of ``c`` by which linearisations around the minimiser are lower than ``c`` there. The margin of the
#: contradiction is 1 minus the share, and the slopes grow with its root: a half keeps both large.
_LOWER = 0.5


@dataclass(frozen=True)
class EmptinessCheck:
    """Decides whether a function that is positive at ``x`` is proved to be positive everywhere.

    Parameters
    ----------
    value, slope : callables
        The function and its gradient.
    x : ndarray
        A point where the function is positive.
    size : float
        The norm of ``x`` plus its first-order distance to the set.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.projections.empty_sublevel import EmptinessCheck
    >>> check = EmptinessCheck(lambda z: z @ z + 1.0, lambda z: 2.0 * z, np.array([2.0, 1.0]), 4.0)
    >>> check(np.array([0.1, 0.0]))
    >>> check(np.array([1e-12, 0.0]))
    Traceback (most recent call last):
    ...
    lopro.errors.InfeasibleError: the set is empty: linearisations of c contradict each other
    """

    value: Callable[[Vector], float]
    slope: Callable[[Vector], Vector]
    x: Vector
    size: float

    def __call__(self, z: Vector) -> None:
        """Raise `InfeasibleError` where the linearisation at ``z`` excludes all points in question.

        Differences below the rounding errors of the value and the gradient at ``x`` are not trusted.
        """
        steepest = float(np.linalg.norm(self.slope(self.x)))
        rounding = NOISE * (abs(self.value(self.x)) + steepest * self.size)
        excess = self.value(z) - rounding
        slope = float(np.linalg.norm(self.slope(z))) + NOISE * steepest
        radius = excess / slope - float(np.linalg.norm(z)) if slope > 0.0 else 0.0
        if not radius >= BEYOND * self.size:
            return
        if self._contradiction_around(z, excess):
            raise InfeasibleError("the set is empty: linearisations of c contradict each other")
        raise InfeasibleError(
            f"no point within {radius:.3g} of zero is feasible: c is {excess:.3g} where its slope vanishes",
            radius=radius,
        )

    def _contradiction_around(self, z: Vector, excess: float) -> bool:
        """Whether the linearisations at points on both sides of ``z`` along each axis have no common point.

        On an axis of curvature h, the linearisation at a distance r is ``h r^2 / 2`` lower than ``c`` at z.
        """
        n = len(z)
        # Least squares of 2 n rows, and a linear program of them in about as many steps.
        if not current_deadline().affords(64.0 * n**3):
            return False
        cuts = []
        farthest = self.size + float(np.linalg.norm(z))
        for axis in np.eye(n):
            current_deadline().check()
            h = self._curvature(z, axis)
            r = min(farthest, math.sqrt(2.0 * _LOWER * excess / h)) if h > 0.0 else farthest
            cuts += [self._cut(z + r * axis, z), self._cut(z - r * axis, z)]
        lengths = np.array([np.linalg.norm(cut.normal) for cut in cuts])
        if not (lengths > 0.0).all():
            return False
        normals = np.array([cut.normal for cut in cuts]) / lengths[:, None]
        bounds = np.array([cut.bound for cut in cuts]) / lengths
        # Equal multipliers are nearly optimal: opposite slopes cancel up to third derivatives. The
        # multipliers of a vertex of the linear program may be 0 where they are needed to balance the error
        # of z.
        if cones_exclude([halfspace_rows(normals, bounds)], [np.ones(2 * n)], noise=NOISE):
            return True
        try:
            return HalfSpaces(normals, bounds).excess_everywhere(NOISE) is not None
        except ProjectionError:
            return False

    def _curvature(self, z: Vector, axis: Vector) -> float:
        step = 1e-4 * self.size
        return float(axis @ (self.slope(z + step * axis) - self.slope(z - step * axis))) / (
            2.0 * step
        )

    def _cut(self, v: Vector, z: Vector) -> Cut:
        """Return the linearisation at ``v`` as an inequality for the displacement from ``z``."""
        g = self.slope(v)
        return Cut(g, float(g @ (v - z)) - self.value(v))
