"""LightTouch: a few sampled constraints per iteration, drawn from a distribution that learns.

Departures: the authors' third method, MidTouch for strongly convex objectives, is left out, as its
update rule could not be established from what is at hand.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from lopro.core.arrays import Array
from lopro.core.validation import check_count, check_number
from lopro.errors import MissingCapabilityError
from lopro.functions import Ball
from lopro.methods import OneProjection
from lopro.methods.baselines.projected_subgradient import check_stochastic
from lopro.methods.baselines.touch_rows import Rows
from lopro.methods.inner.subgradient import into_ball
from lopro.methods.setting import Needs, Setting, check_constants
from lopro.methods.starts import feasible_candidate
from lopro.methods.theory import ProblemConstants
from lopro.penalties import Hinge
from lopro.penalties.penalised import Penalised
from lopro.problem import Problem
from lopro.protocol import Candidates, Card, Workbench

__all__ = ["LightTouch", "LightTouchSteps"]

Numbers: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"


@dataclass(frozen=True)
class LightTouch:
    """LightTouch: many constraints, of which each iteration looks at ``sampled + 1`` only.

    Problem: min f s.t. ``c_i(x) <= 0`` for i = 1 ... m, rows of polyhedra and members of intersections.
    It plays ``min_x max_p f(x) + lam sum_i p_i [c_i(x)]_+`` over the simplex of p: x steps along the
    constraint that is drawn from p, and p is multiplied by ``exp(eta_p lam v)``, where v estimates all
    violations: those seen last, corrected by ``m / k`` times what has changed for k constraints drawn
    uniformly. All x stay in a ball W of radius D around a feasible start that holds a solution; then their
    average is projected. Oracles: a subgradient of f and exactly k + 1 constraints
    per iteration, O(d) each for a polyhedron, O(m) arithmetic for p, and once all m for B. Theorem: with
    ``lam = G / rho``, ``Gbar = G + lam max_i G_i``, ``B = lam (m / k) max_i sup_W [c_i]_+``,
    ``eta = D / (Gbar sqrt T)`` and ``eta_p = sqrt(2 log m / T) / B``, the expectation of ``f(x) - f_*`` is at
    most ``(Gbar D + 2 B sqrt(2 log m)) / sqrt T``.

    Parameters
    ----------
    iterations : int
        T.
    sampled : int, optional
        k, how many constraints p learns from in each iteration; ``sqrt(m)``, rounded up, if not given.
    dual_step : float, optional
        ``eta_p``. The theorem's provides for the worst estimate there could ever be; as the violations
        seen last get closer to the truth, steps many times as long do better.
    constants : ProblemConstants, optional
        G, and rho of the largest ``c_i``, if you know them better than the problem does: the regularity
        constant of a polyhedron with many rows is not computed, for one.
    radius : float, optional
        D: how far from the start, or its projection, a solution may be.
    stochastic : bool
        Whether subgradients of f are sampled.

    References
    ----------
    A. Cotter, M. Gupta, J. Pfeifer, "A light touch for heavily constrained SGD", COLT 2016.

    Departures
    ----------
    The constants of the theorem are derived here (mirror descent for saddle points; the factor 2 pays
    for the dependence of the best p on the samples). A start outside the set is projected.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from lopro.methods.baselines import LightTouch
    >>> f = lopro.objectives.Linear(np.array([-1.0, -2.0]))
    >>> box = lopro.constraints.Polyhedron.box(np.zeros(2), np.ones(2))
    >>> method = LightTouch(iterations=5000, sampled=1)
    >>> result = lopro.solve(lopro.Problem(f, box), method=method, tol=0, seed=0)
    >>> abs(result.fun + 3.0) < 0.1, result.counts.projections, result.counts.rows
    (True, 1, 10004)
    """

    card: ClassVar[Card] = Card(
        assumptions="many constraints; G, rho and a radius known",
        oracles="subgradients of f, k + 1 of the m constraints per iteration",
        rate="(Gbar D + 2 B sqrt(2 log m)) / sqrt(T) in expectation",
        projections="exactly 1, and 1 for a start outside",
        reference="Cotter, Gupta, Pfeifer (COLT 2016)",
    )

    iterations: int = 10_000
    sampled: int | None = None
    dual_step: float | None = None
    constants: ProblemConstants | None = None
    radius: float | None = None
    stochastic: bool = False

    def __post_init__(self) -> None:
        check_count("iterations", self.iterations)
        if self.sampled is not None:
            check_count("sampled", self.sampled)
        if self.dual_step is not None:
            check_number("dual_step", self.dual_step, minimum=0.0, exclusive=True)
        check_constants(self.constants, self.radius)

    @property
    def _needs(self) -> Needs:
        return Needs("LightTouch", self.constants, self.radius)

    def check(self, problem: Problem) -> None:
        self._needs.check(problem)
        if self.stochastic:
            check_stochastic(problem, "LightTouch(stochastic=True)")
        rows = Rows(problem.constraint)
        if self.sampled is not None and self.sampled > rows.count:
            raise ValueError(f"sampled must be at most {rows.count}, got {self.sampled}")
        if rows.lipschitz(Ball(problem.start(None), 1.0)) is None:
            raise MissingCapabilityError(
                f"LightTouch needs a Lipschitz constant of every member of {problem.constraint!r}; "
                "use lopro.LoPGD()"
            )

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        rows = Rows(bench.problem.constraint)
        at = self._needs.find(bench, x0)
        if at.solved or at.weight == 0.0:
            yield feasible_candidate(at.start)
            return
        # The constants of a problem are those of its own c; a user's are those of the largest row.
        weight = at.weight * (rows.shortfall if self.constants is None else 1.0)
        inner = self._steps(rows, at, weight)
        yield from OneProjection(inner, Hinge(weight), self.iterations).run(bench, at.start)

    def _steps(self, rows: Rows, at: Setting, weight: float) -> LightTouchSteps:
        m, T, D = rows.count, self.iterations, at.ball.radius
        k = math.ceil(math.sqrt(m)) if self.sampled is None else self.sampled
        slopes = rows.lipschitz(at.ball)
        assert slopes is not None  # check has seen them
        Gbar = at.constants.G + weight * float(slopes.max())
        dual_step = self.dual_step
        if dual_step is None:
            highest = rows.values(np.arange(m), at.ball.center) + slopes * D
            B = weight * (m / k) * max(float(highest.max()), 0.0)
            dual_step = math.sqrt(2.0 * math.log(m) / T) / B if B > 0.0 else 0.0
        eta = D / (Gbar * math.sqrt(T))
        return LightTouchSteps(rows, weight, k, eta, dual_step, at.ball, self.stochastic)


@dataclass(slots=True)
class TouchState:
    """Where LightTouch stands."""

    x: Array
    average: Array
    rng: np.random.Generator
    scores: Numbers  # the logarithm of p, up to a constant
    seen: Numbers  # the violations as they were last seen
    t: int = 0


@dataclass(frozen=True, eq=False)
class LightTouchSteps:
    """The saddle-point steps of `LightTouch`, as an inner algorithm of one projection at the end."""

    rows: Rows
    weight: float
    sampled: int
    eta: float
    dual_step: float
    ball: Ball
    stochastic: bool = False

    def check(self, problem: Any) -> None:
        """`LightTouch.check` has looked at everything."""

    def init(self, F: Penalised, x: Array, rng: np.random.Generator) -> TouchState:
        m = self.rows.count
        return TouchState(x, x, rng, np.zeros(m), np.zeros(m))

    def step(self, F: Penalised, state: TouchState) -> TouchState:
        x, rng = state.x, state.rng
        g = F.objective.stochastic_subgradient(x, rng) if self.stochastic else None
        g = F.objective.subgradient(x) if g is None else g
        i = draw(state.scores, rng)
        if float(self.rows.values(np.array([i]), x)[0]) > 0.0:
            g = g + self.weight * self.rows.subgradient(i, x)
        state.scores = state.scores + self.dual_step * self.weight * self._estimate(state)
        state.t += 1
        state.average = state.average + (x - state.average) / state.t
        state.x = into_ball(x - self.eta * g, self.ball)
        return state

    def _estimate(self, state: TouchState) -> Numbers:
        """Return an unbiased estimate of all violations at ``x`` from ``sampled`` of them."""
        m, k = self.rows.count, self.sampled
        chosen = state.rng.choice(m, k, replace=False)
        now = np.maximum(self.rows.values(chosen, state.x), 0.0)
        estimate = state.seen.copy()
        estimate[chosen] += (m / k) * (now - state.seen[chosen])
        state.seen[chosen] = now
        return estimate

    def output(self, state: TouchState) -> Array:
        return state.average

    def bound(self, state: TouchState, distance: float) -> float | None:
        return None  # the theorem speaks of expectations


def draw(scores: Numbers, rng: np.random.Generator) -> int:
    """Draw an index with probability proportional to ``exp(score)``.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.methods.baselines.light_touch import draw
    >>> draw(np.array([0.0, 1000.0]), np.random.default_rng(0))
    1
    """
    heights = np.cumsum(np.exp(scores - scores.max()))
    return int(np.searchsorted(heights, rng.random() * heights[-1], side="right"))
