"""How far outside a point is, and how large a set is, as exact numbers from formulas written out here."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from catalogue import CONSTRAINTS, ConstraintCase

from lopro.constraints import (
    Constraint,
    Intersection,
    L1Ball,
    Polyhedron,
    PSDCone,
    ResidualBall,
    Simplex,
    Spectrahedron,
)


def length(x: Any) -> float:
    return float(np.linalg.norm(x))


def l1_distance(values: Any, total: float, equality: bool) -> float:
    """From the simplex: what is negative has to rise, and the rest has to make up for its sum."""
    missing = float(np.maximum(values, 0.0).sum()) - total
    return float(np.maximum(-values, 0.0).sum()) + (abs(missing) if equality else max(0.0, missing))


def by_hand(c: Constraint, x: Any) -> float:
    """The relative violation of each kind of set: none has units, neither those of x nor those of c."""
    if isinstance(c, Intersection):
        return max(by_hand(member, x) for member in c.members())
    if isinstance(c, ResidualBall):
        excess = length(c.A.toarray() @ x - c.y) - c.sigma
        return max(0.0, excess) / (c.sigma if c.sigma > 0.0 else length(c.y))
    if isinstance(c, Polyhedron):
        C = np.asarray(c.C.toarray())
        lengths = np.sqrt((C * C).sum(axis=1))
        excess = C @ np.ravel(x) - c.b
        return max(0.0, float(np.max(excess / (lengths * length(x) + np.abs(c.b)))))
    size = 0.0  # of the points of the set; a cone has none, and a function tells none
    if isinstance(c, PSDCone):
        distance = -float(np.linalg.eigvalsh(x)[0])
    elif isinstance(c, L1Ball):
        distance, size = float(np.abs(x).sum()) - c.size, c.size
    elif isinstance(c, Simplex):
        distance, size = l1_distance(x, c.total, c.equality), c.total
    elif isinstance(c, Spectrahedron):
        distance, size = l1_distance(np.linalg.eigvalsh(x), c.trace, c.equality), c.trace
    else:
        distance = c.value(x) / length(c.subgradient(x))
    return max(0.0, distance) / max(size, length(x))


@pytest.mark.parametrize("case", CONSTRAINTS, ids=str)
def test_violation_is_the_formula_of_its_set(case: ConstraintCase, rng: Any) -> None:
    c, outside = case.numpy, 0
    for scale in (1e-3, 1e-2, 0.1, 1.0, 1.0, 10.0, 10.0, 100.0, 1e3):
        x = case.point(rng, scale)
        expected = by_hand(c, x)
        rounding = case.allowed_violation(x) if case.thin else 1e-12 * (1.0 + length(x))
        assert c.violation(x) == pytest.approx(expected, rel=1e-9, abs=rounding)
        assert c.violation(c.project(x)) <= case.allowed_violation(x)
        outside += expected > 1e-6
    assert outside >= 4


# What a residual is compared with.


@pytest.mark.parametrize(
    ("sigma", "unit"),
    [(2.0, 2.0), (1e-4, 1e-4), (1e-5, 1e-5), (1e-9, 1e-5), (0.0, 10.0)],
)
def test_a_residual_is_compared_with_the_radius(sigma: float, unit: float) -> None:
    """A radius below ``1e-6 |y|`` is no unit, and an equation has the size of y for one."""
    ball = ResidualBall(np.eye(2), np.array([6.0, 8.0]), sigma)
    x = np.array([6.0 + sigma + 0.5 * unit, 8.0])
    assert ball.violation(x) == pytest.approx(0.5, rel=1e-9)
    assert ball.violation(np.array([6.0, 8.0 + sigma])) <= 1e-9


def test_a_residual_around_zero_is_compared_with_the_point() -> None:
    """``A x = (6, 4)`` is compared with ``|x| = 5`` times the stretch of A', which takes it to (12, 4)."""
    ball = ResidualBall(np.diag([2.0, 1.0]), np.zeros(2), 0.0)
    size = 5.0 * math.hypot(12.0, 4.0) / math.hypot(6.0, 4.0)
    assert ball.violation(np.array([3.0, 4.0])) == pytest.approx(math.hypot(6.0, 4.0) / size)


def test_rows_count_by_their_distance_and_not_by_their_length() -> None:
    """The first row is violated by 3 and the second by 20, but at distances 3 and 2."""
    C, b = np.array([[1.0, 0.0], [0.0, 10.0], [0.0, 0.0]]), np.array([1.0, 0.0, 0.0])
    x = np.array([4.0, 2.0])
    assert Polyhedron(C, b).violation(x) == pytest.approx(3.0 / (1.0 + math.sqrt(20.0)), rel=1e-15)
    # Without the 1 of its bound it would be the second row: 20 of 10 |x|, and not 3 of |x|.
    assert Polyhedron(C[1:], b[1:]).violation(x) == pytest.approx(2.0 / math.sqrt(20.0), rel=1e-15)
    # A row of zeros is met everywhere or nowhere, however small its bound is.
    empty = Polyhedron(C, np.array([9.0, 99.0, -1e-300]))
    assert empty.violation(x) == 1.0


def test_a_sum_that_is_too_small_is_outside_where_it_has_to_be_met() -> None:
    """A quarter and a quarter miss the sum 1 by a half, and meet a bound of 1."""
    x = np.array([0.25, 0.25])
    for point, kind in ((x, Simplex), (np.diag(x), Spectrahedron)):
        assert kind(2, equality=True).violation(point) == pytest.approx(0.5, rel=1e-14)
        assert kind(2, equality=False).violation(point) == 0.0


# Radii.


def test_the_radius_of_a_residual_ball_is_reached() -> None:
    """The centre is 3 away along the axis in which the ball reaches ``sqrt(1 - 0.6^2) / 2`` further."""
    A = np.array([[2.0, 0.0], [0.0, 5.0], [0.0, 0.0]])
    ball = ResidualBall(A, np.array([6.0, 0.0, 0.6]), 1.0)
    farthest = np.array([3.0 + 0.8 / 2.0, 0.0])
    assert length(A @ farthest - ball.y) == pytest.approx(1.0)
    assert ball.radius().value == pytest.approx(3.4, rel=1e-12)
    assert ball.radius().value >= 3.4


#: Its rows are at the distances 3, 1, 2 and 4 from zero, and the farthest corner is (3, -4).
ROWS_OF_A_BOX = Polyhedron([[1.0, 0.0], [-2.0, 0.0], [0.0, 3.0], [0.0, -1.0]], [3.0, 2.0, 6.0, 4.0])


@pytest.mark.parametrize(
    ("set_", "radius", "widened"),
    [
        (Polyhedron.box([-1.0, -4.0], [3.0, 2.0]), 5.0, 0.0),
        # A linear program's box is widened on purpose by 1e-7 of itself and of the farthest row.
        (ROWS_OF_A_BOX, 5.0, 1e-7 * (5.0 + 4.0)),
        (L1Ball(3, 2.5), 2.5, 0.0),
        (Simplex(3, 2.5), 2.5, 0.0),
        (Spectrahedron(3, 2.5), 2.5, 0.0),
        (Intersection(L1Ball(2, 2.5), Polyhedron.box([-1.0, -4.0], [3.0, 2.0])), 2.5, 0.0),
    ],
    ids=lambda value: type(value).__name__,
)
def test_radii_of_other_sets(set_: Constraint, radius: float, widened: float) -> None:
    found = set_.radius()
    assert found is not None and found.value >= radius
    assert found.value == pytest.approx(radius + widened, rel=1e-14)
