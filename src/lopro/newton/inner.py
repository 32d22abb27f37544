"""Semismooth Newton's method for augmented Lagrangians, with superlinear convergence near the solution.

Near a minimiser the values of a convex function agree to all digits where its slopes still differ, so the
line search computes the root of the slope, an increasing function. Newton steps find it exactly where the
slope is piecewise linear (rows, absolute values).

Effect of a tenth and ten times of each constant below on the steps and factorisations of all problems of
``python -m benchmarks.constants newton``: `_ROUNDINGS` 1 % less to 10 % more (2.5 times for one problem whose
columns differ by 1e12), `_FAR` 1 %, `_LINE` 3 % for 0.05, while 5 doubles them and loses two proofs. The
others, which guard against rounding, change nothing.
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

__all__ = ["Evaluation", "NoDescent", "UnboundedBelow", "least_along", "minimise"]

#: The function is unbounded below if its slope is still negative at this multiple of the Newton step.
_LONGEST = 2.0**100
#: The search ends at steps shorter than this, and at brackets of this relative width: the rest is rounding.
_SHORTEST, _NARROW = 1e-12, 1e-9
#: Where the slope exceeds this multiple of that at zero, far beyond the minimiser, the bracket is halved: on
#: an exponential, Newton steps from there have a fixed length.
_FAR = 10.0
#: Factor by which the step grows while the slope is negative.
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
        Maximum number of evaluations, after which the best step so far is returned.

    Raises
    ------
    UnboundedBelow
        If the slope is negative at steps of any length.

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
    """Return the Newton step, or a step inside the bracket where that is outside."""
    newton = t - first / second if second > 0.0 else math.nan
    # Limited, as the Newton step is far too long where the curvature grows quickly.
    longest = _STRETCH * t if high == math.inf else high
    if low < newton < high:
        return min(newton, longest)
    return _STRETCH * low if high == math.inf else 0.5 * (low + high)


#: The inner problem is solved if the gradient is at most this multiple of the rounding of its terms.
_ROUNDINGS = 4.0
#: The same holds after this number of steps without progress, if it is within this factor of its rounding.
_PATIENCE = 5
_NEARLY = 1e3
#: The line search ends at this share of the first slope; exact searches take as many Newton steps.
_LINE = 0.5


@dataclass(frozen=True)
class Evaluation:
    """A point with its targets, multipliers and gradients, and the scales of these.

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
    def of(F: CompositeLagrangian, point: PointWithImages) -> Evaluation:
        """Evaluate ``F`` and its gradient."""
        targets = F.targets(point)
        duals = F.duals(targets)
        stationarity, own = F.stationarity(point, duals)
        gradient = stationarity + F.proximal_slope(point.x)
        noise = _noise(F, point, targets, duals, own)
        return Evaluation(point, targets, duals, stationarity, gradient, own, noise)

    @property
    def residual(self) -> float:
        """The norm of the gradient."""
        return norm(self.gradient)


class NoDescent(SingularSystem):
    """The first Newton direction is not one of descent: rounding hides that the Hessian is singular.

    A Cholesky factorisation can succeed on such a matrix, and a tiny pivot makes the direction far too long.
    """

    def __init__(self, state: Evaluation) -> None:
        super().__init__("the Newton direction is no descent direction")
        self.state = state


def _noise(
    F: CompositeLagrangian, point: PointWithImages, targets: Image, duals: Image, own: float
) -> float:
    """Estimate the rounding error of the gradient, whose multipliers are differences times penalties."""
    total = own * own
    largest = float(np.abs(point.x).max(initial=0.0))
    for term, w, v, beta in zip(F.problem.terms, targets, duals, F.penalties, strict=True):
        rows = term.row_norms
        # Multipliers of contradictory rows cancel in the gradient, even where the point is near zero.
        sizes = rows * (beta * (rows * largest + np.abs(w)) + np.abs(v))
        used = sizes[v != 0.0] if term.separable else sizes
        total += float(used @ used)
    return _ROUNDINGS * EPS * math.sqrt(total)


def minimise(
    F: CompositeLagrangian,
    start: PointWithImages,
    system: System,
    tolerance: Callable[[Evaluation], float],
    stopped: Callable[[], bool],
    max_steps: int = 500,
) -> tuple[Evaluation, int, bool]:
    """Minimise ``F`` until the norm of its gradient is at most ``tolerance`` or rounding.

    Parameters
    ----------
    F : CompositeLagrangian
        The function.
    start : PointWithImages
        The starting point.
    system : System
        Solves linear systems with the generalised Hessians.
    tolerance : callable
        The norm of the gradient to reach, as a function of the evaluation.
    stopped : callable
        Returns whether time is up; called in every step.
    max_steps : int
        Maximum number of Newton steps.

    Returns
    -------
    evaluation, steps, solved
        The last point with its multipliers, the number of Newton steps, whether the tolerance was reached.

    Raises
    ------
    SingularSystem
        If a Hessian is not positive definite; `NoDescent` if the first direction shows that.
    UnboundedBelow
        If ``F`` is unbounded below.
    """
    state = Evaluation.of(F, start)
    best, since = math.inf, 0
    for step in range(max_steps):
        residual = state.residual
        best, since = (residual, 0) if residual < 0.9 * best else (best, since + 1)
        stuck = since > _PATIENCE and residual <= _NEARLY * state.noise
        if residual <= max(state.noise, tolerance(state)) or stuck:
            return state, step, True
        rounding = residual <= _NEARLY * state.noise
        if stopped():
            return state, step, rounding
        moved = _step(F, state, system)
        # The slope is quadratic in the gradient: rounding, where that is below sqrt(EPS) times its terms.
        if moved is None and step == 0 and residual > math.sqrt(EPS) * state.size:
            raise NoDescent(state)
        if moved is None:
            return state, step, rounding
        state = moved
    return state, max_steps, False


def _step(F: CompositeLagrangian, state: Evaluation, system: System) -> Evaluation | None:
    """Return the evaluation after a Newton step; None where the slope is lost to rounding."""
    complements: tuple[Complement, ...] = F.complements(state.targets)
    pieces = F.pieces(state.point, complements)
    relative = state.residual / state.size if state.size > 0.0 else 1.0
    d = system.solve(pieces, F.shift, -state.gradient, min(0.1, relative))
    slope = float(state.gradient @ d)
    if not slope < 0.0:
        return None
    direction = PointWithImages.of(F.problem, d)
    t = least_along(F.along(state.point, state.targets, direction), slope, _LINE)
    return Evaluation.of(F, state.point.moved(t, direction)) if t > 0.0 else None
