"""Claims that were once false, with their numbers, in every entry that can make them."""

from __future__ import annotations

import math
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse
from support.cvxpy_status import INF, by_cvxpy

import lopro
import lopro.cvxpy
from lopro import Problem, Status
from lopro.constraints import (
    Affine,
    FunctionConstraint,
    Intersection,
    Polyhedron,
)
from lopro.core.deadline import Deadline
from lopro.driver.workbench import Options, RunWorkbench
from lopro.engines import QuadraticProgram
from lopro.errors import ZeroRowWarning
from lopro.newton.programs import solve_program
from lopro.objectives import L1Norm, LeastSquares, Linear, Quadratic, TotalVariation

# One large row, or one large entry of x, does not hide violations of other rows.


@pytest.mark.parametrize("k", [1.0, 1e6, 1e12, 1e-12])
def test_a_large_row_does_not_hide_the_others(k: float) -> None:
    x = cp.Variable(2)
    status, c = by_cvxpy(cp.norm(x), [x[0] >= 1.0, k * x[1] <= -k * 0.5])
    assert status == "optimal" and c.violation <= 1e-9
    assert x.value == pytest.approx([1.0, -0.5], abs=2e-9)
    assert c.lower_bound <= math.sqrt(1.25) * (1.0 + 1e-12)


def far_entry() -> Intersection:
    """x_1 >= 1 together with x_2 = 1e12."""
    rows = Affine([[1.0, 0.0], [1.0, 1e-12]], [1.0, -10.0], [INF, INF])
    return Intersection(rows, Polyhedron.box([-1.0, 1e12], [5.0, 1e12]))


def test_a_large_entry_does_not_hide_a_row() -> None:
    set_ = far_entry()
    assert set_.violation(np.array([-1.0, 1e12])) == pytest.approx(2.0 / 2.0, rel=1e-12)
    result = lopro.solve(Problem(Linear([1.0, 0.0]), set_))
    assert result.success and result.fun == pytest.approx(1.0, rel=1e-9)
    assert result.certificate.absolute_violation <= 4e-9


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
def test_a_large_entry_does_not_hide_a_row_from_minimize_and_cvxpy() -> None:
    result = lopro.minimize(
        lambda x: float(x[0]),
        np.array([2.0, 1e12]),
        lambda x: np.array([1.0, 0.0]),
        constraint=far_entry(),
        time_limit=5.0,
    )
    assert not result.success or result.x[0] >= 1.0 - 1e-8
    x = cp.Variable(2)
    rows = [x[0] >= 1.0, x[0] + 1e-12 * x[1] >= -10.0, x[0] >= -1.0, x[0] <= 5.0, x[1] == 1e12]
    status, c = by_cvxpy(x[0], rows)
    # A proof of optimality within 1e16 is not required: there the rounding of 1e12 matters.
    assert status.startswith("optimal") and c.violation <= 1e-9
    assert x.value[0] == pytest.approx(1.0, rel=1e-8) and c.lower_bound <= 1.0


# Bounds are used only where they were proved.


def test_a_bound_is_not_used_where_it_was_not_proved() -> None:
    F = np.array(
        [
            [2.4842e-3, -0.41902, 1.7571e7, -226.3],
            [3.5063e-3, 0.5941, 4.027e7, -260.19],
            [4.9757e-4, -0.052439, 1.959e8, 497.86],
        ]
    )
    b = F @ np.array([313.33, 1.9957, -2.0267e-8, -1.3882e-3])
    result = lopro.solve(Problem(LeastSquares(F, b), Affine(np.zeros((1, 4)), None, [0.0])))
    assert result.success and result.fun < 1e-20
    assert result.certificate.lower_bound == 0.0 and math.isinf(result.certificate.radius)


# Optima of zero.


@pytest.mark.parametrize(
    "rows",
    [
        lambda x: [x == 1.0],
        lambda x: [x >= 1.0, x <= 2.0],
        lambda x: [cp.norm(x) <= 1.0],
        lambda x: [cp.norm(x - 3.0) <= 1.0, x >= 0.0],
        lambda x: [cp.diag(x) >> 0, cp.sum(x) == 3.0],
    ],
)
def test_feasibility_problems_are_optimal(rows: Any) -> None:
    x = cp.Variable(2)
    status, c = by_cvxpy(0.0, rows(x))
    assert status == "optimal"
    assert (c.gap, c.lower_bound) == (0.0, 0.0) and c.violation <= 1e-9


@pytest.mark.parametrize("unit", [1.0, 1e9, 1e-9])
@pytest.mark.parametrize("shape", [(6,), (4, 4)])
def test_total_variation_of_nothing(shape: tuple[int, ...], unit: float) -> None:
    """Constants are in both boxes; the second one is off the origin."""
    n = math.prod(shape)
    for lower, upper in (
        (-np.ones(n), np.ones(n)),
        (np.linspace(-1, 0.5, n), np.linspace(0.6, 1, n)),
    ):
        box = Polyhedron.box(unit * lower, unit * upper)
        result = lopro.solve(Problem(TotalVariation(shape), box))
        assert result.success and result.fun <= 1e-12 * n * unit
        assert result.certificate.lower_bound == 0.0


# Both violations of a point are given.


def absolute_cases() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    A, y = rng.standard_normal((3, 6)), 1e3 * rng.standard_normal(3)
    G = rng.uniform(-1.0, 1.0, (5, 5))
    free = np.array([0.0, 0, 0, 1, 1, 1])
    return {
        "equations": (lopro.bpdn(A, y, 0.0), lambda x: np.linalg.norm(A @ x - y)),
        "free": (lopro.bpdn(A, y, 0.0, weights=free), lambda x: np.linalg.norm(A @ x - y)),
        "tau": (lopro.lasso(A, y, tau=7.0), lambda x: max(0.0, np.abs(x).sum() - 7.0)),
        "correlation": (lopro.nearest_correlation(G + G.T), lambda x: 0.0),
    }


@pytest.mark.parametrize("name", ["equations", "free", "tau", "correlation"])
def test_applications_have_the_absolute_violation(name: str) -> None:
    result, expected = absolute_cases()[name]
    assert result.certificate.absolute_violation == pytest.approx(expected(result.x), abs=1e-11)


# A ray of descent proves nothing without a feasible point.


def test_an_empty_program_with_a_ray_of_descent_is_not_unbounded() -> None:
    """x_1 >= 1 and x_1 <= 0, while -x_2 is unbounded below."""
    rows = Affine([[1.0, 0.0], [1.0, 0.0]], [1.0, -INF], [INF, 0.0])
    for objective in (Linear([0.0, -1.0]), Linear([1e-3, -1.0])):
        assert lopro.solve(Problem(objective, rows)).status is Status.INFEASIBLE
    with_curvature = Quadratic(np.diag([1.0, 0.0]), np.array([0.0, -1.0]))
    assert lopro.solve(Problem(with_curvature, rows)).status is Status.INFEASIBLE
    x = cp.Variable(3)
    disc = [cp.norm(x[:2]) <= 1.0, x[0] >= 2.0]
    assert by_cvxpy(-x[2], disc)[0] == "infeasible"


@pytest.mark.parametrize("unit", [1.0, 0.3])
@pytest.mark.parametrize("falls", [False, True])
def test_a_matrix_that_is_never_semidefinite_is_proved_to_be(falls: bool, unit: float) -> None:
    """Its product with [[2, 1], [1, 3]] is -1 everywhere; multipliers well inside the cone lose nothing."""
    x = cp.Variable(4)
    parts = [[[3, 0], [0, -2]], [[1, -1], [-1, 0]], [[0, -3], [-3, 2]]]
    M = np.array([[0, 1], [1, -1]]) + unit * sum(
        x[k] * (np.array(part) / 3.0) for k, part in enumerate(parts)
    )
    rows = [M >> 0, cp.norm(x[:2] - 1.0) <= 9.0, x[0] + x[1] <= 3.0]
    assert by_cvxpy(-x[3] if falls else x[0], rows)[0] == "infeasible"


def test_an_unbounded_program_has_a_point_and_a_direction() -> None:
    rows = Affine([[1.0, -1.0]], None, [1.0])
    signs = Polyhedron.box(np.zeros(2), np.full(2, INF))
    result = lopro.solve(Problem(Linear([-1.0, 0.0]), Intersection(rows, signs)))
    assert result.status is Status.UNBOUNDED
    d = result.ray
    assert d[0] > 0.0 and d[0] - d[1] <= 4e-16 * (d[0] + d[1]) and d.min() >= 0.0


# Rows without coefficients.


def test_rows_that_are_zero_up_to_rounding_count_as_satisfied() -> None:
    A = np.vstack([np.random.default_rng(0).standard_normal((3, 4)), np.zeros((1, 4))])
    upper = np.array([100.0, 100.0, 100.0, -7e-18])
    f = Quadratic(np.eye(4), -np.ones(4))
    for rows in (A, scipy.sparse.csr_array(A)):
        for kind in (lambda M: Affine(M, None, upper), lambda M: Polyhedron(M, upper)):
            with pytest.warns(ZeroRowWarning, match="7e-18"):
                set_ = kind(rows)
            result = lopro.solve(Problem(f, set_))
            assert result.success and result.fun == pytest.approx(-2.0)
            assert set_.project(np.full(4, 3.0)) == pytest.approx(np.full(4, 3.0))
    x = cp.Variable(4)
    with pytest.warns(ZeroRowWarning, match="7e-18"):
        status, c = by_cvxpy(cp.sum_squares(x - 1.0), [A @ x <= upper])
    assert status == "optimal" and abs(c.lower_bound) <= 1e-12


def test_zero_rows_with_a_side_above_rounding_are_a_contradiction() -> None:
    rows = Affine(np.array([[1.0], [0.0]]), None, [100.0, -1e-9])
    assert lopro.solve(Problem(Linear([-1.0]), rows)).status is Status.INFEASIBLE


# Values of zero in the units of columns and callables; ends of runs.


def test_what_counts_as_zero_does_not_depend_on_the_units_of_columns() -> None:
    """A gap of 13 % of the value passed as one of an optimum of 0, beside a column with a steep slope."""
    A, b, q = np.array([[1.0, 2.0], [3.0, -1.0]]), np.array([4.0, 6.0]), np.array([-5.0, 1.0])
    for units in (np.ones(2), np.array([2.0**40, 2.0**-30])):
        for rows in (Polyhedron(A * units, b), Intersection(Affine(A * units, None, b))):
            problem = Problem(Linear(q * units), rows)
            bench = RunWorkbench(problem, Options(tol=1e-3), Deadline(), np.zeros(2))
            # The units are min(4 / 1, 6 / 3) and min(4 / 2, 6 / 1): 5 * 2 + 1 * 2.
            assert bench.target.scale == 1e-8 * 12.0


@pytest.mark.parametrize("units", [(1.0, 1.0), (2.0**26, 2.0**-4), (2.0**-19, 2.0**19)])
def test_a_square_without_a_slope_at_zero_is_zero_in_the_units_of_its_columns(units: Any) -> None:
    """A value of 0.59 passed as an optimum of 0: one length counted as typical of all columns."""
    u = np.array(units)
    P = np.array([[10.0, -1.0], [-1.0, 20.0]]) * np.outer(u, u)
    A = np.array([[4.0, 0.0], [-1.0, 2.0], [0.0, -3.0]]) * u
    rows = Affine(A, [-3.0, -2.0, -5.0], [1.0, 1.0, 2.0])
    problem = Problem(Quadratic(P, np.zeros(2)), rows)
    # The typical entries are 1 / 4 and 1 / 2, or 2 / 3 where only the last row gives one.
    typical = 0.5 * (10.0 * 0.25**2 + 20.0 * 0.5**2)
    assert RunWorkbench(
        problem, Options(tol=1e-3), Deadline(), np.zeros(2)
    ).target.scale == pytest.approx(1e-8 * typical, rel=0.3)
    for result in lopro.solve_many([problem] * 2, tol=1e-6):
        assert not result.success or result.fun <= 1e-6 * 1e-7 * typical


@pytest.mark.parametrize("unit", [1.0, 2.0**40, 2.0**-40])
def test_gaps_are_relative_to_values_of_the_units_of_callables(unit: float) -> None:
    """A gap of 2e-4 passed at 1e-6: a length of 1 counted as typical of entries of 1e-11."""
    a = np.array([3.0, 4.0]) / unit
    disc = FunctionConstraint(
        lambda x: float((a @ x - 10.0) ** 2) - 1.0, lambda x: 2.0 * (a @ x - 10.0) * a
    )
    flat = FunctionConstraint(lambda x: float((a @ x) ** 2) - 1.0, lambda x: 2.0 * (a @ x) * a)
    bowl, cone = (
        Problem(L1Norm(np.ones(2) / unit), disc),
        FunctionConstraint(lambda x: -x[0], lambda x: a),
    )

    def scale(problem: Problem) -> float:
        return RunWorkbench(problem, Options(tol=1e-3), Deadline(), np.zeros(2)).target.scale

    # The boundary is 99 / (20 * 5) away to first order, where signs at random have twice that norm.
    assert scale(bowl) == pytest.approx(1e-8 * 2.0 * 0.99, rel=1e-15)
    assert scale(Problem(Linear(-a), disc)) == pytest.approx(1e-8 * 5.0 * 0.99, rel=1e-15)
    assert scale(Problem(Linear(-a), flat)) == 0.0  # the data determine no length
    assert (
        scale(Problem(Linear(a * unit), cone)) == 1e-8 * 5.0
    )  # the points of the set determine none


def test_a_cvxpy_problem_without_constraints() -> None:
    x = cp.Variable(2)
    status, certificate = by_cvxpy(cp.quad_form(x, 2.0 * np.eye(2)) - 4.0 * x[0], [])
    assert status == "optimal" and certificate.lower_bound == pytest.approx(-2.0, abs=1e-6)


def test_an_unbounded_refinement_ends_a_program_of_cvxpy() -> None:
    """The slope of the augmented Lagrangian stays negative: this is not reported as an error of the user."""
    raised = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n, m = int(rng.integers(1, 7)), int(rng.integers(1, 7))
        d = rng.integers(-2, 3, n).astype(float)
        d[0] = 1.0
        A = rng.integers(-4, 5, (m, n)).astype(float)
        A *= np.where(A @ d > 0.0, -1.0, 1.0)[:, None] * 2.0 ** rng.integers(-40, 41, n)
        q = -d * 2.0 ** rng.integers(-40, 41, n)
        outcome = solve_program(QuadraticProgram.of(None, q, A, upper=np.ones(m)), 1e-6)
        raised.append(outcome.status)
    assert Status.UNBOUNDED in raised
