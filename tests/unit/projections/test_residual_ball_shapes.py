"""Residual balls of matrices and images: the same numbers as for the ball of vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.linalg import aslinearoperator
from support.array_calls import strict

import lopro
from lopro.constraints import Intersection, Polyhedron, ResidualBall, ResidualNorm
from lopro.core.arrays import to_numpy

RNG = np.random.default_rng(0)
A = RNG.standard_normal((8, 12))
Y = A @ RNG.standard_normal(12)
X = 5.0 * RNG.standard_normal((3, 4))
KINDS = {"dense": np.asarray, "sparse": scipy.sparse.csr_array, "operator": aslinearoperator}


@pytest.mark.parametrize("sigma", [0.5, 0.0])
@pytest.mark.parametrize("kind", KINDS)
def test_a_ball_of_matrices_is_that_of_their_entries(kind: str, sigma: float) -> None:
    flat = ResidualBall(KINDS[kind](A), Y, sigma, ResidualNorm())
    ball = ResidualBall(KINDS[kind](A), Y.reshape(2, 4), sigma, ResidualNorm(), shape=(3, 4))
    assert ball.value(X) == flat.value(X.ravel())
    assert ball.violation(X) == flat.violation(X.ravel())
    for found, expected in (
        (ball.subgradient(X), flat.subgradient(X.ravel())),
        (ball.project(X), flat.project(X.ravel())),
        (ball.valid_inequality(X, 2.0).direction, flat.valid_inequality(X.ravel(), 2.0).direction),
    ):
        assert found.shape == (3, 4)
        np.testing.assert_allclose(found.ravel(), expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("of", [lambda a: np.asarray(a, dtype=np.float32), strict])
def test_precision_and_device_are_kept(of: Any) -> None:
    ball = ResidualBall(of(A), of(Y), 0.5, shape=(3, 4))
    point = ball.project(of(X))
    assert type(point) is type(of(X)) and point.dtype == of(X).dtype
    wide = ResidualBall(A, Y, 0.5).project(X.ravel())
    np.testing.assert_allclose(to_numpy(point).ravel(), wide, rtol=2e-5)


@pytest.mark.parametrize("box", [False, True])
def test_problems_over_it_have_the_optimum_of_vectors(box: bool) -> None:
    def solved(shape: tuple[int, ...]) -> Any:
        ball = ResidualBall(A, Y, 0.5, shape=shape)
        pixels = Polyhedron.box(-2.0 * np.ones(shape), 2.0 * np.ones(shape))
        f = lopro.objectives.L1Norm(1.0, shape) + lopro.objectives.SquaredDistance(X.reshape(shape))
        return lopro.solve(lopro.Problem(f, Intersection(ball, pixels) if box else ball))

    image, vector = solved((3, 4)), solved((12,))
    assert image.success and vector.success
    assert image.x.shape == (3, 4)
    assert image.fun == pytest.approx(vector.fun, rel=2e-6)


def test_basis_pursuit_of_matrices_is_distinguished_from_that_of_vectors() -> None:
    f = lopro.objectives.L1Norm(1.0, (3, 4))
    result = lopro.solve(lopro.Problem(f, ResidualBall(A, Y, 0.5, shape=(3, 4))))
    assert result.success
    assert result.fun == pytest.approx(lopro.bpdn(A, Y, 0.5).fun, rel=2e-6)


def test_the_shape_is_checked() -> None:
    with pytest.raises(ValueError, match="shape must have 12 entries"):
        ResidualBall(A, Y, 0.5, shape=(3, 5))
    with pytest.raises(ValueError, match="x must have shape"):
        ResidualBall(A, Y, 0.5, shape=(3, 4)).value(X.T)
