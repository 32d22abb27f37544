"""Accelerated (proximal) gradient descent on the penalised objective: NAG, FISTA, restarts.

Algorithm 2 as printed takes the gradient at ``x_s``; that is a heavy-ball method, which exceeds the bound of
its theorem (R5). Here, as in Beck and Teboulle (2009), the gradient is taken at ``y_s``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from lopro.core.arrays import Array, eps, inner, norm
from lopro.core.validation import check_number, check_offers
from lopro.core.vectors import diagonal_direction
from lopro.errors import MissingCapabilityError
from lopro.functions import Image
from lopro.methods.inner.momentum import Momentum, NesterovMomentum
from lopro.penalties.penalised import Penalised

__all__ = [
    "AcceleratedGradient",
    "AcceleratedState",
    "Backtracking",
    "FixedSmoothness",
]


@dataclass(frozen=True)
class AcceleratedSettings:
    """Constants of `model_holds` and `curvature_along_gradient`.

    A tenth and ten times as much of each change 0 % of the steps in all, and up to 37 % of one problem, in
    ``python -m benchmarks.constants methods.inner.accelerated``.
    """

    #: Bound on the rounding error of the difference of two values of F, in units of rounding of their sum.
    value_roundings: float = 8.0
    #: Ratio of the quadratic term to that error from which the test of values is accurate to 1e-4.
    accurate_values: float = 1e4
    #: Bound on the rounding error of the difference of two gradients, in units of rounding of the gradient.
    gradient_roundings: float = 4.0
    #: Length of the move that measures the first L, relative to the size of the point.
    probe: float = 1e-3


SETTINGS = AcceleratedSettings()


@dataclass(frozen=True)
class FixedSmoothness:
    """Steps of length ``1 / L`` for a known smoothness constant.

    Examples
    --------
    >>> from lopro.methods.inner import FixedSmoothness
    >>> FixedSmoothness(4.0).L
    4.0
    """

    L: float

    def __post_init__(self) -> None:
        check_number("L", self.L, minimum=0.0, exclusive=True)


@dataclass(frozen=True)
class Backtracking:
    """Search for the smoothness constant: double ``L`` until the quadratic upper bound holds.

    Within a run ``L`` does not decrease, as the theory of the accelerated rate requires (with ``L`` replaced
    by ``2 L`` in the bound); a restart, which resets the momentum, halves it.

    Parameters
    ----------
    L : float, optional
        First trial value; None measures the curvature along the first gradient.

    Examples
    --------
    >>> from lopro.methods.inner import Backtracking
    >>> Backtracking().L is None
    True
    """

    L: float | None = None

    def __post_init__(self) -> None:
        if self.L is not None:
            check_number("L", self.L, minimum=0.0, exclusive=True)


@dataclass(slots=True)
class AcceleratedState:
    """State of accelerated gradient descent; each image is that of the point listed before it."""

    x: Array  # last iterate
    image_x: Image
    y: Array  # extrapolated point, where the next gradient is taken
    image_y: Image
    L: float  # current smoothness constant
    tau: float = 1.0
    t: int = 0  # steps since the start or the last restart
    slope: float = math.inf  # norm of the last gradient mapping L (y - x+)


@dataclass(frozen=True)
class AcceleratedGradient:
    """Nesterov's method, proximal where ``f`` has a proximable part.

    Problem: min F = smooth + proximable. Oracles: gradient of the smooth part (penalty included),
    prox of the rest. Bound (Prop 2, any comparator z): ``2 L |x_0 - z|^2 / (T + 1)^2``.

    Parameters
    ----------
    momentum : Momentum
        `NesterovMomentum`, `ConstantMomentum` (strongly convex) or `NoMomentum`.
    step_rule : FixedSmoothness or Backtracking
        The step length.
    restart : bool
        Reset the momentum when it is an ascent direction (O'Donoghue and Candes, 2015): a heuristic that is
        fast on functions with growth; `bound` then returns None.

    Examples
    --------
    >>> from lopro.methods.inner import AcceleratedGradient
    >>> AcceleratedGradient().restart
    False
    """

    momentum: Momentum = NesterovMomentum()
    step_rule: FixedSmoothness | Backtracking = Backtracking()
    restart: bool = False

    def __post_init__(self) -> None:
        check_offers("momentum", self.momentum, "advance")
        if not isinstance(self.step_rule, (FixedSmoothness, Backtracking)):
            raise TypeError(
                f"step_rule must be FixedSmoothness(L) or Backtracking(), got {self.step_rule!r}"
            )

    def check(self, problem: Any) -> None:
        if problem.objective.split() == (None, None):
            raise MissingCapabilityError(
                f"AcceleratedGradient (Prop 2, Thm 3) needs an objective that is smooth, has a prox, or "
                f"is a sum of the two; {type(problem.objective).__name__} offers subgradients only. "
                "Use lopro.LoPGD, or give the objective a gradient or a prox"
            )

    def init(self, F: Penalised, x: Array, rng: np.random.Generator) -> AcceleratedState:
        image = F.image(x)
        L = self.step_rule.L
        if L is None:
            g = F.linearize_at(image)[1]()
            L = curvature_along_gradient(partial(smooth_gradient, F), x, g, F.unit + norm(x))
        return AcceleratedState(x=x, image_x=image, y=x, image_y=image, L=L)

    def step(self, F: Penalised, state: AcceleratedState) -> AcceleratedState:
        value, gradient = F.linearize_at(state.image_y)
        g = gradient()
        while True:
            x = F.prox(state.y - g / state.L, 1.0 / state.L)
            image = F.image(x)
            move = x - state.y
            if isinstance(self.step_rule, FixedSmoothness) or model_holds(
                F, value, g, state.y, move, image, state.L
            ):
                break
            state.L *= 2.0
        state.slope = state.L * norm(move)
        if self.restart and inner(move, x - state.x) < 0.0:
            self._drop_momentum(state, x, image)
        else:
            self._extrapolate(state, x, image)
        return state

    def _extrapolate(self, state: AcceleratedState, x: Array, image: Image) -> None:
        state.tau, beta = self.momentum.advance(state.tau, state.L)
        if beta:
            state.y = x + beta * (x - state.x)
            state.image_y = tuple(
                z + beta * (z - old) for z, old in zip(image, state.image_x, strict=True)
            )
        else:
            state.y, state.image_y = x, image
        state.x, state.image_x = x, image
        state.t += 1

    def _drop_momentum(self, state: AcceleratedState, x: Array, image: Image) -> None:
        state.x = state.y = x
        state.image_x = state.image_y = image
        state.tau, state.t = 1.0, 0
        if isinstance(self.step_rule, Backtracking):
            state.L *= 0.5

    def output(self, state: AcceleratedState) -> Array:
        return state.x

    def bound(self, state: AcceleratedState, distance: float) -> float | None:
        if self.restart or not isinstance(self.momentum, NesterovMomentum) or state.t == 0:
            return None
        if isinstance(self.step_rule, FixedSmoothness):
            return None  # a given L is not verified; the corollaries state their own claims
        return 2.0 * state.L * distance**2 / (state.t + 1) ** 2


def model_holds(
    F: Penalised, value: float, g: Array, y: Array, move: Array, image: Image, L: float
) -> bool:
    """Whether the quadratic model with constant ``L`` at y is an upper bound of F at ``y + move``.

    Near a solution the difference of two function values is rounding error, and a test of it would drive L
    to infinity. If the test of values fails or is below rounding error, gradients are tested instead, without
    cancellation: by convexity ``<grad(y + move) - grad(y), move> <= L/2 |move|^2`` implies the upper bound.
    """
    quadratic = 0.5 * L * inner(move, move)
    if math.isnan(quadratic) or not math.isfinite(value):
        return True  # no L makes the values finite, so the search ends
    reached, gradient = F.linearize_at(image)
    if not math.isfinite(reached):
        return False
    resolution = SETTINGS.value_roundings * eps(g) * (abs(value) + abs(reached))
    if (
        quadratic > SETTINGS.accurate_values * resolution
        and reached <= value + inner(g, move) + quadratic
    ):
        return True
    # The gradient has an error of eps |g|, and of L eps |y| because y is rounded.
    slack = SETTINGS.gradient_roundings * eps(g) * (norm(g) + L * norm(y)) * norm(move)
    return inner(gradient() - g, move) <= quadratic + slack


def smooth_gradient(F: Penalised, x: Array) -> Array:
    """Return the gradient of the smooth part of F."""
    return F.linearize_at(F.image(x))[1]()


def curvature_along_gradient(
    gradient: Callable[[Array], Array], x: Array, g: Array, size: float
) -> float:
    """Return an estimate of L: the change of the gradient, which is ``g`` at x, over the length of a move."""
    length = norm(g)
    # At a minimiser the curvature is measured along a fixed direction.
    probe = SETTINGS.probe * size
    move = (probe / length) * g if length > 0.0 else probe * diagonal_direction(x)
    curvature = norm(gradient(x - move) - g) / norm(move)
    if curvature > 0.0:
        return curvature
    return length / size if length > 0.0 else 1.0
