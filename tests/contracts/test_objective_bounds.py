"""Bounds of objectives as exact numbers: radii, infima and slopes that some point attains.

Sampling finds bounds that are too large. These tests find bounds that are too small, too.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.linalg import aslinearoperator

from lopro.functions import Ball
from lopro.metric import PairLoss
from lopro.objectives import (
    FunctionObjective,
    Huber,
    L1Norm,
    LeastSquares,
    Linear,
    Logistic,
    Objective,
    Poisson,
    Quadratic,
    SquaredDistance,
)

TWICE = Quadratic(2.0 * np.eye(2), np.array([3.0, -4.0]), constant=1.0)  # |x|^2 + 3 x - 4 y + 1


@pytest.mark.parametrize(
    ("f", "farthest"),
    [
        (SquaredDistance(np.array([3.0, 4.0])), [4.2, 5.6]),
        (LeastSquares(np.diag([2.0, 5.0]), np.array([6.0, 0.0])), [5.0, 0.0]),
        (L1Norm(np.array([0.5, 2.0])), [-6.0, 0.0]),
        (TWICE, [-3.6, 4.8]),
        (3.0 * SquaredDistance(np.array([3.0, 4.0])), [4.2, 5.6]),
        (0.5 * L1Norm(np.array([0.5, 2.0])), [-6.0, 0.0]),
        (L1Norm(shape=(2,)) + Quadratic(np.zeros((2, 2)), constant=-2.0), [0.0, 5.0]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_radius_of_a_sublevel_set_is_reached(f: Objective, farthest: list[float]) -> None:
    z = np.array(farthest)
    radius = f.sublevel_radius(f.value(z))
    assert radius is not None
    assert radius.value == pytest.approx(np.linalg.norm(z), rel=1e-12)


def test_the_radius_of_huber_adds_small_and_large_residuals() -> None:
    """At most 5 = sqrt(2 * 12.5) from small residuals and 50 = 2 * 12.5 / 0.5 from large ones."""
    f = Huber(b=np.zeros(2), delta=0.5)
    assert f.value(np.array([25.25, 0.0])) == 12.5
    assert f.sublevel_radius(12.5).value == pytest.approx(5.0 + 50.0, rel=1e-15)


def test_the_radius_that_a_ridge_gives() -> None:
    """The loss is positive, so that the ridge alone stays below the level: 0.25 |w|^2 <= 4."""
    f = Logistic(np.eye(2), [1, -1], l2=0.5)
    assert f.sublevel_radius(4.0).value == pytest.approx(4.0, rel=1e-15)


def test_the_infimum_that_strong_convexity_gives_is_reached() -> None:
    lowest = TWICE.value(np.array([-1.5, 2.0]))
    assert lowest == pytest.approx(1.0 - 25.0 / 4.0)
    assert TWICE.infimum().value == pytest.approx(lowest, rel=1e-12)
    given = FunctionObjective(
        TWICE.value, gradient=TWICE.subgradient, strong_convexity=2.0, shape=(2,)
    )
    assert given.infimum().value == pytest.approx(lowest, rel=1e-12)
    assert (3.0 * given).infimum().value == pytest.approx(3.0 * lowest, rel=1e-12)


@pytest.mark.parametrize(
    ("f", "center", "radius", "steepest"),
    [
        (LeastSquares(2.0 * np.eye(2), np.zeros(2)), [3.0, 0.0], 1.0, [4.0, 0.0]),
        (Quadratic(3.0 * np.eye(2), np.array([6.0, 0.0])), [1.0, 0.0], 2.0, [3.0, 0.0]),
        (SquaredDistance(np.array([1.0, 0.0])), [-2.0, 0.0], 2.0, [-4.0, 0.0]),
        (2.0 * SquaredDistance(np.array([1.0, 0.0])), [-2.0, 0.0], 2.0, [-4.0, 0.0]),
        (PairLoss.from_differences(np.array([[2.0]]), [0.0]), [[3.0]], 1.0, [[4.0]]),
        (
            SquaredDistance(np.array([1.0, 0.0])) + Linear(np.array([-5.0, 0.0])),
            [-2.0, 0.0],
            2.0,
            [-4.0, 0.0],
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Objective) else "",
)
def test_the_slope_on_a_ball_is_reached(f, center, radius, steepest) -> None:
    G = f.lipschitz(Ball(np.array(center), radius))
    slope = np.linalg.norm(f.subgradient(np.array(steepest)))
    assert np.linalg.norm(np.array(steepest) - np.array(center)) == pytest.approx(radius)
    assert G.value == pytest.approx(slope, rel=1e-9)


def test_the_slope_of_a_ridge_on_a_ball() -> None:
    """The mean norm of the rows is 2, and the ridge has ``l2 (|center| + radius)``."""
    f = Logistic(np.array([[1.0, 0.0], [0.0, 3.0]]), [1, -1], l2=0.5)
    G = f.lipschitz(Ball(np.array([3.0, 4.0]), 1.0))
    assert G.value == pytest.approx(2.0 + 0.5 * 6.0, rel=1e-12)


def test_the_slope_of_an_operator_is_estimated_by_its_norm() -> None:
    """``|X| / sqrt(n)`` bounds the mean norm of the rows; with equal orthogonal rows it is that."""
    f = Logistic(aslinearoperator(3.0 * np.eye(4)), [1, -1, 1, -1])
    assert f.lipschitz().value == pytest.approx(3.0 / 2.0, rel=1e-5)


def test_the_infimum_of_a_sum_is_the_better_of_two_bounds() -> None:
    # Each part alone has the infimum -16; their sum is 2 x^2, and strong convexity gives its infimum.
    together = Quadratic(2.0 * np.eye(1), [8.0]) + Quadratic(2.0 * np.eye(1), [-8.0])
    assert [part.infimum().value for part in together.parts] == pytest.approx([-16.0, -16.0])
    assert together.infimum().value == pytest.approx(0.0)
    # Squares are nonnegative, a better bound than that of f(0) = 1 with slope 6 and mu = 2.
    apart = LeastSquares(np.diag([1.0, 3.0]), [0.0, 1.0]) + LeastSquares(
        np.diag([1.0, 3.0]), [0.0, 1.0]
    )
    assert apart.infimum().value == 0.0


def test_multiples_scale_their_dual_ball() -> None:
    """``2 |x|_1`` has slopes up to 2: targets are clipped there, multipliers scaled there."""
    f = 2.0 * L1Norm()
    alpha, g = f.minorant(np.ones(2), np.array([1.5, -3.0]))
    assert alpha == 0.0
    np.testing.assert_array_equal(g, [1.5, -2.0])
    assert f.scale_into_domain(np.array([-4.0, 1.0])) == 0.5
    assert f.scale_into_domain(np.array([1.5, -2.0])) == 1.0


def test_the_smoothness_of_a_sum_is_that_of_its_parts() -> None:
    f = 3.0 * SquaredDistance(np.zeros(2)) + LeastSquares(np.diag([2.0, 1.0]), np.zeros(2))
    assert f.smoothness().value == pytest.approx(3.0 + 4.0)
    assert f.strong_convexity().value == pytest.approx(3.0 + 1.0)
    assert f.infimum().value == 0.0
    assert math.isclose(f.sublevel_radius(2.0).value, 1.0)  # 4/2 |z|^2 <= 2 along the second axis


def test_the_smoothness_of_a_large_sparse_matrix_is_rounded_up() -> None:
    """Second differences on a ring have the eigenvalue 4, which is the sum of the moduli of each row."""
    n = 1200
    P = scipy.sparse.diags_array(
        [-1.0, -np.ones(n - 1), 2.0 * np.ones(n), -np.ones(n - 1), -1.0],
        offsets=[1 - n, -1, 0, 1, n - 1],
    )
    L = Quadratic(scipy.sparse.csr_array(P), np.ones(n)).smoothness().value
    assert 4.0 <= L <= 4.0 * (1.0 + 1e-12)


def test_the_smoothness_of_a_large_sparse_matrix_is_bounded_by_its_rows() -> None:
    n = 1200
    P = scipy.sparse.diags_array(
        [-np.ones(n - 1), 2.0 * np.ones(n), -np.ones(n - 1)], offsets=[-1, 0, 1]
    )
    f = Quadratic(scipy.sparse.csr_array(P), np.ones(n))
    assert (
        4.0 * math.cos(0.5 * math.pi / (n + 1)) ** 2 <= f.smoothness().value <= 4.0 * (1.0 + 1e-12)
    )


@pytest.mark.parametrize("most", [10, 10**6, 10**12])
def test_the_infimum_of_a_poisson_loss_is_below_its_exact_value(most: int, rng: Any) -> None:
    """``k - k log k``, here to forty digits: what a product with a large logarithm rounds is subtracted."""
    with localcontext(prec=40):
        for count in rng.integers(1, most, 100).tolist():
            low = Poisson(np.ones((1, 1)), np.array([float(count)])).infimum().value
            exact = count - count * Decimal(count).ln()
            assert 0 <= exact - Decimal(low) <= Decimal("2e-14") * (count - exact + 1)
