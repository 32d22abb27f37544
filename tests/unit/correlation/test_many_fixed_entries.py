"""`lopro.nearest_correlation` with nearly half of the entries fixed: solved, or proved to be infeasible."""

from __future__ import annotations

import numpy as np
import pytest

import lopro
from lopro.newton.sdp.correlation_target import CorrelationTarget


def correlations(rng, n, factors, own):
    """Return a correlation matrix with a number of common factors and individual variances."""
    F = rng.standard_normal((n, factors))
    A = F @ F.T + own * np.eye(n)
    d = np.sqrt(A.diagonal())
    A /= d[:, None] * d
    np.fill_diagonal(A, 1.0)
    return 0.5 * (A + A.T)


def noise(rng, n, size):
    N = size * rng.standard_normal((n, n))
    N = 0.5 * (N + N.T)
    np.fill_diagonal(N, 0.0)
    return N


def pattern(rng, n, share=0.45):
    fixed = np.triu(rng.random((n, n)) < share, 1)
    return fixed | fixed.T


@pytest.mark.parametrize("own", [0.3, 0.0])
def test_entries_of_a_correlation_matrix(own):
    """Where the matrix is singular, blocks of fixed entries are singular, too."""
    rng = np.random.default_rng(0)
    A, fixed = correlations(rng, 60, 5, own), pattern(rng, 60)
    G = np.where(fixed, A, A + noise(rng, 60, 0.3))
    result = lopro.nearest_correlation(G, fixed=fixed)
    assert result.status is lopro.Status.CONVERGED
    assert np.array_equal(result.x[fixed], A[fixed])
    assert np.linalg.eigvalsh(result.x)[0] >= -1e-10
    # The matrix that the entries were taken from is feasible.
    assert result.certificate.lower_bound <= 0.5 * np.sum((A - G) ** 2)


@pytest.mark.parametrize("n", [60, 150])
@pytest.mark.parametrize("size", [0.03, 0.3])
def test_contradicting_entries_are_detected_during_the_run(n, size):
    """Multipliers diverge and prove infeasibility in a few steps; sixty steps took minutes for n = 150."""
    rng = np.random.default_rng(0)
    A, fixed = correlations(rng, n, 5, 0.3), pattern(rng, n)
    G = np.clip(A + noise(rng, n, size), -1.0, 1.0)
    result = lopro.nearest_correlation(G, fixed=fixed)
    assert result.status is lopro.Status.INFEASIBLE
    assert result.counts.eigendecompositions <= 12
    i, j = np.nonzero(np.tril(fixed, -1))
    M = np.diag(result.ray[:n])
    M[i, j] = M[j, i] = 0.5 * result.ray[n:]
    assert np.sum(M * G) > n * max(0.0, np.linalg.eigvalsh(M)[-1]) + 1e-12 * np.abs(M).sum()


def test_a_margin_that_empties_the_set_is_no_contradiction():
    """Entries of a singular matrix exclude eigenvalues above a margin; these multipliers prove no more."""
    target = CorrelationTarget.of(np.ones((2, 2)), None, np.ones((2, 2), dtype=bool))
    problem, T = target.nearest_problem(1e-3)
    y = 1e6 * np.array([-1.0, -1.0, 2.0])
    assert problem.solve(T, start=y).emptiness is not None
    assert problem.solve(T, start=y, wider=target.nearest_problem()[0]).emptiness is None


def with_a_singular_block(n, size, least=0.0):
    """Noise around a matrix whose first entries, a block of half the rank of its size, are fixed."""
    rng = np.random.default_rng(0)
    A, fixed = np.corrcoef(rng.standard_normal((size // 2, n)).T), np.zeros((n, n), dtype=bool)
    fixed[:size, :size] = True
    A = 0.5 * (1.0 - least) * (A + A.T)
    np.fill_diagonal(A, 1.0)
    return A, np.where(fixed, A, A + noise(rng, n, 0.3)), fixed


@pytest.mark.parametrize("n, size, least, weighted", [
    (60, 10, 0.0, False), (60, 30, 0.0, False), (60, 50, 0.0, False), (150, 100, 0.0, False),
    (40, 20, 0.05, False), (40, 20, 0.0, True), (40, 20, 0.05, True),
])  # fmt: skip
def test_a_singular_block_is_solved_and_proved(n, size, least, weighted):
    """The dual is not attained: multipliers along the null vectors start with large values."""
    A, G, fixed = with_a_singular_block(n, size, least)
    w = np.random.default_rng(1).uniform(0.5, 2.0, n) if weighted else np.ones(n)
    result = lopro.nearest_correlation(G, w, fixed, least)
    assert result.status is lopro.Status.CONVERGED
    assert result.counts.eigendecompositions <= 40  # one to three runs
    assert np.array_equal(result.x[fixed], A[fixed])
    assert np.linalg.eigvalsh(result.x)[0] >= least - result.certificate.violation - 1e-15
    # Points between the answer and a feasible one are no better than the bound.
    D = result.x - A
    for t in (0.0, 0.5, 0.9, 0.99, 1.0):
        value = 0.5 * np.sum(w[:, None] * w * (A + t * D - G) ** 2)
        assert result.certificate.lower_bound <= value * (1.0 + 1e-12)


def test_a_run_without_a_solution_is_not_repeated():
    """A tolerance below the gap that multipliers of a set without interior prove: it is not claimed."""
    _, G, fixed = with_a_singular_block(60, 30)
    result = lopro.nearest_correlation(G, fixed=fixed, tol=1e-11)
    assert result.status is lopro.Status.STALLED
    assert result.certificate.violation <= 1e-9
    assert result.counts.eigendecompositions <= 200
    assert np.linalg.eigvalsh(result.x)[0] >= -result.certificate.violation


def test_a_time_limit_holds():
    _, G, fixed = with_a_singular_block(150, 100)
    result = lopro.nearest_correlation(G, fixed=fixed, tol=1e-11, time_limit=0.5)
    assert result.status is lopro.Status.TIME_LIMIT
    assert result.seconds <= 2.0


def test_every_entry_fixed():
    rng = np.random.default_rng(3)
    A, fixed = correlations(rng, 20, 5, 0.3), np.ones((20, 20), dtype=bool)
    assert np.array_equal(lopro.nearest_correlation(A, fixed=fixed).x, A)
    singular = correlations(rng, 20, 5, 0.0)
    result = lopro.nearest_correlation(singular, fixed=fixed)
    assert np.array_equal(result.x, singular)
    assert result.status in (lopro.Status.CONVERGED, lopro.Status.STALLED)
    G = np.clip(A + noise(rng, 20, 0.5), -1.0, 1.0)
    assert lopro.nearest_correlation(G, fixed=fixed).status is lopro.Status.INFEASIBLE
