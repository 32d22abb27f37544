"""Bounds from multipliers, checked by optimal values in exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.optimize
from support.exact_arithmetic import exact_dot, rational
from support.newton_examples import (
    composed,
    half_spaces,
    interval,
    least_squares,
    linear,
    linear_program,
    quadratic,
    squared_distance,
)

from lopro.certificates import Bound
from lopro.newton import solve
from lopro.newton.bounds import lower_bound, relative_violation, violation_charge


def exact_dual(center, A, upper, v):
    """Return ``min_x |x - center|^2 / 2 + v'(Ax - upper)`` as a rational number."""
    slope = [exact_dot(A[:, j], v) for j in range(A.shape[1])]
    linear = sum(s * c for s, c in zip(slope, rational(center), strict=True))
    return linear - sum(s * s for s in slope) / 2 - exact_dot(v, upper)


def test_bound_is_below_the_exact_dual_value_and_near(rng):
    A, upper, center = rng.standard_normal((20, 6)), rng.standard_normal(20), rng.standard_normal(6)
    problem = composed(squared_distance(center), [(interval(upper=upper), A)])
    for _ in range(30):
        v = np.maximum(0.0, rng.standard_normal(20))
        minimiser = center - A.T @ v
        exact = exact_dual(center, A, upper, v)
        found = lower_bound(problem, minimiser, [v], convexity=1.0)
        assert found.slope == 0.0
        assert Fraction(found.value) <= exact
        assert float(exact) - found.value <= 1e-11 * (abs(float(exact)) + 1.0)
        # Elsewhere the bound is lower, by half the squared slope: exactly so for this function.
        off = lower_bound(problem, minimiser + 0.5, [v], convexity=1.0)
        assert Fraction(off.value) <= exact
        assert off.value == pytest.approx(float(exact), abs=1e-10)


def test_a_convexity_that_is_too_large_gives_a_wrong_bound(rng):
    """Negative control: twice the true constant makes a false bound."""
    A, upper, center = rng.standard_normal((5, 3)), rng.standard_normal(5), rng.standard_normal(3)
    problem = composed(squared_distance(center), [(interval(upper=upper), A)])
    v = np.ones(5)
    bold = lower_bound(problem, center, [v], convexity=2.0)
    assert Fraction(bold.value) > exact_dual(center, A, upper, v)


def test_slope_and_radius_of_a_linear_objective(rng):
    q, A, upper = linear_program(rng)
    problem = composed(linear(q), [(interval(upper=upper), A)])
    v, x = rng.uniform(size=len(upper)), rng.standard_normal(len(q))
    found = lower_bound(problem, x, [v])
    slope = q + v @ A
    assert found.slope == pytest.approx(np.linalg.norm(slope), rel=1e-12)
    for z in x + rng.standard_normal((50, len(q))) * 10.0 ** rng.integers(-2, 6, (50, 1)):
        lagrangian = q @ z + v @ (A @ z) - v @ upper
        assert found.within(np.linalg.norm(z - x)) <= lagrangian + 1e-9 * (1 + np.abs(z).max())
    # The direction of the slope is where it is reached.
    z = x - 100.0 * slope / np.linalg.norm(slope)
    assert found.within(100.0) == pytest.approx(q @ z + v @ (A @ z) - v @ upper, rel=1e-9)


def test_bounds_of_variables_absorb_the_slope():
    """Over ``1 <= x <= 5`` the function 3 x is at least 3, and -3 x at least -15, by minorants at x = 2."""
    for q, least in ((3.0, 3.0), (-3.0, -15.0)):
        box = (interval(np.array([1.0]), np.array([5.0])), None)
        problem = composed(linear(np.array([q])), [box])
        found = lower_bound(problem, np.array([2.0]), [np.zeros(1)])
        assert found.slope == 0.0
        assert found.value <= least
        assert found.value == pytest.approx(least, rel=1e-13)


def test_radius_arithmetic():
    bound = Bound(3.0, np.array([3.0, 4.0]), np.zeros(2))
    assert bound.slope == pytest.approx(5.0, rel=1e-14)
    assert bound.within(4.0) == pytest.approx(-17.0, rel=1e-14)
    assert Bound.everywhere(3.0).within(np.inf) == 3.0


def test_multipliers_of_the_wrong_sign_are_moved_into_their_cone(rng):
    problem = composed(squared_distance(np.zeros(2)), [(interval(upper=np.ones(2)), None)])
    assert lower_bound(problem, np.zeros(2), [np.array([-5.0, -1.0])], 1.0).value <= 0.0


def test_gap_of_a_solution_in_any_units(rng):
    """Bound, value and charge scale with the objective; the relative gap does not."""
    B, b, A, upper = half_spaces(rng)
    gaps = []
    for unit_f, unit_x in ((1.0, 1.0), (1e9, 1e-9), (1e-9, 1e9)):
        s = np.sqrt(unit_f)
        problem = composed(
            least_squares(s * B / unit_x, s * b), [(interval(upper=upper), A / unit_x)]
        )
        outcome = solve(problem, tol=1e-8)
        assert outcome.status.name == "CONVERGED"
        gaps.append(outcome.gap / outcome.fun)
        assert outcome.fun == pytest.approx(gaps[0] * 0 + outcome.fun)
    assert max(gaps) <= 1e-8
    assert min(gaps) >= 0.0


def test_charge_covers_the_gain_of_a_violation(rng):
    """For the optimal multipliers: f(x) + charge >= f_* at every x, and equality along a descent."""
    B, b, A, upper = half_spaces(rng)
    problem = composed(least_squares(B, b), [(interval(upper=upper), A)])
    best = solve(problem, tol=1e-12, feasibility=1e-12)
    for x in best.x + rng.standard_normal((100, len(best.x))) * 10.0 ** rng.integers(
        -6, 1, (100, 1)
    ):
        charge = violation_charge(problem, x, best.multipliers)
        assert problem.smooth.value(x) + charge >= best.fun * (1 - 1e-10)
    # Violating all tight rows equally decreases f by the charge, to first order.
    tight = best.multipliers[0] > 1e-9
    d = np.linalg.lstsq(A[tight], np.ones(tight.sum()), rcond=None)[0]
    x = best.x + 1e-6 * d
    charge = violation_charge(problem, x, best.multipliers)
    gained = best.fun - problem.smooth.value(x)
    assert tight.sum() >= 3
    assert 0.99 * charge <= gained <= charge


def test_charge_of_either_side():
    """Multipliers of lower sides are negative: -2 at a violation of a half gains as much as 2."""
    for side, x, v in ((interval(upper=np.ones(1)), 1.5, 2.0), (interval(np.ones(1)), 0.5, -2.0)):
        problem = composed(linear(np.array([-v])), [(side, None)])
        charge = violation_charge(problem, np.array([x]), [np.array([v])])
        assert 1.0 <= charge <= 1.0 + 1e-14


def test_relative_violation_has_no_units(rng):
    A, upper, x = rng.standard_normal((9, 3)), rng.standard_normal(9), rng.standard_normal(3)
    found = []
    for row_units in (np.ones(9), 2.0 ** rng.integers(-20, 20, 9)):
        problem = composed(
            linear(np.ones(3)), [(interval(upper=row_units * upper), row_units[:, None] * A)]
        )
        found.append(relative_violation(problem, x))
    assert found[0] == found[1] > 0.0
    inside = composed(quadratic(np.eye(3), np.zeros(3)), [(interval(upper=A @ x), A)])
    assert relative_violation(inside, x) == 0.0


def test_rows_with_one_entry_absorb_the_slope_as_bounds_do():
    """3 x - 2 y over -4 <= -2 x <= 6 and y <= 1 with the row x + y <= 9: at least -9 - 2."""
    A = np.array([[-2.0, 0.0], [0.0, 0.5], [1.0, 1.0]])
    lower, upper = np.array([-4.0, -np.inf, -np.inf]), np.array([6.0, 0.5, 9.0])
    problem = composed(linear(np.array([3.0, -2.0])), [(interval(lower, upper), A)])
    found = lower_bound(problem, np.array([1.0, 0.0]), [np.zeros(3)])
    assert found.slope == 0.0
    assert found.value <= -11.0
    assert found.value == pytest.approx(-11.0, rel=1e-13)
    # The slope of a variable without a bound remains.
    free = composed(linear(np.array([3.0, 2.0])), [(interval(lower, upper), A)])
    assert lower_bound(free, np.array([1.0, 0.0]), [np.zeros(3)]).slopes[1] == pytest.approx(2.0)


def test_rows_imply_the_bounds_that_absorb_slopes():
    """Transport: where u_i + v_j exceeds c_ij, the bound loses the excess times the smaller mass."""
    cost = np.array([1.0, 2.0, 3.0, 1.0])
    E = np.array([[1.0, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]])
    mass = np.array([0.25, 0.75, 0.5, 0.5])
    problem = composed(
        linear(cost), [(interval(mass, mass), E), (interval(lower=np.zeros(4)), None)]
    )
    x = np.array([0.25, 0.0, 0.25, 0.5])
    v = -np.array(
        [0.0, 2.0, 1.0 + 1e-6, -1.0]
    )  # reduced costs -1e-6, 3, -1e-6, 0; <mass, v> = 1.5 + 0.5e-6
    bound = lower_bound(problem, x, [v, np.zeros(4)])
    assert bound.slope == 0.0
    # x_11 <= 1/4 and x_21 <= 1/2, and the value of the point is 1.5
    assert bound.value == pytest.approx(1.5 + 0.5e-6 - (0.25 + 0.5) * 1e-6, abs=1e-12)


def test_positive_costs_bound_the_variables_of_a_path():
    """No row bounds the flow around a cycle, but its cost does."""
    arcs = np.array([[1.0, 1, 0, -1], [-1, 0, 1, 0], [0, -1, -1, 1]])
    cost, sides = np.array([1.0, 3.0, 1.0, 1.0]), np.array([1.0, 0.0, -1.0])
    rows = (interval(sides, sides), arcs)
    problem = composed(linear(cost), [rows, (interval(lower=np.zeros(4)), None)])
    v = -np.array([2.0, 1.0, -1e-9])  # the second arc's reduced cost is -1e-9
    bound = lower_bound(problem, np.array([1.0, 0, 1.0, 0]), [v, np.zeros(4)])
    assert bound.slope == 0.0
    # Where the cost is at most the ceiling, 4, so is the flow on an arc of cost 1.
    assert bound.value == pytest.approx(2.0 + 1e-9 - 4e-9, abs=1e-12)


def test_bounds_of_any_multipliers_at_any_point_are_below_the_optimum(rng):
    for _ in range(200):
        n, m = 5, 3
        A = rng.integers(-2, 4, (m, n)).astype(float)
        cost, sides = rng.integers(0, 4, n).astype(float), A @ rng.uniform(0.0, 2.0, n)
        rows = (interval(sides, sides), A)
        problem = composed(linear(cost), [rows, (interval(lower=np.zeros(n)), None)])
        best = scipy.optimize.linprog(cost, A_eq=A, b_eq=sides).fun
        for _ in range(5):
            x, v = rng.uniform(-3.0, 1.0, n), rng.standard_normal(m)
            bound = lower_bound(problem, x, [v, np.zeros(n)])
            if bound.slope == 0.0:
                assert bound.value <= best + 1e-12
