"""Bounds that hold within a ball, and points outside it: exact numbers, on ``min -x`` over ``x <= 2``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from lopro import Problem
from lopro.certificates import FARTHER, Bound
from lopro.constraints import Polyhedron, ValidInequality
from lopro.driver.incumbent import Incumbent
from lopro.errors import BoundContradictionWarning
from lopro.objectives import Linear
from lopro.protocol import Candidate, ProvedBound, Target


def incumbent(unit: float = 0.0) -> Incumbent:
    problem = Problem(Linear(np.array([-1.0])), Polyhedron([[1.0]], [2.0]))
    return Incumbent(problem, Target(0.0), [], lambda: unit)


def certificate_after(known: Incumbent, x: float, *args: Any, **kwargs: Any) -> Any:
    """Update the incumbent with a bound proved at a point, and return its certificate."""
    point = np.array([x])
    judged = known.judge(point)
    known.update(Candidate(point, ProvedBound(*args, **kwargs)), judged.fun, None)
    return known.certificate


def test_a_bound_is_not_used_if_the_best_point_is_outside_its_ball() -> None:
    """A bound of -0.5 within 0.1 of 0 does not hold at the point 2."""
    known = incumbent()
    assert certificate_after(known, 0.0, -0.5, "nearby", 0.1).lower_bound == -0.5
    # No warning: the feasible point 2 has -2, and does not contradict it.
    c = certificate_after(known, 2.0, -3.0, "everywhere")
    assert (c.lower_bound, c.radius, c.source) == (-3.0, math.inf, "everywhere")


def test_a_bound_with_a_slope_is_charged_for_the_distance_to_the_best_point() -> None:
    """Proved at 0 with the slope 1e-6; for the point 2 it has to hold in a radius larger by 2e4."""
    known = incumbent()
    sloping = Bound(-2.5, np.array([1e-6]), np.zeros(1))
    c = certificate_after(known, 0.0, -2.5, "sloping", local=sloping)
    assert c.radius == 0.0 and c.lower_bound == -math.inf  # the solutions are not bounded
    known = incumbent(unit=3.0)
    c = certificate_after(known, 0.0, -2.5, "sloping", local=sloping)
    assert (c.radius, c.lower_bound) == (3e4, pytest.approx(-2.5 - 0.03, rel=1e-14))
    known.judge(np.array([2.0]))
    assert known.certificate.lower_bound == pytest.approx(-2.5 - 1e-6 * (2.0 + 3e4), rel=1e-14)
    known.judge(np.array([-50.0]))  # not better than the best point: nothing changes
    assert known.certificate.radius == FARTHER * 3.0


def test_the_better_of_two_bounds_nearby_is_kept() -> None:
    known = incumbent()
    certificate_after(known, 2.0, -2.25, "first", 10.0)
    assert certificate_after(known, 2.0, -2.75, "second", 20.0).source.startswith("first")
    c = certificate_after(known, 2.0, -2.125, "third", 5.0)
    assert (c.lower_bound, c.radius) == (-2.125, 5.0)


@pytest.mark.parametrize("radius", [math.inf, 10.0])
def test_a_bound_above_a_feasible_point_is_dropped_with_a_warning(radius: float) -> None:
    known = incumbent()
    certificate_after(known, 2.0, -2.5, "right")
    with pytest.warns(
        BoundContradictionWarning, match=r"-1.5 was dropped, a feasible point has -2"
    ):
        c = certificate_after(known, 2.0, -1.5, "wrong", radius)
    assert c.lower_bound == -2.5 and len(known.warnings) == 1


def test_a_bound_that_a_later_point_contradicts_is_dropped_then() -> None:
    known = incumbent()
    assert certificate_after(known, 1.0, -1.5, "wrong", 10.0).lower_bound == -1.5
    known.judge(np.array([2.0]))
    with pytest.warns(BoundContradictionWarning):
        assert known.certificate.lower_bound == -math.inf


def test_with_multipliers_a_contradiction_is_compared_with_rounding() -> None:
    """For bounds charged for rounding an excess of 1e-8 is detected; a gain of the point is no excess."""
    known, row = incumbent(), ValidInequality(np.ones(1), 2.0)
    with pytest.warns(BoundContradictionWarning):
        certificate_after(known, 2.0, -2.0 + 1e-8, "wrong", math.inf, row)
    beyond = 2.0 + 1e-9
    assert certificate_after(
        known, beyond, -2.0, "right", math.inf, row, 1e-9
    ).charge == pytest.approx(1e-9)
