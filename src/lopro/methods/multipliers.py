"""The method of multipliers with few projections: centred penalties and accelerated gradient steps.

LoPNAG smooths its penalty around a fixed multiplier, half of the weight, so its smoothing has to go to zero.
Here every row, ball or cone of the constraint has its own multiplier and a penalty whose stiffness stays
bounded: the inner problems stay well conditioned, and the multipliers prove a lower bound after every update.
A point is projected only when the estimated gap has decreased to a tenth: ``O(log 1/eps)`` projections.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from lopro.constraints import Constraint
from lopro.constraints.base import ValidInequality
from lopro.core.arrays import Array, eps, inner, norm
from lopro.core.validation import check_count
from lopro.core.vectors import diagonal_direction
from lopro.driver.minorants import Minorant, lower_bound, solution_radius
from lopro.errors import MissingCapabilityError, StalledError
from lopro.methods.inner import AcceleratedGradient, Backtracking
from lopro.methods.inner.accelerated import AcceleratedState
from lopro.methods.stalling import StallCheck
from lopro.penalties import MemberPenalties
from lopro.penalties.penalised import Penalised
from lopro.problem import Problem
from lopro.protocol import Candidate, Candidates, Card, Multiplier, Workbench

__all__ = ["MultiplierMethod", "check_penalties", "first_stiffness", "minimised", "reach"]


@dataclass(frozen=True)
class MultiplierSettings:
    """Constants of `MultiplierMethod`.

    ``python -m benchmarks.constants methods.multipliers`` divides and multiplies each by ten and counts the
    steps on eight problems. The two figures at each constant are the total numbers of steps after the
    division and after the multiplication, relative to that with the value here. On the same problems
    `MultiplierMethod.steps` of 8, 75 and 250 take 6.5, 1.2 and 2.2 times as many steps, and a `patience` of
    6 or 600 changes no count.
    """

    #: Bound on the rounding error of a gradient, in units of rounding of its terms: 1.00, 1.00.
    roundings: float = 4.0
    #: Consecutive checks without a smaller gradient, after which gradients are taken to be noise (gradients
    #: by differences of values in double precision are, below about 1e-8): 0.89, 1.00. There are 25 steps
    #: between two checks: after a restart the gradient decreases within far fewer steps.
    noisy_checks: int = 40
    #: A point is projected when the estimated gap is this share of the gap after the last projection: 1.30,
    #: 0.98. There is one projection for each reduction of the gap to this share.
    projection_share: float = 0.1
    #: Penalties become stiffer if an update leaves more than this share of the slack, the residual of
    #: complementarity: 1.02, 1.29.
    sufficient_decrease: float = 0.3
    #: Factor by which penalties become stiffer: six problems are not solved with 0.3; 0.97 with 30.
    growth: float = 3.0
    #: Accuracy of the inner problems, as a share of the required gap: 1.00, 0.98.
    accuracy_share: float = 0.1
    #: Accuracy of the inner problems while the slack is larger: this share of it (1.07, 0.87), and at most
    #: this share of the value (1.03, 0.85).
    slack_share: float = 0.1
    value_share: float = 0.01


SETTINGS = MultiplierSettings()


def check_penalties(problem: Problem, method: str) -> None:
    """Raise unless accelerated gradient steps apply to the objective and to the penalty of every member."""
    AcceleratedGradient().check(problem)
    for member in problem.constraint.members():
        if not (member.smooth or member.has_image_set):
            raise MissingCapabilityError(
                f"{method} needs constraints that are smooth or of the form M x in Q; "
                f"{member!r} is neither. Use lopro.LoPGD()"
            )


def minimised(
    bench: Workbench,
    F: Penalised,
    x: Array,
    L: float | None,
    tolerance: Callable[[float], float],
    *,
    steps: int,
    rounds: int = 200,
) -> AcceleratedState:
    """Minimise ``F`` until the norm of its gradient, times the size of a solution, is below the tolerance.

    Parameters
    ----------
    bench, F, x, L
        The workbench, the function, the start, and the first trial of the smoothness constant.
    tolerance : callable
        The required accuracy as a function of ``f(x)``, in units of the objective.
    steps, rounds : int
        Steps between two checks of the stopping rule, and the limit of these checks.
    """
    # L is infinite after a kink of a function declared as smooth: it is then estimated again.
    known = None if L is None or math.isinf(L) else L
    algorithm = AcceleratedGradient(step_rule=Backtracking(known), restart=True)
    state: AcceleratedState = bench.minimize(algorithm, F, x, steps)
    with bench.observe():
        fun = float(bench.objective.value(state.x))
        size = reach(bench, state.x, fun)
    accuracy = tolerance(fun)
    noise = StallCheck(SETTINGS.noisy_checks, share=1.0)
    for _ in range(rounds):
        # The slope is a difference of gradients of size L |x|, with their rounding error.
        rounding = SETTINGS.roundings * eps(state.x) * state.L * norm(state.x)
        if state.slope * size <= accuracy or state.slope <= rounding or bench.exhausted:
            break
        if noise.stalled(state.slope):
            break
        state = bench.advance(algorithm, F, state, steps)
    return state


def reach(bench: Workbench, x: Array, fun: float) -> float:
    """Return a bound on the norm of a solution, or an estimate of it if no bound is known."""
    radius = solution_radius(bench.counted, fun)
    return bench.unit + norm(x) if radius is None else radius.value


def first_stiffness(bench: Workbench, x: Array) -> tuple[float, ...]:
    """Return for each member the stiffness at which a violation of the size of ``x`` balances grad f."""
    size = bench.unit + norm(x)
    slope, direction = _slope_near(bench, x, size)
    if slope == 0.0:
        return (1.0,) * len(bench.constraint.members())
    return tuple(
        slope / size / gain if (gain := _squared_gain(member, x, direction, size)) > 0.0 else 1.0
        for member in bench.constraint.members()
    )


def _slope_near(bench: Workbench, x: Array, size: float) -> tuple[float, Array]:
    """Return the norm and the direction of grad f at ``x``, or at a point near ``x`` if it is zero there."""
    for point in (x, x + size * diagonal_direction(x)):
        g = bench.objective.subgradient(point)
        length = norm(g)
        if length > 0.0:
            return length, g / length
    return 0.0, diagonal_direction(x)


def _squared_gain(member: Constraint, x: Array, direction: Array, size: float) -> float:
    """Return the squared change of ``M x``, or of ``c(x)``, by a step of unit length."""
    if member.has_image_set:
        return sum(norm(z) ** 2 for z in member.image(direction))
    slope = norm(member.subgradient(x))
    if slope == 0.0:
        slope = norm(member.subgradient(x + size * direction))
    return slope**2


@dataclass(frozen=True)
class _StepState:
    """The result of one multiplier update, in units of the objective."""

    fun: float  # f(x_hat) at the infeasible point
    slack: float  # residual of complementarity, |<v, x> - support|
    residual: float  # norm of grad of the Lagrangian times the size of a solution; 0 with a bound
    bound: float  # lower bound proved by the multiplier; -inf if none can be proved
    inequality: ValidInequality

    @property
    def certifiable(self) -> bool:
        """Whether a lower bound can be proved for this problem."""
        return math.isfinite(self.bound)

    @property
    def gap(self) -> float:
        """An estimate of the gap after projection, from the KKT residuals if there is no lower bound."""
        return self.slack + (abs(self.fun - self.bound) if self.certifiable else self.residual)


@dataclass(frozen=True)
class MultiplierMethod:
    """The method of multipliers with accelerated gradient steps and ``O(log 1/eps)`` projections.

    Problem: min f(x) s.t. c(x) <= 0 where f is smooth, proximable or a sum, and each member of the
    constraint is either smooth or of the form ``M x in Q`` with a simple ``Q``. Oracles: gradients, prox,
    projections on ``Q`` (not on the feasible set). No constants of the problem are needed.

    Parameters
    ----------
    steps : int
        Inner steps between two checks of the stopping rule.
    patience : int
        Largest number of consecutive multiplier updates without a smaller gap before the method stops.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> f = lopro.objectives.Linear(np.array([-1.0, -2.0]))
    >>> simplex = lopro.constraints.Polyhedron(
    ...     np.array([[-1.0, 0.0], [0.0, -1.0], [1.0, 1.0]]), np.array([0.0, 0.0, 1.0])
    ... )
    >>> result = lopro.solve(lopro.Problem(f, simplex), method=lopro.MultiplierMethod())
    >>> result.success, result.x.round(5) + 0.0
    (True, array([0., 1.]))
    """

    card: ClassVar[Card] = Card(
        assumptions="f smooth or proximable (or a sum), members of the constraint smooth or M x in Q",
        oracles="gradients, prox, projections on the simple sets Q",
        rate="no constants; linear where the dual is locally strongly concave",
        projections="O(log 1/eps): one per tenfold reduction of the gap",
        reference="method of multipliers (Hestenes, Powell 1969) with late projections",
    )

    steps: int = 25
    patience: int = 60

    def __post_init__(self) -> None:
        check_count("steps", self.steps)
        check_count("patience", self.patience)

    def check(self, problem: Problem) -> None:
        check_penalties(problem, "MultiplierMethod")

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        constraint = bench.constraint
        penalty = MemberPenalties.of(constraint, first_stiffness(bench, x0), bench.multipliers0)
        x, L, slack, target = x0, None, math.inf, math.inf
        # Without a constraint there are no multipliers: the same function would be minimised again.
        progress = StallCheck(self.patience if constraint.members() else 1)
        while True:
            F = bench.penalised(penalty, x)
            state = self._inner_solve(bench, F, x, L, slack)
            # The next penalised problem may have a smaller smoothness constant.
            x, L = state.x, 0.5 * state.L
            reached = self._evaluate(bench, penalty, x)
            stalled = progress.stalled(reached.gap)
            settled = not reached.certifiable and reached.gap <= _accuracy(bench, x, reached.fun)
            last = bench.exhausted or stalled or settled
            if reached.gap <= target or last:
                verdict = yield Candidate(
                    bench.project(x), Multiplier(reached.inequality), before=x
                )
                target = SETTINGS.projection_share * min(reached.gap, verdict.certificate().gap)
            if settled:
                return
            if last:
                raise StalledError
            penalty = penalty.recentred(constraint, state.image_x[-constraint.image_length :])
            large = reached.slack > SETTINGS.sufficient_decrease * slack
            if large and not _violates_by_rounding(bench, x):
                penalty = penalty.stiffened(SETTINGS.growth)
            slack = reached.slack

    def _inner_solve(
        self, bench: Workbench, F: Penalised, x: Array, L: float | None, slack: float
    ) -> AcceleratedState:
        """Minimise F until its gradient contributes less to the gap than the last slack."""

        def tolerance(fun: float) -> float:
            least = _accuracy(bench, x, fun)
            coarse = SETTINGS.slack_share * slack, SETTINGS.value_share * abs(fun) + least
            return max(least, min(coarse))

        return minimised(bench, F, x, L, tolerance, steps=self.steps)

    def _evaluate(self, bench: Workbench, penalty: MemberPenalties, x: Array) -> _StepState:
        problem = bench.counted
        with bench.observe():
            inequality = penalty.valid_inequality(problem.constraint, x)
            fun = float(problem.objective.value(x))
            bound, _ = lower_bound(problem, x, inequality, fun)
            # Without a lower bound the gradient of the Lagrangian measures optimality.
            residual = 0.0
            if not math.isfinite(bound):
                slope = norm(Minorant.of(problem, x, inequality).slope)
                residual = slope * reach(bench, x, fun)
            # <v, z> - support is nonpositive at feasible z and zero where the inequality is active.
            slack = abs(inner(inequality.direction, x) - inequality.support)
        return _StepState(fun, slack, residual, bound, inequality)


def _violates_by_rounding(bench: Workbench, x: Array) -> bool:
    """Whether the violation is rounding error, which a stiffer penalty would multiply and not reduce."""
    with bench.observe():
        return bench.constraint.violation(x) <= SETTINGS.roundings * eps(x)


def _accuracy(bench: Workbench, x: Array, fun: float) -> float:
    """Return the final accuracy of the inner problems: a share of the gap, at least rounding error."""
    rounding = SETTINGS.roundings * eps(x) * bench.target.unit(fun)
    return max(SETTINGS.accuracy_share * bench.target.gap(fun), rounding)
