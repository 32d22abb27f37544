"""The checks in test suites of other sparse-recovery solvers: every kind of problem, shape and precision.

Measurements without noise give the measured vector; with noise the radius is attained and the norm is no
larger than that of the truth; weights are scaled columns; the LASSO is the inverse problem.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse.linalg import aslinearoperator

import lopro

SHAPES = [(60, 60), (90, 45), (60, 150)]
SHAPE_NAMES = ["square", "tall", "wide"]
SINGLE = {"float": np.float32, "complex": np.complex64}
DOUBLE = {"float": np.float64, "complex": np.complex128}

shapes = pytest.mark.parametrize("shape", SHAPES, ids=SHAPE_NAMES)
kinds = pytest.mark.parametrize("kind", ["float", "complex"])
precisions = pytest.mark.parametrize("precision", [DOUBLE, SINGLE], ids=["double", "single"])


class Measured:
    """A matrix, a sparse truth with some columns, and its measurements."""

    def __init__(
        self, shape: tuple[int, int], dtype: Any, columns: int = 0, nonneg: bool = False
    ) -> None:
        rng = np.random.default_rng([*shape, columns])
        iscomplex = np.dtype(dtype).kind == "c"

        def numbers(*size: int) -> Any:
            real = rng.standard_normal(size)
            return (real + 1j * rng.standard_normal(size)) if iscomplex else real

        m, d = shape
        self.A = (numbers(m, d) / np.sqrt(m)).astype(dtype)
        truth = np.zeros((d, columns) if columns else d, dtype=dtype)
        support = rng.choice(d, 5, replace=False)
        truth[support] = numbers(5, columns) if columns else numbers(5)
        self.truth = np.abs(truth).astype(dtype) if nonneg else truth
        self.y = self.A @ self.truth
        noise = numbers(*self.y.shape)
        self.noise = (0.02 * np.linalg.norm(self.y) / np.linalg.norm(noise) * noise).astype(dtype)
        self.weights = rng.random(d) + 0.5
        # In single precision the data are known only up to their rounding.
        single = np.finfo(dtype).eps > 1e-10
        self.tol, self.close = (1e-4, 2e-3) if single else (1e-6, 1e-5)

    def is_truth(self, x: Any) -> None:
        assert x.dtype == self.truth.dtype
        np.testing.assert_allclose(x, self.truth, atol=self.close * np.abs(self.truth).max())

    @property
    def sigma(self) -> float:
        return float(np.linalg.norm(self.noise))

    def residual(self, x: Any) -> float:
        return float(np.linalg.norm(self.A @ x - (self.y + self.noise)))


@shapes
@kinds
@precisions
def test_equations(shape: tuple[int, int], kind: str, precision: Any) -> None:
    data = Measured(shape, precision[kind])
    # Equations in single precision are met up to rounding of y.
    sigma = 0.0 if precision is DOUBLE else 1e-5 * float(np.linalg.norm(data.y))
    result = lopro.bpdn(data.A, data.y, sigma, tol=data.tol)
    assert result.success
    data.is_truth(result.x)


@shapes
@kinds
@precisions
def test_noise(shape: tuple[int, int], kind: str, precision: Any) -> None:
    data = Measured(shape, precision[kind])
    result = lopro.bpdn(data.A, data.y + data.noise, data.sigma, tol=data.tol)
    assert result.success
    assert result.fun <= np.abs(data.truth).sum() * (1.0 + data.tol)
    assert data.residual(result.x) == pytest.approx(data.sigma, rel=1e-2)
    assert data.residual(result.x) <= data.sigma * (1.0 + 1e-4)


@shapes
@kinds
@precisions
def test_weights_are_scaled_columns(shape: tuple[int, int], kind: str, precision: Any) -> None:
    data = Measured(shape, precision[kind])
    y = data.y + data.noise
    weighted = lopro.bpdn(data.A, y, data.sigma, weights=data.weights, tol=data.tol)
    scaled = lopro.bpdn((data.A / data.weights).astype(data.A.dtype), y, data.sigma, tol=data.tol)
    assert weighted.success and scaled.success
    assert weighted.fun == pytest.approx(scaled.fun, rel=2.0 * data.tol)
    assert weighted.fun == pytest.approx(data.weights @ np.abs(weighted.x), rel=1e-5)


@shapes
@kinds
@precisions
def test_lasso_is_the_inverse_of_bpdn(shape: tuple[int, int], kind: str, precision: Any) -> None:
    data = Measured(shape, precision[kind])
    y = data.y + data.noise
    tau = 0.8 * float(np.abs(data.truth).sum())
    result = lopro.lasso(data.A, y, tau, tol=data.tol)
    assert result.success
    assert np.abs(result.x).sum() <= tau * (1.0 + 1e-5)
    there = lopro.bpdn(data.A, y, result.fun * (1.0 + 10.0 * data.tol), tol=data.tol)
    assert there.fun == pytest.approx(tau, rel=50.0 * data.tol)


@shapes
@kinds
@precisions
def test_several_measurements(shape: tuple[int, int], kind: str, precision: Any) -> None:
    data = Measured(shape, precision[kind], columns=3)
    result = lopro.bpdn(
        data.A, data.y + data.noise, data.sigma, joint=True, tol=data.tol, weights=data.weights
    )
    assert result.success and result.x.shape == data.truth.shape
    rows = data.weights @ np.linalg.norm(data.truth, axis=1)
    assert result.fun <= rows * (1.0 + data.tol)
    assert data.residual(result.x) <= data.sigma * (1.0 + 1e-4)
    exact = lopro.bpdn(data.A, data.y, 1e-4 * np.linalg.norm(data.y), joint=True, tol=data.tol)
    np.testing.assert_allclose(exact.x, data.truth, atol=2e-2 * np.abs(data.truth).max())
    assert set(np.flatnonzero(data.truth[:, 0])) <= set(exact.support.tolist())


@shapes
@precisions
def test_several_nonnegative_measurements(shape: tuple[int, int], precision: Any) -> None:
    data = Measured(shape, precision["float"], columns=3, nonneg=True)
    result = lopro.bpdn(
        data.A, data.y + data.noise, data.sigma, joint=True, nonneg=True, tol=data.tol
    )
    assert result.success and result.x.min() >= 0.0
    assert result.fun <= np.linalg.norm(data.truth, axis=1).sum() * (1.0 + data.tol)
    assert data.residual(result.x) <= data.sigma * (1.0 + 1e-4)
    any_sign = lopro.bpdn(data.A, data.y + data.noise, data.sigma, joint=True, tol=data.tol)
    assert any_sign.fun <= result.fun * (1.0 + data.tol)


@shapes
@kinds
@pytest.mark.parametrize("what", ["equations", "noise", "lasso"])
def test_operators(shape: tuple[int, int], kind: str, what: str) -> None:
    data = Measured(shape, DOUBLE[kind])
    A = aslinearoperator(data.A)
    if what == "equations":
        data.is_truth(lopro.bpdn(A, data.y, 0.0).x)
        return
    y = data.y + data.noise
    denoised = lopro.bpdn(A, y, data.sigma)
    if what == "noise":
        assert denoised.success
        assert denoised.fun == pytest.approx(lopro.bpdn(data.A, y, data.sigma).fun, rel=2e-6)
        return
    back = lopro.lasso(A, y, denoised.fun)
    assert back.success and back.fun == pytest.approx(data.sigma, rel=1e-4)
