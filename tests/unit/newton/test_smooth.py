"""Derivatives of the smooth parts against differences of what they are derivatives of."""

import numpy as np
import pytest
from support.newton_examples import linear, quadratic, smooth_functions

from lopro.newton.curvature import apply, diagonal
from lopro.newton.lagrangian import shifted
from lopro.newton.smooth import SmoothSum

NAMES = list(smooth_functions(np.random.default_rng(0)))


@pytest.fixture(params=NAMES)
def f(request, rng):
    return smooth_functions(rng)[request.param]


def test_gradient_is_the_derivative_of_the_value(f, rng):
    x, d, h = rng.standard_normal(f.size), rng.standard_normal(f.size), 1e-5
    slope = (f.value(x + h * d) - f.value(x - h * d)) / (2.0 * h)
    assert f.gradient(x, f.image(x)) @ d == pytest.approx(slope, rel=1e-7, abs=1e-8)


def test_curvature_is_the_derivative_of_the_gradient(f, rng):
    x, d, h = rng.standard_normal(f.size), rng.standard_normal(f.size), 1e-5
    ahead, behind = x + h * d, x - h * d
    change = (f.gradient(ahead, f.image(ahead)) - f.gradient(behind, f.image(behind))) / (2.0 * h)
    pieces = f.curvature(x, f.image(x))
    np.testing.assert_allclose(apply(pieces, d), change, rtol=1e-6, atol=1e-7)
    columns = np.array([apply(pieces, e) for e in np.eye(f.size)])
    np.testing.assert_allclose(diagonal(pieces, f.size), columns.diagonal(), rtol=1e-12, atol=1e-14)


def test_derivatives_along_a_line(f, rng):
    x, d = rng.standard_normal(f.size), rng.standard_normal(f.size)
    along = f.along(x, f.image(x), d, f.image(d))
    for t in (0.0, 0.7, -2.0):
        there = x + t * d
        first, second = along(t)
        assert first == pytest.approx(f.gradient(there, f.image(there)) @ d, rel=1e-10, abs=1e-12)
        expected = d @ apply(f.curvature(there, f.image(there)), d)
        assert second == pytest.approx(expected, rel=1e-10, abs=1e-12)


def test_images_are_linear_and_counted(f, rng):
    x, d = rng.standard_normal(f.size), rng.standard_normal(f.size)
    moved = shifted(f.image(x), 0.5, f.image(d))
    assert len(moved) == f.images
    for mine, direct in zip(moved, f.image(x + 0.5 * d), strict=True):
        np.testing.assert_allclose(mine, direct, rtol=1e-12, atol=1e-13)


def test_the_symmetric_part_of_a_matrix_is_used(rng):
    P, x = rng.standard_normal((4, 4)) + 5.0 * np.eye(4), rng.standard_normal(4)
    f = quadratic(P, np.zeros(4))
    assert f.value(x) == pytest.approx(0.5 * x @ P @ x)
    np.testing.assert_allclose(f.gradient(x, f.image(x)), 0.5 * (P + P.T) @ x)


def test_sums_of_different_sizes_raise_an_error():
    with pytest.raises(ValueError, match="same size"):
        SmoothSum([linear(np.ones(2)), linear(np.ones(3))])
