"""Proved lower bounds of least eigenvalues: against matrices whose spectrum is known."""

import numpy as np
import pytest
import scipy.sparse
from support.newton_examples import (
    differences,
    least_squares,
    linear,
    logistic,
    quadratic,
    squared_distance,
)

from lopro.linalg.eigenvalues import least_eigenvalue, negative_curvature
from lopro.newton.smooth import SmoothSum


def with_spectrum(rng, values):
    Q, _ = np.linalg.qr(rng.standard_normal((len(values), len(values))))
    P = (Q * values) @ Q.T
    return 0.5 * (P + P.T)


@pytest.mark.parametrize("least", [1.0, 1e-4, 1e-9])
def test_dense(rng, least):
    P = with_spectrum(rng, np.geomspace(least, 1.0, 30))
    assert 0.3 * least <= least_eigenvalue(P) <= least * (1 + 1e-5)


@pytest.mark.parametrize("least", [0.0, -1e-15, -1e-12, -1.0])
def test_indefinite_matrices_have_the_bound_zero(rng, least):
    """Rounding may let a Cholesky factorisation of these pass; a proof may not."""
    values = np.geomspace(1e-3, 1.0, 30)
    values[0] = least
    for _ in range(20):
        assert least_eigenvalue(with_spectrum(rng, values)) == 0.0


def test_sparse_by_discs_and_by_factors(rng):
    n = 400
    second = differences(n).T @ differences(n)
    spectrum = 4.0 * np.sin(np.pi * np.arange(n) / (2 * n)) ** 2
    for shift in (1e-2, 1e-6):
        P = scipy.sparse.csc_array(second + shift * scipy.sparse.eye_array(n))
        assert 0.3 * shift <= least_eigenvalue(P) <= (spectrum[0] + shift) * (1 + 1e-9)
    fourth = second @ second + 1e-3 * scipy.sparse.eye_array(n)
    assert 3e-4 <= least_eigenvalue(fourth) <= 1e-3 * (1 + 1e-9)
    assert least_eigenvalue(fourth - 2e-3 * scipy.sparse.eye_array(n)) == 0.0
    assert least_eigenvalue(second) <= 1e-12


def test_by_kind(rng):
    B = rng.standard_normal((30, 5))
    least = np.linalg.svd(B)[1].min() ** 2
    assert 0.4 * least <= least_squares(B, np.zeros(30)).strong_convexity() <= least
    assert (
        0.4 * least
        <= least_squares(scipy.sparse.csr_array(B), np.zeros(30)).strong_convexity()
        <= least
    )
    assert least_squares(B[:3], np.zeros(3)).strong_convexity() == 0.0
    assert squared_distance(np.zeros(2), 2.0).strong_convexity() == 2.0
    assert linear(np.ones(2)).strong_convexity() == 0.0
    assert logistic(B, np.ones(30)).strong_convexity() == 0.0
    both = SmoothSum([squared_distance(np.zeros(5), 2.0), quadratic(np.eye(5), np.zeros(5))])
    assert 2.4 <= both.strong_convexity() <= 3.0


def test_negative_curvature(rng):
    Q, _ = np.linalg.qr(rng.standard_normal((40, 40)))
    values = np.geomspace(1e-8, 1.0, 40)
    for least, expected in (
        (1e-8, False),
        (0.0, False),
        (-1e-17, False),
        (-1e-9, True),
        (-1.0, True),
    ):
        values[0] = least
        P = (Q * values) @ Q.T
        P = 0.5 * (P + P.T)
        for M in (P, scipy.sparse.csc_array(P)):
            d = negative_curvature(M)
            assert (d is not None) == expected, least
            if expected:
                assert d @ P @ d == pytest.approx(least, rel=1e-3)
    big = scipy.sparse.diags_array(np.r_[np.ones(1999), -1e-3])
    assert negative_curvature(scipy.sparse.csc_array(big)) is not None
