"""Primal-dual SGD with one projection (Mahdavi et al. 2012), for convex objectives."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lopro.core.arrays import Array, inner
from lopro.functions import Ball
from lopro.methods.baselines.one_projection import (
    AveragedSteps,
    PrimalDualState,
    SingleProjection,
)
from lopro.methods.inner.subgradient import into_ball
from lopro.methods.paper.epochs import Plan
from lopro.methods.setting import Setting
from lopro.methods.theory import ProblemConstants
from lopro.penalties import Hinge
from lopro.penalties.penalised import Penalised
from lopro.protocol import Card, Workbench

__all__ = ["OneProjectionSaddle", "SaddleDescent"]


@dataclass(frozen=True)
class OneProjectionSaddle(SingleProjection):
    """Primal-dual SGD with one projection, a baseline: descent in x, ascent in a damped multiplier.

    Problem: min f(x) s.t. c(x) <= 0, both Lipschitz on a ball that contains a solution. Iteration:
    ``x+ = Pi_B(x - eta (df(x) + m dc(x)))``, ``m+ = [(1 - g eta) m + eta c(x)]_+``; the mean of the
    iterates is projected. Theorem, with ``D`` the radius of the ball, ``C >= |c|`` on it,
    ``eta <= 1 / (4 G_c)`` and ``g = 4 eta G_c^2``: the gap is at most
    ``D^2 / (2 eta T) + eta (G^2 + C^2) + G^2 / (2 rho^2) (4 eta G_c^2 + 1 / (eta T))``, which is
    ``O(1 / sqrt T)`` for ``eta = min(D / sqrt(2 T (G^2 + C^2)), 1 / (4 G_c))``, the step size used here.

    Parameters
    ----------
    iterations, constants, radius, stochastic
        As for `FullTouch`.

    Departures
    ----------
    The bound in expectation is re-derived: factors differ from the paper's high-probability bound, the rate
    does not. Otherwise as for `OneProjectionSmoothed`.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> f = lopro.objectives.Linear(np.array([1.0, 2.0]))
    >>> box = lopro.constraints.Box(-np.ones(2), np.ones(2))
    >>> method = lopro.baselines.OneProjectionSaddle(iterations=20_000)
    >>> result = lopro.solve(lopro.Problem(f, box), method=method, tol=0)
    >>> round(result.fun, 1), result.counts.projections
    (-3.0, 1)
    """

    card: ClassVar[Card] = Card(
        assumptions="f and c convex and Lipschitz on a ball",
        oracles="(stochastic) subgradients of f, subgradients and values of c",
        rate="O(1/sqrt T)",
        projections="exactly 1",
        reference="Mahdavi, Yang, Jin, Zhu, Yi (NIPS 2012)",
    )

    iterations: int = 10_000
    constants: ProblemConstants | None = None
    radius: float | None = None
    stochastic: bool = False

    def plan(self, bench: Workbench, s: Setting) -> Plan:
        largest = abs(float(bench.constraint.value(s.start))) + s.constants.Gc * s.ball.radius
        eta = self.step_size(s.constants, s.ball.radius, largest)
        damping = 4.0 * eta * s.constants.Gc**2
        inner = SaddleDescent(eta, damping, s.ball, self.stochastic)
        bound = self.bound(s.constants, s.ball.radius, largest)
        claim = self.claim(s, bound, "Mahdavi et al., convex")
        return Plan(Hinge(s.weight), inner, self.iterations, s.start, claim)

    def step_size(self, constants: ProblemConstants, D: float, C: float) -> float:
        """Return eta for ``|x_1 - x_*| <= D`` and ``|c| <= C`` on the ball."""
        balanced = D / math.sqrt(2.0 * self.iterations * (constants.G**2 + C**2))
        return min(balanced, 0.25 / constants.Gc) if constants.Gc > 0.0 else balanced

    def bound(self, constants: ProblemConstants, D: float, C: float) -> float:
        """Return the theorem's bound on the gap."""
        eta, T = self.step_size(constants, D, C), self.iterations
        regret = D**2 / (2.0 * eta * T) + eta * (constants.G**2 + C**2)
        return regret + 0.5 * constants.weight**2 * (4.0 * eta * constants.Gc**2 + 1.0 / (eta * T))


@dataclass(slots=True, kw_only=True)
class SaddleState(PrimalDualState):
    """State, with the generator of sampled subgradients."""

    rng: np.random.Generator


@dataclass(frozen=True)
class SaddleDescent(AveragedSteps):
    """``x+ = Pi_B(x - eta (df + m dc))``, ``m+ = [(1 - damping eta) m + eta c(x)]_+``, from ``m = 0``.

    The output is the mean of the points at which subgradients were taken.
    """

    eta: float
    damping: float
    ball: Ball
    stochastic: bool = False

    def init(self, F: Penalised, x: Array, rng: np.random.Generator) -> SaddleState:
        return SaddleState(x=x, average=x, rng=rng, direction=0.0 * x)

    def step(self, F: Penalised, state: SaddleState) -> SaddleState:
        f, c, x, m = F.objective, F.constraint, state.x, state.multiplier
        g = f.stochastic_subgradient(x, state.rng) if self.stochastic else f.subgradient(x)
        value, slope = c.linearize_at(c.image(x))
        if m > 0.0:  # otherwise the subgradient of c is not needed
            push = m * slope()
            g = g + push
            state.direction = state.direction + push
            state.support += inner(push, x) - m * value
        state.t += 1
        state.average = state.average + (x - state.average) / state.t
        state.x = into_ball(x - self.eta * g, self.ball)
        state.multiplier = max(0.0, (1.0 - self.damping * self.eta) * m + self.eta * value)
        return state
