"""Subgradient descent on the penalised objective, deterministic and stochastic."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from lopro.core.arrays import Array, axpy, inner, mix, norm
from lopro.core.validation import check_offers
from lopro.errors import MissingCapabilityError
from lopro.functions import Ball
from lopro.methods.inner.averaging import (
    Average,
    ConstantStep,
    LinearWeights,
    StepRule,
    UniformAverage,
    WeightedInverseTimeStep,
)
from lopro.penalties.penalised import Penalised

__all__ = ["StochasticSubgradient", "SubgradientDescent", "SubgradientState"]


@dataclass(slots=True)
class SubgradientState:
    """Where subgradient descent stands."""

    x: Array  # the iterate whose subgradient comes next
    average: Array  # the average of the iterates x_1 ... x_t whose subgradient was taken
    rng: np.random.Generator
    mu: float = 0.0  # strong convexity that f is known to have
    t: int = 0
    energy: float = 0.0  # the same average of eta_t |g_t|^2 / 2, the price of the steps
    shortened: bool = False  # whether a step was ever cut to the longest move


@dataclass(frozen=True)
class SubgradientDescent:
    """``x_(t+1) = x_t - eta_t g_t`` with ``g_t`` a subgradient of F, and an average as the answer.

    Problem: min F, F convex. Oracle: subgradients of f and c. Bound (Prop 3, constant step and
    uniform average, any comparator z, T steps): ``eta G^2 / 2 + |x_1 - z|^2 / (2 eta T)``. The average
    is that of ``x_1 ... x_T``; the point after the last step is not part of it.

    Parameters
    ----------
    step_rule : StepRule
        The step sizes.
    average : Average
        The average that is returned.
    ball : Ball, optional
        Keep the iterates in this ball. Strongly convex functions are not Lipschitz on the whole
        space; a ball that holds the solution makes their theory true (C1'). Projecting on a ball
        is a scaling and not one of the projections that lopro saves.
    longest_move : float, optional
        Cut steps to this length. A safeguard for functions whose slope grows without bound, on which
        constant steps can run away; `bound` claims nothing once it was needed.

    Examples
    --------
    >>> from lopro.methods.inner import SqrtStep, SubgradientDescent
    >>> SubgradientDescent(SqrtStep(0.5)).step_rule.size(1)
    0.5
    """

    step_rule: StepRule
    average: Average = UniformAverage()
    ball: Ball | None = None
    longest_move: float = math.inf

    def __post_init__(self) -> None:
        check_offers("step_rule", self.step_rule, "size")
        check_offers("average", self.average, "weight")
        if self.ball is not None and not isinstance(self.ball, Ball):
            raise TypeError(f"ball must be a Ball or None, got {self.ball!r}")
        if not self.longest_move > 0.0:
            raise ValueError(f"longest_move must be positive, got {self.longest_move}")

    def check(self, problem: Any) -> None:
        """Nothing is needed beyond subgradients."""

    def direction(self, F: Penalised, state: SubgradientState) -> Array:
        """Return the subgradient to step along."""
        return F.subgradient(state.x)

    def init(self, F: Penalised, x: Array, rng: np.random.Generator) -> SubgradientState:
        mu = F.objective.strong_convexity()
        return SubgradientState(x=x, average=x, rng=rng, mu=0.0 if mu is None else mu.value)

    def step(self, F: Penalised, state: SubgradientState) -> SubgradientState:
        g = self.direction(F, state)
        state.t += 1
        eta, w = self.step_rule.size(state.t), self.average.weight(state.t)
        square = inner(g, g)
        state.average = state.x if w == 1.0 else mix(state.average, w, state.x)
        state.energy += w * (0.5 * eta * square - state.energy)
        if eta * eta * square > self.longest_move**2:
            eta, state.shortened = self.longest_move / math.sqrt(square), True
        state.x = axpy(-eta, g, state.x, reuse=F.fresh_slopes)
        if self.ball is not None:
            state.x = into_ball(state.x, self.ball)
        return state

    def output(self, state: SubgradientState) -> Array:
        return state.average

    def bound(self, state: SubgradientState, distance: float) -> float | None:
        """Prop 3 and C1' with the subgradients that were met instead of their largest norm."""
        if state.t == 0 or state.shortened or self.ball is not None:
            return None  # nobody has checked that a ball that was given holds the solution
        match self.step_rule, self.average:
            case ConstantStep(eta), UniformAverage():
                return state.energy + distance**2 / (2.0 * eta * state.t)
            case WeightedInverseTimeStep(mu), LinearWeights() if mu <= state.mu:
                return state.energy
        return None


@dataclass(frozen=True)
class StochasticSubgradient(SubgradientDescent):
    """Subgradient descent with sampled subgradients of ``f``; reproducible through the seed."""

    def check(self, problem: Any) -> None:
        if not problem.objective.stochastic:
            raise MissingCapabilityError(
                f"StochasticSubgradient needs an objective with stochastic_subgradient(x, rng); "
                f"{type(problem.objective).__name__} has none"
            )

    def direction(self, F: Penalised, state: SubgradientState) -> Array:
        return F.stochastic_subgradient(state.x, state.rng)

    def bound(self, state: SubgradientState, distance: float) -> float | None:
        return None


def into_ball(x: Array, ball: Ball) -> Array:
    """Return the point of the ball nearest to ``x``."""
    offset = x - ball.center
    length = norm(offset)
    return x if length <= ball.radius else ball.center + (ball.radius / length) * offset
