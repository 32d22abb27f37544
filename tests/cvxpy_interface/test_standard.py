"""CVXPY's own tests of solvers, run from where CVXPY is installed."""

from __future__ import annotations

from typing import Any

import pytest

cvxpy = pytest.importorskip("cvxpy")

from cvxpy.tests import solver_test_helpers as helpers  # noqa: E402

import lopro.cvxpy  # noqa: E402

FAMILIES = (
    helpers.StandardTestLPs,
    helpers.StandardTestQPs,
    helpers.StandardTestSOCPs,
    helpers.StandardTestSDPs,
)
#: Integer programs are another subject; lp_7 needs a module of another project; the last are for interfaces
#: that take bounds of variables apart from the other rows, which this one does not claim.
LEFT_OUT = ("mi_", "lp_7", "bound_attr")

CASES = [
    pytest.param(getattr(family, name), id=name)
    for family in FAMILIES
    for name in sorted(vars(family))
    if name.startswith("test_") and not any(word in name for word in LEFT_OUT)
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES)
def test_cvxpy_says_that_the_answer_is_right(case: Any) -> None:
    case(solver=lopro.cvxpy.Lopro())


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
