"""Unboundedness: directions along which a quadratic objective falls, checked in exact arithmetic.

A direction of descent proves nothing by itself: a program without a feasible point can have one. UNBOUNDED is
claimed only beside a point that satisfies the constraints.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lopro.certificates.exact import columns, exact_dot

__all__ = ["Descent", "check_descent"]


@dataclass(frozen=True)
class Descent:
    """A direction along which a quadratic objective falls, checked.

    Going a distance t from any feasible point changes the objective by at most
    ``-slope t + curvature t^2 / 2`` and leaves the rows by at most ``drift t``, in units of their norms.
    """

    slope: float
    curvature: float
    drift: float

    @property
    def exact(self) -> bool:
        """Whether the objective is proved to be unbounded below (given one feasible point)."""
        return self.slope > 0.0 and self.curvature <= 0.0 and self.drift <= 0.0

    def unbounded(self, distance: float, drift: float) -> bool:
        """Whether it falls all over this distance, the rows being left by at most this share of it."""
        flat = max(self.curvature, 0.0) * distance <= 0.5 * self.slope
        return self.slope > 0.0 and flat and self.drift <= drift


def check_descent(P: Any, gradient: Any, rows: Sequence[tuple[Any, Any, Any]], d: Any) -> Descent:
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
        return Descent(0.0, 0.0, math.inf)
    drift = 0.0
    for A, lower, upper in rows:
        image, norms = _images(A, direction)
        lo, up = (np.broadcast_to(np.asarray(b, np.float64), image.shape) for b in (lower, upper))
        leaving = np.maximum(
            np.where(np.isinf(up), 0.0, image), np.where(np.isinf(lo), 0.0, -image)
        )
        drift = max(drift, float((leaving / norms).max(initial=0.0)) / length)
    curvature = 0.0
    if P is not None:
        curvature = exact_dot(direction, _images(P, direction)[0]) / length**2
    slope = -exact_dot(gradient, direction) / length
    return Descent(slope * (1.0 - 1e-15) if slope > 0.0 else slope, curvature, drift)


def _images(A: Any, d: Any) -> tuple[Any, Any]:
    """Return ``A d``, every entry rounded once, and the norms of the rows (1 for empty ones)."""
    if A is None:
        return d, np.ones(len(d))
    found = [
        (exact_dot(entries, d[index]), math.sqrt(math.fsum((entries * entries).tolist())))
        for index, entries in columns(A.T)
    ]
    image, norms = np.array([f[0] for f in found]), np.array([f[1] for f in found])
    return image, np.where(norms > 0.0, norms, 1.0)
