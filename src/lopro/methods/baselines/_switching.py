"""Steps along f where the constraint is nearly met, along c elsewhere: the inner algorithm of switching."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from lopro.constraints.base import Constraint, ValidInequality
from lopro.core.arrays import Array, inner
from lopro.core.validation import check_number
from lopro.errors import InfeasibleError
from lopro.objectives.base import Objective

__all__ = ["Oracles", "SwitchingState", "SwitchingSteps"]


@dataclass(slots=True)
class SwitchingState:
    """Where the iteration stands."""

    x: Array
    average: Array  # of the points where f was used, weighted by 1 / |g|^2
    direction: Array  # of the constraint's linearisations, weighted by their steps
    support: float = 0.0
    weight: float = 0.0  # sum of the step sizes along f
    energy: float = 0.0  # what every step so far has spent of the squared distance
    t: int = 0

    @property
    def valid_inequality(self) -> ValidInequality:
        """The linearised constraints, weighted as the steps have found them to count."""
        plain = ValidInequality(self.direction, self.support)
        finite = self.weight > 0.0 and math.isfinite(self.weight)
        return plain.scaled(1.0 / self.weight) if finite else plain.scaled(0.0)


@dataclass(frozen=True, eq=False)
class Oracles:
    """What is minimised: f and c side by side, without a penalty."""

    objective: Objective
    constraint: Constraint


@dataclass(frozen=True)
class SwitchingSteps:
    """``x+ = x - (delta / |g|^2) g`` with ``g`` in df where ``c(x) <= delta``, else a Polyak step on c.

    Examples
    --------
    >>> from lopro.methods.baselines._switching import SwitchingSteps
    >>> SwitchingSteps(0.1).delta
    0.1
    """

    delta: float

    def __post_init__(self) -> None:
        check_number("delta", self.delta, minimum=0.0, exclusive=True)

    def check(self, problem: Any) -> None:
        """Subgradients are enough."""

    def init(self, F: Oracles, x: Array, rng: np.random.Generator) -> SwitchingState:
        return SwitchingState(x=x, average=x, direction=0.0 * x)

    def step(self, F: Oracles, state: SwitchingState) -> SwitchingState:
        c = F.constraint
        value, slope = c.linearize_at(c.image(state.x))
        state.t += 1
        if self.on_objective(value):
            self._step_on_objective(state, F.objective.subgradient(state.x))
        else:
            self._step_on_constraint(state, value, slope())
        return state

    def on_objective(self, value: float) -> bool:
        """Whether a point with this value of c is good enough for a step along f."""
        return value <= self.delta

    def _step_on_objective(self, state: SwitchingState, g: Array) -> None:
        square = inner(g, g)
        if square == 0.0:
            # No point at all has a smaller value of f: this one stands for the whole run.
            state.average, state.weight, state.energy = state.x, math.inf, math.inf
            return
        size = self.delta / square
        if math.isfinite(state.weight):
            state.weight += size
            share = size / state.weight
            state.average = state.average + share * (state.x - state.average)
        state.energy += self.delta * size
        state.x = state.x - size * g

    def _step_on_constraint(self, state: SwitchingState, value: float, dc: Array) -> None:
        square = inner(dc, dc)
        if square == 0.0:
            raise InfeasibleError(f"c has slope zero where it is {value:.3g}: it is never smaller")
        size = value / square
        state.direction = state.direction + size * dc
        state.support += size * (inner(dc, state.x) - value)
        state.energy += value * size
        state.x = state.x - size * dc

    def output(self, state: SwitchingState) -> Array:
        # Before the first step along f there is nothing to average.
        return state.average if state.weight > 0.0 else state.x

    def bound(self, state: SwitchingState, distance: float) -> float | None:
        """None: the theorem compares with feasible points only."""
        return None
