"""Every status with which a run can end is produced once, and only one of them is a success."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from support.driver_cases import (
    BUILDERS,
    WatchedConstraint,
    WatchedObjective,
    box,
    ellipsoid,
    l1_halfspace,
    nearest_in_box,
    watched,
)

import lopro
from lopro import Problem, Status
from lopro.constraints import FunctionConstraint, Polyhedron, ResidualBall
from lopro.core.deadline import using_clock
from lopro.errors import ProjectionError, StalledError
from lopro.methods.inner import AcceleratedGradient, ConstantStep, SqrtStep, SubgradientDescent
from lopro.objectives import FunctionObjective, L1Norm, Linear, SquaredDistance
from lopro.penalties import Hinge, Softplus

METHODS = [
    lopro.Auto(),
    lopro.LoPGD(),
    lopro.OneProjection(SubgradientDescent(SqrtStep(0.1)), Hinge(3.0), 40),
]


@pytest.fixture
def problem(rng):
    return nearest_in_box(rng).problem


def ended(result: lopro.Result, status: Status) -> None:
    """Check that the status is as expected and explained, and a success only if it is CONVERGED."""
    assert result.status is status
    prefix = "stopped by " if status is Status.STOPPED else status.value
    assert result.message.startswith(prefix)
    assert result.success is (status is Status.CONVERGED)
    assert status.name in str(result)


@pytest.mark.parametrize("build", BUILDERS, ids=lambda build: build.__name__)
def test_converged_means_feasible_and_close_to_the_optimum(build, rng):
    known = build(rng)
    result = lopro.solve(known.problem, tol=1e-6, max_iter=200_000)
    ended(result, Status.CONVERGED)
    assert known.problem.constraint.violation(result.x) <= 1e-9
    assert result.fun - known.optimum <= 1e-6 * max(1.0, abs(result.fun))
    assert result.certificate.relative_gap <= 1e-6
    assert result.certificate.lower_bound <= known.optimum + 1e-12 * (1.0 + abs(known.optimum))


def test_schedule_done_when_the_method_is_complete_without_a_proof(problem):
    method = lopro.OneProjection(SubgradientDescent(SqrtStep(0.1)), Hinge(3.0), iterations=5)
    result = lopro.solve(problem, method=method, tol=1e-12)
    ended(result, Status.SCHEDULE_DONE)
    assert result.iterations == 5 and result.counts.projections == 1


def test_stalled_where_a_method_makes_no_progress(problem):
    class GivesUp:
        def check(self, problem):
            pass

        def run(self, bench, x0):
            yield from lopro.OneProjection(
                AcceleratedGradient(), Softplus(1.0, 0.1), iterations=3
            ).run(bench, x0)
            raise StalledError

    result = lopro.solve(problem, method=GivesUp(), tol=0.0)
    ended(result, Status.STALLED)
    assert len(result.history) == 1 and math.isfinite(result.fun)


def test_stalled_when_the_gap_is_rounding():
    # The multiplier is irrational, so a gap of exactly 0 cannot be reached.
    f, half = Linear(np.array([1.0, np.pi])), ResidualBall(np.diag([1.0, 3.0]), np.ones(2), 0.3)
    method = lopro.MultiplierMethod(patience=3)
    result = lopro.solve(Problem(f, half), method=method, tol=0.0, max_iter=200_000)
    ended(result, Status.STALLED)
    assert result.certificate.relative_gap < 1e-6


@pytest.mark.parametrize(
    "method",
    [lopro.NewtonMultipliers(), lopro.MultiplierMethod(), *METHODS[1:]],
    ids=lambda m: type(m).__name__,
)
@pytest.mark.parametrize("limit", [1, 7, 12])
def test_max_iter_is_never_exceeded_and_the_point_is_projected(problem, method, limit):
    # Newton's method proves a gap of 5e-17 in fewer than twelve steps; with tol=0 no gap ends the run.
    result = lopro.solve(problem, method=method, max_iter=limit, tol=0)
    ended(result, Status.MAX_ITER)
    assert result.iterations == limit
    assert result.certificate.violation == 0.0
    assert np.all(np.abs(result.x) <= 1.0)


@pytest.mark.parametrize("limit", [1, 2, 3])
@pytest.mark.parametrize(
    "method",
    [
        lopro.Auto(),
        lopro.LoPGD(),
        lopro.LoPNAG(),
        lopro.LoPNAG(lopro.theorems.HalvingSmoothing(1.0, steps=20)),
    ],
    ids=["auto", "lopgd", "lopnag", "halving"],
)
def test_max_projections_is_never_exceeded(rng, method, limit):
    # For an infeasible start some methods take an additional projection.
    problem, _, constraint = watched(ellipsoid(rng).problem)
    x0 = np.full(4, 5.0)
    result = lopro.solve(problem, x0, method, max_projections=limit, tol=0.0)
    ended(result, Status.MAX_PROJECTIONS)
    assert result.counts.projections == constraint.calls["project"] == limit
    assert result.certificate.violation <= 1e-9 and math.isfinite(result.fun)


@contextmanager
def timed(known, *, slope=0.0, project=0.0, project_image=0.0) -> Iterator[Problem]:
    """Return the problem on a clock that advances by given times for slopes of f and projections only."""
    now, f, c = [0.0], known.problem.objective, known.problem.constraint

    def taking(**seconds: float):
        def passes(name: str) -> None:
            now[0] += seconds.get(name, 0.0)

        return passes

    problem = Problem(
        WatchedObjective(f, taking(subgradient=slope)),
        WatchedConstraint(c, taking(project=project, project_image=project_image)),
        gap_scale=1.0,  # with a given scale, no slope is computed at the start
    )
    with using_clock(lambda: now[0]):
        yield problem


TEN_STEPS = lopro.LoPGD(lopro.theorems.HalvingSteps(lam=2.0, eta=0.1, steps=10))


@pytest.mark.parametrize("limit", [1.0, 9.5, 25.0, 30.0])
def test_the_time_limit_is_checked_after_every_step(rng, limit):
    # A step takes a subgradient of f, here of one second, and epochs have ten steps.
    with timed(box(rng), slope=1.0) as problem:
        result = lopro.solve(problem, method=TEN_STEPS, time_limit=limit, tol=0.0)
    ended(result, Status.TIME_LIMIT)
    assert result.seconds == result.iterations == math.ceil(limit)
    assert result.counts.projections == math.ceil(limit / 10.0)
    assert result.certificate.violation == 0.0


@pytest.mark.parametrize("limit", [15.0, 20.0])
def test_a_projection_that_takes_too_long_is_the_last(rng, limit):
    # Ten seconds of steps and ten of the projection: then there is no time for another step.
    with timed(box(rng), slope=1.0, project=10.0) as problem:
        result = lopro.solve(problem, method=TEN_STEPS, time_limit=limit, tol=0.0)
    ended(result, Status.TIME_LIMIT)
    assert (result.iterations, result.counts.projections, result.seconds) == (10, 1, 20.0)


def test_the_slope_for_the_scale_of_gaps_counts_towards_the_time_limit(rng):
    """A linear function is 0 at the start: its slope is computed once more, for the first certificate."""
    with timed(box(rng), slope=1.0) as problem:
        unscaled = Problem(problem.objective, problem.constraint)
        result = lopro.solve(unscaled, method=TEN_STEPS, time_limit=9.5, tol=0.0)
    assert (result.iterations, result.seconds) == (10, 11.0)
    assert (result.counts.gradients, result.certificate_counts.gradients) == (10, 1)


def test_the_default_method_overruns_the_time_limit_by_one_step(rng):
    with timed(l1_halfspace(rng), project_image=1.0) as problem:
        result = lopro.solve(problem, time_limit=40.0, tol=0.0)
    ended(result, Status.TIME_LIMIT)
    assert 40.0 <= result.seconds <= 42.0
    assert result.certificate.violation <= 1e-9


def test_a_loose_time_limit_does_not_bind(problem):
    ended(lopro.solve(problem, time_limit=60.0), Status.CONVERGED)


EMPTY = {
    "polyhedron": Polyhedron([[1.0, 0.0], [-1.0, 0.0]], [-1.0, -1.0]),
    "residual-ball": ResidualBall(np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([1.0, -1.0]), 0.5),
}


@pytest.mark.parametrize("name", EMPTY)
@pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)
def test_infeasibility_is_reported_by_the_first_projection_at_the_latest(name, method):
    problem, _, c = watched(Problem(SquaredDistance(np.zeros(2)), EMPTY[name]))
    result = lopro.solve(problem, np.ones(2), method)
    ended(result, Status.INFEASIBLE)
    assert c.calls["project"] == result.counts.projections == 1
    assert "infeasibility" not in c.calls  # it would take a linear program before every run
    assert result.warnings and len(result.history) == 0
    assert result.certificate.gap == math.inf and result.certificate.violation == math.inf
    np.testing.assert_array_equal(result.x, np.ones(2))


@pytest.mark.parametrize("unit", [1.0, 1e-9, 1e9])
def test_an_empty_polyhedron_is_reported_with_multipliers_and_no_projection(unit):
    """``x1 <= -1`` and ``x1 >= 1``: the sum of the rows is 0 <= -2."""
    C, b = np.array([[1.0, 0.0], [-1.0, 0.0]]), unit * np.array([-1.0, -1.0])
    problem = Problem(SquaredDistance(np.zeros(2)), Polyhedron(C, b))
    result = lopro.solve(problem, unit * np.ones(2))
    ended(result, Status.INFEASIBLE)
    (y,) = result.ray
    assert y.min() > 0.0 and y[0] == y[1]
    assert b @ y == -2.0 * unit * y[0]
    assert result.counts.projections == 0 and len(result.history) == 0
    np.testing.assert_array_equal(result.x, unit * np.ones(2))


@pytest.mark.parametrize(
    "never",
    [
        FunctionConstraint(lambda x: float(np.abs(x).sum()) + 1.0, np.sign),
        FunctionConstraint(lambda x: float(x @ x) + 1.0, lambda x: 2.0 * x, smooth=True),
    ],
    ids=["kinked", "smooth"],
)
def test_infeasible_found_by_the_projection(never):
    result = lopro.solve(Problem(SquaredDistance(np.ones(2)), never), max_iter=50)
    ended(result, Status.INFEASIBLE)
    assert result.warnings


def turning(objective: type, oracle: str, after: int):
    """An objective whose oracle returns NaN after a number of calls."""

    class Turning(objective):
        calls = 0

    def call(self, x, *rest):
        self.calls += 1
        result = getattr(objective, oracle)(self, x, *rest)
        return result if self.calls <= after else math.nan * result

    setattr(Turning, oracle, call)
    return Turning


@pytest.mark.parametrize(
    ("oracle", "after"),
    [("value", 0), ("value", 5), ("subgradient", 0), ("subgradient", 5), ("subgradient", 60)],
)
@pytest.mark.parametrize(
    "method", [lopro.Auto(), lopro.LoPGD(), lopro.LoPNAG()], ids=lambda m: type(m).__name__
)
def test_nan_from_the_objective_ends_the_run(oracle, after, method):
    f = turning(SquaredDistance, oracle, after)(np.array([3.0, 0.3]))
    ball = ResidualBall(np.diag([1.0, 3.0]), np.zeros(2), 1.0)
    result = lopro.solve(Problem(f, ball), method=method, max_iter=3000, tol=0.0)
    ended(result, Status.NONFINITE)
    assert np.isfinite(result.x).all()
    assert ball.violation(result.x) <= 1e-9


@pytest.mark.parametrize("bad", ["value", "gradient", "both"])
@pytest.mark.parametrize(
    "method", [lopro.Auto(), lopro.LoPGD(), lopro.LoPNAG()], ids=lambda m: type(m).__name__
)
def test_a_callable_that_is_infinite_at_the_start_is_a_status(bad, method):
    """As in SciPy: a result without success whose message has the reason, whatever the run has reached."""

    def broken(what):
        return math.inf if bad in (what, "both") else 0.0

    f = FunctionObjective(
        lambda x: float(x @ x) + broken("value"), gradient=lambda x: 2.0 * x + broken("gradient")
    )
    ball = ResidualBall(np.diag([1.0, 3.0]), np.zeros(2), 1.0)
    x0 = np.array([3.0, 4.0])
    result = lopro.solve(Problem(f, ball), x0, method)
    ended(result, Status.NONFINITE)
    assert any("finite" in warning for warning in result.warnings)
    assert result.certificate.gap == math.inf and np.isfinite(result.x).all()


def test_a_start_at_which_the_objective_overflows_is_no_error():
    """The exponential overflows at the start, where a method that projects first does not evaluate it."""
    f = FunctionObjective(
        lambda x: float(np.sum(np.exp(x))) if (x < 700.0).all() else math.inf,
        gradient=lambda x: np.where(x < 700.0, np.exp(np.minimum(x, 700.0)), math.inf),
    )
    problem = Problem(f, ResidualBall(np.eye(2), np.zeros(2), 1.0))
    good = lopro.solve(problem, np.full(2, 800.0), lopro.LoPNAG())
    assert good.success and good.fun == pytest.approx(2.0 * np.exp(-np.sqrt(0.5)), rel=1e-5)
    ended(lopro.solve(problem, np.full(2, 800.0)), Status.NONFINITE)


def test_steps_that_are_much_too_long_end_as_nonfinite():
    ball = ResidualBall(np.diag([1.0, 3.0]), np.zeros(2), 1.0)
    method = lopro.OneProjection(SubgradientDescent(ConstantStep(1e200)), Hinge(1.0), 100)
    result = lopro.solve(Problem(SquaredDistance(np.ones(2)), ball), method=method)
    ended(result, Status.NONFINITE)
    assert not math.isfinite(result.fun) or result.certificate.gap == math.inf


@pytest.mark.parametrize("fails_at", [1, 2])
def test_projection_failed_keeps_the_best_point(rng, fails_at):
    def before(name: str) -> None:
        if name == "project" and constraint.calls["project"] >= fails_at:
            raise ProjectionError("the solver gave up")

    known = ellipsoid(rng)
    problem, _, constraint = watched(known.problem, before)
    result = lopro.solve(problem, method=lopro.LoPNAG(), tol=0.0)
    ended(result, Status.PROJECTION_FAILED)
    assert any("the solver gave up" in warning for warning in result.warnings)
    if fails_at > 1:
        assert known.problem.constraint.violation(result.x) <= 1e-9


def test_stopped_by_the_callback(problem):
    seen = []
    result = lopro.solve(problem, callback=lambda it: seen.append(it) or True, tol=0.0)
    ended(result, Status.STOPPED)
    assert result.message == "stopped by the callback"
    assert len(seen) == len(result.history) == 1


def test_success_is_never_true_for_another_status():
    fields = {name: None for name in lopro.Result.__dataclass_fields__}
    for status in Status:
        result = lopro.Result(**(fields | {"status": status}))
        assert result.success is (status is Status.CONVERGED)


def test_a_missing_certificate_is_in_the_message():
    # The solutions of a linear function over a half-space have no known bound here.
    half = Polyhedron([[1.0, 1.0]], [1.0])
    result = lopro.solve(
        Problem(Linear(np.array([-1.0, -1.1])), half), method=lopro.LoPGD(), max_iter=500
    )
    assert result.certificate.lower_bound == -math.inf and result.certificate.gap == math.inf
    assert "no lower bound" in result.message and not result.success


def test_l1_and_a_tolerance_of_zero_still_converge_where_the_gap_closes():
    # The start is the solution, and a multiplier of zero proves it.
    half = Polyhedron([[1.0, 1.0]], [1.0])
    ended(lopro.solve(Problem(L1Norm(), half), np.zeros(2), tol=0.0), Status.CONVERGED)
