"""Units of columns: derived from right-hand sides, independently of the units of rows and columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

from lopro.certificates import Units, column_units, of_rows, reach_units
from lopro.certificates.units import curvature_units


def both(A: Any) -> list[Any]:
    return [np.asarray(A), scipy.sparse.csr_array(np.asarray(A))]


@pytest.mark.parametrize("A", both([[2.0, 1.0, 0.0], [4.0, 0.0, 0.0], [0.0, 0.0, 0.0]]))
def test_the_smallest_side_counts(A: Any) -> None:
    """Columns 1: 6/2 and 1/4; column 2: 6/1; column 3 has no row."""
    units = column_units([(A, np.array([-6.0, 1.0, 9.0]))], 3)
    assert units.known.tolist() == [0.25, 6.0, 0.0]


def test_bounds_of_variables_are_sides_too_and_infinite_ones_are_not() -> None:
    units = column_units(
        [(None, np.array([-np.inf, 0.0, 5.0])), (None, np.array([7.0, 2.0, -3.0]))], 3
    )
    assert units.known.tolist() == [7.0, 2.0, 3.0]


@pytest.mark.parametrize("kind", [0, 1])
def test_rows_with_the_side_0_propagate_units(kind: int) -> None:
    """x_1 = 2 x_2, x_2 = 3 x_3, x_3 = 5: the units are 30, 15 and 5, in whatever order the rows come."""
    A = np.array([[1.0, -2.0, 0.0], [0.0, 1.0, -3.0], [0.0, 0.0, 1.0]])
    for order in ([0, 1, 2], [2, 1, 0], [1, 2, 0]):
        units = column_units([(both(A[order])[kind], np.array([0.0, 0.0, 5.0])[order])], 3)
        assert units.known.tolist() == [30.0, 15.0, 5.0]


def test_units_change_with_those_of_rows_and_of_columns(rng: np.random.Generator) -> None:
    A = rng.standard_normal((7, 5)) * (rng.random((7, 5)) < 0.5)
    b = np.where(rng.random(7) < 0.5, 0.0, rng.standard_normal(7))
    rows, columns = np.exp2(rng.integers(-40, 40, 7)), np.exp2(rng.integers(-40, 40, 5))
    plain = column_units([(A, b)], 5)
    other = column_units([(rows[:, None] * A * columns, rows * b)], 5)
    assert (plain.known > 0.0).any()
    np.testing.assert_array_equal(other.known * columns, plain.known)
    x = rng.standard_normal(5)
    np.testing.assert_array_equal(other.at(x / columns) * columns, plain.at(x))


def test_columns_without_a_side_get_units_from_the_point_group_by_group() -> None:
    """x_1 <= 4 x_2 and x_3 <= x_4 are two cones; x_5 stands alone."""
    A = np.array([[1.0, -4.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, -1.0, 0.0]])
    units = column_units([(A, np.zeros(2))], 5)
    assert units.known.tolist() == [0.0] * 5
    x = np.array([0.0, 3.0, -7.0, 0.0, 2.0])
    assert units.at(x).tolist() == [12.0, 3.0, 7.0, 7.0, 2.0]


def test_given_units() -> None:
    assert Units.given(np.array([2.0, 0.0])).at(np.array([9.0, -3.0])).tolist() == [2.0, 3.0]


def test_reach_is_the_largest_unit_of_all_blocks() -> None:
    """A row of two entries gives each 1 / sqrt(2) of its side; a mean over rows is geometric."""
    near, far = (
        (np.array([[1.0, 1.0]]), np.array([2.0])),
        (np.array([[1e-9, 0.0]]), np.array([4.0])),
    )
    for made in (np.asarray, scipy.sparse.csr_array):
        for order in ([near, far], [far, near]):
            found = reach_units([(made(A), b) for A, b in order], 2).known
            np.testing.assert_allclose(found, [4e9, np.sqrt(2.0)], rtol=1e-14)
    both = np.array([[1.0, 0.0], [1e-4, 0.0]]), np.array([1.0, 1.0])
    for made in (np.asarray, scipy.sparse.csr_array):
        found = reach_units([(made(both[0]), both[1])], 2).known
        np.testing.assert_allclose(found, [100.0, 0.0], rtol=1e-14)


@pytest.mark.parametrize("made", [np.asarray, scipy.sparse.csr_array])
def test_reach_follows_the_units_of_rows_and_columns(made: Any) -> None:
    rng = np.random.default_rng(3)
    A, b = rng.standard_normal((7, 4)), rng.uniform(1.0, 2.0, 7)
    A[rng.uniform(size=A.shape) < 0.3] = 0.0
    rows, columns = 10.0 ** rng.integers(-12, 13, 7), 10.0 ** rng.integers(-12, 13, 4)
    plain = reach_units([(made(A), b)], 4).known
    scaled = reach_units([(made(rows[:, None] * A * columns), rows * b)], 4).known
    np.testing.assert_allclose(scaled * columns, plain, rtol=1e-12)


def test_a_row_with_the_side_0_propagates_the_reach() -> None:
    """4 x_2 = x_1 and x_1 is of size 3: x_2 is of size 0.75."""
    blocks = [(None, np.array([3.0, np.inf])), (np.array([[1.0, -4.0]]), np.zeros(1))]
    np.testing.assert_array_equal(reach_units(blocks, 2).known, [3.0, 0.75])


def test_curvature_determines_units_from_the_size_of_the_value() -> None:
    """q_1^2 / P_11 = 4 is the value: 2 / sqrt(P_jj) are the units, whatever q_2 is, if it is less."""
    found = curvature_units(np.array([1.0, 1e-8, 0.0]), np.array([2.0, 1e-5, 1.0]))
    np.testing.assert_allclose(found, [2.0, 2e4, 0.0], rtol=1e-14)


@pytest.mark.parametrize("kind", [0, 1])
def test_units_are_propagated_from_block_to_block(kind: int) -> None:
    """x_1 = 2 x_2 in one block, x_2 = 3 x_3 and x_2 = 9 x_4 in the next; x_3 = 5 determines all of them."""
    one, two = [[1.0, -2.0, 0.0, 0.0]], [[0.0, 1.0, -3.0, 0.0], [0.0, 1.0, 0.0, -9.0]]
    zero, bound = np.zeros(1), np.array([np.inf, np.inf, 5.0, np.inf])
    blocks = [(both(one)[kind], zero), (both(two)[kind], np.zeros(2)), (None, bound)]
    for order in ([0, 1, 2], [1, 0, 2]):
        units = column_units([blocks[k] for k in order], 4)
        np.testing.assert_allclose(units.known, [30.0, 15.0, 5.0, 15.0 / 9.0], rtol=1e-15)


@pytest.mark.parametrize("kind", [0, 1])
def test_sides_that_are_rounding_determine_no_unit(kind: int) -> None:
    """0.3 - 0.2 - 0.1 = -2.8e-17 on the right of x_1 = x_2 is 0 beside x_2 <= 5, in all units of the row."""
    noise, bound = 0.3 - 0.2 - 0.1, (None, np.array([np.inf, 5.0]))
    for scale in (1.0, 1e-20, 1e20):
        row = both(scale * np.array([[1.0, -1.0]]))[kind], scale * np.array([noise])
        for found in (column_units([row, bound], 2), reach_units([row, bound], 2)):
            np.testing.assert_allclose(found.known, [5.0, 5.0], rtol=1e-15)


def test_small_sides_that_no_row_compares_determine_units() -> None:
    """x_1 <= 1e-17 is not rounding beside x_2 <= 5: no row contains both."""
    units = column_units([(np.eye(2), np.array([1e-17, 5.0]))], 2)
    np.testing.assert_array_equal(units.known, [1e-17, 5.0])
    small = column_units([(1e-20 * np.eye(2), np.array([1e-20, 5e-20]))], 2)
    np.testing.assert_allclose(small.known, [1.0, 5.0], rtol=1e-15)


def test_violations_of_rows_with_rounding_for_a_side_are_those_of_zero() -> None:
    """x_1 - x_2 = -2.8e-17 is off by 1e-12 at numbers of size 1e-12: that is 1e-13 of 5 + 5."""
    A, b = np.array([[1.0, -1.0]]), np.array([0.3 - 0.2 - 0.1])
    x, bound = np.array([1e-12, 0.0]), (None, np.array([np.inf, 5.0]))
    found = of_rows(A, x, A @ x - b, b, lambda: column_units([(A, b), bound], 2))
    assert found.relative == pytest.approx(1e-13, rel=1e-3)
    alone = of_rows(A, x, A @ x - b, b, lambda: column_units([(A, b)], 2))
    assert alone.relative == pytest.approx(1.0, rel=1e-3)
