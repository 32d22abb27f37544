"""`lopro.bpdn_path`: radii in decreasing order, each run started from the last certified solution."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lopro

#: Fractions of ``|y|``, not sorted.
PARTS = [0.02, 0.9, 0.01, 0.5, 0.03]


@pytest.fixture
def data() -> tuple[Any, Any, list[float]]:
    """Return a matrix, measurements of ten nonzeros with noise, and the radii."""
    rng = np.random.default_rng(3)
    A = rng.standard_normal((60, 200))
    x = np.zeros(200)
    x[:10] = rng.standard_normal(10)
    y = A @ x + 0.1 * rng.standard_normal(60)
    return A, y, [part * float(np.linalg.norm(y)) for part in PARTS]


def same(one: Any, two: Any) -> bool:
    """Return whether two runs were identical to the last digit."""
    return bool(np.array_equal(one.x, two.x)) and one.iterations == two.iterations


def test_each_radius_starts_from_the_solution_before(data: Any) -> None:
    A, y, radii = data
    path = lopro.bpdn_path(A, y, radii, tol=1e-8)
    start = None
    for i in np.argsort(radii)[::-1]:
        alone = lopro.bpdn(A, y, radii[i], x0=start, tol=1e-8)
        assert alone.success and same(path[i], alone)
        start = alone.x
    cold = [lopro.bpdn(A, y, radius, tol=1e-8) for radius in radii]
    assert [r.fun for r in path] == pytest.approx([r.fun for r in cold], rel=1e-7)
    assert all(warm.iterations <= r.iterations for warm, r in zip(path, cold, strict=True))
    assert sum(r.iterations for r in path) < 0.65 * sum(r.iterations for r in cold)


def test_a_given_start_is_used_for_the_largest_radius(data: Any) -> None:
    A, y, radii = data
    good = lopro.bpdn(A, y, max(radii), tol=1e-8).x
    path = lopro.bpdn_path(A, y, radii, x0=good, tol=1e-8)
    largest = path[int(np.argmax(radii))]
    assert same(largest, lopro.bpdn(A, y, max(radii), x0=good, tol=1e-8))
    assert largest.iterations < lopro.bpdn(A, y, max(radii), tol=1e-8).iterations


def test_a_run_without_success_is_not_used_as_a_start(data: Any) -> None:
    """Five iterations are too few from the third radius on: the later ones start from the second."""
    A, y, radii = data
    path = lopro.bpdn_path(A, y, radii, tol=1e-8, max_iter=5)
    order = np.argsort(radii)[::-1]
    assert [path[i].success for i in order] == [True, True, False, False, False]
    good, failed = path[order[1]].x, path[order[2]].x
    for i in order[2:]:
        assert same(path[i], lopro.bpdn(A, y, radii[i], x0=good, tol=1e-8, max_iter=5))
        assert not same(path[i], lopro.bpdn(A, y, radii[i], x0=failed, tol=1e-8, max_iter=5))
