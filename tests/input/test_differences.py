"""Forward differences in the units of the variables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize

import lopro
from lopro.core.differences import forward_differences


@pytest.mark.parametrize("unit", [1e-12, 1e-6, 1.0, 1e6, 1e12])
def test_slopes_are_as_good_in_any_unit(unit: float) -> None:
    slope = forward_differences(lambda x: float(np.sum((x / unit) ** 3)), np.full(3, unit))
    x = unit * np.array([1.0, -2.0, 0.5])
    np.testing.assert_allclose(slope(x) * unit, [3.0, 12.0, 0.75], rtol=1e-6, atol=1e-6)


def test_a_start_at_zero_has_the_unit_one() -> None:
    slope = forward_differences(lambda x: float(np.sum(np.exp(x))), np.zeros(2))
    np.testing.assert_allclose(slope(np.zeros(2)), [1.0, 1.0], rtol=1e-6)


def test_a_start_that_is_far_away_does_not_matter() -> None:
    slope = forward_differences(lambda x: 0.5 * float(x @ x), np.full(3, 2e4))
    x = np.array([0.1, -0.3, 0.2])
    np.testing.assert_allclose(slope(x), x, atol=1e-8)


def test_an_unbounded_objective_proves_nothing_far_away() -> None:
    """A fixed step is rounded away at 1e8: the slope is 0 there, and the value is taken for the minimum."""
    from scipy.optimize import LinearConstraint

    result = lopro.minimize(
        lambda x: -0.35 * float(x[0]),
        np.array([-4534.0]),
        constraint=LinearConstraint([[-3.0]], -np.inf, 0.0),
        tol=0.01,
        max_iter=2000,
    )
    assert not result.success and result.certificate.lower_bound == -np.inf


@pytest.mark.parametrize("size", [0.0, 1e-13, 1e-11, 1e-8, 1e-3])
def test_steps_are_long_enough_to_change_the_value(size: float) -> None:
    """Beside a value of 25 a step of 1e-19 changes nothing: a slope of 0 would be a false bound."""
    slope = forward_differences(lambda x: float(25.0 - 3.0 * x[0] + x[1] ** 2), np.zeros(2))
    assert slope(np.full(2, size))[0] == pytest.approx(-3.0, rel=2e-4)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_differences_of_tensors_are_tensors(dtype: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x = torch.asarray([1.0, -2.0], dtype=getattr(torch, dtype))
    slope = forward_differences(lambda z: (z**2).sum(), x)(x)
    assert slope.dtype == x.dtype
    assert slope.tolist() == pytest.approx([2.0, -4.0], rel=1e-3 if dtype == "float32" else 1e-6)


@pytest.mark.parametrize("seed", [19, 24])
def test_bounds_allow_for_kinks_of_a_function_declared_smooth(seed: int) -> None:
    """Difference quotients at a kink are no slopes: bounds from them were up to 0.87 above the optimum."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    m = int(rng.integers(1, 2 * n + 2))
    A = rng.integers(-3, 4, (m, n)).astype(float)
    b = rng.integers(-3, 4, m).astype(float)

    def fun(x: Any) -> float:
        return float(np.max(A @ x - b) if seed % 3 else np.abs(A @ x - b).sum())

    # With t >= |A x - b| or t >= max(A x - b) as a linear program.
    rows = np.vstack([A, -A]) if seed % 3 == 0 else A
    sides = np.concatenate([b, -b]) if seed % 3 == 0 else b
    ones = np.vstack([np.eye(m)] * 2) if seed % 3 == 0 else np.ones((m, 1))
    k = ones.shape[1]
    best = scipy.optimize.linprog(
        np.append(np.zeros(n), np.ones(k)),
        A_ub=np.hstack([rows, -ones]),
        b_ub=sides,
        bounds=[(-2.0, 3.0)] * n + [(None, None)] * k,
    ).fun
    box = scipy.optimize.Bounds(np.full(n, -2.0), np.full(n, 3.0))
    result = lopro.minimize(fun, np.zeros(n), constraint=box, tol=1e-3, max_iter=1000)
    assert result.certificate.lower_bound <= best + 1e-6
    assert not result.success or result.fun <= best + 1e-3 * abs(result.fun) + 1e-6


def test_errors_of_differences_are_the_widths_at_kinks() -> None:
    slope = forward_differences(lambda x: float(abs(x[0]) + max(x[1], 3.0 * x[1])), np.ones(2))
    assert slope.error(np.zeros(2)) == pytest.approx([2.0, 2.0])
    assert not slope.error(np.array([1.0, -1.0])).any()
    half = lopro.objectives.FunctionObjective(
        lambda x: float(abs(x[0])), np.sign, slope_error=lambda x: 2.0 * (x == 0.0)
    )
    assert half.slope_error(np.ones(1)) is None
    assert (2.0 * half + half).slope_error(np.zeros(1)) == pytest.approx([6.0])


def test_a_value_that_is_no_number_is_named_in_the_message() -> None:
    box = scipy.optimize.Bounds([-1.0], [1.0])
    result = lopro.minimize(lambda x: np.nan, np.zeros(1), lambda x: 2.0 * x, constraint=box)
    assert result.message == "NaN or inf appeared: value(x) must be finite, got nan"
