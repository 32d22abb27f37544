"""Certificates and bounds as exact numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

import lopro
from lopro.certificates import Bound, Certificate, Violation


def test_a_point_that_is_not_feasible_has_an_infinite_gap() -> None:
    inside = Certificate.of(3.0, 2.0, 1e-9, "duality", gained=0.25)
    assert (inside.gap, inside.charge, inside.lower_bound) == (1.25, 0.25, 2.0)
    outside = Certificate.of(3.0, 2.0, 1.1e-9, "duality")
    assert math.isinf(outside.gap) and math.isinf(outside.relative_gap)
    assert outside.lower_bound == 2.0
    assert Certificate.of(3.0, 2.0, 1e-6, "duality", feasible=1e-5).gap == 1.0


def test_a_bound_around_another_point_pays_for_the_way() -> None:
    bound = Bound(2.0, 0.5, np.array([0.0, 1.0]))
    assert bound.around(np.array([3.0, 5.0]), 10.0) == pytest.approx(2.0 - 0.5 * 15.0, rel=1e-14)
    assert bound.around(np.array([3.0, 5.0]), 10.0) <= -5.5
    assert Bound(2.0, 0.0, np.zeros(2)).around(np.full(2, 1e300), math.inf) == 2.0


def test_the_worst_of_two_violations() -> None:
    assert Violation(0.5, 1.0).and_also(Violation(0.25, 3.0)) == Violation(0.5, 3.0)


def test_a_result_tells_the_absolute_violation() -> None:
    """At 2.5, ``1000 x = 2000`` is missed by 500, and compares 2500 with 2000."""
    row = lopro.constraints.Affine([[1000.0]], 2000.0, 2000.0)
    assert row.absolute_violation(np.array([2.5])) == 500.0
    assert row.violation(np.array([2.5])) == pytest.approx(500.0 / 4500.0, rel=1e-15)
    result = lopro.solve(lopro.Problem(lopro.objectives.Linear([1.0]), row))
    assert result.success and result.certificate.absolute_violation <= 1e-9 * 4000.0
