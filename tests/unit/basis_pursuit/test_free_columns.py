"""Weights of zero: free coefficients, and certificates for problems that have them."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.linalg import aslinearoperator

import lopro


def instance(seed: int, *, iscomplex: bool = False) -> tuple[Any, Any, Any, float]:
    rng = np.random.default_rng(seed)
    A, x, w = rng.standard_normal((25, 60)), np.zeros(60), rng.uniform(0.5, 2.0, 60)
    if iscomplex:
        A = A + 1j * rng.standard_normal((25, 60))
    w[[3, 10, 40]] = 0.0
    x[[3, 10, 7, 50]] = [50.0, -30.0, 1.0, -2.0]
    e = 0.1 * rng.standard_normal(25)
    return A, A @ x + e, w, float(np.linalg.norm(e))


def optimum(A: Any, y: Any, w: Any, sigma: float) -> float:
    x = cp.Variable(A.shape[1], complex=A.dtype.kind == "c")
    goal = cp.Problem(cp.Minimize(w @ cp.abs(x)), [cp.norm(A @ x - y, 2) <= sigma])
    goal.solve(solver=cp.CLARABEL)
    return float(goal.value)


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array, aslinearoperator])
@pytest.mark.parametrize("iscomplex", [False, True])
def test_agrees_with_clarabel(form: Any, iscomplex: bool) -> None:
    A, y, w, sigma = instance(0, iscomplex=iscomplex)
    result = lopro.bpdn(form(A), y, sigma, weights=w)
    assert result.success
    assert np.linalg.norm(A @ result.x - y) <= sigma * (1.0 + 1e-9)
    assert result.fun == pytest.approx(w @ np.abs(result.x), rel=1e-12)
    assert result.fun == pytest.approx(optimum(A, y, w, sigma), rel=1e-5)
    nu = result.dual
    assert np.all(np.abs(A.conj().T @ nu) <= w + 1e-10)  # 0 at the free columns
    value = np.vdot(y, nu).real - sigma * np.linalg.norm(nu)
    assert value * (1.0 - 1e-9) <= result.certificate.lower_bound <= value * (1.0 + 1e-12)


def test_equations_and_several_right_hand_sides() -> None:
    A, y, w, sigma = instance(1)
    exact = lopro.bpdn(A, y, 0.0, weights=w)
    assert exact.success and np.linalg.norm(A @ exact.x - y) <= 1e-9 * np.linalg.norm(y)
    one, two = lopro.bpdn(A, np.stack([y, 2.0 * y], axis=1), [sigma, 2.0 * sigma], weights=w)
    assert one.success and two.success
    assert two.fun == pytest.approx(2.0 * one.fun, rel=1e-5)


def test_a_residual_that_free_columns_fit_alone_has_the_value_zero() -> None:
    A, _, w, _ = instance(2)
    y = A[:, [3, 10]] @ np.array([2.0, -1.0])
    result = lopro.bpdn(A, y, 1e-3, weights=w)
    assert result.success and result.fun == 0.0
    assert np.linalg.norm(A @ result.x - y) <= 1e-3


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array, aslinearoperator])
@pytest.mark.parametrize("seed", range(20))
def test_equations_that_free_columns_satisfy_have_the_value_zero(seed: int, form: Any) -> None:
    """The projection of y is rounding error, so no other column may be used to fit it."""
    rng = np.random.default_rng(seed)
    A, y = rng.standard_normal((3, 6)), rng.standard_normal(3)
    result = lopro.bpdn(form(A), y, 0.0, weights=[0, 0, 0, 1, 1, 1])
    assert result.success and result.fun == 0.0 and result.certificate.lower_bound == 0.0
    assert not result.x[3:].any() and np.linalg.norm(A @ result.x - y) <= 1e-12 * np.linalg.norm(y)


def test_equations_that_free_columns_almost_satisfy_have_a_positive_value() -> None:
    """A small part of y that is not rounding error is fitted by columns with positive weights."""
    A = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.5]])
    result = lopro.bpdn(A, np.array([1.0, 1e-8]), 0.0, weights=[0.0, 1.0, 1.0])
    assert result.success and result.fun == pytest.approx(1e-8, rel=1e-6)


def test_bad_weights_and_starts_are_refused() -> None:
    A, y, w, sigma = instance(3)
    with pytest.raises(ValueError, match="weights"):
        lopro.bpdn(A, y, sigma, weights=w, nonneg=True)
    with pytest.raises(ValueError, match="weights"):
        lopro.bpdn(A, y, sigma, weights=0.0 * w)
    with pytest.raises(ValueError, match="x0"):
        lopro.bpdn(A, y, sigma, weights=w, x0=np.zeros(59))
