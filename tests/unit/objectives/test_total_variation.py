"""Norms of linear images: values by hand, slopes by differences, problems in closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse

import lopro
from lopro.constraints import Box, ResidualBall
from lopro.objectives import GroupNorm, SquaredDistance, TotalVariation

rng = np.random.default_rng(0)


def direct(image: np.ndarray, isotropic: bool) -> float:
    """Sum the differences pixel by pixel."""
    total = 0.0
    for index in np.ndindex(*image.shape):
        steps = []
        for axis in range(image.ndim):
            if index[axis] + 1 < image.shape[axis]:
                there = tuple(i + (a == axis) for a, i in enumerate(index))
                steps.append(float(image[there] - image[index]))
        total += math.hypot(*steps) if isotropic else sum(map(abs, steps))
    return total


@pytest.mark.parametrize("shape", [(7,), (4, 5), (1, 6), (3, 2, 4)])
@pytest.mark.parametrize("isotropic", [True, False])
def test_values_are_sums_over_pixels(shape: tuple[int, ...], isotropic: bool) -> None:
    image = rng.standard_normal(shape)
    f = TotalVariation(shape, isotropic=isotropic)
    assert f.value(image.ravel()) == pytest.approx(direct(image, isotropic), rel=1e-14)


@pytest.mark.parametrize("f", [TotalVariation((4, 5)), GroupNorm(rng.standard_normal((6, 20)), 3)])
def test_slopes_are_those_of_differences(f: GroupNorm) -> None:
    x, d = rng.standard_normal(20), rng.standard_normal(20)
    h = 1e-6
    slope = (f.value(x + h * d) - f.value(x - h * d)) / (2.0 * h)
    assert float(f.subgradient(x) @ d) == pytest.approx(slope, rel=1e-7)
    # A subgradient, at kinks too.
    x[:10] = 1.0
    z = rng.standard_normal(20)
    assert f.value(z) >= f.value(x) + float(f.subgradient(x) @ (z - x)) - 1e-12


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_two_pixels_within_a_ball_in_closed_form(unit: float) -> None:
    # Both move towards each other by sigma / sqrt(2): |2 - sqrt(2) sigma|.
    y = np.array([0.0, 2.0]) * unit
    ball = ResidualBall(scipy.sparse.eye_array(2, format="csr"), y, 0.5 * unit)
    result = lopro.solve(lopro.Problem(TotalVariation(2), ball), tol=1e-7)
    best = (2.0 - math.sqrt(0.5)) * unit
    assert result.success
    assert result.certificate.lower_bound <= best * (1.0 + 1e-12)
    assert result.fun == pytest.approx(best, rel=1e-6)
    assert result.fun >= best * (1.0 - 1e-9)


def test_denoising_with_bounds_agrees_with_the_taut_string_of_two_levels() -> None:
    # Two plateaus of n pixels each: they approach each other by weight / n and stay flat.
    n, weight = 6, 0.9
    y = np.repeat([0.0, 1.0], n)
    f = SquaredDistance(y) + weight * TotalVariation(2 * n)
    result = lopro.solve(lopro.Problem(f, Box(np.full(2 * n, -5.0), np.full(2 * n, 5.0))), tol=1e-9)
    assert result.success
    np.testing.assert_allclose(result.x, np.repeat([weight / n, 1.0 - weight / n], n), atol=1e-5)


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match="group_size=3"):
        GroupNorm(np.eye(4), 3)
    with pytest.raises(TypeError, match="D must be real"):
        GroupNorm(1j * np.eye(4))
    with pytest.raises(TypeError, match="D must be a matrix, or None"):
        GroupNorm(3)
    with pytest.raises(ValueError, match="group_size=3 entries, got 4"):
        GroupNorm(None, 3, b=np.ones(4))
    with pytest.raises(ValueError, match="x must have a multiple of group_size=3 entries, got 4"):
        lopro.Problem(SquaredDistance(np.ones(4)) + GroupNorm(group_size=3))


def test_groups_of_x_need_no_matrix() -> None:
    f = GroupNorm(group_size=2)
    y, weight = np.array([3.0, 4.0, 0.3, 0.4]), 1.0
    result = lopro.solve(lopro.Problem(SquaredDistance(y) + weight * f), tol=1e-9)
    # Each group is shortened by the weight: 5 to 4, 0.5 to 0.
    assert result.success and result.fun == pytest.approx(0.5 + 4.0 + 0.125, rel=1e-8)
    np.testing.assert_allclose(result.x, [2.4, 3.2, 0.0, 0.0], atol=1e-7)
    assert f.lipschitz() is None and f.shaped((4,)).lipschitz().value == math.sqrt(2.0)
    with pytest.raises(ValueError, match="two pixels"):
        TotalVariation((1, 1))
