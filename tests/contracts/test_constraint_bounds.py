"""Constants of constraints as exact numbers: slopes, curvatures and infima that some point attains.

Sampling finds bounds that are too large. These tests find bounds that are too small, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse.linalg import aslinearoperator
from support.catalogue import CONSTRAINTS
from support.constraint_case import ConstraintCase

from lopro.constraints import (
    Constraint,
    Distance,
    FunctionConstraint,
    Intersection,
    KyFan,
    L1Ball,
    MinEigenvalue,
    NegativeSum,
    NormForm,
    Polyhedron,
    PSDCone,
    ResidualBall,
    ResidualNorm,
    Simplex,
    Spectrahedron,
    SquaredResidual,
)
from lopro.constraints.pulled_back import pulled_back, stretch_at
from lopro.core.arrays import inner, norm
from lopro.errors import ProjectionError
from lopro.functions import Ball

ROWS = np.array([[3.0, 0.0], [0.0, 1.0]])
DOUBLE = ResidualBall(2.0 * np.eye(2), np.zeros(2), 1.0)
FRAME = aslinearoperator(np.array([[2.0, 0.0, 0.0], [0.0, 0.0, 2.0]]))  # A A' = 4 I


@pytest.mark.parametrize(
    ("c", "steepest"),
    [
        (PSDCone(4, MinEigenvalue()), -np.eye(4)),
        (PSDCone(4, KyFan(3)), -np.eye(4)),
        (PSDCone(4, NegativeSum()), -np.eye(4)),
        (PSDCone(4, Distance()), -np.eye(4)),
        (L1Ball(4), np.array([1.0, -1.0, 2.0, -2.0])),
        (Simplex(4), np.array([1.0, 1.0, 2.0, 2.0])),
        (Simplex(4, equality=False), np.array([1.0, 1.0, 2.0, 2.0])),
        (Spectrahedron(4), 2.0 * np.eye(4)),
        (Polyhedron(ROWS, np.zeros(2)), np.array([5.0, 1.0])),
        (Polyhedron(ROWS, np.zeros(2), NormForm()), np.array([5.0, -1.0])),
        (ResidualBall(ROWS, np.zeros(2), 1.0, ResidualNorm()), np.array([5.0, 0.0])),
        (ResidualBall(FRAME, np.ones(2), 1.0, ResidualNorm(), tight_frame=4.0), np.arange(3.0)),
        (Intersection(Simplex(2), Polyhedron(ROWS, np.zeros(2))), np.array([5.0, 1.0])),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_slope_is_reached(c: Constraint, steepest: Any) -> None:
    G = c.lipschitz()
    assert G is not None
    assert G.value == pytest.approx(norm(c.subgradient(steepest)), rel=1e-12)


def test_the_stretch_of_a_map_is_that_of_lengths() -> None:
    image = (np.array([9.0, 12.0]),)
    assert stretch_at(np.array([3.0, 4.0]), image[0]) == 3.0
    assert stretch_at(np.zeros(2), image[0]) == 0.0
    # |A x| / |x| = 3 times |v| = 5, and 8 roundings.
    rows = Polyhedron(3.0 * np.eye(2), np.zeros(2))
    found = pulled_back(rows, (np.array([0.0, 5.0]),), np.array([3.0, 4.0]), image)
    assert found.blur == 8.0 * 2.0**-52 * 15.0


def test_the_slope_of_a_squared_residual_is_reached_on_a_ball() -> None:
    """``4 |x|^2 - 1`` on the ball of radius 1 around (3, 0) is steepest at (4, 0), where it has slope 32."""
    G = DOUBLE.lipschitz(Ball(np.array([3.0, 0.0]), 1.0))
    assert G.value == pytest.approx(norm(DOUBLE.subgradient(np.array([4.0, 0.0]))), rel=1e-12)
    assert G.value == pytest.approx(32.0, rel=1e-12)
    assert DOUBLE.lipschitz() is None


@pytest.mark.parametrize(
    "c",
    [
        ResidualBall(ROWS, np.array([1.0, 2.0]), 1.0, SquaredResidual()),
        ResidualBall(FRAME, np.ones(2), 1.0, tight_frame=4.0),
    ],
    ids=["matrix", "tight-frame"],
)
def test_the_curvature_is_reached(c: Constraint) -> None:
    u = np.zeros(c.shape)
    u[0] = 1.0
    turned = norm(c.subgradient(u) - c.subgradient(0.0 * u))
    assert c.smoothness().value == pytest.approx(turned, rel=1e-12)


@pytest.mark.parametrize(
    ("c", "lowest"),
    [
        (L1Ball(3, 2.0), np.zeros(3)),
        (Simplex(2), np.array([0.5, 0.5])),
        (Spectrahedron(2), 0.25 * np.eye(2)),
        (Polyhedron(ROWS, np.zeros(2), NormForm()), -np.ones(2)),
        (ResidualBall(ROWS, np.array([3.0, 1.0]), 0.5), np.ones(2)),
        (ResidualBall(ROWS, np.array([3.0, 1.0]), 0.5, ResidualNorm()), np.ones(2)),
        # One member that is bounded below bounds the largest; here the cone has no lower bound.
        (Intersection(L1Ball(2, 2.0), Polyhedron(ROWS, np.array([9.0, 9.0]))), np.zeros(2)),
        (Intersection(L1Ball(2, 2.0), L1Ball(2, 1.0)), np.zeros(2)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_infimum_is_reached(c: Constraint, lowest: Any) -> None:
    low = c.infimum()
    assert low is not None
    assert low.value == pytest.approx(c.value(lowest), rel=1e-12, abs=1e-12)


def test_one_member_without_a_slope_leaves_the_intersection_without_one() -> None:
    """A squared residual has no global Lipschitz constant, whatever it is intersected with."""
    both = Intersection(DOUBLE, L1Ball(2))
    assert both.lipschitz() is None
    assert both.lipschitz(Ball(np.array([3.0, 0.0]), 1.0)).value == pytest.approx(32.0)


# Supporting half-spaces.


@pytest.mark.parametrize("case", CONSTRAINTS, ids=str)
def test_a_normal_has_the_slope_of_the_weighted_constraint(case: ConstraintCase, rng: Any) -> None:
    """A multiplier is ``weight`` times the slope; twice the weight is twice the inequality."""
    c = case.numpy
    for scale in (0.1, 1.0, 10.0):
        x = case.point(rng, scale)
        g = c.subgradient(x)
        one, three = c.valid_inequality(x, 1.0), c.valid_inequality(x, 3.0)
        assert norm(one.direction - g) <= 1e-12 * (1.0 + norm(g))
        assert norm(three.direction - 3.0 * g) <= 1e-12 * (1.0 + norm(g))
        size = 1.0 + abs(one.support) + norm(g) * norm(x)
        assert three.support == pytest.approx(3.0 * one.support, rel=1e-12, abs=1e-13 * size)


def test_the_supporting_half_space_of_a_residual_ball_touches_it() -> None:
    """At (5, 1) the residual is (15, 1); the ball ends at the point whose residual is a unit of that."""
    ball, x = ResidualBall(ROWS, np.zeros(2), 1.0, ResidualNorm()), np.array([5.0, 1.0])
    edge = np.linalg.solve(ROWS, ROWS @ x / norm(ROWS @ x))
    normal = ball.valid_inequality(x, 2.0)
    assert inner(normal.direction, edge) == pytest.approx(normal.support, rel=1e-13)


# What is refused.


@pytest.mark.parametrize("unit", [1.0, 1e6])
def test_rows_that_contradict_each_other_by_little_make_an_empty_set(unit: float) -> None:
    """``x <= 1`` and ``x >= 1 + e`` in some unit: a millionth is a contradiction, rounding is not."""

    def between(e: float) -> Polyhedron:
        return Polyhedron(np.array([[1.0], [-1.0]]), unit * np.array([1.0, -1.0 - e]))

    assert "empty" in str(between(1e-6).infeasibility())
    assert between(1e-12).infeasibility() is None


@pytest.mark.parametrize(("excess", "refused"), [(0.9e-7, False), (1.1e-7, True)])
@pytest.mark.parametrize("size", [1.0, 1e-9, 1e9])
def test_a_given_projection_may_leave_a_violation_of_a_ten_millionth(
    excess: float, refused: bool, size: float
) -> None:
    """Relative to the size of the points if the user gives it: the point zero has none."""
    half_line = FunctionConstraint(
        lambda x: float(x[0]),
        np.ones_like,
        project=lambda x: np.array([excess * size]),
        x_scale=size,
    )
    if not refused:
        assert half_line.project(np.array([3.0 * size]))[0] == excess * size
        return
    with pytest.raises(ProjectionError, match="must return a feasible point"):
        half_line.project(np.array([3.0 * size]))


def test_without_a_size_a_point_is_compared_with_itself() -> None:
    """Every ``x > 0`` violates ``x <= 0`` by its own size."""
    half_line = FunctionConstraint(
        lambda x: float(x[0]), np.ones_like, project=lambda x: np.array([1e-200])
    )
    assert half_line.violation(np.array([1e-200])) == pytest.approx(1.0, rel=1e-15)
    with pytest.raises(ProjectionError, match=r"relative violation of 1$"):
        half_line.project(np.array([3.0]))
