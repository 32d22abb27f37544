"""Unboundedness: directions along which a quadratic objective decreases, checked in exact arithmetic.

A direction of descent proves nothing by itself: a program without a feasible point can have one. UNBOUNDED is
claimed only together with a point that satisfies the constraints.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lopro.certificates.emptiness import is_rounding
from lopro.certificates.exact import columns, exact_dot
from lopro.certificates.tolerances import FARTHER, FEASIBLE, NOISE
from lopro.certificates.units import Units
from lopro.core.real_vectors import Vector

__all__ = ["DescentRay", "begins_a_ray", "check_descent"]


@dataclass(frozen=True)
class DescentRay:
    """A checked direction along which a quadratic objective decreases.

    A move by the distance t from any feasible point changes the objective by at most
    ``-slope t + curvature t^2 / 2`` and violates the rows by at most ``drift t``, in units of their norms.
    """

    slope: float
    curvature: float
    drift: float
    #: Whether curvature and drift are within the rounding of a direction that has neither.
    rounding: bool = False

    @property
    def exact(self) -> bool:
        """Whether the objective is proved to be unbounded below (given one feasible point)."""
        return self.slope > 0.0 and self.curvature <= 0.0 and self.drift <= 0.0

    @property
    def proved(self) -> bool:
        """The same up to rounding, row by row."""
        return self.slope > 0.0 and (self.exact or self.rounding)


def begins_a_ray(violation: float, x: Vector, units: Units) -> bool:
    """Whether a point with this relative violation proves that the set is not empty.

    At distant points every row compares large terms: the relative violation of ``x - y <= 0`` and ``y - x <=
    -2`` is 2e-10 at entries of 1e10. The tolerance therefore decreases with the distance of a point beyond
    `FARTHER` units, down to rounding.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.certificates import Units, begins_a_ray
    >>> one = Units.given(np.ones(1))
    >>> begins_a_ray(1e-10, np.array([2.0]), one), begins_a_ray(1e-10, np.array([1e10]), one)
    (True, False)
    """
    given = units.known > 0.0
    far = float(np.max(np.abs(x[given]) / units.known[given], initial=0.0)) / FARTHER
    return violation <= max(NOISE, FEASIBLE / max(1.0, far))


def check_descent(
    P: Any, gradient: Any, rows: Sequence[tuple[Any, Any, Any]], d: Any
) -> DescentRay:
    """Check a ray ``d`` of the objective ``1/2 x'Px + gradient'x`` over ``lower <= A x <= upper``.

    Parameters
    ----------
    P : matrix or None
        The Hessian; None for a linear objective.
    gradient : array
        The gradient at the point where the ray begins.
    rows : sequence of (A, lower, upper)
        As for `check_empty`.
    d : array
        The direction, of any length.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.certificates import check_descent
    >>> check_descent(None, [-1.0], [(None, [0.0], [np.inf])], [2.0]).exact
    True
    """
    direction = np.asarray(d, dtype=np.float64)
    length = math.sqrt(exact_dot(direction, direction))
    if length == 0.0:
        return DescentRay(0.0, 0.0, math.inf)
    drift, rounding = 0.0, True
    for A, lower, upper in rows:
        image, norms, sizes = _images(A, direction)
        lo, up = (np.broadcast_to(np.asarray(b, np.float64), image.shape) for b in (lower, upper))
        leaving = np.maximum(
            np.where(np.isinf(up), 0.0, image), np.where(np.isinf(lo), 0.0, -image)
        )
        drift = max(drift, float((leaving / norms).max(initial=0.0)) / length)
        rounding = rounding and is_rounding(np.maximum(leaving, 0.0), sizes, len(direction))
    curvature = 0.0
    if P is not None:
        image, _, sizes = _images(P, direction)
        curvature = exact_dot(direction, image) / length**2
        rounding = rounding and is_rounding(image, sizes, len(direction))
    slope = -exact_dot(gradient, direction) / length
    return DescentRay(slope * (1.0 - 1e-15) if slope > 0.0 else slope, curvature, drift, rounding)


def _images(A: Any, d: Any) -> tuple[Any, Any, Any]:
    """Return ``A d``, every entry rounded once, the norms of the rows (1 for empty ones), and ``|A| |d|``."""
    if A is None:
        return d, np.ones(len(d)), np.zeros(len(d))
    image, norms, sizes = (np.zeros(A.shape[0]) for _ in range(3))
    for i, (index, entries) in enumerate(columns(A.T)):
        image[i] = exact_dot(entries, d[index])
        norms[i] = math.sqrt(math.fsum((entries * entries).tolist()))
        sizes[i] = float(np.abs(entries) @ np.abs(d[index]))
    return image, np.where(norms > 0.0, norms, 1.0), sizes
