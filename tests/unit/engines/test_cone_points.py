"""Claims of conic programs by hand: rows one by one, cones by their own rows, rays and contradictions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from lopro.certificates import exclude_cones
from lopro.engines.cone_bound import ConicData
from lopro.engines.cone_points import falling_ray, violation
from lopro.engines.cones import Nonnegative, PSDTriangle, SecondOrder, Zero


def data(A: Any, b: Any, cones: Any, q: Any = None) -> ConicData:
    rows = scipy.sparse.csr_array(np.asarray(A, dtype=float))
    n = rows.shape[1]
    q = np.zeros(n) if q is None else np.asarray(q, dtype=float)
    return ConicData(scipy.sparse.csr_array((n, n)), q, rows, np.asarray(b, dtype=float), cones)


def test_each_row_is_compared_with_its_own_terms() -> None:
    """x_1 <= 1 at 3: 2 of 3 + 1. The row of 1e12 beside it is met, and changes nothing."""
    for cones in ([(Nonnegative(2), 2)], [(Nonnegative(1), 1), (Zero(1), 1)]):
        found = violation(data([[1, 0], [0, 1e12]], [1.0, 2e12], cones), np.array([3.0, 2.0]))
        assert (found.relative, found.absolute) == (0.5, 2.0)


def test_a_cone_is_compared_with_its_rows() -> None:
    """|(x, y)| <= 2 at (3, 4): by 3, of rows that compare 2, 3 and 4."""
    disc = data([[0, 0], [-1, 0], [0, -1]], [2.0, 0.0, 0.0], [(SecondOrder(3), 3)])
    found = violation(disc, np.array([3.0, 4.0]))
    assert found.absolute == pytest.approx(3.0, rel=1e-15)
    assert found.relative == pytest.approx(3.0 / math.sqrt(29.0), rel=1e-15)
    assert violation(disc, np.array([1.0, 1.0])).relative == 0.0


def test_a_matrix_is_compared_with_its_diagonal() -> None:
    """Diag(x, 1) is short of its cone by 2 at x = -2: all that the row of x compares."""
    psd = data([[-1], [0], [0]], [0.0, 0.0, 1.0], [(PSDTriangle(2), 3)])
    found = violation(psd, np.array([-2.0]))
    assert (found.absolute, found.relative) == (pytest.approx(2.0), pytest.approx(1.0))


def test_a_large_entry_of_a_matrix_does_not_hide_the_others() -> None:
    """Diag(x, 1e4): the norm of the rows would make 2e-4 of a violation of 2; beyond 1e6 it is rounding."""
    for large, expected in ((1e4, 1.0), (1e12, 2e-6)):
        psd = data([[-1], [0], [0]], [0.0, 0.0, large], [(PSDTriangle(2), 3)])
        assert violation(psd, np.array([-2.0])).relative == pytest.approx(expected, rel=1e-9)


def test_a_contradiction_with_a_residual_has_a_radius() -> None:
    """X >= 1 and x <= 1e-9 y: (1, 1) leaves -1e-9 of y, so that nothing is excluded beyond 1e9."""
    rows = data([[-1, 0], [1, -1e-9]], [-1.0, 0.0], [(Nonnegative(2), 2)])
    found = exclude_cones(rows.A, rows.b, np.ones(2))
    assert found.radius == pytest.approx(1e9, rel=1e-9) and not found.proved
    apart = data([[-1, 0], [1, 0]], [-1.0, 0.0], [(Nonnegative(2), 2)])
    assert exclude_cones(apart.A, apart.b, np.ones(2)).proved
    assert not exclude_cones(apart.A, apart.b, np.array([1.0, 1.0 + 1e-12])).proved


def test_rays_are_freed_of_remnants_and_checked_row_by_row() -> None:
    """Min -y over x <= 1 falls along (0, 1); 1e-11 of x is what an engine leaves, 1e-3 is not."""
    half = data([[1, 0]], [1.0], [(Nonnegative(1), 1)], q=[0.0, -1.0])
    ray = falling_ray(half, np.array([1e-11, 2.0]))
    assert ray is not None and ray.tolist() == [0.0, 1.0]
    assert falling_ray(half, np.array([1e-3, 2.0])) is None
    assert falling_ray(half, np.array([0.0, -2.0])) is None  # it rises
    assert falling_ray(half, np.zeros(2)) is None
