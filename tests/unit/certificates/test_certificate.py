"""Certificates and bounds as exact numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

import lopro
from lopro.certificates import Bound, Certificate, Units, Violation


def test_a_point_that_is_not_feasible_has_an_infinite_gap() -> None:
    inside = Certificate.of(3.0, 2.0, 1e-9, "duality", gained=0.25, absolute=1e-9)
    assert (inside.gap, inside.charge, inside.lower_bound) == (1.25, 0.25, 2.0)
    outside = Certificate.of(3.0, 2.0, 1.1e-9, "duality", absolute=1e-9)
    assert math.isinf(outside.gap) and math.isinf(outside.relative_gap)
    assert outside.lower_bound == 2.0
    assert Certificate.of(3.0, 2.0, 1e-6, "duality", absolute=1.0, feasible=1e-5).gap == 1.0


def test_a_bound_around_another_point_is_charged_for_the_distance() -> None:
    """Variable by variable: the distance from the centre, and 1e4 times the size or the unit of the entry."""
    units = Units.given(np.array([10.0, 2.0]))
    bound = Bound(2.0, np.array([0.5, 0.25]), np.array([0.0, 1.0]), units)
    x = np.array([3.0, 5.0])  # sizes 10 (the unit) and 5
    lost = 0.5 * (3.0 + 1e5) + 0.25 * (4.0 + 5e4)
    assert bound.around(x) == pytest.approx(2.0 - lost, rel=1e-14)
    assert bound.around(x) < 2.0 - lost
    assert bound.radius(x) == 5e4
    np.testing.assert_array_equal(bound.reach(x), [1e5, 5e4])
    assert Bound.everywhere(2.0).around(np.full(2, 1e300)) == 2.0


def test_a_bound_without_units_reaches_as_far_as_the_point_or_a_given_length() -> None:
    """No row contains both columns: the unit of each is the largest entry of the point."""
    bound = Bound(0.0, np.array([1.0, 0.0]), np.zeros(2), Units.given(np.zeros(2)))
    assert bound.around(np.zeros(2)) == -math.inf and bound.radius(np.zeros(2)) == 0.0
    assert bound.around(np.zeros(2), 3.0) == pytest.approx(-3e4, rel=1e-14)
    # An entry of 7 is the unit of the other one, which the data do not determine.
    assert bound.around(np.array([0.0, 7.0]), 3.0) == pytest.approx(-7e4, rel=1e-14)


def test_without_explicit_data_one_radius_holds_for_all_variables() -> None:
    bound = Bound(2.0, np.array([0.5]), np.array([0.0, 1.0]))
    x = np.array([3.0, 5.0])
    far = 1e4 * np.hypot(3.0, 5.0)
    assert bound.around(x) == pytest.approx(2.0 - 0.5 * (5.0 + far), rel=1e-14)
    assert bound.radius(x) == pytest.approx(far, rel=1e-14)
    assert bound.around(x, 1.0) == bound.around(x) and bound.around(np.zeros(2)) == -math.inf
    assert bound.around(x, 100.0) == pytest.approx(2.0 - 0.5 * (5.0 + 1e6), rel=1e-14)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_the_cost_of_a_slope_does_not_depend_on_the_unit_of_its_column(scale: float) -> None:
    s = np.array([1.0, scale])
    units, x = Units.given(np.array([2.0, 3.0]) * s), np.array([4.0, 1.0]) * s
    bound = Bound(1.0, np.array([1e-6, 1e-5]) / s, np.zeros(2), units)
    lost = 1e-6 * (4.0 + 4e4) + 1e-5 * (1.0 + 3e4)
    assert bound.around(x) == pytest.approx(1.0 - lost, rel=1e-12)


def test_a_limit_restricts_the_bound() -> None:
    bound = Bound(2.0, np.zeros(0), np.array([1.0]), limit=5.0)
    assert bound.around(np.array([4.0])) == 2.0
    assert bound.radius(np.array([4.0])) == pytest.approx(2.0, rel=1e-14)
    assert bound.around(np.array([6.5])) == -math.inf


def test_the_worst_of_two_violations() -> None:
    assert Violation(0.5, 1.0).and_also(Violation(0.25, 3.0)) == Violation(0.5, 3.0)


def test_a_result_has_the_absolute_violation() -> None:
    """At 2.5, ``1000 x = 2000`` is missed by 500, and compares 2500 with 2000."""
    row = lopro.constraints.Affine([[1000.0]], 2000.0, 2000.0)
    assert row.absolute_violation(np.array([2.5])) == 500.0
    assert row.violation(np.array([2.5])) == pytest.approx(500.0 / 4500.0, rel=1e-15)
    result = lopro.solve(lopro.Problem(lopro.objectives.Linear([1.0]), row))
    assert result.success and result.certificate.absolute_violation <= 1e-9 * 4000.0


def test_without_a_certificate_nothing_is_claimed_of_a_point() -> None:
    nothing = Certificate.unknown()
    assert (nothing.lower_bound, nothing.gap, nothing.violation) == (-math.inf, math.inf, math.inf)
