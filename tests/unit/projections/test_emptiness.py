"""Emptiness is claimed from checked multipliers: never wrongly, and whenever they prove it."""

from __future__ import annotations

import numpy as np
import pytest

import lopro
from lopro.constraints import Affine, Box, Intersection, Polyhedron, ResidualBall
from lopro.engines.cones import ball_rows, halfspace_rows
from lopro.errors import InfeasibleError
from lopro.maps import linear_map
from lopro.objectives import L1Norm
from lopro.projections.emptiness import cones_exclude
from lopro.projections.empty_ball import nonnegative_residual_exceeds, residual_exceeds

UNITS = [1.0, 1e-9, 1e9]


@pytest.mark.parametrize("unit", UNITS)
def test_rows_that_are_apart_and_rows_that_touch(unit):
    """``x <= 1`` and ``x >= 1 + gap``: equal weights prove it, whatever the units."""
    for gap, empty in ((1e-3, True), (1e-8, True), (0.0, False), (1e-12, False), (-1e-3, False)):
        rows = halfspace_rows(np.array([[1.0], [-2.0]]), unit * np.array([1.0, -2.0 * (1.0 + gap)]))
        for error in (0.0, 1e-8, -1e-8):
            assert cones_exclude([rows], [np.array([2.0 + error, 1.0])]) is empty, (gap, error)


def test_weights_of_the_wrong_sign_prove_nothing():
    rows = halfspace_rows(np.array([[1.0], [-1.0]]), np.array([-1.0, 2.0]))  # x <= -1, x >= -2
    assert not cones_exclude([rows], [np.array([1.0, 1.0])])
    assert not cones_exclude([rows], [np.array([1.0, -1.0])])
    assert not cones_exclude([rows], [np.array([1.0, 0.0])])
    assert not cones_exclude([rows], [np.array([np.nan, 1.0])])


@pytest.mark.parametrize("unit", UNITS)
def test_a_ball_and_a_half_space(unit):
    """``|2 x| <= 2`` and ``x1 >= height``; the multiplier of the ball is on the boundary of its cone."""
    ball = ball_rows(2.0 * np.eye(2), np.zeros(2), 2.0 * unit)
    for height, empty in ((1.1, True), (1.0 + 1e-8, True), (1.0, False), (0.9, False)):
        half = halfspace_rows(np.array([[-1.0, 0.0]]), np.array([-height * unit]))
        for error in (0.0, 1e-9):
            z = [np.array([0.5, 0.5 + error, error]), np.array([1.0])]
            assert cones_exclude([ball, half], z) is empty, (height, error)


@pytest.mark.parametrize("unit", UNITS)
def test_nonnegative_points_and_a_ball(unit):
    """The nearest the cone of two columns comes to ``(3, -2)`` is 2; with both signs it is 0."""
    A, y = np.array([[unit, 2.0 * unit], [0.0, unit]]), np.array([3.0, -2.0])
    for sigma, empty in ((0.0, True), (2.0 - 1e-6, True), (2.0, False), (2.5, False)):
        assert nonnegative_residual_exceeds(linear_map(A), y, sigma) is empty
    nu = np.array([0.0, -1.0])
    assert residual_exceeds(linear_map(A), y, 1.9, nu, nonneg=True)
    assert not residual_exceeds(linear_map(A), y, 1.9, nu)
    assert not residual_exceeds(linear_map(-A), y, 1.9, nu, nonneg=True)


@pytest.mark.parametrize("sigma", [0.0, 0.3])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_no_sign_pattern_is_infeasible_at_once(sigma, dtype):
    rng = np.random.default_rng(0)
    A, y = rng.random((5, 20)).astype(dtype), -np.ones(5, dtype)
    result = lopro.bpdn(A, y, sigma, nonneg=True)
    assert result.status is lopro.Status.INFEASIBLE
    y = A @ rng.random(20).astype(dtype)
    assert lopro.bpdn(A, y, 0.3, nonneg=True, tol=1e-3).success


def test_polyhedra_and_balls_that_do_not_meet_are_distinguished_from_those_that_touch():
    ball = ResidualBall(np.eye(2), np.zeros(2), 1.0)
    for height, empty in ((1.1, True), (1.0 - 1e-6, False)):
        both = Intersection(ball, Polyhedron(np.array([[-1.0, 0.0]]), np.array([-height])))
        if empty:
            with pytest.raises(InfeasibleError, match="multipliers"):
                both.project(np.array([3.0, 4.0]))
        else:
            assert both.violation(both.project(np.array([3.0, 4.0]))) <= 1e-9


def test_no_proof_is_attempted_where_there_is_a_point():
    ball = ResidualBall(np.eye(2), np.array([1.0, -1.0]), 1.2)
    both = Intersection(ball, Box(np.zeros(2), np.full(2, np.inf)))
    result = lopro.solve(lopro.Problem(L1Norm(), both), np.array([1.0, 0.0]))
    assert result.success and result.fun == pytest.approx(1.0 - np.sqrt(0.44), rel=1e-5)


@pytest.mark.parametrize("nonneg", [False, True])
def test_equations_in_single_precision_hold_up_to_their_own_rounding(nonneg):
    """``y = A x`` rounded to single precision is out of reach by its rounding, which proves nothing."""
    rng = np.random.default_rng(2)
    A = rng.random((12, 5)).astype(np.float32)
    x = rng.random(5).astype(np.float32)
    y = A @ x
    assert np.linalg.norm(y - A.astype(float) @ np.linalg.lstsq(A.astype(float), y)[0]) > 0.0
    for right, empty in ((y, False), (y + np.float32(0.1) * (np.arange(12) == 0), True)):
        right = right.astype(np.float32)
        if nonneg:
            assert nonnegative_residual_exceeds(linear_map(A), right, 0.0) is empty
        else:
            assert residual_exceeds(linear_map(A), right, 0.0, right) is empty


def test_rounding_of_weights_that_cannot_be_balanced_proves_nothing():
    """Independent rows always have a common point: balanced, the weights are rounding of zero."""
    for seed in range(200):
        rng = np.random.default_rng(seed)
        rows = halfspace_rows(rng.standard_normal((3, 5)), -rng.random(3))
        assert not cones_exclude([rows], [rng.random(3)])


def test_a_ball_that_touches_rows_at_the_origin_is_not_called_empty():
    """The only point is 0, where all rows and slacks vanish: contradictions are compared with the data."""
    rows = [[1.0, 0.0], [-2.0, -2.0], [3.0, 3.0], [2.0, 0.0], [-3.0, 4.0], [0.0, 1.0]]
    inf = np.inf
    touching = Intersection(
        Affine(rows, [-inf, 0.0, -inf, -inf, -inf, 0.0], [5.0, inf, 0.0, 0.0, 2.0, 3.0]),
        Box([-inf, -inf], [0.0, inf]),
        ResidualBall(np.array([[-3.0, -4.0], [-2.0, 1.0]]), np.array([-9.0, -12.0]), 15.0),
    )
    f = lopro.objectives.Quadratic(np.array([[10.0, -2.0], [-2.0, 13.0]]), np.array([-1.0, -5.0]))
    result = lopro.solve(lopro.Problem(f, touching), tol=1e-3)
    assert result.status is not lopro.Status.INFEASIBLE
    assert result.certificate.violation <= 1e-9 and abs(result.fun) <= 1e-9
    near = touching.project(np.array([-7.4e-12, 9.2e-12]))
    np.testing.assert_allclose(near, 0.0, atol=1e-10)
