"""L-BFGS: minimisers, stored pairs, and termination."""

from __future__ import annotations

from typing import Any

import array_api_strict
import numpy as np
import pytest
import scipy.optimize

from lopro.methods.inner.lbfgs import LBFGS, MEMORY

Matrix = Any


def rosenbrock(x: Matrix) -> tuple[float, Matrix]:
    return float(scipy.optimize.rosen(x)), scipy.optimize.rosen_der(x)


def test_a_curved_valley() -> None:
    search = LBFGS(rosenbrock, np.full(10, -0.5))
    steps = 0
    while search.value > 1e-16 and search.step():
        steps += 1
    np.testing.assert_allclose(search.x, 1.0, atol=1e-7)
    assert steps < 150
    assert len(search._memory) <= MEMORY


def test_a_quadratic_with_few_distinct_eigenvalues_takes_few_steps() -> None:
    """With exact line searches L-BFGS equals conjugate gradients; with others it is not much slower."""
    scales = np.repeat([1.0, 30.0, 1000.0], 40).reshape(12, 10)
    search = LBFGS(lambda x: (0.5 * float(np.vdot(scales, x**2)), scales * x), np.ones((12, 10)))
    for _ in range(25):
        search.step()
    assert search.value <= 1e-12


def test_the_value_decreases_and_termination_is_reported() -> None:
    search = LBFGS(rosenbrock, np.array([-1.0, 2.0]))
    value, steps = search.value, 0
    while search.step():
        assert search.value < value
        value, steps = search.value, steps + 1
        assert steps < 500
    np.testing.assert_allclose(search.x, 1.0, atol=1e-6)


def test_pairs_without_positive_curvature_are_not_stored() -> None:
    """``1 - cos`` is not convex at the start: the curvature along a step there is negative."""
    search = LBFGS(lambda x: (float((1.0 - np.cos(x)).sum()), np.sin(x)), np.array([2.5, 2.0]))
    assert search.step()
    while search.step() and search.value > 1e-14:
        assert all(curvature > 0.0 for _, _, curvature in search._memory)
    np.testing.assert_allclose(np.cos(search.x), 1.0)


@pytest.mark.parametrize("convert", [np.float32, np.float64])
def test_precision_is_kept(convert: Any) -> None:
    search = LBFGS(lambda x: (0.5 * float(x @ x), x), np.ones(3, dtype=convert))
    search.step()
    assert search.x.dtype == convert and search.value <= 1e-12


def test_other_libraries() -> None:
    xp = array_api_strict
    search = LBFGS(lambda x: (float(xp.sum(x**4)), 4.0 * x**3), xp.ones(3))
    while search.value > 1e-12 and search.step():
        pass
    assert search.value <= 1e-12
