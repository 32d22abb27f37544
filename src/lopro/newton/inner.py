"""Semismooth Newton: minimises an augmented Lagrangian, superlinearly near the solution.

Values of convex functions agree to all digits long before their slopes do, so the search along a direction
searches for the root of the slope, an increasing function. Where that is piecewise linear (rows, absolute
values), Newton steps find it exactly.

What ten times more or less of a constant below changes, in all steps and factorisations of the problems of
``python -m benchmarks.constants newton``: `_ROUNDINGS` 1 % less to 10 % more (2.5 times for one problem whose
columns differ by 1e12), `_FAR` 1 %, `_LINE` 3 % below, while 5 instead of 0.5 doubles them and loses two
proofs. The others change nothing: they are guards.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lopro.functions.complements import Complement
from lopro.linalg.dense import EPS, Array, SingularSystem, norm
from lopro.newton.lagrangian import CompositeLagrangian, PointWithImages
from lopro.newton.smooth import Image, Slope
from lopro.newton.systems.iterative import System

__all__ = ["Local", "NoDescent", "UnboundedBelow", "least_along", "minimise"]

#: Steps longer than this many times the Newton step mean that nothing stops the descent.
_LONGEST = 2.0**100
#: Steps shorter than this make nothing of a Newton step, and brackets so narrow hold nothing but rounding.
_SHORTEST, _NARROW = 1e-12, 1e-9
#: A slope so many times that at zero is far beyond the minimiser. Newton steps come back from there by a
#: fixed length only where the function is an exponential, so the bracket is halved.
_FAR = 10.0
#: By how much a step grows at a time while the slope is negative.
_STRETCH = 16.0


class UnboundedBelow(ArithmeticError):
    """The function is unbounded below along this direction."""


def least_along(slope: Slope, at_zero: float, accuracy: float, evaluations: int = 100) -> float:
    """Return a step at which the slope is at most ``accuracy`` times its size at zero.

    Parameters
    ----------
    slope : callable
        Returns the first and the second derivative at a step; the first increases.
    at_zero : float
        The slope at zero, negative.
    accuracy : float
        0 for the exact root of a piecewise linear slope.
    evaluations : int
        When they are spent, the best step so far is returned.

    Raises
    ------
    UnboundedBelow
        If the slope stays negative however far one goes.

    Examples
    --------
    >>> from lopro.newton.inner import least_along
    >>> least_along(lambda t: (2.0 * t - 1.0, 2.0), -1.0, 0.0)
    0.5
    """
    low, high, t = 0.0, math.inf, 1.0
    best, best_size = 0.0, abs(at_zero)
    for _ in range(evaluations):
        first, second = slope(t)
        if abs(first) < best_size:
            best, best_size = t, abs(first)
        if abs(first) <= accuracy * abs(at_zero):
            return t
        low, high = (t, high) if first < 0.0 else (low, t)
        if low > _LONGEST:
            raise UnboundedBelow("the slope stays negative")
        beyond = first > _FAR * abs(at_zero)
        t = 0.5 * (low + high) if beyond else _next(t, first, second, low, high)
        narrow = accuracy > 0.0 and high <= max(_SHORTEST, (1.0 + _NARROW) * low)
        if narrow or not low < t < high:
            break
    return best


def _next(t: float, first: float, second: float, low: float, high: float) -> float:
    """Return the Newton step, or one inside the bracket where that leaves it."""
    newton = t - first / second if second > 0.0 else math.nan
    # A curvature that is about to grow would send the step beyond all numbers.
    longest = _STRETCH * t if high == math.inf else high
    if low < newton < high:
        return min(newton, longest)
    return _STRETCH * low if high == math.inf else 0.5 * (low + high)


#: The inner problem is solved when the gradient is so many roundings of its own terms.
_ROUNDINGS = 4.0
#: Steps without progress of a gradient that is within this factor of its rounding: the rest is rounding, too.
_PATIENCE = 5
_NEARLY = 1e3
#: The line search ends at this share of the slope; exact searches took as many steps.
_LINE = 0.5


@dataclass(frozen=True)
class Local:
    """The evaluation of a point: targets, multipliers, gradients, and the scales of these.

    ``stationarity`` is the gradient of the Lagrangian, ``gradient`` that of the augmented one with its
    proximal term.
    """

    point: PointWithImages
    targets: Image
    duals: Image
    stationarity: Array
    gradient: Array
    size: float
    noise: float

    @staticmethod
    def of(F: CompositeLagrangian, point: PointWithImages) -> Local:
        """Evaluate ``F`` and its gradient."""
        targets = F.targets(point)
        duals = F.duals(targets)
        stationarity, own = F.stationarity(point, duals)
        gradient = stationarity + F.proximal_slope(point.x)
        noise = _noise(F, point, targets, duals, own)
        return Local(point, targets, duals, stationarity, gradient, own, noise)

    @property
    def residual(self) -> float:
        """The norm of the gradient."""
        return norm(self.gradient)


class NoDescent(SingularSystem):
    """The first direction gives no descent: the Hessian is singular, which rounding has hidden.

    A Cholesky factorisation can succeed on such a matrix, and a tiny pivot makes a direction far too long.
    """

    def __init__(self, local: Local) -> None:
        super().__init__("the Newton direction is no descent direction")
        self.local = local


def _noise(
    F: CompositeLagrangian, point: PointWithImages, targets: Image, duals: Image, own: float
) -> float:
    """Return about the size of the gradient's rounding: multipliers are differences times penalties."""
    total = own * own
    largest = float(np.abs(point.x).max(initial=0.0))
    for term, w, v, beta in zip(F.problem.terms, targets, duals, F.penalties, strict=True):
        rows = term.row_norms
        # Multipliers of rows that contradict each other cancel, however near zero the point is.
        sizes = rows * (beta * (rows * largest + np.abs(w)) + np.abs(v))
        used = sizes[v != 0.0] if term.separable else sizes
        total += float(used @ used)
    return _ROUNDINGS * EPS * math.sqrt(total)


def minimise(
    F: CompositeLagrangian,
    start: PointWithImages,
    system: System,
    tolerance: Callable[[Local], float],
    stopped: Callable[[], bool],
    max_steps: int = 500,
) -> tuple[Local, int, bool]:
    """Minimise ``F`` until its gradient is at most ``tolerance``, or nothing but rounding is left of it.

    Parameters
    ----------
    F : CompositeLagrangian
        What to minimise.
    start : PointWithImages
        Where to begin.
    system : System
        Solves with the generalised Hessians.
    tolerance : callable
        The size of the gradient to reach, as a function of what is known.
    stopped : callable
        Whether time is up; called in every step.
    max_steps : int
        Newton steps at most.

    Returns
    -------
    local, steps, solved
        The last point with its multipliers, the Newton steps made, whether the aim was reached.

    Raises
    ------
    SingularSystem
        If a Hessian is not positive definite; `NoDescent` if that shows at the start by its direction.
    UnboundedBelow
        If ``F`` is unbounded below.
    """
    local = Local.of(F, start)
    best, since = math.inf, 0
    for step in range(max_steps):
        residual = local.residual
        best, since = (residual, 0) if residual < 0.9 * best else (best, since + 1)
        stuck = since > _PATIENCE and residual <= _NEARLY * local.noise
        if residual <= max(local.noise, tolerance(local)) or stuck:
            return local, step, True
        rounding = residual <= _NEARLY * local.noise
        if stopped():
            return local, step, rounding
        moved = _step(F, local, system)
        # Slopes are squares of gradients: below this share of the gradient's terms they are rounding.
        if moved is None and step == 0 and residual > math.sqrt(EPS) * local.size:
            raise NoDescent(local)
        if moved is None:
            return local, step, rounding
        local = moved
    return local, max_steps, False


def _step(F: CompositeLagrangian, local: Local, system: System) -> Local | None:
    """Return the point after a Newton step, None where the slope is lost to rounding."""
    complements: tuple[Complement, ...] = F.complements(local.targets)
    pieces = F.pieces(local.point, complements)
    relative = local.residual / local.size if local.size > 0.0 else 1.0
    d = system.solve(pieces, F.shift, -local.gradient, min(0.1, relative))
    slope = float(local.gradient @ d)
    if not slope < 0.0:
        return None
    direction = PointWithImages.of(F.problem, d)
    t = least_along(F.along(local.point, local.targets, direction), slope, _LINE)
    return Local.of(F, local.point.moved(t, direction)) if t > 0.0 else None
