"""CVXPY's own tests of solvers, run from its installation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

cvxpy = pytest.importorskip("cvxpy")

from cvxpy.tests import solver_test_helpers as helpers  # noqa: E402

import lopro.cvxpy  # noqa: E402

FAMILIES = (
    helpers.StandardTestLPs,
    helpers.StandardTestQPs,
    helpers.StandardTestSOCPs,
    helpers.StandardTestSDPs,
    helpers.StandardTestECPs,
    helpers.StandardTestMixedCPs,
)
#: Integer programs and power cones are not supported; lp_7 runs only with SDPA's module (its
#: problem is solved below); qp_bound_attr reads a field that only interfaces for quadratic programs have
#: (solved below, too).
LEFT_OUT = ("mi_", "pcp", "lp_7", "qp_bound_attr")

CASES = [
    pytest.param(getattr(family, name), id=name)
    for family in FAMILIES
    for name in sorted(vars(family))
    if name.startswith("test_") and not any(word in name for word in LEFT_OUT)
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES)
def test_the_checks_of_cvxpy_pass(case: Any) -> None:
    case(solver=lopro.cvxpy.Lopro())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["lp_7", "qp_bound_attr"])
def test_problems_whose_tests_are_left_out(name: str) -> None:
    if not hasattr(helpers, name):
        pytest.skip(f"this release of CVXPY has no {name}")
    helper = getattr(helpers, name)()
    helper.solve(lopro.cvxpy.Lopro())
    helper.verify_objective(places=4)
    if name == "qp_bound_attr":
        assert helper.prob.status == "optimal"
        helper.verify_primal_values(places=4)
    else:
        # The optimum is 0, and there is no magnitude that the gap could be relative to.
        assert helper.prob.value == pytest.approx(0.0, abs=1e-9)
        assert abs(helper.prob.solver_stats.extra_stats.lower_bound) < 1e-4


def test_bounds_of_variables_are_separated_from_rows_and_kept() -> None:
    """Minimise (x - 3)^2 + (y + 3)^2 + z, x in [0, 1], y >= -1, z = 2, x + y >= -1, whose multiplier is 0."""
    import numpy as np

    bounds = [np.array([0.0, -1.0, 2.0]), np.array([1.0, np.inf, 2.0])]
    x = cvxpy.Variable(3, bounds=bounds)
    row = x[0] + x[1] >= -1.0
    objective = cvxpy.sum_squares(x[:2] - np.array([3.0, -3.0])) + x[2]
    problem = cvxpy.Problem(cvxpy.Minimize(objective), [row])
    data = problem.get_problem_data(lopro.cvxpy.Lopro())[0]
    assert data["dims"].nonneg == 1
    problem.solve(solver=lopro.cvxpy.Lopro(), tol=1e-8)
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(4.0 + 4.0 + 2.0, rel=1e-7)
    assert x.value == pytest.approx([1.0, -1.0, 2.0], abs=1e-7)
    assert row.dual_value == pytest.approx(0.0, abs=1e-5)


def test_the_proof_comes_with_the_answer() -> None:
    x = cvxpy.Variable(3)
    problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum(x)), [cvxpy.norm(x) <= 2.0])
    problem.solve(solver=lopro.cvxpy.Lopro(), tol=1e-8)
    proof = problem.solver_stats.extra_stats
    optimum = -2.0 * 3.0**0.5
    assert problem.status == "optimal"
    assert proof.lower_bound <= optimum <= proof.lower_bound + 1e-8 * abs(optimum) + 1e-12
    assert proof.violation <= 1e-8


def test_options_are_checked() -> None:
    x = cvxpy.Variable(1)
    problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(x - 1.0)), [x >= 2.0])
    with pytest.raises(TypeError, match="max_iter"):
        problem.solve(solver=lopro.cvxpy.Lopro(), max_iter=3)
    with pytest.raises(ValueError, match="tol must be"):
        problem.solve(solver=lopro.cvxpy.Lopro(), tol=0.0)


def parametric() -> tuple[Any, Any]:
    """Return a problem of nonnegative least squares whose data are a parameter."""
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((30, 8)), cvxpy.Parameter(30)
    x = cvxpy.Variable(8)
    rows = [x >= 0, cvxpy.sum(x) <= 1]
    return cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(A @ x - b)), rows), b


def test_a_problem_with_parameters_is_compiled_once_for_all_instances(rng: Any) -> None:
    problem, b = parametric()
    b.value = rng.standard_normal(30)
    problem.solve(solver=lopro.cvxpy.Lopro())
    compiled = problem._cache.param_prog
    b.value = rng.standard_normal(30)
    found = problem.solve(solver=lopro.cvxpy.Lopro())
    assert compiled is not None and problem._cache.param_prog is compiled
    assert found == pytest.approx(problem.solve(solver="CLARABEL"), rel=1e-5)
    assert lopro.cvxpy.Lopro() != cvxpy.reductions.solvers.defines.SOLVER_MAP_CONIC["CLARABEL"]


def test_programs_start_from_the_last_result_of_the_same_problem(
    rng: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []
    solve = lopro.cvxpy.solve

    def recorded(*args: Any, warm_start: Any, **options: Any) -> Any:
        given.append(warm_start)
        return solve(*args, warm_start=warm_start, **options)

    monkeypatch.setattr(lopro.cvxpy, "solve", recorded)
    problem, b = parametric()
    for warm in (True, True, False, True):
        b.value = rng.standard_normal(30)
        problem.solve(solver=lopro.cvxpy.Lopro(), warm_start=warm)
        assert problem.status == "optimal"
    assert [last is None for last in given] == [True, False, True, False]
    assert given[1].success and given[1] is not given[3]
    # Other sizes: the last result is not used.
    cache = {"LOPRO": given[1]}
    f = lopro.objectives.Quadratic(np.eye(3), np.ones(3))
    assert lopro.cvxpy._last_result(cache, "LOPRO", lopro.Problem(f)) is None
    f = lopro.objectives.Quadratic(np.eye(len(given[1].x)))
    row = lopro.constraints.Affine(np.ones((1, len(given[1].x))), 1.0, 1.0)
    assert lopro.cvxpy._last_result(cache, "LOPRO", lopro.Problem(f, row)) is None


@pytest.mark.parametrize("quadratic", [True, False])
def test_the_form_of_the_objective_is_an_option_of_cvxpy(quadratic: bool) -> None:
    x = cvxpy.Variable(2)
    problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(x - 1.0)), [cvxpy.norm(x) <= 1.0])
    problem.solve(solver=lopro.cvxpy.Lopro(), use_quad_obj=quadratic)
    assert problem.status == "optimal"
    assert problem.value == pytest.approx((math.sqrt(2.0) - 1.0) ** 2, rel=1e-6)
