"""Multipliers of each constraint, their signs, and warm starts from them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.optimize

import lopro
from lopro import MultiplierMethod, NewtonMultipliers, Problem, ProgramEngines
from lopro.constraints import (
    Affine,
    Box,
    FunctionConstraint,
    Intersection,
    Polyhedron,
    ResidualBall,
    Simplex,
)
from lopro.objectives import L1Norm, LeastSquares, Logistic, Quadratic, Scaled, SquaredDistance, Sum

METHODS = [NewtonMultipliers(), ProgramEngines(), MultiplierMethod()]


def names(method: Any) -> str:
    return type(method).__name__


@pytest.mark.parametrize("method", METHODS, ids=names)
def test_signs_and_order_of_multipliers(method: Any) -> None:
    """1/2 |x - (3, -2, 5)|^2 with x_1 <= 1, x_2 >= 0 (rows), x_3 = 2 (an equation), x_1 <= 2 (a box).

    The slope at (1, 0, 2) is (-2, 2, -3): the multipliers are 2 and -2 (rows), 3 (equation), 0 (box).
    """
    f = SquaredDistance(np.array([3.0, -2.0, 5.0]))
    rows = Affine(np.eye(3)[:2], [-math.inf, 0.0], [1.0, math.inf])
    equation = Affine(np.eye(3)[2:], 2.0, 2.0)
    box = Box(np.full(3, -math.inf), np.array([2.0, math.inf, math.inf]))
    result = lopro.solve(Problem(f, Intersection(rows, box, equation)), method=method, tol=1e-10)
    assert result.success and result.multipliers is not None
    expected = [[2.0, -2.0], [0.0, 0.0, 0.0], [3.0]]
    for found, reference in zip(result.multipliers, expected, strict=True):
        assert found == pytest.approx(reference, abs=1e-4)


@pytest.mark.parametrize("method", METHODS, ids=names)
def test_multipliers_balance_the_slope(method: Any, rng: Any) -> None:
    """``grad f + sum of M'v = 0`` with two boxes, rows with both sides and a simplex."""
    P, q = np.diag(np.arange(1.0, 6.0)), 3.0 * rng.standard_normal(5)
    M = rng.standard_normal((3, 5))
    sets = (
        Box(np.zeros(5), np.full(5, 0.7)),
        Affine(M, -0.2, 0.3),
        Simplex(5, 1.0),
        Box(np.zeros(5), np.array([0.1, 0.9, 0.9, 0.9, 0.9])),
    )
    f = Quadratic(P, q)
    result = lopro.solve(Problem(f, Intersection(*sets)), method=method, tol=1e-9)
    assert result.success and result.multipliers is not None
    v = result.multipliers
    assert [len(each) for each in v] == [5, 3, 5, 5]
    pulled = v[0] + M.T @ v[1] + v[2] + v[3]
    assert f.subgradient(result.x) + pulled == pytest.approx(np.zeros(5), abs=1e-3)
    # Each is in the normal cone of its own set at the solution.
    assert v[1] @ (M @ result.x) == pytest.approx(np.where(v[1] > 0.0, 0.3, -0.2) @ v[1], abs=1e-3)


def test_the_signs_of_scipy() -> None:
    """The multipliers of trust-constr for the same bounds and rows."""
    z = np.array([3.0, -2.0])
    rows = scipy.optimize.LinearConstraint([[1.0, 1.0], [1.0, -1.0]], [0.5, -1.0], [math.inf, 2.0])
    bounds = scipy.optimize.Bounds([-1.0, -1.0], [1.0, 1.0])

    def value(x: Any) -> float:
        return 0.5 * float((x - z) @ (x - z))

    theirs = scipy.optimize.minimize(
        value, np.zeros(2), jac=lambda x: x - z, hess=lambda x: np.eye(2), bounds=bounds,
        constraints=[rows], method="trust-constr", options={"gtol": 1e-10, "xtol": 1e-12},
    )  # fmt: skip
    ours = lopro.minimize(
        value, np.zeros(2), lambda x: x - z, hess=lambda x: np.eye(2), constraint=[rows, bounds]
    )
    assert ours.success and ours.multipliers is not None
    assert ours.x == pytest.approx(theirs.x, abs=1e-4)
    for mine, other in zip(ours.multipliers, theirs.v, strict=True):
        assert mine == pytest.approx(other, abs=1e-3)


def test_the_signs_of_cvxpy(rng: Any) -> None:
    import cvxpy as cp

    A, b, C = rng.standard_normal((9, 4)), rng.standard_normal(9), rng.standard_normal((3, 4))
    x = cp.Variable(4)
    constraints = [C @ x <= -0.5, cp.sum(x) == 0.3]
    cp.Problem(cp.Minimize(0.5 * cp.sum_squares(A @ x - b)), constraints).solve(solver="CLARABEL")
    both = Intersection(Polyhedron(C, np.full(3, -0.5)), Affine(np.ones((1, 4)), 0.3, 0.3))
    ours = lopro.solve(Problem(LeastSquares(A, b), both), tol=1e-9)
    assert ours.multipliers is not None
    assert ours.multipliers[0] == pytest.approx(constraints[0].dual_value, abs=1e-5)
    assert ours.multipliers[1] == pytest.approx([float(constraints[1].dual_value)], abs=1e-5)


# Warm starts.


def problems(rng: Any, change: float) -> dict[str, Problem]:
    """Problems whose data depend on a small change."""
    A, C = rng.standard_normal((200, 30)), rng.standard_normal((60, 30))
    moved = change * rng.standard_normal(200)
    labels = np.where(A @ np.ones(30) + 5.0 * rng.standard_normal(200) > 0.0, 1.0, -1.0)
    b = 5.0 * rng.standard_normal(200) + moved
    half = Polyhedron(C, np.full(60, 0.3 + 0.1 * change))
    ball = ResidualBall(np.eye(30), np.zeros(30), 0.2)
    return {
        "rows": Problem(LeastSquares(A, b), half),
        "rows and ball": Problem(LeastSquares(A, b), Intersection(half, ball)),
        "logistic, two sides": Problem(Logistic(A, labels), Affine(C, -0.01 - change, 0.02)),
        "norm": Problem(Sum(LeastSquares(A, b), Scaled(3.0, L1Norm())), half),
        "simplex": Problem(LeastSquares(A, b), Simplex(30, 1.0 + change)),
    }


@pytest.mark.parametrize(
    "name", ["rows", "rows and ball", "logistic, two sides", "norm", "simplex"]
)
def test_a_warm_start_takes_fewer_newton_steps(name: str) -> None:
    before = problems(np.random.default_rng(1), 0.0)[name]
    after = problems(np.random.default_rng(1), 1e-3)[name]
    first = lopro.solve(before, method=NewtonMultipliers())
    cold = lopro.solve(after, method=NewtonMultipliers())
    warm = lopro.solve(after, first.x, method=NewtonMultipliers(), multipliers0=first.multipliers)
    assert first.success and cold.success and warm.success
    assert warm.fun == pytest.approx(cold.fun, rel=3e-6)
    assert warm.certificate.lower_bound <= cold.fun * (1.0 + 1e-9)
    assert 2 * warm.iterations <= cold.iterations
    assert not warm.warnings


def test_multipliers_help_where_the_point_alone_does_not() -> None:
    """With the wrong sign, or without them, the second run takes more steps."""
    before = problems(np.random.default_rng(1), 0.0)["rows"]
    after = problems(np.random.default_rng(1), 1e-3)["rows"]
    first = lopro.solve(before)
    assert first.multipliers is not None

    def steps(multipliers: Any) -> int:
        found = lopro.solve(after, first.x, NewtonMultipliers(), multipliers0=multipliers)
        assert found.success
        return found.iterations

    right = steps(first.multipliers)
    assert right < steps(None)
    assert right < steps([-v for v in first.multipliers])


def test_the_method_of_multipliers_starts_from_multipliers() -> None:
    before = problems(np.random.default_rng(1), 0.0)["rows"]
    after = problems(np.random.default_rng(1), 1e-4)["rows"]
    first = lopro.solve(before, method=MultiplierMethod(), tol=1e-6)
    cold = lopro.solve(after, method=MultiplierMethod(), tol=1e-6)
    warm = lopro.solve(
        after, first.x, method=MultiplierMethod(), tol=1e-6, multipliers0=first.multipliers
    )
    assert cold.success and warm.success
    assert 2 * warm.iterations <= cold.iterations


def test_minimize_starts_from_multipliers() -> None:
    rows = scipy.optimize.LinearConstraint(np.ones((1, 3)), -math.inf, 1.0)

    def minimised(**options: Any) -> lopro.Result:
        return lopro.minimize(
            lambda x: float(np.sum(np.exp(x) - 3.0 * x)),
            jac=lambda x: np.exp(x) - 3.0,
            constraint=rows,
            **options,
        )

    first = minimised(x0=np.zeros(3))
    assert first.success and first.multipliers is not None
    assert first.multipliers[0] == pytest.approx([3.0 - math.exp(1.0 / 3.0)], rel=1e-4)
    second = minimised(x0=first.x, multipliers0=first.multipliers)
    assert second.success and second.iterations < first.iterations


def test_multipliers_that_do_not_fit_are_refused() -> None:
    f, half = SquaredDistance(np.ones(2)), Polyhedron([[1.0, 1.0]], [1.0])
    for given in ([np.ones(2)], [], [np.ones(1), np.ones(1)], np.ones(1)):
        with pytest.raises(ValueError, match="multipliers0"):
            lopro.solve(Problem(f, half), multipliers0=given)
    curved = FunctionConstraint(lambda x: float(x @ x) - 1.0, lambda x: 2.0 * x, smooth=True)
    with pytest.raises(ValueError, match="linear maps"):
        lopro.solve(Problem(f, curved), multipliers0=[np.ones(1)])


def test_a_method_without_multipliers_gives_a_warning() -> None:
    f, half = SquaredDistance(np.ones(2)), Polyhedron([[1.0, 1.0]], [1.0])
    result = lopro.solve(
        Problem(f, half), method=lopro.LoPGD(), max_iter=50, multipliers0=[np.ones(1)]
    )
    assert "the method did not use multipliers0" in result.warnings
