"""The switching subgradient method (Polyak; Lan and Zhou): a step along f, or along c, never both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lopro.core.arrays import Array, norm
from lopro.core.validation import check_count, check_number
from lopro.functions import Source
from lopro.methods.baselines._switching import Oracles, SwitchingState, SwitchingSteps
from lopro.methods.setting import Needs
from lopro.methods.starts import feasible_candidate, feasible_start
from lopro.problem import Problem
from lopro.protocol import Candidate, Candidates, Card, Claim, Multiplier, Workbench
from lopro.protocol.certificates import solution_radius

__all__ = ["SwitchingSubgradient"]

#: Steps between two looks at whether a level is complete.
CHUNK = 32


@dataclass(frozen=True)
class SwitchingSubgradient:
    """Switching subgradients with Polyak's steps, a baseline.

    Problem: min f(x) s.t. c(x) <= 0, both convex. Oracles: subgradients of f and c, values of c. Where
    ``c(x) <= delta`` the step is ``delta / |g|^2`` along a subgradient ``g`` of f, elsewhere
    ``c(x) / |g_c|^2`` along ``g_c``, one of c; the points of the first kind are averaged with weights
    ``1 / |g|^2``. The tolerance ``delta`` halves from level to level, and every level ends with a
    projection.

    Theorem: let ``D`` bound the distance of the start of a level to a solution. As soon as the sum of
    ``delta^2 / |g|^2`` and of ``c^2 / |g_c|^2`` over all steps reaches ``D^2``, the average has
    ``f - f_* <= delta`` and ``c <= delta``; that takes at most ``D^2 max(G, G_c)^2 / delta^2`` steps, and the
    projection costs at most ``G delta / rho`` more. No constant but ``D`` is needed.

    Parameters
    ----------
    levels : int
        How often delta halves, and how many projections there are.
    delta : float, optional
        The tolerance of the first level; by default half of ``|g| D`` at the start.
    radius : float, optional
        D for every level. By default from what the problem knows.

    References
    ----------
    B. T. Polyak, "A general method for solving extremal problems", Soviet Mathematics Doklady 8 (1967).
    G. Lan, Z. Zhou, "Algorithms for stochastic optimization with function or expectation constraints",
    Computational Optimization and Applications 76 (2020).

    Departures
    ----------
    Lan and Zhou fix the number of steps and take step sizes from G and G_c. The steps of Polyak, which
    need neither, admit the same bound with weights in the average, and a test on the run itself for its
    end: that is what is implemented and tested. Their rate ``O(1 / eps^2)`` is the same.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from lopro.methods.baselines import SwitchingSubgradient
    >>> f = lopro.objectives.Linear(np.array([1.0, 2.0]))
    >>> ball = lopro.constraints.ResidualBall(np.diag([1.0, 3.0]), np.zeros(2), 1.0)
    >>> result = lopro.solve(lopro.Problem(f, ball), method=SwitchingSubgradient(), tol=0.1)
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
        check_count("levels", self.levels)
        for name in ("delta", "radius"):
            value = getattr(self, name)
            if value is not None:
                check_number(name, value, minimum=0.0, exclusive=True)

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
        """Run until the steps have spent the squared distance, then project."""
        F, inner = Oracles(bench.objective, bench.constraint), self.steps(delta)
        state: SwitchingState = bench.minimize(inner, F, x, CHUNK)
        made = 0
        # A budget of projections that is spent lets no step through, and is no reason to wait.
        while state.energy < D * D and state.t > made and not bench.exhausted:
            made = state.t
            state = bench.advance(inner, F, state, CHUNK)
        x_hat = inner.output(state)
        projected = bench.project(x_hat)
        claim = None
        if state.energy >= D * D and state.weight > 0.0 and self._certain(bench.counted):
            with bench.observe():
                f = bench.objective
                # f(x_hat) - delta is a lower bound, whatever the projection has cost.
                cost = float(f.value(projected)) - float(f.value(x_hat))
            claim = Claim(delta + cost, f"switching subgradients, |x* - x| <= {D:.4g}")
        return Candidate(projected, Multiplier(state.valid_inequality), before=x_hat, claim=claim)

    def steps(self, delta: float) -> SwitchingSteps:
        """Return the iteration of a level."""
        return SwitchingSteps(delta)

    def _certain(self, problem: Problem) -> bool:
        """Whether the distance rests on no estimate."""
        radius, mu = solution_radius(problem, 1.0), problem.objective.strong_convexity()
        used = [c for c in (radius, mu) if c is not None]
        return self.radius is not None or all(c.source is not Source.ESTIMATED for c in used)
