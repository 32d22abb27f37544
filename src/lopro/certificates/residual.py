"""From multipliers to a bound: what absorbs the residual, and what is left of it.

For every v_i the sum of terms is at least ``<r, x> - sum g_i*(v_i)`` with ``r = sum D_i' v_i``, or, with a
smooth part taken at a centre, at least ``L + <r, x - centre>``. This file is about r. Over the bounds of
variables it costs its products with them; where the objective is strongly convex ``|r|^2 / (2 mu)``; what is
left is kept with the centre, as a bound that loses with the distance from it.
"""

from __future__ import annotations

import math

import numpy as np

from lopro.certificates.bound import Bound
from lopro.certificates.box import Box
from lopro.core.real_vectors import Vector
from lopro.linalg.rounding import EPS, Enclosure, Estimate, dot, length, total

__all__ = ["bound_from", "unabsorbed"]


def bound_from(at: Enclosure, x: Vector, box: Box | None = None, convexity: float = 0.0) -> Bound:
    """Return the bound of a convex function over a box, from its value and its slope at a point.

    Parameters
    ----------
    at : Enclosure
        Value and gradient of the Lagrangian at ``x``, with their rounding errors.
    x : array
        The point.
    box : Box, optional
        What all points satisfy that the bound is to hold for.
    convexity : float
        A proved ``mu`` such that the function less ``mu/2 |x|^2`` is convex, or 0.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.certificates import Box, bound_from
    >>> from lopro.linalg.rounding import Enclosure, Estimate
    >>> at = Enclosure(Estimate(5.0), np.array([2.0, -1.0]), np.zeros(2))
    >>> box = Box(np.array([0.0, -np.inf]), np.array([np.inf, np.inf]))
    >>> bound = bound_from(at, np.array([1.0, 1.0]), box)  # 5 + 2 (x_1 - 1) - (x_2 - 1), x_1 >= 0
    >>> abs(bound.value - 3.0) < 1e-14, round(bound.slope, 12)
    (True, 1.0)
    """
    if not (math.isfinite(at.slope()) and math.isfinite(at.value.value)):
        return Bound.everywhere(-math.inf)
    value, rise = at.value, np.abs(at.gradient) + at.error
    if box is not None:
        inside = np.clip(x, box.lower, box.upper)
        if not np.array_equal(inside, x):
            # The formula below is one for points of the box.
            step = inside - x
            value = value + dot(at.gradient, step, at.error + EPS * np.abs(at.gradient))
            x = inside
        least, most = at.gradient - at.error, at.gradient + at.error
        # Going down from x costs the positive part of the slope, up to the lower bound; and the reverse.
        down = _cost(np.maximum(most, 0.0), x, box.lower)
        up = _cost(np.maximum(-least, 0.0), box.upper, x)
        both = np.maximum(down, up)
        value = value - total(both, 4.0 * EPS * both)
        rise = unabsorbed(at, box)
    if convexity > 0.0:
        slope = length(rise)
        return Bound.everywhere((value - Estimate(slope) * slope / (2.0 * convexity)).lower())
    return Bound(value.lower(), rise, x)


def _cost(slope: Vector, upper: Vector, lower: Vector) -> Vector:
    """Return ``slope (upper - lower)``, and 0 where there is no bound."""
    with np.errstate(invalid="ignore", over="ignore"):
        return np.where(np.isfinite(upper - lower), slope * (upper - lower), 0.0)


def unabsorbed(at: Enclosure, box: Box) -> Vector:
    """Return by how much the function may fall towards missing bounds, entry by entry.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.certificates import Box
    >>> from lopro.certificates.residual import unabsorbed
    >>> from lopro.linalg.rounding import Enclosure, Estimate
    >>> at = Enclosure(Estimate(0.0), np.array([2.0, -1.0]), np.zeros(2))
    >>> unabsorbed(at, Box(np.zeros(2), np.full(2, np.inf)))
    array([0., 1.])
    """
    falls_down = np.where(np.isfinite(box.lower), 0.0, np.maximum(at.gradient + at.error, 0.0))
    falls_up = np.where(np.isfinite(box.upper), 0.0, np.maximum(at.error - at.gradient, 0.0))
    return np.asarray(np.maximum(falls_down, falls_up) * (1.0 + EPS))
