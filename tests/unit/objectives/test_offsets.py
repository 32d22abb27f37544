"""Norms of images with offsets, and a ball around a centre: exact optima, constants, refusals."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from scipy.sparse.linalg import LinearOperator

import lopro
from lopro import Problem
from lopro.constraints import Box, L1Ball
from lopro.objectives import (
    GroupNorm,
    L1Norm,
    L1NormOfImage,
    LInfNorm,
    OffDiagonalL1,
    SquaredDistance,
)

COLUMN, PLACES = np.ones((3, 1)), np.array([1.0, 2.0, 7.0])


def as_operator(A: np.ndarray) -> LinearOperator:
    return LinearOperator(A.shape, matvec=lambda x: A @ x, rmatvec=lambda v: A.T @ v, dtype=A.dtype)


@pytest.mark.parametrize("wrap", [np.asarray, as_operator])
def test_median_and_midrange(wrap: object) -> None:
    median = lopro.solve(Problem(L1Norm(D=wrap(COLUMN), b=PLACES)), tol=1e-6)
    assert median.success and median.fun == pytest.approx(6.0, rel=2e-6)
    assert median.certificate.lower_bound <= 6.0 * (1.0 + 1e-12)
    middle = lopro.solve(Problem(LInfNorm(wrap(COLUMN), b=PLACES)), tol=1e-6)
    assert middle.success and middle.fun == pytest.approx(3.0, rel=2e-6)
    assert middle.certificate.lower_bound <= 3.0 * (1.0 + 1e-12)


def test_weights_belong_to_rows() -> None:
    # The weighted median is where the weights on both sides balance: at 7.
    f = L1Norm(np.array([1.0, 1.0, 3.0]), D=COLUMN, b=PLACES)
    result = lopro.solve(Problem(f), tol=1e-7)
    assert result.success and result.fun == pytest.approx(11.0, rel=1e-6)
    assert result.x == pytest.approx([7.0], abs=1e-4)


def test_the_geometric_median() -> None:
    # Of the corners of a rectangle it is the crossing of the diagonals.
    corners = np.array([0.0, 0.0, 4.0, 0.0, 0.0, 3.0, 4.0, 3.0])
    result = lopro.solve(Problem(GroupNorm(np.tile(np.eye(2), (4, 1)), 2, b=corners)), tol=1e-6)
    assert result.success and result.fun == pytest.approx(10.0, rel=2e-6)
    assert result.x == pytest.approx([2.0, 1.5], abs=1e-2)


@pytest.mark.parametrize("norm", [L1Norm, LInfNorm])
def test_offsets_without_a_map(norm: type) -> None:
    b = np.array([3.0, -1.0])
    f = norm(b=b)
    assert f.shape == (2,) and f.value(b) == 0.0 and f.proximable
    w, step = np.array([0.5, 2.0]), 0.25
    z = f.prox(w, step)
    plain = norm(shape=(2,))
    assert z == pytest.approx(b + plain.prox(w - b, step))
    # The nearest point of the box to b, in either norm.
    result = lopro.solve(Problem(f, Box(np.zeros(2), np.ones(2))), tol=1e-7)
    expected = {"L1Norm": 3.0, "LInfNorm": 2.0}[norm.__name__]
    assert result.success and result.fun == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("norm", [L1Norm, LInfNorm])
def test_minorants_and_radii_include_the_offset(norm: type) -> None:
    rng, b = np.random.default_rng(0), np.array([3.0, -1.0])
    f = norm(b=b)
    for _ in range(50):
        alpha, g = f.minorant(rng.standard_normal(2), rng.standard_normal(2))
        z = 5.0 * rng.standard_normal(2)
        assert alpha + g @ z <= f.value(z) + 1e-12
        radius = f.sublevel_radius(f.value(z)).value
        assert np.linalg.norm(z) <= radius * (1.0 + 1e-12)
    assert f.minorant(b, np.zeros(2))[0] == 0.0
    # Scaling a multiplier does not help where the norm is not one of x.
    assert f.scale_into_domain(np.ones(2)) is None


def test_a_norm_without_offset_keeps_its_class() -> None:
    assert type(L1Norm(2.0, (3,))) is L1Norm and type(L1Norm(D=None, b=None)) is L1Norm
    assert type(L1Norm(None, None, np.eye(2))) is L1NormOfImage
    assert type(OffDiagonalL1(3, weight=0.5)) is OffDiagonalL1
    for f in (L1Norm(2.0), L1Norm(D=np.eye(2), b=np.ones(2))):
        for again in (copy.copy(f), pickle.loads(pickle.dumps(f))):
            assert type(again) is type(f) and again.value(np.zeros(2)) == f.value(np.zeros(2))


def test_arguments_that_do_not_fit_are_errors() -> None:
    for make in (
        lambda: L1Norm(D=COLUMN, b=np.ones(2)),
        lambda: LInfNorm(COLUMN, b=np.ones(2)),
        lambda: GroupNorm(np.eye(4), 2, b=np.ones(3)),
        lambda: L1Norm(np.ones(2), D=COLUMN),
        lambda: L1Ball(3, 1.0, center=np.ones(2)),
    ):
        with pytest.raises(ValueError, match="shape"):
            make()


def test_a_ball_around_a_centre() -> None:
    c = np.array([5.0, 0.0, -2.0])
    ball = L1Ball(3, 2.0, center=c)
    e = np.eye(3)
    assert ball.value(c) == -2.0 and ball.value(c + e[0] - 2.0 * e[1]) == 1.0
    assert ball.project(c + 3.0 * e[0] + e[2]) == pytest.approx(c + 2.0 * e[0])
    assert ball.linear_minimizer(e[0] - 3.0 * e[1]) == pytest.approx(c + 2.0 * e[1])
    assert ball.radius().value >= np.linalg.norm(c) + 2.0
    # The nearest point of the ball to zero: 2 off the largest entry, 9 and 4 are left of 25 and 4.
    result = lopro.solve(Problem(SquaredDistance(np.zeros(3)), ball), tol=1e-8)
    assert result.success and result.fun == pytest.approx(6.5, rel=1e-7)
    linear = lopro.solve(Problem(lopro.objectives.Linear(np.array([1.0, -3.0, 0.0])), ball))
    assert linear.success and linear.fun == pytest.approx(5.0 - 6.0, abs=1e-5)
