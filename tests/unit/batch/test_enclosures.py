"""Error bounds of stacked arithmetic: each term of them as an exact number, from both sides."""

from __future__ import annotations

import numpy as np
import pytest

from lopro.linalg.batched import Enclosures, largest, positive_or_one
from lopro.linalg.rounding import gamma

M, X = np.array([[[1.0, -2.0]]]), np.array([[3.0, 4.0]])
#: Powers of two, so that no factor is rounded.
ERROR = np.array([[2.0**-20, 2.0**-21]])


def test_errors_of_products_of_exact_numbers_are_roundings() -> None:
    found = Enclosures.product(M, X)
    assert found.value[0, 0] == -5.0
    assert found.error[0, 0] == pytest.approx(2.0 * gamma(4) * 11.0, rel=1e-12)


def test_the_error_of_the_vector_passes_through_the_moduli_of_the_matrix() -> None:
    found = Enclosures.product(M, np.zeros((1, 2)), ERROR)
    assert found.error[0, 0] / 2.0**-19 - 1.0 == pytest.approx(gamma(12), rel=0.2)
    both = Enclosures.product(M, 2.0**20 * X, ERROR)
    assert both.error[0, 0] == pytest.approx(2.0**-19 + 2.0 * gamma(4) * 11.0 * 2.0**20, rel=1e-12)


def test_errors_of_inner_products_are_roundings_and_that_of_the_factor() -> None:
    y = np.array([[1.0, -2.0]])
    found = Enclosures.dot(X, y)
    assert found.value[0] == -5.0
    assert found.error[0] == pytest.approx(2.0 * gamma(4) * 11.0, rel=1e-12)
    carried = Enclosures.dot(np.zeros((1, 2)), y, ERROR).error[0]
    assert carried / 2.0**-19 - 1.0 == pytest.approx(gamma(12), rel=0.2)
    both = Enclosures.dot(2.0**20 * X, y, ERROR).error[0]
    assert both == pytest.approx(2.0**-19 + 2.0 * gamma(4) * 11.0 * 2.0**20, rel=1e-12)


def test_sums_and_differences_add_errors_and_one_rounding() -> None:
    a = Enclosures(np.array([3.0]), np.array([0.5]))
    b = Enclosures(np.array([-8.0]), np.array([0.25]))
    assert ((a + b).value[0], (a - b).value[0]) == (-5.0, 11.0)
    assert (a + b).error[0] - 0.75 == pytest.approx(5.0 * gamma(2), rel=0.2)
    assert (a - b).error[0] - 0.75 == pytest.approx(11.0 * gamma(2), rel=0.2)
    exact = Enclosures.exact(np.array([3.0])) + Enclosures.exact(np.array([-8.0]))
    assert exact.error[0] == pytest.approx(5.0 * gamma(2), rel=1e-12)


def test_a_factor_multiplies_the_error_and_is_rounded_once() -> None:
    exact = Enclosures.exact(np.array([3.0])).times(np.array([-4.0]))
    assert (exact.value[0], exact.error[0]) == (-12.0, pytest.approx(12.0 * gamma(2), rel=1e-12))
    off = Enclosures(np.zeros(1), np.array([0.25])).times(np.array([-4.0]))
    assert off.error[0] - 1.0 == pytest.approx(gamma(4), rel=0.3)


def test_the_lower_end_subtracts_error_and_rounding() -> None:
    for value, error in ((0.0, 1.0), (-1.0, 0.0), (1.0, 0.0)):
        found = Enclosures(np.array([value]), np.array([error])).lower()[0]
        assert value - error - found == pytest.approx(gamma(4), rel=0.3)
    assert Enclosures(np.array([2.0]), np.array([0.5])).lower()[0] == pytest.approx(1.5)


def test_divisors_and_empty_maxima() -> None:
    given = np.array([2.0, 0.0, -1.0, np.inf, np.nan])
    assert positive_or_one(given).tolist() == [2.0, 1.0, 1.0, 1.0, 1.0]
    assert largest(np.array([[1.0, 3.0]])).tolist() == [3.0]
    assert largest(np.zeros((2, 0))).tolist() == [0.0, 0.0]
