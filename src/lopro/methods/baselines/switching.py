"""The switching subgradient method (Polyak; Lan and Zhou): each step is along f or along c."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lopro.constraints.base import Constraint
from lopro.core.arrays import Array, inner, norm
from lopro.core.validation import check_fields
from lopro.driver.minorants import solution_radius
from lopro.errors import InfeasibleError
from lopro.methods.baselines.one_projection import AveragedSteps, PrimalDualState
from lopro.methods.setting import Needs, feasible_candidate, feasible_start, no_estimates
from lopro.objectives.base import Objective
from lopro.problem import Problem
from lopro.protocol import Candidate, Candidates, Card, Claim, Multiplier, Workbench

__all__ = ["SwitchingSteps", "SwitchingSubgradient"]

#: Steps between two checks of the stopping rule: a level makes up to CHUNK - 1 superfluous steps, which take
#: no projection.
CHUNK = 32


@dataclass(frozen=True)
class SwitchingSubgradient:
    """Switching subgradients with Polyak's steps, a baseline.

    Problem: min f(x) s.t. c(x) <= 0. Where
    ``c(x) <= delta`` the step is ``delta / |g|^2`` along a subgradient ``g`` of f, elsewhere
    ``c(x) / |g_c|^2`` along ``g_c``, one of c; the points of the first kind are averaged with weights
    ``1 / |g|^2``. The tolerance ``delta`` halves from level to level, and every level ends with a
    projection.

    Theorem: let ``D`` bound the distance of the start of a level to a solution. As soon as the sum of
    ``delta^2 / |g|^2`` and of ``c^2 / |g_c|^2`` over all steps reaches ``D^2``, the average has
    ``f - f_* <= delta`` and ``c <= delta``; that takes at most ``D^2 max(G, G_c)^2 / delta^2`` steps. The
    projection increases f by at most ``G delta / rho``. ``D`` is the only constant needed.

    Parameters
    ----------
    levels : int
        Number of levels, hence of projections; delta halves from one to the next.
    delta : float, optional
        The tolerance of the first level; by default half of ``|g| D`` at the start.
    radius : float, optional
        D for every level. By default from the problem.

    References
    ----------
    B. T. Polyak, "A general method for solving extremal problems", Soviet Mathematics Doklady 8 (1967).
    G. Lan, Z. Zhou, "Algorithms for stochastic optimization with function or expectation constraints",
    Computational Optimization and Applications 76 (2020).

    Departures
    ----------
    Lan and Zhou fix the number of steps and derive step sizes from G and G_c. Polyak's step sizes need
    neither; with a weighted average and a stopping test on the run they admit the same bound and the same
    rate ``O(1 / eps^2)``. They are implemented here.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> f = lopro.objectives.Linear(np.array([1.0, 2.0]))
    >>> ball = lopro.constraints.ResidualBall(np.diag([1.0, 3.0]), np.zeros(2), 1.0)
    >>> method = lopro.baselines.SwitchingSubgradient()
    >>> result = lopro.solve(lopro.Problem(f, ball), method=method, tol=0.1)
    >>> result.success, result.counts.projections == len(result.history)
    (True, True)
    """

    card: ClassVar[Card] = Card(
        assumptions="f and c convex, distance to a solution bounded",
        oracles="subgradients of f and c, values of c",
        rate="O(eps^-2) iterations",
        projections="O(log 1/eps): one per level",
        reference="Polyak (1967); Lan, Zhou (Comput. Optim. Appl. 2020)",
    )

    levels: int = 8
    delta: float | None = None
    radius: float | None = None

    def __post_init__(self) -> None:
        check_fields(self, counts=("levels",), positive=("delta", "radius"))

    @property
    def _needs(self) -> Needs:
        return Needs("SwitchingSubgradient", radius=self.radius)

    def check(self, problem: Problem) -> None:
        self._needs.check_distance(problem)

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        x = feasible_start(bench, x0)
        D = self._needs.distance(bench.counted, x)
        slope = norm(bench.objective.subgradient(x))
        if D == 0.0 or slope == 0.0:
            yield feasible_candidate(x)
            return
        delta = 0.5 * slope * D if self.delta is None else self.delta
        for k in range(self.levels):
            candidate = self._level(bench, x, delta / 2.0**k, D)
            yield candidate
            x = candidate.x
            D = self._needs.distance(bench.counted, x)

    def _level(self, bench: Workbench, x: Array, delta: float, D: float) -> Candidate:
        """Run until the sum of the theorem reaches ``D^2``, then project."""
        F, inner = Oracles(bench.objective, bench.constraint), self.steps(delta)
        state: SwitchingState = bench.minimize(inner, F, x, CHUNK)
        made = 0
        # If no step was made, the budget is exhausted.
        while state.energy < D * D and state.t > made and not bench.exhausted:
            made = state.t
            state = bench.advance(inner, F, state, CHUNK)
        x_hat = inner.output(state)
        projected = bench.project(x_hat)
        claim = None
        if state.energy >= D * D and state.weight > 0.0 and self._certain(bench.counted):
            with bench.observe():
                f = bench.objective
                # f(x_hat) - delta is a lower bound of f_*; the projection changes f by this much.
                cost = float(f.value(projected)) - float(f.value(x_hat))
            claim = Claim(delta + cost, f"switching subgradients, |x* - x| <= {D:.4g}")
        return Candidate(projected, Multiplier(state.valid_inequality), before=x_hat, claim=claim)

    def steps(self, delta: float) -> SwitchingSteps:
        """Return the inner algorithm of a level."""
        return SwitchingSteps(delta)

    def _certain(self, problem: Problem) -> bool:
        """Whether the bound on the distance is derived from no estimate."""
        used = solution_radius(problem, 1.0), problem.objective.strong_convexity()
        return self.radius is not None or no_estimates(*used)


@dataclass(slots=True)
class SwitchingState(PrimalDualState):
    """State of the iteration: step sizes are the weights of points of steps along f, and of constraints."""

    energy: float = 0.0  # sum of delta^2 / |g|^2 and c^2 / |g_c|^2


@dataclass(frozen=True, eq=False)
class Oracles:
    """The objective and the constraint, without a penalty."""

    objective: Objective
    constraint: Constraint


@dataclass(frozen=True)
class SwitchingSteps(AveragedSteps):
    """``x+ = x - (delta / |g|^2) g`` with ``g`` in df where ``c(x) <= delta``, else a Polyak step on c."""

    delta: float

    def __post_init__(self) -> None:
        check_fields(self, positive=("delta",))

    def init(self, F: Oracles, x: Array, rng: np.random.Generator) -> SwitchingState:
        return SwitchingState(x, x, rng, direction=0.0 * x)

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
        """Whether the step from a point with this value of c is along f."""
        return value <= self.delta

    def _step_on_objective(self, state: SwitchingState, g: Array) -> None:
        square = inner(g, g)
        if square == 0.0:
            # x minimises f without the constraint: it is the output, and the level ends.
            state.average, state.weight, state.energy = state.x, math.inf, math.inf
            return
        size = self.delta / square
        if math.isfinite(state.weight):
            state.include(state.x, size)
        state.energy += self.delta * size
        state.x = state.x - size * g

    def _step_on_constraint(self, state: SwitchingState, value: float, dc: Array) -> None:
        square = inner(dc, dc)
        if square == 0.0:
            raise InfeasibleError(f"c has slope zero where it is {value:.3g}: it is never smaller")
        size = value / square
        state.add_constraint(size, value, dc)
        state.energy += value * size
        state.x = state.x - size * dc

    def output(self, state: SwitchingState) -> Array:
        # Before the first step along f the average is empty.
        return state.average if state.weight > 0.0 else state.x
