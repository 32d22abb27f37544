"""LightTouch: a few sampled constraints per iteration, drawn from an adaptive distribution.

The authors' third method, MidTouch for strongly convex objectives, is not implemented.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from lopro.constraints import Constraint, NormForm, Polyhedron
from lopro.core.arrays import Array, Vector
from lopro.core.counting import count
from lopro.core.validation import check_fields
from lopro.errors import MissingCapabilityError
from lopro.functions import Ball
from lopro.methods.baselines.one_projection import AveragedState, AveragedSteps, SingleProjection
from lopro.methods.inner.subgradient import into_ball
from lopro.methods.paper.epochs import Plan
from lopro.methods.setting import Setting
from lopro.methods.theory import ProblemConstants
from lopro.penalties import Hinge
from lopro.penalties.penalised import Penalised
from lopro.problem import Problem
from lopro.protocol import Card, Workbench

__all__ = ["LightTouch", "LightTouchSteps", "ScalarConstraints", "TouchState", "draw"]


class _PolyhedronRows:
    """The rows of a polyhedron, of which each takes O(d) operations."""

    def __init__(self, polyhedron: Polyhedron) -> None:
        self.polyhedron = polyhedron
        self.count = int(polyhedron.C.shape[0])

    def values(self, indices: Any, x: Array) -> Vector:
        return self.polyhedron.row_values(indices, x)

    def subgradient(self, i: int, x: Array) -> Array:
        return self.polyhedron.row(i, x)

    def lipschitz(self, ball: Ball) -> Vector | None:
        return self.polyhedron.row_norms


class _Member:
    """A constraint given by one function."""

    count = 1

    def __init__(self, constraint: Constraint) -> None:
        self.constraint = constraint

    def values(self, indices: Any, x: Array) -> Vector:
        count("rows", len(indices))
        return np.full(len(indices), self.constraint.value(x)) if len(indices) else np.zeros(0)

    def subgradient(self, i: int, x: Array) -> Array:
        return self.constraint.subgradient(x)

    def lipschitz(self, ball: Ball) -> Vector | None:
        constant = self.constraint.lipschitz(ball)
        return None if constant is None else np.array([constant.value])


class ScalarConstraints:
    """The functions ``c_i`` of a constraint: rows of polyhedra, members of intersections.

    Parameters
    ----------
    constraint : Constraint
        Polyhedra in an intersection are split into rows if their function is the largest row, because the
        regularity constant of the intersection refers to the functions of its members.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from lopro.methods.baselines.light_touch import ScalarConstraints
    >>> rows = ScalarConstraints(lopro.constraints.Polyhedron(np.eye(3), np.zeros(3)))
    >>> rows.count, rows.values(np.array([0, 2]), np.array([1.0, 2.0, 3.0]))
    (3, array([1., 3.]))
    """

    def __init__(self, constraint: Constraint) -> None:
        members = constraint.members()
        alone = len(members) == 1
        self._parts = [
            _PolyhedronRows(m)
            if isinstance(m, Polyhedron) and (alone or not isinstance(m.form, NormForm))
            else _Member(m)
            for m in members
        ]
        #: Largest ratio of the constraint's function to the largest ``c_i``: ``sqrt(m)`` for a norm of m
        #: rows.
        self.shortfall = 1.0
        one = members[0]
        if alone and isinstance(one, Polyhedron) and isinstance(one.form, NormForm):
            self.shortfall = math.sqrt(one.C.shape[0])
        self._starts = np.cumsum([0] + [part.count for part in self._parts])

    @property
    def count(self) -> int:
        """The number of functions."""
        return int(self._starts[-1])

    def values(self, indices: Any, x: Array) -> Vector:
        """Return ``c_i(x)`` for some ``i``; each is counted as one row."""
        if len(self._parts) == 1:
            return self._parts[0].values(indices, x)
        found = np.zeros(len(indices))
        for part, start in zip(self._parts, self._starts, strict=False):
            mine = (indices >= start) & (indices < start + part.count)
            if mine.any():
                found[mine] = part.values(indices[mine] - start, x)
        return found

    def subgradient(self, i: int, x: Array) -> Array:
        """Return a subgradient of ``c_i``; it is counted with its value."""
        which = int(np.searchsorted(self._starts, i, side="right")) - 1
        return self._parts[which].subgradient(i - int(self._starts[which]), x)

    def lipschitz(self, ball: Ball) -> Vector | None:
        """Return a Lipschitz constant of each ``c_i`` on the ball, or None if one is not known."""
        found = [part.lipschitz(ball) for part in self._parts]
        known = [constants for constants in found if constants is not None]
        return np.concatenate(known) if len(known) == len(found) else None


@dataclass(frozen=True)
class LightTouch(SingleProjection):
    """LightTouch: many constraints, of which each iteration evaluates only ``sampled + 1``.

    Problem: min f s.t. ``c_i(x) <= 0`` for i = 1 ... m, rows of polyhedra and members of intersections.
    It solves ``min_x max_p f(x) + lam sum_i p_i [c_i(x)]_+`` over the simplex of p: x steps along the
    constraint that is drawn from p, and p is multiplied by ``exp(eta_p lam v)``, where v estimates all
    violations: the last known ones, corrected by ``m / k`` times the change of k constraints drawn
    uniformly. All x stay in a ball W of radius D around a feasible start that contains a solution; then
    their average is projected. Oracles: a subgradient of f and exactly k + 1 constraints
    per iteration, O(d) each for a polyhedron, O(m) arithmetic for p, and once all m for B. Theorem: with
    ``lam = G / rho``, ``Gbar = G + lam max_i G_i``, ``B = lam (m / k) max_i sup_W [c_i]_+``,
    ``eta = D / (Gbar sqrt T)`` and ``eta_p = sqrt(2 log m / T) / B``, the expectation of ``f(x) - f_*`` is at
    most ``(Gbar D + 2 B sqrt(2 log m)) / sqrt T``.

    Parameters
    ----------
    iterations : int
        T.
    sampled : int, optional
        k, the number of constraints that update p in each iteration; by default ``sqrt(m)``, rounded up.
    dual_step : float, optional
        ``eta_p``; by default that of the theorem, which covers the worst estimate v. When the last known
        violations are accurate, much longer steps converge faster.
    constants, radius, stochastic
        As for `FullTouch`; rho is that of the largest ``c_i``.

    Departures
    ----------
    The constants of the theorem are derived here (mirror descent for saddle points; the factor 2 covers
    the dependence of the best p on the samples). An infeasible start is projected first, which counts.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> f = lopro.objectives.Linear(np.array([-1.0, -2.0]))
    >>> box = lopro.constraints.Polyhedron.box(np.zeros(2), np.ones(2))
    >>> method = lopro.baselines.LightTouch(iterations=5000, sampled=1)
    >>> result = lopro.solve(lopro.Problem(f, box), method=method, tol=0, seed=0)
    >>> abs(result.fun + 3.0) < 0.1, result.counts.projections, result.counts.rows
    (True, 1, 10004)
    """

    card: ClassVar[Card] = Card(
        assumptions="many constraints; G, rho and a radius known",
        oracles="subgradients of f, k + 1 of the m constraints per iteration",
        rate="(Gbar D + 2 B sqrt(2 log m)) / sqrt(T) in expectation",
        projections="exactly 1, and 1 for an infeasible start",
        reference="Cotter, Gupta, Pfeifer (COLT 2016)",
    )

    iterations: int = 10_000
    sampled: int | None = None
    dual_step: float | None = None
    constants: ProblemConstants | None = None
    radius: float | None = None
    stochastic: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, counts=("sampled",), positive=("dual_step",))

    def check(self, problem: Problem) -> None:
        super().check(problem)
        rows = ScalarConstraints(problem.constraint)
        if self.sampled is not None and self.sampled > rows.count:
            raise ValueError(f"sampled must be at most {rows.count}, got {self.sampled}")
        if rows.lipschitz(Ball(problem.start(None), 1.0)) is None:
            raise MissingCapabilityError(
                f"LightTouch needs a Lipschitz constant of every member of {problem.constraint!r}; "
                "use lopro.LoPGD()"
            )

    def plan(self, bench: Workbench, s: Setting) -> Plan:
        rows = ScalarConstraints(bench.problem.constraint)
        # The constants of a problem belong to its function c; given ones belong to the largest row.
        weight = s.weight * (rows.shortfall if self.constants is None else 1.0)
        return Plan(Hinge(weight), self._steps(rows, s, weight), self.iterations, s.start)

    def _steps(self, rows: ScalarConstraints, at: Setting, weight: float) -> LightTouchSteps:
        m, T, D = rows.count, self.iterations, at.ball.radius
        k = math.ceil(math.sqrt(m)) if self.sampled is None else self.sampled
        slopes = rows.lipschitz(at.ball)
        assert slopes is not None  # by `check`
        Gbar = at.constants.G + weight * float(slopes.max())
        dual_step = self.dual_step
        if dual_step is None:
            highest = rows.values(np.arange(m), at.ball.center) + slopes * D
            B = weight * (m / k) * max(float(highest.max()), 0.0)
            dual_step = math.sqrt(2.0 * math.log(m) / T) / B if B > 0.0 else 0.0
        eta = D / (Gbar * math.sqrt(T))
        return LightTouchSteps(rows, weight, k, eta, dual_step, at.ball, self.stochastic)


@dataclass(slots=True, kw_only=True)
class TouchState(AveragedState):
    """State of LightTouch."""

    scores: Vector  # logarithm of p, up to a constant
    seen: Vector  # the last known violations


@dataclass(frozen=True, eq=False)
class LightTouchSteps(AveragedSteps):
    """The saddle-point steps of `LightTouch` as an inner algorithm."""

    rows: ScalarConstraints
    weight: float
    sampled: int
    eta: float
    dual_step: float
    ball: Ball
    stochastic: bool = False

    def init(self, F: Penalised, x: Array, rng: np.random.Generator) -> TouchState:
        m = self.rows.count
        return TouchState(x, x, rng, scores=np.zeros(m), seen=np.zeros(m))

    def step(self, F: Penalised, state: TouchState) -> TouchState:
        x, rng = state.x, state.rng
        g = self.subgradient(F.objective, state)
        i = draw(state.scores, rng)
        if float(self.rows.values(np.array([i]), x)[0]) > 0.0:
            g = g + self.weight * self.rows.subgradient(i, x)
        state.scores = state.scores + self.dual_step * self.weight * self._estimate(state)
        state.t += 1
        state.include(x)
        state.x = into_ball(x - self.eta * g, self.ball)
        return state

    def _estimate(self, state: TouchState) -> Vector:
        """Return an unbiased estimate of all violations at ``x`` from ``sampled`` of them."""
        m, k = self.rows.count, self.sampled
        chosen = state.rng.choice(m, k, replace=False)
        now = np.maximum(self.rows.values(chosen, state.x), 0.0)
        estimate = state.seen.copy()
        estimate[chosen] += (m / k) * (now - state.seen[chosen])
        state.seen[chosen] = now
        return estimate


def draw(scores: Vector, rng: np.random.Generator) -> int:
    """Draw an index with probability proportional to ``exp(score)``."""
    heights = np.cumsum(np.exp(scores - scores.max()))
    return int(np.searchsorted(heights, rng.random() * heights[-1], side="right"))
