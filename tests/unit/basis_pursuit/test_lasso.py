"""`lopro.lasso`: the least residual subject to a bound on the norm, with a proof, for every kind of input."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.linalg import aslinearoperator

import lopro


def instance(m: int, d: int, seed: int, *, kind: str = "real") -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    A, x = rng.standard_normal((m, d)), np.zeros(d)
    if kind == "complex":
        A, x = A + 1j * rng.standard_normal((m, d)), x + 0j
    x[:4] = [1.0, -2.0, 0.5, 1.5]
    return A, A @ x + 0.3 * rng.standard_normal(m)


def least(A: Any, y: Any, tau: float, w: Any = None, nonneg: bool = False) -> float:
    """Return the residual of Clarabel's point after it was scaled into the ball: no less than the optimum."""
    d = A.shape[1]
    w = np.ones(d) if w is None else w
    x = cp.Variable(d, complex=A.dtype.kind == "c", nonneg=nonneg)
    size = cp.sum(cp.multiply(w, cp.abs(x)))
    goal = cp.Problem(cp.Minimize(cp.sum_squares(A @ x - y)), [size <= tau])
    goal.solve(solver=cp.CLARABEL)
    point = np.maximum(x.value, 0.0) if nonneg else x.value
    return float(np.linalg.norm(A @ (point * min(1.0, tau / (w @ np.abs(point)))) - y))


def judge(result: Any, A: Any, y: Any, tau: float, w: Any = None, nonneg: bool = False) -> None:
    """Check the claims of a result, also against an independent optimum."""
    w = np.ones(A.shape[1]) if w is None else w
    assert result.success
    assert w @ np.abs(result.x) <= tau * (1.0 + 1e-12)
    assert not nonneg or result.x.min() >= 0.0
    assert result.fun == pytest.approx(np.linalg.norm(A @ result.x - y), rel=1e-12, abs=1e-12)
    optimum, unit = least(A, y, tau, w, nonneg), np.linalg.norm(y)
    assert result.fun <= optimum + 1e-6 * max(optimum, 1e-3 * unit) + 1e-9 * unit
    bound = result.certificate.lower_bound
    assert bound <= optimum * (1.0 + 1e-13)
    if result.dual is not None:
        nu = result.dual
        correlations = A.conj().T @ nu
        assert np.max((correlations if nonneg else np.abs(correlations)) / w) <= 1.0 + 1e-12
        proved = (np.vdot(y, nu).real - tau) / np.linalg.norm(nu)
        assert bound <= proved + 1e-13 * unit
        assert bound >= proved - 1e-11 * unit  # and the bound is tight


@pytest.mark.parametrize("tau", [0.01, 1.0, 3.0, 4.9])
@pytest.mark.parametrize("kind", ["real", "complex"])
@pytest.mark.parametrize("m, d", [(20, 50), (40, 12)])
def test_agrees_with_clarabel(m: int, d: int, kind: str, tau: float) -> None:
    A, y = instance(m, d, 1, kind=kind)
    judge(lopro.lasso(A, y, tau), A, y, tau)


@pytest.mark.parametrize("form", [aslinearoperator, scipy.sparse.csc_array])
@pytest.mark.parametrize("m, d", [(20, 50), (40, 12)])
def test_operators_and_sparse_matrices(m: int, d: int, form: Any) -> None:
    A, y = instance(m, d, 2)
    judge(lopro.lasso(form(A), y, 2.0), A, y, 2.0)


@pytest.mark.parametrize("nonneg", [False, True])
def test_weights_and_signs(nonneg: bool) -> None:
    A, y = instance(25, 40, 3)
    w = np.random.default_rng(0).uniform(0.5, 3.0, 40)
    judge(lopro.lasso(A, y, 2.0, weights=w, nonneg=nonneg), A, y, 2.0, w, nonneg)


@pytest.mark.parametrize("m, d", [(20, 50), (40, 12)])
@pytest.mark.parametrize("form", [np.asarray, aslinearoperator])
def test_a_bound_that_does_not_bind(m: int, d: int, form: Any) -> None:
    A, y = instance(m, d, 4)
    result = lopro.lasso(form(A), y, 1e3)
    residual = np.linalg.norm(A @ np.linalg.lstsq(A, y, rcond=None)[0] - y)
    assert result.success
    assert result.fun == pytest.approx(residual, rel=1e-6, abs=1e-9 * np.linalg.norm(y))


def test_a_bound_of_zero_gives_the_zero_solution() -> None:
    A, y = instance(10, 20, 5)
    result = lopro.lasso(A, y, 0.0)
    assert result.success and not result.x.any()
    assert result.fun == pytest.approx(np.linalg.norm(y), rel=1e-15)


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_units(unit: float) -> None:
    A, y = instance(20, 50, 6)
    plain = lopro.lasso(A, y, 2.0)
    scaled = lopro.lasso(unit * A, y, 2.0 / unit)
    assert scaled.success and scaled.fun == pytest.approx(plain.fun, rel=1e-6)
    scaled = lopro.lasso(A, unit * y, 2.0 * unit)
    assert scaled.success and scaled.fun == pytest.approx(unit * plain.fun, rel=1e-6)


def test_it_is_the_inverse_of_bpdn() -> None:
    A, y = instance(20, 50, 7)
    result = lopro.lasso(A, y, 2.0, tol=1e-9)
    back = lopro.bpdn(A, y, result.fun, tol=1e-9)
    assert back.fun == pytest.approx(2.0, rel=1e-7)
    for sigma, size in result.curve:
        assert lopro.bpdn(A, y, sigma, tol=1e-9).fun == pytest.approx(size, rel=1e-6)
    assert len(result.curve) <= 8  # Newton's method, not bisection


def test_single_precision_is_kept() -> None:
    A, y = instance(20, 50, 8)
    result = lopro.lasso(A.astype(np.float32), y.astype(np.float32), 2.0, tol=1e-3)
    assert result.success and result.x.dtype == np.float32
    assert result.fun == pytest.approx(least(A, y, 2.0), rel=1e-3)


def test_inputs_are_unchanged_and_limits_respected() -> None:
    A, y = instance(20, 50, 9)
    before, x0 = y.copy(), np.ones(50)
    result = lopro.lasso(A, y, 2.0, x0=x0)
    assert result.success and (y == before).all() and (x0 == 1.0).all()
    late = lopro.lasso(A, y, 2.0, time_limit=1e-9)
    assert late.status is lopro.Status.TIME_LIMIT and not late.success
    assert late.certificate.lower_bound <= least(A, y, 2.0)


def test_bad_input_is_named() -> None:
    A, y = instance(5, 8, 0)
    with pytest.raises(ValueError, match="tau"):
        lopro.lasso(A, y, -1.0)
    with pytest.raises(ValueError, match="y must"):
        lopro.lasso(A, np.ones((5, 2)), 1.0)
    with pytest.raises(TypeError, match="nonneg"):
        lopro.lasso(A + 0j, y, 1.0, nonneg=True)
