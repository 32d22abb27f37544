"""Primal-dual methods with one projection: descent in x, ascent in one multiplier of the constraint.

`OneProjectionSaddle` (Mahdavi et al. 2012) damps the multiplier; `ConEx` (Boob, Deng, Lan) extrapolates the
value of the constraint.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lopro.core.arrays import Array, inner
from lopro.core.validation import check_fields
from lopro.functions import Ball
from lopro.methods.baselines.one_projection import (
    AveragedSteps,
    PrimalDualState,
    SingleProjection,
)
from lopro.methods.inner.subgradient import into_ball
from lopro.methods.paper.epochs import Plan
from lopro.methods.setting import Setting, no_estimates
from lopro.methods.theory import ProblemConstants
from lopro.penalties import Hinge
from lopro.penalties.penalised import Penalised
from lopro.problem import Problem
from lopro.protocol import Card, Workbench

__all__ = ["ConEx", "ExtrapolatedDescent", "OneProjectionSaddle", "SaddleDescent"]


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


@dataclass(frozen=True)
class SaddleDescent(AveragedSteps):
    """``x+ = Pi_B(x - eta (df + m dc))``, ``m+ = [(1 - damping eta) m + eta c(x)]_+``, from ``m = 0``.

    The output is the mean of the points at which subgradients were taken.
    """

    eta: float
    damping: float
    ball: Ball
    stochastic: bool = False

    def init(self, F: Penalised, x: Array, rng: np.random.Generator) -> PrimalDualState:
        return PrimalDualState(x, x, rng, direction=0.0 * x)

    def step(self, F: Penalised, state: PrimalDualState) -> PrimalDualState:
        f, c, x, m = F.objective, F.constraint, state.x, state.multiplier
        g = self.subgradient(f, state)
        value, slope = c.linearize_at(c.image(x))
        if m > 0.0:  # otherwise the subgradient of c is not needed
            dc = slope()
            g = g + m * dc
            state.add_constraint(m, value, dc)
        state.t += 1
        state.include(x)
        state.x = into_ball(x - self.eta * g, self.ball)
        state.multiplier = max(0.0, (1.0 - self.damping * self.eta) * m + self.eta * value)
        return state


@dataclass(frozen=True)
class ConEx(SingleProjection):
    """Constraint extrapolation, a baseline: one projection, at the end.

    Problem: min f(x) s.t. c(x) <= 0, both convex and Lipschitz on a ball that contains a solution. Oracles:
    (sub)gradients of f and c, values of c, the prox of f's proximable part where f and c are Lipschitz
    everywhere; one projection, at the end. Iteration, with c linearised at the last point,
    ``l_t = c(x_(t-1)) + <dc(x_(t-1)), x_t - x_(t-1)>``: first ``y+ = [y + (2 l_t - l_(t-1)) / tau]_+``, then
    ``x+ = x - (df(x) + y+ dc(x)) / eta``. The mean of the iterates is projected.

    Theorem: let ``B = G / rho``, ``D`` the distance to a solution, ``L = L_f + B L_c`` over the smooth parts
    and ``H`` the sum of ``G`` and ``B G_c`` over the others. With ``tau = 3 G_c D / B`` and
    ``eta = L + 9 G_c^2 / tau + 2 H sqrt(T) / D``,

        f(x) - f_* <= (L D^2 / 2 + 3 B G_c D) / T + 2 H D / sqrt(T).

    Parameters
    ----------
    iterations, constants, radius
        As for `FullTouch`; ``Lf`` and ``Lc`` are used where f and c are smooth.

    References
    ----------
    D. Boob, Q. Deng, G. Lan, "Stochastic first-order methods for convex and nonconvex functional
    constrained optimization", Mathematical Programming 197 (2023).

    Departures
    ----------
    The rates are the paper's, ``O(1/T)`` and ``O(1/sqrt T)``; the constants are re-derived. The paper bounds
    objective and violation one by one and needs a bound on the multiplier; here ``B = G / rho`` takes its
    place, and exactness of the penalty (R1) turns both into one bound after the projection. The paper
    has a multiplier for each constraint; here the set has one function c and one multiplier.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> f = lopro.objectives.Linear(np.array([1.0, 2.0]))
    >>> ball = lopro.constraints.ResidualBall(np.diag([1.0, 3.0]), np.zeros(2), 1.0)
    >>> result = lopro.solve(lopro.Problem(f, ball), method=lopro.baselines.ConEx(), tol=1e-2)
    >>> result.success, round(result.fun, 2), result.counts.projections
    (True, -1.2, 1)
    """

    card: ClassVar[Card] = Card(
        assumptions="f and c convex, constants and a ball with a solution known",
        oracles="(sub)gradients of f and c, values of c, prox of f where there is one",
        rate="O(1/T) where f (up to its prox) and c are smooth, else O(1/sqrt T)",
        projections="1",
        reference="Boob, Deng, Lan (Math. Program. 2023)",
    )

    iterations: int = 10_000
    constants: ProblemConstants | None = None
    radius: float | None = None

    def plan(self, bench: Workbench, s: Setting) -> Plan:
        split = _splits(bench.counted)
        smooth_f = split or bench.objective.smooth
        claim = None
        if self.constants is not None or _curvature_is_certain(bench.counted):
            gap = self.bound(s.constants, s.ball.radius, smooth_f=smooth_f)
            claim = self.claim(s, gap, "ConEx with the constants of the problem")
        inner = self.inner(s, smooth_f=smooth_f, split=split)
        return Plan(Hinge(s.weight), inner, self.iterations, s.start, claim)

    def inner(self, s: Setting, *, smooth_f: bool, split: bool) -> ExtrapolatedDescent:
        """Return the inner algorithm with the theorem's step sizes."""
        D, B, M = s.ball.radius, s.weight, s.constants.Gc
        L, H = _parts(s.constants, smooth_f)
        # With Gc = 0 the constraint is constant and the multiplier has no effect: tau is arbitrary.
        tau = 3.0 * M * D / B if M > 0.0 else 1.0
        eta = L + 9.0 * M**2 / tau + 2.0 * H * math.sqrt(self.iterations) / D
        return ExtrapolatedDescent(eta, tau, None if split else s.ball, split)

    def bound(self, constants: ProblemConstants, D: float, *, smooth_f: bool = True) -> float:
        """Return the theorem's bound on the gap; ``smooth_f``: whether f enters through L, not H."""
        L, H = _parts(constants, smooth_f)
        T, B = self.iterations, constants.weight
        once = (0.5 * L * D * D + 3.0 * B * constants.Gc * D) / T
        return once + 2.0 * H * D / math.sqrt(T)


def _parts(constants: ProblemConstants, smooth_f: bool) -> tuple[float, float]:
    """Return ``L`` of the smooth parts and ``H`` of the nonsmooth parts."""
    B = constants.weight
    smooth_f = smooth_f and math.isfinite(constants.Lf)
    smooth_c = math.isfinite(constants.Lc)
    L = (constants.Lf if smooth_f else 0.0) + (B * constants.Lc if smooth_c else 0.0)
    H = (0.0 if smooth_f else constants.G) + (0.0 if smooth_c else B * constants.Gc)
    return L, H


def _curvature_is_certain(problem: Problem) -> bool:
    """Whether no smoothness constant is an estimate."""
    smooth, _ = problem.objective.split()
    Lf = None if smooth is None else smooth.smoothness()
    return no_estimates(problem.constraint.smoothness(), Lf)


def _splits(problem: Problem) -> bool:
    """Whether f has a proximable part and no ball is needed, which the prox would not respect."""
    _, proximable = problem.objective.split()
    everywhere = problem.objective.lipschitz(), problem.constraint.lipschitz()
    return proximable is not None and None not in everywhere


@dataclass(slots=True, kw_only=True)
class ExtrapolatedState(PrimalDualState):
    """State of the iteration; the average is that of ``x_1, ..., x_T``."""

    ell: float  # c linearised at the previous point, evaluated at x
    ell_before: float  # the value of ell one iteration earlier


@dataclass(frozen=True)
class ExtrapolatedDescent(AveragedSteps):
    """``y+ = [y + (2 l_t - l_(t-1)) / tau]_+``, then ``x+ = prox(x - (df(x) + y+ dc(x)) / eta)``.

    ``l_t`` is ``c`` linearised at ``x_(t-1)`` and evaluated at ``x_t``.

    Parameters
    ----------
    eta, tau : float
        Inverse step sizes of the point and of the multiplier.
    ball : Ball, optional
        Project the iterates onto this ball.
    split : bool
        Treat the proximable part of f by its prox; not together with a ball.
    """

    eta: float
    tau: float
    ball: Ball | None = None
    split: bool = False

    def __post_init__(self) -> None:
        check_fields(self, positive=("eta", "tau"))
        if self.split and self.ball is not None:
            raise ValueError("split=True needs ball=None: the prox step does not stay in a ball")

    def init(self, F: Penalised, x: Array, rng: np.random.Generator) -> ExtrapolatedState:
        value = float(F.constraint.value(x))
        return ExtrapolatedState(x, x, rng, direction=0.0 * x, ell=value, ell_before=value)

    def step(self, F: Penalised, state: ExtrapolatedState) -> ExtrapolatedState:
        x, c = state.x, F.constraint
        y = max(0.0, state.multiplier + self.extrapolated(state) / self.tau)
        value, slope = c.linearize_at(c.image(x))
        dc = slope()
        following = self._next_point(F, x, y * dc)
        state.t += 1
        state.add_constraint(y, value, dc)
        state.include(following)
        state.ell_before, state.ell = state.ell, value + inner(dc, following - x)
        state.x, state.multiplier = following, y
        return state

    def extrapolated(self, state: ExtrapolatedState) -> float:
        """Return the extrapolated value of the linearised constraint."""
        return 2.0 * state.ell - state.ell_before

    def _next_point(self, F: Penalised, x: Array, push: Array) -> Array:
        f = F.objective
        if self.split:
            smooth, proximable = f.split()
            g = push if smooth is None else smooth.subgradient(x) + push
            moved = x - g / self.eta
            return moved if proximable is None else proximable.prox(moved, 1.0 / self.eta)
        moved = x - (f.subgradient(x) + push) / self.eta
        return moved if self.ball is None else into_ball(moved, self.ball)
