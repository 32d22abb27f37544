"""Violations and proofs of conic programs by hand: rows, cones, rays and contradictions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from lopro.certificates import exclude_cones
from lopro.certificates.certificate import Status
from lopro.certificates.violation import units_of_entries
from lopro.engines import proved_cones
from lopro.engines.cone_bound import ConicData, conic_bound
from lopro.engines.cone_points import (
    falling_ray,
    lowered,
    made_feasible,
    violation,
    violation_charge,
)
from lopro.engines.cones import Nonnegative, PSDTriangle, SecondOrder, Zero


def data(A: Any, b: Any, cones: Any, q: Any = None) -> ConicData:
    rows = scipy.sparse.csr_array(np.asarray(A, dtype=float))
    n = rows.shape[1]
    q = np.zeros(n) if q is None else np.asarray(q, dtype=float)
    return ConicData(scipy.sparse.csr_array((n, n)), q, rows, np.asarray(b, dtype=float), cones)


def test_each_row_is_compared_with_its_own_terms() -> None:
    """x_1 <= 1 at 3: 2 of 3 + 1. The row of 1e12 is satisfied, and has no effect."""
    for cones in ([(Nonnegative(2), 2)], [(Nonnegative(1), 1), (Zero(1), 1)]):
        found = violation(data([[1, 0], [0, 1e12]], [1.0, 2e12], cones), np.array([3.0, 2.0]))
        assert (found.relative, found.absolute) == (0.5, 2.0)


def test_a_cone_is_compared_with_its_top() -> None:
    """|(x, y)| <= 2 at (3, 4): by 3, of a radius of 2. That (3, 4) is far from a centre changes nothing."""
    disc = data([[0, 0], [-1, 0], [0, -1]], [2.0, 0.0, 0.0], [(SecondOrder(3), 3)])
    found = violation(disc, np.array([3.0, 4.0]))
    assert found.absolute == pytest.approx(3.0, rel=1e-15)
    assert found.relative == pytest.approx(1.5, rel=1e-15)
    assert violation(disc, np.array([1.0, 1.0])).relative == 0.0
    # |x - 1e3| <= y, with rows of size 2e3: compared with y, but with at least 1e-6 of the size of the rows.
    cone = data([[0, -1], [-1, 0]], [0.0, -1e3], [(SecondOrder(2), 2)])
    assert violation(cone, np.array([1003.0, 2.0])).relative == pytest.approx(0.5, rel=1e-12)
    assert violation(cone, np.array([1000.002, 1e-9])).relative == pytest.approx(1.0, rel=1e-5)
    # Where y is 0 it is an equation.
    assert violation(cone, np.array([1000.002, 0.0])).relative == pytest.approx(1e-6, rel=1e-5)


def test_a_matrix_is_compared_with_its_diagonal() -> None:
    """Diag(x, 1) violates its cone by 2 at x = -2, which is the size of the terms in the row of x."""
    psd = data([[-1], [0], [0]], [0.0, 0.0, 1.0], [(PSDTriangle(2), 3)])
    found = violation(psd, np.array([-2.0]))
    assert (found.absolute, found.relative) == (pytest.approx(2.0), pytest.approx(1.0))


def test_a_large_entry_of_a_matrix_does_not_hide_the_others() -> None:
    """Diag(x, 1e4): relative to the norm of the rows a violation of 2 would be 2e-4."""
    for large in (1e4, 1e12, 1e-12):
        psd = data([[-1], [0], [0]], [0.0, 0.0, large], [(PSDTriangle(2), 3)])
        assert violation(psd, np.array([-2.0])).relative == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("unit", [1.0, 2.0**-30, 2.0**30])
def test_a_matrix_is_compared_in_all_units_of_its_indices(unit: float) -> None:
    """[[1, x], [x, 1]] at 1.5 has the least eigenvalue -1/2, in units of 1.5: entries compare 1 and 1.5."""
    r = math.sqrt(2.0) * unit
    psd = data([[0], [-r], [0]], [1.0, 0.0, unit**2], [(PSDTriangle(2), 3)])
    assert violation(psd, np.array([1.5])).relative == pytest.approx(0.5 / 1.5, rel=2e-3)
    assert violation(psd, np.array([1.0])).relative <= 1e-15


def test_an_index_without_a_diagonal_is_compared_with_its_other_entries() -> None:
    """[[0, x - 3], [x - 3, 1]] is semidefinite at 3 only; at 4 an entry of 1 compares 7 with 1."""
    r = math.sqrt(2.0)
    psd = data([[0], [-r], [0]], [0.0, -3.0 * r, 1.0], [(PSDTriangle(2), 3)])
    assert violation(psd, np.array([3.0])).relative == 0.0
    X = np.array([[0.0, 1.0 / 7.0], [1.0 / 7.0, 1.0]])  # in units of 7 and 1
    expected = -np.linalg.eigvalsh(X)[0]
    assert violation(psd, np.array([4.0])).relative == pytest.approx(expected, rel=1e-12)


def test_units_of_entries_are_propagated_where_the_diagonal_is_empty() -> None:
    """From 1 to 3, from there to 1e-200 / 3; an entry alone determines only the product of two units."""
    sizes = np.array([[0.0, 1e-200, 3.0], [1e-200, 0.0, 0.0], [3.0, 0.0, 1.0]])
    assert units_of_entries(sizes) == pytest.approx([3.0, 1e-200 / 3.0, 1.0], rel=1e-12)
    d = units_of_entries(np.array([[0.0, 1e-9], [1e-9, 0.0]]))
    assert d[0] * d[1] == pytest.approx(1e-9, rel=1e-12)


def test_a_contradiction_with_a_residual_has_a_radius() -> None:
    """X >= 1 and x <= 1e-9 y: multipliers (1, 1) leave -1e-9 y and exclude nothing beyond 1e9."""
    rows = data([[-1, 0], [1, -1e-9]], [-1.0, 0.0], [(Nonnegative(2), 2)])
    found = exclude_cones(rows.A, rows.b, np.ones(2))
    assert found.radius == pytest.approx(1e9, rel=1e-9) and not found.proved
    apart = data([[-1, 0], [1, 0]], [-1.0, 0.0], [(Nonnegative(2), 2)])
    assert exclude_cones(apart.A, apart.b, np.ones(2)).proved
    assert not exclude_cones(apart.A, apart.b, np.array([1.0, 1.0 + 1e-12])).proved


def test_rays_are_cleaned_of_rounding_and_checked_row_by_row() -> None:
    """Min -y over x <= 1 decreases along (0, 1); 1e-11 in x is rounding of an engine, 1e-3 is not."""
    half = data([[1, 0]], [1.0], [(Nonnegative(1), 1)], q=[0.0, -1.0])
    ray = falling_ray(half, np.array([1e-11, 2.0]))
    assert ray is not None and ray.tolist() == [0.0, 1.0]
    assert falling_ray(half, np.array([1e-3, 2.0])) is None
    assert falling_ray(half, np.array([0.0, -2.0])) is None  # the objective increases along it
    assert falling_ray(half, np.zeros(2)) is None


@pytest.mark.parametrize("seed", range(20))
def test_lowered_variables_stay_inside_and_cost_less(seed: int) -> None:
    """Two variables in one row use its slack once, and one that a row bounds from above is not moved."""
    rng = np.random.default_rng(seed)
    tops = np.array([[-1.0, 0, 0, 0, 0], [0, -2, 0, 0, 0], [0, 0, -1, -1, 0], [0, 0, 0, 0, -1.0]])
    u = np.zeros((2, 5))
    A = scipy.sparse.csr_array(np.vstack([tops, [0, 0, 0, 0, 1.0], tops[0], u]))
    b = np.concatenate([rng.standard_normal(4), [50.0], rng.standard_normal(3)])
    data = ConicData(0.0 * A.T @ A, np.ones(5), A, b, [(Nonnegative(5), 5), (SecondOrder(3), 3)])
    x = rng.uniform(5.0, 9.0, 5)
    low = lowered(data, x)
    assert violation(data, low).relative <= 1e-14
    slack = b - A @ low
    assert min(slack[0], slack[5] - np.linalg.norm(slack[6:])) == pytest.approx(0.0, abs=1e-12)
    assert slack[1] == pytest.approx(0.0, abs=1e-12) and low[2:].tolist() == x[2:].tolist()


def test_a_block_of_cones_is_measured_and_moved_like_its_cones(rng: np.random.Generator) -> None:
    """Violations, units, steps, multipliers and bounds agree with those of the separate cones."""
    n, count = 6, 4
    A = scipy.sparse.csr_array(rng.standard_normal((3 * count + 2, n)))
    x, q = rng.standard_normal(n), np.abs(rng.standard_normal(n))
    slack = np.concatenate([[0.5, 0.2], np.tile([5.0 - 1e-4, 3.0, 4.0], count)])
    slack[8] = 9.0  # one of the cones contains its slack
    cones = [(Nonnegative(2), 2), *[(SecondOrder(3), 3)] * count]
    alone = ConicData(scipy.sparse.csr_array((n, n)), q, A, A @ x + slack, cones)
    block = alone.merged()
    assert [cone for cone, _ in block.cones] == [Nonnegative(2), SecondOrder(3, count)]
    assert violation(block, x) == violation(alone, x)
    assert violation_charge(block, x, np.ones(14)) == violation_charge(alone, x, np.ones(14))
    np.testing.assert_array_equal(block.groups, alone.groups)
    np.testing.assert_array_equal(block.linear_rows[0][2], alone.linear_rows[0][2])
    np.testing.assert_array_equal(block.inside(slack), alone.inside(slack))
    np.testing.assert_array_equal(lowered(block, x), lowered(alone, x))
    (moved, left), (expected, _) = made_feasible(block, x), made_feasible(alone, x)
    np.testing.assert_allclose(moved, expected, rtol=1e-9)
    assert left.relative <= 1e-9 and not np.array_equal(moved, x)


def test_the_radius_of_an_answer_is_one_in_which_its_bound_holds() -> None:
    """Min x - y over x = y, whose data give no length: a slope of 1e-3 remains, charged times distance."""
    program = data([[-1.0, 1.0], [1.0, -1.0]], np.zeros(2), [(Nonnegative(2), 2)], [1.0, -1.0])
    x, z = np.zeros(2), np.array([0.999, 0.0])
    proof = z, conic_bound(program, x, z), 0.0
    found = proved_cones._judged(program, 1e-6, x, violation(program, x), 0, iter([proof]))
    assert found.status is Status.STALLED
    assert found.bound.limit > 0.0
    assert found.bound.value <= -1e-3 * math.sqrt(2.0) * found.bound.limit
