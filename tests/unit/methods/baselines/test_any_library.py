"""Baselines with steps of their own keep the array library, the precision and the caller's arrays."""

from __future__ import annotations

from typing import Any

import array_api_strict
import numpy as np
import pytest

import lopro
from lopro.constraints import Box, ResidualBall, ResidualNorm
from lopro.methods.baselines import (
    OPGD,
    R2SG,
    RSG,
    BestIterate,
    EproORDA,
    EproSGD,
    LogTProjections,
    OneProjectionSaddle,
    OneProjectionSmoothed,
    ProjectedGradient,
    ProjectedSubgradient,
)
from lopro.objectives import L1Norm, LeastSquares, SquaredDistance

METHODS = [
    OPGD(lam=2.0, iterations=300),
    R2SG(steps=10, stages=5, rounds=2),
    RSG(steps=20, stages=8),
    EproORDA(iterations=600),
    EproSGD(iterations=600),
    LogTProjections(stages=5),
    OneProjectionSaddle(iterations=1000),
    OneProjectionSmoothed(iterations=300),
    ProjectedGradient(iterations=50),
    ProjectedSubgradient(iterations=300),
    ProjectedSubgradient(average=BestIterate(), iterations=300),
]


@pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("name", ["float32", "float64"])
def test_strict_arrays_in_either_precision(method: Any, name: str) -> None:
    xp = array_api_strict
    z = xp.asarray([2.0, -0.5, 0.3], dtype=getattr(xp, name))
    problem = lopro.Problem(SquaredDistance(z), Box(0.0 * z - 1.0, 0.0 * z + 1.0))
    x0 = 0.0 * z + 0.25
    result = lopro.solve(problem, x0, method, tol=0)
    assert isinstance(result.x, type(z)) and result.x.dtype == z.dtype
    assert float(xp.max(xp.abs(x0 - 0.25))) == 0.0
    assert 0.5 - 1e-5 <= result.fun <= 0.6
    assert result.certificate.lower_bound <= 0.5 + 1e-5


@pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)
def test_complex_points(method: Any) -> None:
    """The nearest point of a ball in C^2, which is R^4."""
    z = np.array([3.0 + 4.0j, 0.0 + 0.0j])
    ball = ResidualBall(np.eye(2, dtype=complex), np.zeros(2, dtype=complex), 1.0, ResidualNorm())
    start = np.array([0.2 - 0.1j, 0.3 + 0.2j])
    result = lopro.solve(lopro.Problem(SquaredDistance(z), ball), start, method, tol=0)
    assert result.x.dtype == complex
    # A hinge of weight 2 is below the threshold of OPGD here, but sufficient for the nearest point.
    assert result.x == pytest.approx(np.array([0.6 + 0.8j, 0.0j]), abs=0.15)


def test_complex_sparse_objective() -> None:
    A = np.array([[1.0 + 1.0j, 0.5 + 0.0j, 0.2j]])
    problem = lopro.Problem(L1Norm(), ResidualBall(A, np.array([2.0 + 0.0j]), 0.5, ResidualNorm()))
    best = lopro.solve(problem, tol=1e-8).fun
    for method in (ProjectedSubgradient(iterations=1000), RSG(steps=50, stages=12), R2SG(steps=10)):
        result = lopro.solve(problem, method=method, tol=1e-3)
        assert best - 1e-6 <= result.fun <= 1.02 * best
        assert result.certificate.lower_bound <= best + 1e-7


def test_sampled_batches_of_strict_arrays(rng: np.random.Generator) -> None:
    xp = array_api_strict
    A, b = (
        xp.asarray(np.linalg.qr(rng.standard_normal((20, 2)))[0]),
        xp.asarray(rng.standard_normal(20)),
    )
    box = Box(xp.asarray([-0.1, -0.1]), xp.asarray([0.1, 0.1]))
    problem = lopro.Problem(LeastSquares(A, b), box)
    best = lopro.solve(problem, tol=1e-8).fun
    for method in (
        LogTProjections(stages=2, stochastic=True),
        ProjectedSubgradient(iterations=300, stochastic=True),
        OneProjectionSaddle(iterations=300, stochastic=True),
        EproSGD(iterations=300, stochastic=True),
        EproORDA(iterations=300, stochastic=True),
    ):
        result = lopro.solve(problem, method=method, tol=0, seed=3)
        assert isinstance(result.x, type(A))
        assert best - 1e-6 <= result.fun <= 1.2 * best
