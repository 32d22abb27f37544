"""The cost of a residual: bounds of variables, bounds implied by rows, and strong convexity."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse

from lopro.certificates import VariableBounds, bound_from
from lopro.certificates.bound import unabsorbed
from lopro.linalg.rounding import Enclosure, Estimate


def at(slope, error=0.0, value=0.0):
    slope = np.asarray(slope, dtype=float)
    return Enclosure(Estimate(value), slope, np.zeros(len(slope)) + error)


BOX = VariableBounds(
    np.array([0.0, -1.0, 0.0, -np.inf, -2.0, 1.0]), np.array([np.inf, 1.0, 3.0, 0.5, -1.0, 1.0])
)
X = np.array([0.5, 0.0, 3.0, 0.5, -1.5, 1.0])
SLOPE = np.array([1.0, -2.0, 0.5, -1.0, 0.1, 7.0])


def test_the_cost_is_that_of_the_least_value_over_the_box():
    """At both ends of the uncertain slope, entry by entry."""
    worst = 0.0
    for j in range(6):
        ends = [SLOPE[j] - 0.2, SLOPE[j] + 0.2]
        sides = [z for z in (BOX.lower[j], BOX.upper[j]) if np.isfinite(z)]
        worst += min(*(c * (z - X[j]) for c in ends for z in sides), 0.0)
    bound = bound_from(at(SLOPE, 0.2, 7.0), X, BOX)
    assert bound.slope == 0.0
    assert bound.value == pytest.approx(7.0 + worst, abs=1e-13)
    assert bound.value <= 7.0 + worst


def test_slopes_towards_missing_bounds_remain():
    np.testing.assert_allclose(unabsorbed(at(-SLOPE, 0.2), BOX), [1.2, 0, 0, 1.2, 0, 0])


def test_a_point_outside_of_the_box_is_moved_into_it_first():
    """5 - 2 (z - 3) over [0, 1] is at least 9; with slopes from -2.1 to -1.9 at least 8.8."""
    box = VariableBounds(np.array([0.0]), np.array([1.0]))
    assert bound_from(at([-2.0], 0.0, 5.0), np.array([3.0]), box).value == pytest.approx(9.0)
    uncertain = bound_from(at([-2.0], 0.1, 5.0), np.array([3.0]), box).value
    assert uncertain == pytest.approx(8.8)
    assert uncertain <= 8.8


def test_strong_convexity_absorbs_the_remaining_slope():
    """4 + 3 d + d^2 has the least value 7/4; its convexity is 2."""
    bound = bound_from(at([3.0], 0.0, 4.0), np.zeros(1), convexity=2.0)
    assert bound.slope == 0.0
    assert bound.value == pytest.approx(1.75, abs=1e-13)


def test_implied_bounds_are_those_of_linear_programs(rng):
    """With all but one variable bounded on the right side, one row alone gives the best bound."""
    a = np.array([2.0, -3.0, 0.5])
    box = VariableBounds(np.array([1.0, -np.inf, -4.0]), np.array([np.inf, 2.0, np.inf]))
    found = box.implied([(a[None], np.array([-np.inf]), np.array([7.0]))])
    for j, sign in ((0, 1.0), (1, -1.0), (2, 1.0)):
        cost = np.zeros(3)
        cost[j] = -sign
        exact = scipy.optimize.linprog(
            cost, a[None], [7.0], bounds=np.column_stack([box.lower, box.upper])
        )
        side = found.upper if sign > 0.0 else found.lower
        assert side[j] == pytest.approx(exact.x[j], rel=1e-14)
    assert found.lower[0] == 1.0 and found.upper[1] == 2.0  # given bounds are kept


def test_a_row_with_two_open_variables_implies_nothing():
    box = VariableBounds(np.zeros(3), np.full(3, np.inf))
    rows = (np.array([[1.0, -1.0, -1.0]]), np.array([-np.inf]), np.array([1.0]))
    found = box.implied([rows])
    np.testing.assert_array_equal(found.upper, np.inf)


def test_the_open_variable_of_a_row_is_bounded_by_the_others():
    """x_1 <= 1 + x_2 with x_2 <= 5 bounds x_1; x_1 is open in the other direction."""
    box = VariableBounds(np.full(2, -np.inf), np.array([np.inf, 5.0]))
    found = box.implied([(np.array([[1.0, -1.0]]), np.array([-2.0]), np.array([1.0]))])
    assert found.upper[0] == pytest.approx(6.0)
    assert not np.isfinite(found.lower).any()


def test_the_cost_that_strong_convexity_absorbs_is_rounded_upwards(rng):
    """``d g + d^2 mu / 2`` is least at ``-g^2 / (2 mu)``, in exact arithmetic; errors add to it."""
    for g, mu, off in rng.uniform(0.1, 10.0, (100, 3)).tolist():
        slope = Enclosure(Estimate(0.0, off), np.array([g]), np.zeros(1))
        found = bound_from(slope, np.zeros(1), convexity=mu).value
        exact = -Fraction(off) - Fraction(g) ** 2 / (2 * Fraction(mu))
        assert exact * (1 + Fraction(1, 10**14)) <= Fraction(found) <= exact


@pytest.mark.parametrize("wrap", [np.asarray, scipy.sparse.csr_array])
def test_implied_bounds_are_rounded_outwards(rng, wrap):
    """In exact arithmetic, for sums whose terms cancel: 1e6 rows of numbers of mixed sizes."""
    for _ in range(50):
        n = 6
        a = rng.uniform(0.1, 1.0, n) * 10.0 ** rng.integers(-8, 8, n)
        lower = rng.uniform(-1.0, 1.0, n) / a
        side = float(a @ lower) + 1e-9
        box = VariableBounds(lower, np.full(n, np.inf))
        found = box.implied([(wrap(a[None]), np.array([-np.inf]), np.array([side]))])
        exact = [Fraction(float(v)) for v in a], [Fraction(float(v)) for v in lower]
        total = sum(p * q for p, q in zip(*exact, strict=True))
        for j in range(n):
            most = exact[1][j] + (Fraction(side) - total) / exact[0][j]
            assert Fraction(float(found.upper[j])) >= most
            assert float(found.upper[j]) <= float(most) + 1e-14 * np.abs(a * lower).sum() / a[j]


def test_implied_bounds_allow_for_the_rounding_of_the_longest_row():
    """``x <= 3 + 1 + 2^-54 + 2^-54 + ...`` and a short row: the floating-point sum is 4."""
    n = 1000
    A = np.zeros((2, n + 2))
    A[0] = [1.0, -1.0, *n * [-(2.0**-54)]]
    A[1, 1] = 1.0
    box = VariableBounds(np.full(n + 2, -np.inf), np.array([np.inf, *(n + 1) * [1.0]]))
    found = box.implied([(A, np.full(2, -np.inf), np.array([3.0, 2.0]))])
    assert Fraction(float(found.upper[0])) >= 4 + Fraction(n, 2**54)
    assert found.upper[0] == pytest.approx(4.0, rel=1e-11)


def test_bounds_are_propagated_from_row_to_row():
    n = 40
    A = scipy.sparse.diags_array([np.ones(n), -np.ones(n - 1)], offsets=[0, -1]).tocsr()
    box = VariableBounds(np.zeros(n), np.full(n, np.inf))
    found = box.implied([(A, np.full(n, -np.inf), np.ones(n))])  # x_k <= x_(k-1) + 1
    np.testing.assert_allclose(found.upper, np.arange(1.0, n + 1.0))
