"""Newton's method on balls, norms, operators and callables: optima by hand and by CVXPY, in any units."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg

import lopro
from lopro import NewtonMultipliers, Problem, Status
from lopro.constraints import Affine, Intersection, Polyhedron, ResidualBall
from lopro.objectives import (
    FunctionObjective,
    GroupNorm,
    L1Norm,
    LeastSquares,
    Linear,
    Logistic,
    Scaled,
    SquaredDistance,
    Sum,
    TotalVariation,
)

UNITS = [(1.0, 1.0), (1e-9, 1.0), (1e9, 1.0), (1.0, 1e-9), (1.0, 1e9), (1e-9, 1e9)]


def solved(f: Any, c: Any, tol: float = 1e-8) -> lopro.Result:
    result = lopro.solve(Problem(f, c), method=NewtonMultipliers(), tol=tol)
    assert result.status is Status.CONVERGED and result.success
    assert result.counts.projections <= 1
    return result


def brackets(result: lopro.Result, fun: float, tol: float = 1e-8) -> None:
    """The bound is below the optimal value, and not by more than was required."""
    assert result.fun == pytest.approx(fun, rel=10.0 * tol)
    bound = result.certificate.lower_bound
    assert fun - 2.0 * tol * abs(fun) <= bound <= fun + 1e-12 * abs(fun)


# By hand.


@pytest.mark.parametrize(("s", "t"), UNITS)
def test_the_nearest_point_of_a_ball_in_any_units(s: float, t: float) -> None:
    """From (3, 4) to the ball of radius 1: (0.6, 0.8), at a distance of 4, with the multiplier 4."""
    f = Scaled(t / s**2, SquaredDistance(s * np.array([3.0, 4.0])))
    result = solved(f, ResidualBall(np.eye(2), np.zeros(2), s))
    assert result.x == pytest.approx(s * np.array([0.6, 0.8]), rel=1e-7)
    brackets(result, 8.0 * t)
    v = result.multiplier
    assert v is not None and v.dual is not None
    assert v.dual[0] == pytest.approx(4.0 * t / s * np.array([0.6, 0.8]), rel=1e-6)
    assert v.support == pytest.approx(4.0 * t, rel=1e-6)


@pytest.mark.parametrize(("s", "t"), UNITS)
def test_a_linear_function_over_a_ball_in_any_units(s: float, t: float) -> None:
    """The minimum of <(3, 4), x> over |x - (1, 0)| <= 2 is 3 - 10, where x - (1, 0) = -2 (0.6, 0.8)."""
    ball = ResidualBall(np.eye(2), s * np.array([1.0, 0.0]), 2.0 * s)
    result = solved(Linear(t / s * np.array([3.0, 4.0])), ball)
    assert result.x == pytest.approx(s * np.array([-0.2, -1.6]), rel=1e-6)
    brackets(result, -7.0 * t)


@pytest.mark.parametrize(("s", "t"), UNITS)
def test_shrinking_in_any_units(s: float, t: float) -> None:
    """1/2 |x - (3, 0.5, -2)|^2 + |x|_1 over x_1 <= 1: at (1, 0, -1), where the row's multiplier is 1."""
    f = Sum(
        Scaled(t / s**2, SquaredDistance(s * np.array([3.0, 0.5, -2.0]))),
        Scaled(t / s, L1Norm()),
    )
    result = solved(f, Polyhedron([[1.0, 0.0, 0.0]], [s]))
    assert result.x == pytest.approx(s * np.array([1.0, 0.0, -1.0]), rel=1e-7, abs=1e-9 * s)
    brackets(result, t * (2.0 + 0.125 + 0.5 + 2.0))
    assert result.multiplier is not None and result.multiplier.dual is not None
    assert len(result.multiplier.dual) == 1  # of the set only: the norm is not a constraint
    assert result.multiplier.dual[0] == pytest.approx([1.0 * t / s], rel=1e-6)
    assert result.multiplier.direction == pytest.approx([t / s, 0.0, 0.0], rel=1e-6)


def test_weights_of_the_norm_are_those_of_each_entry() -> None:
    """1/2 |x - (3, 3)|^2 + |x_1| + 2 |x_2| is least at (2, 1)."""
    f = Sum(SquaredDistance(np.full(2, 3.0)), L1Norm(np.array([1.0, 2.0])))
    result = solved(f, Polyhedron([[1.0, 1.0]], [100.0]))
    assert result.x == pytest.approx([2.0, 1.0], rel=1e-7)
    brackets(result, 0.5 + 2.0 + 2.0 + 2.0)


def test_groups_shrink_together() -> None:
    """1/2 |x - z|^2 + 2 (|x_a| + |x_b|): (3, 4) of length 5 goes to length 3, (0.6, 0.8) to zero."""
    f = Sum(SquaredDistance(np.array([3.0, 4.0, 0.6, 0.8])), Scaled(2.0, GroupNorm(np.eye(4), 2)))
    result = solved(f, Polyhedron([[1.0, 0.0, 0.0, 0.0]], [100.0]))
    assert result.x == pytest.approx([1.8, 2.4, 0.0, 0.0], abs=1e-8)
    brackets(result, 0.5 * 4.0 + 2.0 * 3.0 + 0.5)


def test_a_ball_and_a_row_meet_in_a_corner() -> None:
    """The nearest point to (2, 2) with |x| <= 1, x_1 <= 0.6 is (0.6, 0.8)."""
    both = Intersection(ResidualBall(np.eye(2), np.zeros(2), 1.0), Polyhedron([[1.0, 0.0]], [0.6]))
    result = solved(SquaredDistance(np.array([2.0, 2.0])), both)
    assert result.x == pytest.approx([0.6, 0.8], rel=1e-7)
    brackets(result, 0.5 * (1.4**2 + 1.2**2))


@pytest.mark.parametrize("unit", [1.0, 1e-9, 1e9])
def test_an_empty_intersection_of_a_ball_and_a_row(unit: float) -> None:
    """|x| <= 1 and x_1 + x_2 >= 2: the multipliers y of both add up to zero, y(ball) points along (1, 1)."""
    C, b = np.array([[-1.0, -1.0]]), unit * np.array([-2.0])
    both = Intersection(ResidualBall(np.eye(2), np.zeros(2), unit), Polyhedron(C, b))
    f = Sum(SquaredDistance(np.zeros(2)), Scaled(unit, L1Norm()))
    result = lopro.solve(Problem(f, both))
    assert result.status is Status.INFEASIBLE
    ball, row = (np.asarray(y) for y in result.ray)
    assert ball + C.T @ row == pytest.approx(np.zeros(2), abs=1e-12 * abs(row[0]))
    assert row[0] > 0.0
    # Its support: <ball, x> <= |ball| and row * (-x_1 - x_2) <= -2 row, in all less than zero.
    assert unit * np.linalg.norm(ball) + float(b @ row) < 0.0


# Against an interior point method.


def data(rng: Any, n: int = 60, d: int = 12) -> tuple[Any, ...]:
    A = rng.standard_normal((n, d))
    labels = np.where(A @ rng.standard_normal(d) + rng.standard_normal(n) > 0.0, 1.0, -1.0)
    C, y = rng.standard_normal((5, d)), rng.standard_normal(5)
    return A, labels, A @ rng.standard_normal(d) + rng.standard_normal(n), C, y


def problems(rng: Any) -> dict[str, tuple[Problem, Any, Any]]:
    """Problems with the same in CVXPY: objective and constraints of its variable."""
    import cvxpy as cp

    A, labels, b, C, y = data(rng)
    x = cp.Variable(A.shape[1])
    loss = cp.sum(cp.logistic(-cp.multiply(labels, A @ x))) / len(labels)
    squares = 0.5 * cp.sum_squares(A @ x - b)
    ball, rows = ResidualBall(C, y, 0.5), Affine(C, -0.1, 0.2)
    in_ball, in_rows = [cp.norm(C @ x - y) <= 0.5], [C @ x >= -0.1, C @ x <= 0.2]
    groups = sum(cp.norm(x[3 * i : 3 * i + 3]) for i in range(4))
    box = Polyhedron.box(np.full(12, -0.5), np.full(12, 0.5))
    jumps = cp.norm1(cp.diff(x))
    return {
        "logistic, ball": (Problem(Logistic(A, labels), ball), loss, in_ball),
        "logistic, l1": (
            Problem(Sum(Logistic(A, labels), Scaled(0.05, L1Norm())), rows),
            loss + 0.05 * cp.norm1(x),
            in_rows,
        ),
        "squares, ball, rows, l1": (
            Problem(Sum(LeastSquares(A, b), Scaled(9.0, L1Norm())), Intersection(ball, box)),
            squares + 9.0 * cp.norm1(x),
            [*in_ball, cp.abs(x) <= 0.5],
        ),
        "squares, groups": (
            Problem(Sum(LeastSquares(A, b), Scaled(9.0, GroupNorm(np.eye(12), 3))), rows),
            squares + 9.0 * groups,
            in_rows,
        ),
        "squares, variation": (
            Problem(Sum(LeastSquares(A, b), Scaled(9.0, TotalVariation(12))), rows),
            squares + 9.0 * jumps,
            in_rows,
        ),
        "l1 alone": (Problem(L1Norm(), ball), cp.norm1(x), in_ball),
    }


NAMES = ["logistic, ball", "logistic, l1", "squares, ball, rows, l1", "squares, groups"]
NAMES += ["squares, variation", "l1 alone"]


@pytest.mark.parametrize("name", NAMES)
def test_the_answers_of_clarabel(name: str, rng: Any) -> None:
    import cvxpy as cp

    problem, objective, constraints = problems(rng)[name]
    expected = cp.Problem(cp.Minimize(objective), constraints).solve(solver="CLARABEL")
    result = lopro.solve(problem, method=NewtonMultipliers())
    assert result.success and result.counts.projections <= 1
    assert result.fun == pytest.approx(expected, rel=2e-6)
    slack = 1e-7 * abs(expected)  # of the other solver
    assert expected - 2e-6 * abs(expected) <= result.certificate.lower_bound <= expected + slack
    assert result.certificate.violation <= 1e-9


@pytest.mark.parametrize("name", NAMES)
def test_the_multipliers_prove_the_bound_at_every_point(name: str, rng: Any) -> None:
    """f(x) + <direction, x> - support is at least the bound for all x, and equal to it at the solution."""
    problem, _, _ = problems(rng)[name]
    result = lopro.solve(problem, method=NewtonMultipliers(), tol=1e-8)
    v, f = result.multiplier, problem.objective
    assert v is not None
    at_x = f.value(result.x) + v.direction @ result.x - v.support
    assert at_x == pytest.approx(result.fun, rel=1e-6)
    for scale in (1e-3, 0.1, 1.0, 10.0):
        for x in result.x + scale * rng.standard_normal((50, 12)):
            assert f.value(x) + v.direction @ x - v.support >= at_x - 1e-8 * abs(at_x)


# Operators and callables.


@pytest.mark.parametrize("d", [12, 150])
def test_operators_give_the_answers_of_their_matrices(d: int, rng: Any) -> None:
    """Up to 100 variables the matrix is formed by products; above, conjugate gradients are used."""
    A, labels, b, C, y = data(rng, 3 * d, d)
    operator = scipy.sparse.linalg.aslinearoperator
    for make in (
        lambda wrap: Problem(LeastSquares(wrap(A), b), ResidualBall(wrap(C), y, 0.5)),
        lambda wrap: Problem(
            Sum(Logistic(wrap(A), labels, l2=0.1), Scaled(0.01, L1Norm())), Affine(C, -0.1, 0.1)
        ),
        lambda wrap: Problem(
            Sum(Scaled(2.0, LeastSquares(wrap(A), b)), Scaled(9.0, GroupNorm(wrap(np.eye(d)), 3))),
            Affine(C, -0.1, 0.1),
        ),
    ):
        known = lopro.solve(make(np.asarray), method=NewtonMultipliers(), tol=1e-7)
        found = lopro.solve(make(operator), method=NewtonMultipliers(), tol=1e-7)
        assert known.success and found.success
        assert found.fun == pytest.approx(known.fun, rel=3e-7)
        # The other point may violate the constraint by 1e-9, and have a lower value for it.
        assert found.certificate.lower_bound <= known.fun * (1.0 + 1e-9)
        assert found.counts.matvecs > 0


def callable_of(f: Any, *, second: str) -> FunctionObjective:
    """Return the softplus sum of rows with a ridge of 0.1, with or without second derivatives."""

    def probabilities(x: Any) -> Any:
        return 1.0 / (1.0 + np.exp(-(f @ x)))

    def hessp(x: Any, p: Any) -> Any:
        q = probabilities(x)
        return f.T @ (q * (1.0 - q) * (f @ p)) + 0.1 * p

    def hess(x: Any) -> Any:
        return np.array([hessp(x, e) for e in np.eye(f.shape[1])])

    return FunctionObjective(
        lambda x: float(np.logaddexp(0.0, f @ x).sum() + 0.05 * x @ x),
        gradient=lambda x: f.T @ probabilities(x) + 0.1 * x,
        shape=(f.shape[1],),
        strong_convexity=0.1,
        **({"hess": hess} if second == "hess" else {"hessp": hessp} if second == "hessp" else {}),
    )


@pytest.mark.parametrize("second", ["hess", "hessp", "none"])
@pytest.mark.parametrize("d", [8, 150])
def test_callables_with_and_without_second_derivatives(second: str, d: int, rng: Any) -> None:
    """All reach the optimum of the problem with data, by a third of the gradients of first order or fewer."""
    A, C = rng.standard_normal((2 * d, d)), rng.standard_normal((4, d))
    rows = Affine(C, 1.0, 2.0)
    known = Scaled(2.0 * d, Logistic(A, -np.ones(2 * d), l2=0.1 / (2.0 * d)))
    expected = lopro.solve(Problem(known, rows), method=NewtonMultipliers(), tol=1e-9)
    problem = Problem(callable_of(A, second=second), rows)
    result = lopro.solve(problem, method=NewtonMultipliers(), tol=1e-7)
    assert expected.success and result.success
    assert result.fun == pytest.approx(expected.fun, rel=2e-7)
    assert expected.fun * (1.0 - 2e-7) <= result.certificate.lower_bound
    assert result.certificate.lower_bound <= expected.fun * (1.0 + 1e-9)
    first_order = lopro.solve(problem, method=lopro.MultiplierMethod(), tol=1e-7)
    assert 0 < 3 * result.counts.gradients < first_order.counts.gradients


def test_an_unbounded_callable_is_not_certified() -> None:
    f = FunctionObjective(lambda x: -float(x[0]), gradient=lambda x: np.array([-1.0]), shape=(1,))
    result = lopro.solve(Problem(f, Polyhedron([[-1.0]], [0.0])), max_iter=300)
    assert not result.success
    assert result.certificate.relative_gap > 1.0


# The choice of Auto.


def explained(f: Any, c: Any) -> str:
    """Return the first choice and its reason, without the cost."""
    return lopro.explain(Problem(f, c)).splitlines()[1].split(";")[0]


def test_explain_names_newton_where_there_are_second_derivatives(rng: Any) -> None:
    A, labels, b, C, y = data(rng)
    ball, rows = ResidualBall(C, y, 4.0), Affine(C, -0.1, 0.1)
    known = "1. NewtonMultipliers(): f has second derivatives"
    l1 = Scaled(0.1, L1Norm())
    operator = scipy.sparse.linalg.aslinearoperator(A)
    for f, c, reason in (
        (Logistic(A, labels), ball, f"{known} and the set is given by balls"),
        (Logistic(A, labels), rows, f"{known} and the set is given by rows"),
        (
            Sum(Logistic(A, labels), l1),
            Intersection(rows, ball),
            f"{known}, norms have a prox, and the set is given by rows and balls",
        ),
        (LeastSquares(operator, b), rows, f"{known} and the set is given by rows"),
        (
            callable_of(A, second="none"),
            rows,
            "1. NewtonMultipliers(): f is smooth (L-BFGS) and the set is given by rows",
        ),
    ):
        assert explained(f, c) == reason
        result = lopro.solve(Problem(f, c))
        assert result.success and "NewtonMultipliers" in result.method


def test_norms_alone_go_to_newton_over_rows_and_to_other_methods_otherwise() -> None:
    half = Polyhedron([[1.0, 1.0]], [-1.0])
    reason = "f is a norm with a prox and the set is given by rows"
    assert explained(L1Norm(), half) == f"1. NewtonMultipliers(): {reason}"
    assert lopro.solve(Problem(L1Norm(), half)).fun == pytest.approx(1.0, rel=1e-6)
    assert "InteriorPoint" in explained(TotalVariation(2), half)
    both = Intersection(half, ResidualBall(np.eye(2), np.zeros(2), 2.0))
    assert "MultiplierMethod" in explained(L1Norm(), both)
