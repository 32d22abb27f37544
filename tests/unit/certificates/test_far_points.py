"""Feasible points far from zero: programs without feasible points nearby are not reported as empty."""

from __future__ import annotations

import contextlib
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from support.cvxpy_status import INF, by_cvxpy

import lopro
import lopro.cvxpy
from lopro import Problem, Status
from lopro.constraints import (
    Affine,
    Intersection,
    ResidualBall,
    SecondOrderCone,
)
from lopro.engines import QuadraticProgram
from lopro.errors import InfeasibleError, ProjectionError
from lopro.newton.programs import solve_program
from lopro.objectives import Linear

FIRST = np.array([1.0, 0.0])


#: x_1 >= 1, 1e-9 x_2 >= x_1, |x_1| <= x_2 + 1: (1.5, 3e9) is feasible, nothing within 1e9 of zero is.
FAR = np.array([[1.0, 0.0], [-1.0, 1e-9], [1.0, -1.0], [-1.0, -1.0]])


FAR_SIDES = [1.0, 0.0, -INF, -INF], [INF, INF, 1.0, 1.0]


def test_points_far_out_are_not_excluded_by_solve() -> None:
    set_ = Affine(FAR, *FAR_SIDES)
    assert set_.violation(np.array([1.5, 3e9])) == 0.0
    result = lopro.solve(Problem(Linear([1.0, 0.0]), set_))
    assert result.success  # the bound x_1 >= 1 alone gives the least value
    assert result.fun == pytest.approx(1.0, rel=1e-6) and result.certificate.lower_bound <= 1.0
    assert result.certificate.empty_within == 0.0  # a feasible point is known


@pytest.mark.parametrize("far", [1e6, 1e9, 1e12, 1e15])
@pytest.mark.parametrize("size", [cp.abs, lambda v: cp.norm(cp.hstack([v, 0.0]))])
def test_points_far_out_are_found_by_cvxpy(size: Any, far: float) -> None:
    x = cp.Variable(2)
    rows = [x[0] >= 1.0, x[1] / far >= x[0], size(x[0]) <= x[1] + 1.0]
    status, c = by_cvxpy(x[0], rows)
    assert status == "optimal" and 1.0 - 1e-6 <= c.lower_bound <= 1.0
    assert x.value[0] == pytest.approx(1.0, rel=1e-6) and c.violation <= 1e-9


@pytest.mark.parametrize("far", [1e6, 1e9])
def test_points_far_out_are_found_in_cones(far: float) -> None:
    """The cone |x_1| <= x_2 + 1 instead of its two rows."""
    rows = Affine([[1.0, 0.0], [-1.0, 1.0 / far]], [1.0, 0.0], [INF, INF])
    cone = SecondOrderCone(np.array([[1.0, 0.0]]), np.zeros(1), np.array([0.0, 1.0]), 1.0)
    result = lopro.solve(Problem(Linear([1.0, 0.0]), Intersection(rows, cone)))
    assert result.success and 1.0 - 1e-6 <= result.certificate.lower_bound <= 1.0
    assert result.fun == pytest.approx(1.0, rel=1e-6)


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
def test_points_far_out_are_not_excluded_by_projections_or_minimize() -> None:
    set_ = Affine(FAR, *FAR_SIDES)
    try:
        z = set_.project(np.zeros(2))
    except ProjectionError as error:
        assert not isinstance(error, InfeasibleError) and "contradict" not in str(error)
    else:
        assert set_.violation(z) <= 1e-9
    result = lopro.minimize(
        lambda x: float(x[0]), np.zeros(2), lambda x: FIRST, constraint=set_, time_limit=5.0
    )
    assert result.status is not Status.INFEASIBLE


def test_a_program_without_feasible_points_nearby_reports_the_radius() -> None:
    """No engine reaches 1e15 unless the objective leads there: the outcome has the radius."""
    program = QuadraticProgram.of(
        None, [1.0, 0.0], [[1.0, 0.0], [-1.0, 1e-15]], [1.0, 0.0], [INF, INF]
    )
    outcome = solve_program(program)
    assert outcome.status is not Status.INFEASIBLE
    if outcome.violation > 1e-9:
        assert 1e14 <= outcome.certificate.radius <= 1.01e15


def test_small_columns_are_not_neglected() -> None:
    """(0, 1e20) has no residual at all; that 1e-20 is small beside 1 does not make the ball empty."""
    ball = ResidualBall(np.array([[1.0, 0.0], [0.0, 1e-20]]), np.array([0.0, 1.0]), 0.5)
    assert ball.violation(np.array([0.0, 1e20])) == 0.0
    with contextlib.suppress(
        ProjectionError
    ):  # the point may not be found, but the set is not reported as empty
        assert ball.violation(ball.project(np.zeros(2))) <= 1e-9


def test_an_empty_program_far_out_is_not_unbounded() -> None:
    """Contradicting rows differ by 2, which is 3e-10 of what they compare at the point of an engine."""
    A = np.array(
        [
            [0.0, 3.0, 0.0, 1.0, 4.0, 1.0],
            [2.0, 1.0, 0.0, 1.0, 4.0, 3.0],
            [-2.0, 3.0, 0.0, 0.0, 4.0, -2.0],
            [-1.0, 0.0, 0.0, 0.0, 0.0, -1.0],
            [0.0, 0.0, -3.0, 0.0, 1.0, -2.0],
            [-1.0, 0.0, -1.0, 0.0, 0.0, 0.0],
            [4.0, 37.0, 8.0, 11.0, 36.0, 15.0],
            [-4.0, -37.0, -8.0, -11.0, -36.0, -15.0],
        ]
    )
    upper = np.array([-3.0, -3.0, 3.0, -3.0, 0.0, 2.0, 0.0, -2.0])
    q = np.array([-1.0, -1.0, -2.0, 0.0, 2.0, -1.0])
    units = 2.0 ** np.array([-28.0, -9, -24, -20, 37, -8])
    outcome = solve_program(QuadraticProgram.of(None, q * units, A * units, upper=upper), 1e-3)
    assert outcome.status in (Status.INFEASIBLE, Status.STOPPED)
