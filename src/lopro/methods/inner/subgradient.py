"""Subgradient descent on the penalised objective, deterministic and stochastic."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from lopro.core.arrays import Array, inner, norm
from lopro.core.validation import check_offers
from lopro.core.vectors import axpy, mix
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
from lopro.objectives.base import Objective
from lopro.penalties.penalised import Penalised

__all__ = [
    "StochasticSubgradient",
    "SubgradientDescent",
    "SubgradientState",
    "check_stochastic",
    "into_ball",
    "sampled_or_exact",
]


@dataclass(slots=True)
class SubgradientState:
    """State of subgradient descent."""

    x: Array  # the iterate at which the next subgradient is taken
    average: Array  # average of x_1 ... x_t, the iterates at which subgradients were taken
    rng: np.random.Generator
    mu: float = 0.0  # known strong convexity of f
    t: int = 0
    energy: float = 0.0  # the same average of eta_t |g_t|^2 / 2
    shortened: bool = False  # whether any step was limited to longest_move


@dataclass(frozen=True)
class SubgradientDescent:
    """``x_(t+1) = x_t - eta_t g_t`` with ``g_t`` a subgradient of F; returns an average of the iterates.

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
        space; on a ball that contains the solution they are (C1'). Projecting onto a ball is a scaling
        and is not counted as a projection.
    longest_move : float, optional
        Limit of the length of steps. A safeguard for functions with unbounded subgradients, on which
        constant steps can diverge; after a limited step `bound` returns None.

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
        """Accept every problem: subgradients suffice."""

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
        """Return the bound of Prop 3 or C1' with the norms of the computed subgradients in place of G."""
        if state.t == 0 or state.shortened or self.ball is not None:
            return None  # whether a given ball contains the solution is not checked
        match self.step_rule, self.average:
            case ConstantStep(eta), UniformAverage():
                return state.energy + distance**2 / (2.0 * eta * state.t)
            case WeightedInverseTimeStep(mu), LinearWeights() if mu <= state.mu:
                return state.energy
        return None


@dataclass(frozen=True)
class StochasticSubgradient(SubgradientDescent):
    """Subgradient descent with sampled subgradients of ``f``; the seed makes runs reproducible."""

    def check(self, problem: Any) -> None:
        check_stochastic(problem.objective, "StochasticSubgradient", "use SubgradientDescent")

    def direction(self, F: Penalised, state: SubgradientState) -> Array:
        return F.stochastic_subgradient(state.x, state.rng)

    def bound(self, state: SubgradientState, distance: float) -> float | None:
        return None


def sampled_or_exact(f: Objective, x: Array, rng: np.random.Generator | None) -> Array:
    """Return a subgradient of the objective: a sample where there is a generator, otherwise the exact one."""
    return f.subgradient(x) if rng is None else f.stochastic_subgradient(x, rng)


def descent(stochastic: bool) -> type[SubgradientDescent]:
    """Return subgradient descent with sampled or with exact subgradients of f."""
    return StochasticSubgradient if stochastic else SubgradientDescent


def check_stochastic(f: Objective, method: str, advice: str = "use stochastic=False") -> None:
    """Raise unless subgradients of the objective can be sampled."""
    if not f.stochastic:
        raise MissingCapabilityError(
            f"{method} needs an objective with stochastic_subgradient(x, rng); {type(f).__name__} has "
            f"none: {advice}"
        )


def into_ball(x: Array, ball: Ball) -> Array:
    """Return the projection of ``x`` onto the ball."""
    offset = x - ball.center
    length = norm(offset)
    return x if length <= ball.radius else ball.center + (ball.radius / length) * offset
