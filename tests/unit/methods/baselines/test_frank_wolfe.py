"""Frank-Wolfe keeps its rate, its gap is a certificate, and it never projects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import array_api_strict
import cvxpy as cp
import numpy as np
import pytest
from support.frank_wolfe_runs import CASES, Case, count_linear_minimizations, values_along
from support.theorem_checks import SLACK, count_projections

import lopro
from lopro import Problem, Status
from lopro.constraints import L1Ball, Polyhedron, PSDCone, ResidualBall, Simplex
from lopro.core.arrays import to_numpy
from lopro.errors import MissingCapabilityError
from lopro.methods.baselines import FrankWolfe
from lopro.methods.baselines.frank_wolfe_steps import LineSearch, OpenLoop, ShortStep
from lopro.objectives import FunctionObjective, L1Norm, LeastSquares, Logistic, SquaredDistance

RULES = [OpenLoop(), ShortStep(), LineSearch()]
every_case = pytest.mark.parametrize("case", CASES, ids=str)
every_rule = pytest.mark.parametrize("rule", RULES, ids=repr)


@dataclass(frozen=True)
class TooShort:
    """Steps that add up to a finite number: the method stops before it reaches the solution (broken)."""

    def check(self, problem: Any) -> None:
        pass

    def size(self, ray: Any) -> float:
        return 1.0 / (ray.t + 2) ** 2


def rate_ratio(case: Case, rule: Any) -> float:
    """Return the worst ``(f(x_t) - f_*) / (2 C_f / (t + 2))`` for t = 1 ... T."""
    problem, T = (
        case.problem(),
        60 if case.name == "polyhedron" else 300,
    )  # linear programs take time
    best = problem.objective.value(problem.constraint.project(case.z))
    values = values_along(problem, FrankWolfe(rule, report=1), T, case.start)
    C = case.square_of_diameter
    return max((v - best) * (t + 2) / (2.0 * C) for t, v in enumerate(values, start=1))


@every_rule
@every_case
def test_rate(case: Case, rule: Any) -> None:
    assert rate_ratio(case, rule) <= SLACK


@every_rule
def test_steps_are_those_of_a_plain_implementation(rule: Any) -> None:
    """On the simplex: ``2 / (t + 2)``, ``<-g, d> / (L |d|^2)``, or the minimiser, which is the same here."""
    z, x = np.array([0.9, -0.7, 0.5, 0.45]), np.full(4, 0.25)
    values = []
    for t in range(12):
        g = x - z
        d = np.eye(4)[int(np.argmin(g))] - x
        best = min(1.0, -float(g @ d) / float(d @ d))
        x = x + (2.0 / (t + 2) if isinstance(rule, OpenLoop) else best) * d
        values.append(0.5 * float((x - z) @ (x - z)))
    problem = Problem(SquaredDistance(z), Simplex(4))
    seen = values_along(problem, FrankWolfe(rule, report=1), 12, np.full(4, 0.25))
    assert seen == pytest.approx(values, rel=1e-9)


@every_case
def test_steps_that_are_too_short_miss_the_rate(case: Case) -> None:
    assert rate_ratio(case, TooShort()) > 1.0


@every_rule
@every_case
def test_the_dual_gap_is_a_certificate_with_a_rate(case: Case, rule: Any) -> None:
    """Jaggi's Theorem 2: the best gap so far is at most 6.75 C_f / (t + 2)."""
    problem = case.problem()
    best = problem.objective.value(problem.constraint.project(case.z))
    method = FrankWolfe(rule, report=1)
    result = lopro.solve(problem, case.start, method, tol=0, max_iter=60)
    assert max(result.history["lower_bound"]) <= best + 1e-9
    for t, gap in enumerate(result.history["gap"], start=1):
        if t >= 2:
            assert gap <= 6.75 * case.square_of_diameter / (t + 2) + 1e-9


@every_case
def test_agrees_with_another_solver(case: Case) -> None:
    result = lopro.solve(case.problem(), method=FrankWolfe(), tol=1e-4, max_iter=20_000)
    assert result.status is Status.CONVERGED
    best = case.optimum()
    assert result.certificate.lower_bound - 1e-6 <= best <= result.fun + 1e-6
    assert result.fun - best <= 1e-4 * max(1.0, abs(result.fun)) + 1e-6


@every_case
@pytest.mark.parametrize("outside", [False, True])
def test_one_linear_minimisation_per_iteration_and_no_projection(case: Case, outside: bool) -> None:
    problem, T = case.problem(), 7
    projections = count_projections(problem.constraint)
    calls = count_linear_minimizations(problem.constraint)
    start = 10.0 * np.ones(4) if case.z.ndim == 1 else 10.0 * np.eye(4)
    start = start if outside else case.start
    result = lopro.solve(problem, start, FrankWolfe(OpenLoop(), report=3), tol=0, max_iter=T)
    assert result.iterations == T
    assert result.counts.linear_minimizations == T + outside
    assert result.counts.gradients == T + outside
    assert result.counts.projections == projections() == 0
    # Checks after 3 and 6 iterations and at the end, each with a linear minimisation of its own.
    assert result.certificate_counts.linear_minimizations == len(result.history) == 3
    # A polyhedron proves its bounds from multipliers, without the method that is counted here.
    own = 0 if isinstance(problem.constraint, Polyhedron) and case.name == "polyhedron" else 3
    assert calls() == T + outside + own
    assert result.certificate.violation <= 1e-9


def test_iterates_are_sparse_and_no_sparse_point_is_better():
    """From a corner, x_t has at most t + 1 nonzeros, so that f >= 1 / (2 (t + 1))."""
    d = 30
    problem = Problem(SquaredDistance(np.zeros(d)), Simplex(d))
    for T in (1, 5, 20):
        x = lopro.solve(problem, np.eye(d)[0], FrankWolfe(), tol=0, max_iter=T).x
        assert np.count_nonzero(x) <= T + 1
        assert 1.0 / (2 * (T + 1)) - 1e-12 <= 0.5 * x @ x <= 2.0 / (T + 2)


def test_short_steps_and_searches_do_not_increase_the_value_and_open_loops_may(rng):
    f = LeastSquares(rng.standard_normal((20, 10)), rng.standard_normal(20))
    problem = Problem(f, L1Ball(10, 0.5))
    for rule in (ShortStep(), LineSearch()):
        assert max(np.diff(values_along(problem, FrankWolfe(rule, report=1), 100))) <= 1e-12
    assert max(np.diff(values_along(problem, FrankWolfe(OpenLoop(), report=1), 100))) > 1e-6


def test_an_objective_that_is_not_quadratic(rng):
    X, labels = rng.standard_normal((40, 6)), rng.choice([-1.0, 1.0], 40)
    problem = Problem(Logistic(X, labels), L1Ball(6, 1.5))
    result = lopro.solve(problem, method=FrankWolfe(), tol=1e-5, max_iter=20_000)
    assert result.success
    v = cp.Variable(6)
    losses = cp.sum(cp.logistic(-cp.multiply(labels, X @ v)))
    scale = problem.objective.value(np.zeros(6)) / (40 * np.log(2.0))
    best = scale * cp.Problem(cp.Minimize(losses), [cp.norm1(v) <= 1.5]).solve(cp.CLARABEL)
    assert result.certificate.lower_bound - 1e-6 <= best <= result.fun + 1e-6


def test_sparse_vertices_read_single_columns(rng):
    A = np.asfortranarray(rng.standard_normal((30, 400)))
    problem = Problem(LeastSquares(A, rng.standard_normal(30)), L1Ball(400, 2.0))
    result = lopro.solve(problem, method=FrankWolfe(report=1000), tol=0, max_iter=50)
    assert result.counts.columns == 50  # one per vertex, and the start is zero
    assert result.counts.matvecs == 0 and result.counts.rmatvecs == 50


def test_library_and_precision_are_kept():
    for of in (array_api_strict.asarray, lambda a: a.astype(np.float32)):
        problem = Problem(SquaredDistance(of(np.array([0.6, 0.8, -1.0]))), Simplex(3))
        result = lopro.solve(problem, method=FrankWolfe(), tol=1e-4)
        assert type(result.x) is type(of(np.zeros(3))) and result.success
        assert result.x.dtype == of(np.zeros(3)).dtype
        np.testing.assert_allclose(to_numpy(result.x), [0.4, 0.6, 0.0], atol=2e-2)


def test_what_is_missing_is_named():
    f = SquaredDistance(np.zeros(2))
    half = Polyhedron(np.eye(2), np.ones(2))
    cases = [
        (Problem(f, half), "bounded set"),
        (Problem(SquaredDistance(np.eye(2)), PSDCone(2)), "bounded set"),
        (Problem(L1Norm(), Simplex(2)), "smooth objective"),
        (Problem(L1Norm(), ResidualBall(np.eye(2), np.ones(2), 0.1)), "smooth objective"),
    ]
    for problem, message in cases:
        with pytest.raises(MissingCapabilityError, match=message):
            lopro.solve(problem, method=FrankWolfe())
    unknown = FunctionObjective(lambda x: float(x @ x), lambda x: 2.0 * x, shape=(2,))
    with pytest.raises(MissingCapabilityError, match="smoothness constant"):
        lopro.solve(Problem(unknown, Simplex(2)), method=FrankWolfe(ShortStep()))
    assert lopro.solve(Problem(unknown, Simplex(2)), method=FrankWolfe()).success


def test_bad_arguments_are_refused():
    with pytest.raises(TypeError, match="step"):
        FrankWolfe(step=0.1)
    with pytest.raises(ValueError, match="report"):
        FrankWolfe(report=0)
