"""Descent in the point, ascent in the multiplier: the inner algorithm of Mahdavi et al."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lopro.constraints.base import ValidInequality
from lopro.core.arrays import Array, inner
from lopro.functions import Ball
from lopro.methods.inner.subgradient import into_ball
from lopro.penalties.penalised import Penalised

__all__ = ["SaddleDescent", "SaddleState"]


@dataclass(slots=True)
class SaddleState:
    """Where the iteration stands, with the sum of the linearised constraints times their multipliers."""

    x: Array
    average: Array
    rng: np.random.Generator
    direction: Array
    support: float = 0.0
    multiplier: float = 0.0
    t: int = 0

    @property
    def valid_inequality(self) -> ValidInequality:
        """The mean of the linearised constraints: valid, since each of them is."""
        return ValidInequality(self.direction, self.support).scaled(1.0 / max(self.t, 1))


@dataclass(frozen=True)
class SaddleDescent:
    """``x+ = Pi_B(x - eta (df + m dc))``, ``m+ = [(1 - damping eta) m + eta c(x)]_+``, from ``m = 0``.

    The answer is the mean of the points at which slopes were taken.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.methods.baselines._saddle import SaddleDescent
    >>> from lopro.functions import Ball
    >>> SaddleDescent(0.1, 0.2, Ball(np.zeros(2), 1.0)).eta
    0.1
    """

    eta: float
    damping: float
    ball: Ball
    stochastic: bool = False

    def check(self, problem: Any) -> None:
        """Subgradients are enough."""

    def init(self, F: Penalised, x: Array, rng: np.random.Generator) -> SaddleState:
        return SaddleState(x=x, average=x, rng=rng, direction=0.0 * x)

    def step(self, F: Penalised, state: SaddleState) -> SaddleState:
        f, c, x, m = F.objective, F.constraint, state.x, state.multiplier
        g = f.stochastic_subgradient(x, state.rng) if self.stochastic else f.subgradient(x)
        value, slope = c.linearize_at(c.image(x))
        if m > 0.0:  # else nobody asks for the slope of c
            push = m * slope()
            g = g + push
            state.direction = state.direction + push
            state.support += inner(push, x) - m * value
        state.t += 1
        state.average = state.average + (x - state.average) / state.t
        state.x = into_ball(x - self.eta * g, self.ball)
        state.multiplier = max(0.0, (1.0 - self.damping * self.eta) * m + self.eta * value)
        return state

    def output(self, state: SaddleState) -> Array:
        return state.average

    def bound(self, state: SaddleState, distance: float) -> float | None:
        """None: the theorem compares with feasible points only."""
        return None
