"""Violations of points and sizes of sets, as exact numbers from formulas written out here."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from support.catalogue import CONSTRAINTS
from support.constraint_case import ConstraintCase

from lopro.certificates import feasibility_tolerance
from lopro.constraints import (
    Affine,
    Constraint,
    Intersection,
    L1Ball,
    Polyhedron,
    PSDCone,
    ResidualBall,
    SecondOrderCone,
    Simplex,
    Spectrahedron,
)
from lopro.constraints.polyhedron import Box
from lopro.errors import ZeroRowWarning


def length(x: Any) -> float:
    return float(np.linalg.norm(x))


def l1_distance(values: Any, total: float, equality: bool) -> float:
    """From the simplex: negative entries become 0, and the others change by their sum less the total."""
    missing = float(np.maximum(values, 0.0).sum()) - total
    return float(np.maximum(-values, 0.0).sum()) + (abs(missing) if equality else max(0.0, missing))


def by_hand(c: Constraint, x: Any) -> float:
    """The relative violation of each kind of set: none has units, neither those of x nor those of c."""
    if isinstance(c, Intersection):
        return max(by_hand(member, x) for member in c.members())
    if isinstance(c, Box):
        outside = np.maximum(np.maximum(x - c.upper, c.lower - x), 0.0)
        side = np.where(x > c.upper, c.upper, c.lower)
        other = np.where(x > c.upper, c.lower, c.upper)
        other = np.where(np.isfinite(other), other, 0.0)
        compared = np.abs(x) + np.abs(side)
        return float(
            (outside / np.where(side == 0.0, np.maximum(np.abs(x), np.abs(other)), compared)).max()
        )
    if isinstance(c, ResidualBall):
        excess = length(c.A.toarray() @ x - c.y) - c.sigma
        return max(0.0, excess) / (c.sigma if c.sigma > 0.0 else length(c.y))
    if isinstance(c, Polyhedron):
        C, v = np.asarray(c.C.toarray()), np.ravel(x)
        excess = C @ v - c.b
        compared = np.abs(C) @ np.abs(v) + np.abs(c.b)
        return float((np.maximum(excess, 0.0) / np.where(compared > 0.0, compared, 1.0)).max())
    if isinstance(c, PSDCone):
        d = np.sqrt(np.maximum(np.abs(x.diagonal()), 1e-6 * np.abs(x).max()))
        return max(0.0, -float(np.linalg.eigvalsh(x / np.outer(d, d))[0]))
    if isinstance(c, L1Ball):
        away = x if c.center is None else x - c.center
        return max(0.0, float(np.abs(away).sum()) - c.size) / c.size
    if isinstance(c, Simplex):
        return l1_distance(x, c.total, c.equality) / c.total
    if isinstance(c, Spectrahedron):
        return l1_distance(np.linalg.eigvalsh(x), c.trace, c.equality) / c.trace
    if isinstance(c, SecondOrderCone):
        z, offset = c.D.toarray() @ x, c.offset
        excess = length(z[1:] + offset[1:]) - (z[0] + offset[0])
        return float(max(0.0, excess) / (length(z) + length(offset)))
    # Of a function nothing is known but its slope.
    return max(0.0, c.value(x)) / length(c.subgradient(x)) / length(x)


@pytest.mark.parametrize("case", CONSTRAINTS, ids=str)
def test_violation_is_the_formula_of_its_set(case: ConstraintCase, rng: Any) -> None:
    c, outside = case.numpy, 0
    for scale in 2 * (1e-3, 1e-2, 0.1, 1.0, 1.0, 10.0, 10.0, 100.0, 1e3):
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


def test_the_violation_of_a_row_is_relative_to_its_terms() -> None:
    """The first row compares 4 with 1, the second 20 with a side of 4."""
    C, b = np.array([[1.0, 0.0], [0.0, 10.0], [0.0, 0.0]]), np.array([1.0, 4.0, 0.0])
    x = np.array([4.0, 2.0])
    assert Polyhedron(C, b).violation(x) == pytest.approx(16.0 / 24.0, rel=1e-15)
    assert Polyhedron(C[:1], b[:1]).violation(x) == pytest.approx(3.0 / 5.0, rel=1e-15)
    assert Polyhedron(C, b).absolute_violation(x) == 16.0
    # In other units of rows and of columns it is the same, and other entries of x do not matter.
    scaled = Polyhedron(C * [[1e9], [1e-7], [1.0]] * [1e-5, 1e12], b * [1e9, 1e-7, 1.0])
    assert scaled.violation(x / [1e-5, 1e12]) == pytest.approx(16.0 / 24.0, rel=1e-14)
    assert Polyhedron(C[:1], b[:1]).violation(np.array([4.0, 1e12])) == pytest.approx(3.0 / 5.0)


def test_a_side_of_zero_is_compared_with_the_units_of_its_columns() -> None:
    """``x_1 <= 2 x_2`` beside ``x_2 <= 6`` and ``8 x_2 <= 16``: x_2 has the unit 2, so that x_1 has 4."""
    C, b = np.array([[1.0, -2.0], [0.0, 1.0], [0.0, 8.0]]), np.array([0.0, 6.0, 16.0])
    assert Polyhedron(C, b).violation(np.array([1e-6, 0.0])) == pytest.approx(1e-6 / 8.0, rel=1e-14)
    assert Polyhedron(C, b).violation(np.array([40.0, 1.0])) == pytest.approx(
        38.0 / 44.0, rel=1e-14
    )
    both = Intersection(Polyhedron(C[:1], b[:1]), Polyhedron(C[1:], b[1:]))
    assert both.violation(np.array([1e-6, 0.0])) == pytest.approx(1e-6 / 8.0, rel=1e-14)


def test_columns_of_a_cone_are_compared_with_the_point_where_rows_connect_them() -> None:
    """``x_1 <= x_2 <= 10 x_3``: x_3 = 0.5 implies that the others are about 5. Nothing connects x_4."""
    C = np.array([[1.0, -1.0, 0.0, 0.0], [0.0, 1.0, -10.0, 0.0], [0.0, 0.0, 0.0, -1.0]])
    cone = Polyhedron(C, np.zeros(3))
    assert cone.violation(np.array([1e-6, 0.0, 0.5, 1e9])) == pytest.approx(1e-6 / 10.0, rel=1e-14)
    assert cone.violation(np.array([0.0, 0.0, 1e9, -1e-9])) == 1.0


def test_a_row_of_zeros_is_rounding_or_infeasible() -> None:
    """A side of 1e-300 beside 99 is rounding; one of 1e-9 is not, nor is one without others beside it."""
    C, x = np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([4.0, 2.0])
    with pytest.warns(ZeroRowWarning, match="1e-300"):
        assert Polyhedron(C, np.array([99.0, -1e-300])).violation(x) == 0.0
    with pytest.warns(ZeroRowWarning, match="the first is row 1"):
        assert Affine(C, [-np.inf, 7e-18], [99.0, 7e-18]).violation(x) == 0.0
    assert Polyhedron(C, np.array([99.0, -1e-9])).violation(x) == 1.0
    # A row with a nonzero entry is no rounding error, however small its side is.
    assert Polyhedron(np.eye(2), np.array([99.0, -1e-17])).violation(np.zeros(2)) == 1.0
    assert Polyhedron(C[1:], np.array([-1e-300])).violation(x) == 1.0


def test_a_sum_that_is_too_small_is_outside_where_it_has_to_be_met() -> None:
    """The entries 1/4 and 1/4 violate a sum of 1 by 1/2, and satisfy a bound of 1."""
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


@pytest.mark.parametrize("large", [1.0, 1e6, 1e12])
def test_a_large_entry_does_not_hide_a_negative_eigenvalue(large: float) -> None:
    """Each index of a matrix is compared with its own diagonal: X_22 = -2 is not feasible beside 1e12."""
    X = np.diag([large, -2.0, 3.0])
    assert PSDCone(3).violation(X) > feasibility_tolerance(X)
    set_ = Intersection(PSDCone(3), Affine.entries(([0], [0]), large, large, shape=(3, 3)))
    assert set_.violation(X) > feasibility_tolerance(X)


def test_a_semidefinite_matrix_stays_feasible_in_all_units(rng: Any) -> None:
    """Rounding of a semidefinite matrix is no violation, whatever the units of its indices."""
    for n, rank in ((5, 2), (60, 20), (60, 59)):
        B = rng.standard_normal((n, rank)) * np.geomspace(1.0, 1e6, n)[:, None]
        X = B @ B.T
        assert PSDCone(n).violation(X) <= 1e-12
        X[0, 0] *= -1.0
        assert PSDCone(n).violation(X) > feasibility_tolerance(X)
