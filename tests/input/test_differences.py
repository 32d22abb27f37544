"""Forward differences in the units of the variables."""

from __future__ import annotations

import numpy as np
import pytest

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


def test_an_objective_that_falls_without_end_proves_nothing_far_away() -> None:
    """A fixed step is lost beside 1e8: the slope was zero there, and the value passed for the minimum."""
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
def test_steps_are_long_enough_to_be_seen(size: float) -> None:
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
