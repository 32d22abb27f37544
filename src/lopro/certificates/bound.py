"""Lower bounds from multipliers, with the region in which they hold.

For every v_i the sum of terms is at least ``<r, x> - sum g_i*(v_i)`` with ``r = sum D_i' v_i``, or, with a
smooth part linearised at a centre, at least ``L + <r, x - centre>``. The functions below bound the loss from
r. Over the bounds of variables it is the products with them; if f is strongly convex, ``|r|^2 / (2 mu)``; the
rest of r is kept with the centre: the bound decreases with the distance from it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import scipy  # parts of it load when first used

from lopro.certificates.box import VariableBounds
from lopro.certificates.tolerances import FARTHER
from lopro.certificates.units import Units
from lopro.core.real_vectors import Vector
from lopro.linalg.rounding import EPS, Enclosure, Estimate, dot, extended_adjoint, length, total

__all__ = ["Bound", "bound_from", "bound_over_rows", "sharpened", "unabsorbed"]

#: The slopes and the centre of bounds that hold everywhere.
_EMPTY = np.zeros(0)
_EMPTY.flags.writeable = False
#: Rows ``lower <= A x <= upper``.
Rows: TypeAlias = "tuple[Any, Vector, Vector]"


@dataclass(frozen=True, eq=False)
class Bound:
    """``objective(z) >= value - sum_j slopes_j |z_j - centre_j|`` for every ``z`` in the constraints.

    Without slopes and limit it holds everywhere. Claims about other points use `around`: a bound is never
    compared with a point, or with an optimum, farther away than it was evaluated.

    Solutions are assumed to lie within ``R_j = 1e4 max(|x_j|, s_j)`` of a point ``x``, where ``s_j`` is the
    unit of column j: the charge ``sum_j slopes_j R_j`` is then the same in all units of the variables.

    Parameters
    ----------
    value : float
        The bound at the centre.
    slopes : array
        The decrease of the bound per unit of distance, by variable; empty if there is none. Without units
        only their norm counts, and one number suffices.
    centre : array
        The point from which distances are measured.
    units : Units, optional
        The units of the variables; None if the data cannot be read: solutions are then assumed to lie within
        ``1e4 |x|``, one radius for all variables.
    limit : float
        The bound holds only for points within this distance of the centre.

    Examples
    --------
    The second variable has the unit 1e-6: its slope costs a millionth of the cost of the first one.

    >>> import numpy as np
    >>> from lopro.certificates import Bound, Units
    >>> units = Units.given(np.array([1.0, 1e-6]))
    >>> bound = Bound(2.0, np.array([1e-7, 1e-7]), np.zeros(2), units)
    >>> round(bound.around(np.zeros(2)), 12), bound.reach(np.zeros(2))
    (1.998999999, array([1.e+04, 1.e-02]))
    """

    value: float
    slopes: Vector
    centre: Vector
    units: Units | None = field(default=None, repr=False)
    limit: float = math.inf

    @staticmethod
    def everywhere(value: float) -> Bound:
        """Return a bound that holds everywhere."""
        return Bound(value, _EMPTY, _EMPTY)

    @property
    def slope(self) -> float:
        """The norm of the slopes: the largest decrease of the bound per unit of distance."""
        return length(self.slopes)

    @cached_property
    def flat(self) -> bool:
        """Whether the bound does not decrease with the distance."""
        return not (self.slopes.size and self.slopes.any())

    @property
    def holds_everywhere(self) -> bool:
        """Whether it holds for all points without a decrease."""
        return self.flat and math.isinf(self.limit)

    def within(self, radius: float) -> float:
        """Return the bound over the ball of this radius around the centre."""
        return self.value if self.flat else self.value - self.slope * radius

    def reach(self, x: Vector, fallback: float = 0.0) -> Vector:
        """Return the distances from a point within which solutions are assumed, by variable.

        ``fallback`` is a typical length of variables whose units are not known.
        """
        x = np.ravel(x)
        if self.units is None:
            return np.full(len(x), FARTHER * max(length(x), fallback))
        return FARTHER * self.units.sizes(x, fallback)

    def around(self, x: Vector, fallback: float = 0.0) -> float:
        """Return the bound over `reach` of a point; minus infinity beyond its limit."""
        if self.holds_everywhere:
            return self.value
        if not self.radius(x, fallback) > 0.0:
            return -math.inf
        if self.flat:
            return self.value
        move = np.ravel(x) - np.ravel(self.centre)
        if self.units is None:
            lost = self.slope * (length(move) + FARTHER * max(length(np.ravel(x)), fallback))
        else:
            lost = float(self.slopes @ (np.abs(move) + self.reach(x, fallback)))
        return math.nextafter(self.value - lost * (1.0 + (len(move) + 8) * EPS), -math.inf)

    def radius(self, x: Vector, fallback: float = 0.0) -> float:
        """Return the radius of the largest ball around a point in which `around` holds; 0 for none."""
        if self.holds_everywhere:
            return math.inf
        away = length(np.ravel(x) - np.ravel(self.centre)) * (1.0 + 4.0 * EPS)
        left = max(0.0, self.limit - away)
        if self.flat:
            return left
        used = slice(None) if self.units is None else self.slopes > 0.0
        return min(left, float(self.reach(x, fallback)[used].min()))


def bound_from(
    at: Enclosure, x: Vector, box: VariableBounds | None = None, convexity: float = 0.0
) -> Bound:
    """Return the bound of a convex function over a box, from its value and its slope at a point.

    Parameters
    ----------
    at : Enclosure
        Value and gradient of the Lagrangian at ``x``, with their rounding errors.
    x : array
        The point.
    box : VariableBounds, optional
        Bounds that all points satisfy for which the bound has to hold.
    convexity : float
        A proved ``mu`` such that the function less ``mu/2 |x|^2`` is convex, or 0.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.certificates import VariableBounds, bound_from
    >>> from lopro.linalg.rounding import Enclosure, Estimate
    >>> at = Enclosure(Estimate(5.0), np.array([2.0, -1.0]), np.zeros(2))
    >>> box = VariableBounds(np.array([0.0, -np.inf]), np.array([np.inf, np.inf]))
    >>> bound = bound_from(at, np.array([1.0, 1.0]), box)  # 5 + 2 (x_1 - 1) - (x_2 - 1), x_1 >= 0
    >>> abs(bound.value - 3.0) < 1e-14, round(bound.slope, 12)
    (True, 1.0)
    """
    value, rise = at.value, np.abs(at.gradient) + at.error
    slope = length(rise)
    if not (math.isfinite(slope) and math.isfinite(value.value)):
        return Bound.everywhere(-math.inf)
    if box is not None:
        inside = np.clip(x, box.lower, box.upper)
        if not np.array_equal(inside, x):
            # The formula below requires a point of the box.
            step = inside - x
            value = value + dot(at.gradient, step, at.error + EPS * np.abs(at.gradient))
            x = inside
        least, most = at.gradient - at.error, at.gradient + at.error
        # Moving down from x to the lower bound costs the positive part of the slope; up, the negative part.
        down = _cost(np.maximum(most, 0.0), x, box.lower)
        up = _cost(np.maximum(-least, 0.0), box.upper, x)
        both = np.maximum(down, up)
        value = value - total(both, 4.0 * EPS * both)
        rise = unabsorbed(at, box)
        slope = length(rise)
    if convexity > 0.0:
        lost = slope * slope / (2.0 * convexity)
        error = (value.error + lost) * (1.0 + 8.0 * EPS)
        return Bound.everywhere(Estimate(value.value, error).lower())
    return Bound(value.lower(), rise, x)


def _cost(slope: Vector, upper: Vector, lower: Vector) -> Vector:
    """Return ``slope (upper - lower)``, and 0 if a bound is missing."""
    with np.errstate(invalid="ignore", over="ignore"):
        return np.where(np.isfinite(upper - lower), slope * (upper - lower), 0.0)


def unabsorbed(at: Enclosure, box: VariableBounds) -> Vector:
    """Return the slopes at which the function may decrease towards missing bounds, entry by entry.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.certificates import VariableBounds
    >>> from lopro.certificates.bound import unabsorbed
    >>> from lopro.linalg.rounding import Enclosure, Estimate
    >>> at = Enclosure(Estimate(0.0), np.array([2.0, -1.0]), np.zeros(2))
    >>> unabsorbed(at, VariableBounds(np.zeros(2), np.full(2, np.inf)))
    array([0., 1.])
    """
    falls_down = np.where(np.isfinite(box.lower), 0.0, np.maximum(at.gradient + at.error, 0.0))
    falls_up = np.where(np.isfinite(box.upper), 0.0, np.maximum(at.error - at.gradient, 0.0))
    return np.asarray(np.maximum(falls_down, falls_up) * (1.0 + EPS))


def bound_over_rows(
    at: Enclosure,
    x: Vector,
    own: VariableBounds,
    implied: VariableBounds,
    rows: Callable[[], Sequence[Rows]],
    units: Units,
    objective: Enclosure | None = None,
) -> Bound:
    """Return the bound over the bounds of variables that are given or implied by rows and the objective.

    Parameters
    ----------
    at, x : Enclosure, array
        As for `bound_from`.
    own, implied : VariableBounds
        The bounds of the variables, and those that the rows imply.
    rows : callable
        Returns the rows; called only if their implied bounds do not absorb the slope.
    units : Units
        The units of the variables: they determine how far from x a bound with slopes is used.
    objective : Enclosure, optional
        A linear objective at ``x``, its gradient exact. A feasible point has a value above a ceiling or
        satisfies one more row, ``f(z) <= ceiling``: the bound is the ceiling or that over the row, if less.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.certificates import VariableBounds, Units
    >>> from lopro.certificates.bound import bound_over_rows
    >>> from lopro.linalg.rounding import Enclosure, Estimate
    >>> at = Enclosure(Estimate(2.0), np.array([-1e-9]), np.zeros(1))
    >>> cost = Enclosure(Estimate(2.0), np.ones(1), np.zeros(1))
    >>> half = VariableBounds(np.zeros(1), np.full(1, np.inf))
    >>> bound = bound_over_rows(
    ...     at, np.array([2.0]), half, half, list, Units.given(np.ones(1)), cost
    ... )
    >>> bound.slope, round(2.0 - bound.value, 12)  # z <= 4 where the value is at most 4
    (0.0, 2e-09)
    """
    far, ceiling = FARTHER * units.sizes(x), math.inf
    filled = _near(implied, own, x, far)
    if objective is not None and unabsorbed(at, filled).any():
        value = max(objective.value.upper(), at.value.value)
        ceiling = value + abs(value)
        side = Estimate(ceiling) - objective.value + dot(objective.gradient, x)
        row = scipy.sparse.csr_array(objective.gradient[None, :])
        last = (row, np.array([-np.inf]), np.array([side.upper()]))
        filled = _near(implied.implied([*rows(), last]), own, x, far)
    bound = bound_from(at, x, filled)
    return dataclasses.replace(bound, value=min(bound.value, ceiling), units=units)


def _near(implied: VariableBounds, own: VariableBounds, x: Vector, far: Vector) -> VariableBounds:
    """Return the implied bounds, without those beyond the distance at which a bound with slopes is used."""
    far = np.where(far > 0.0, far, np.inf)
    lower = np.where(implied.lower >= x - far, implied.lower, own.lower)
    return VariableBounds(lower, np.where(implied.upper <= x + far, implied.upper, own.upper))


def sharpened(
    value: Estimate, smooth: Enclosure, products: Sequence[tuple[Any, Vector]]
) -> Enclosure:
    """Return a Lagrangian whose gradient ``smooth + sum M' v`` is summed in extended precision.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> from lopro.certificates.bound import sharpened
    >>> from lopro.linalg.rounding import Enclosure, Estimate
    >>> cost = Enclosure(Estimate(0.0), np.array([-3e9]), np.zeros(1))
    >>> rows = scipy.sparse.csr_array(np.array([[3.0]]))
    >>> at = sharpened(Estimate(0.0), cost, [(rows, np.array([1e9]))])
    >>> at.gradient, bool(at.error[0] < 1e-6)
    (array([0.]), True)
    """
    gradient, error = smooth.gradient.astype(np.longdouble), smooth.error.astype(np.float64)
    for M, v in products:
        normal, uncertain = extended_adjoint(M, v)
        gradient = gradient + normal
        size = np.asarray(np.abs(gradient), dtype=np.float64)
        error = error + uncertain + float(np.finfo(np.longdouble).eps) * size
    rounded = np.asarray(gradient, dtype=np.float64)
    return Enclosure(value, rounded, (error + EPS * np.abs(rounded)) * (1.0 + 8.0 * EPS))
