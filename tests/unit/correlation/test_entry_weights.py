"""`lopro.nearest_correlation` with a weight for each entry, also with fixed entries."""

from __future__ import annotations

import numpy as np
import pytest
from support.correlation_targets import uniform

import lopro


def test_weights_of_entries_by_hand():
    """Only X_13 has a small weight: ``X_13 >= 2 * 0.8^2 - 1 = 0.28`` for X_12 = X_23 = 0.8."""
    G = np.array([[1.0, 0.8, 0.0], [0.8, 1.0, 0.8], [0.0, 0.8, 1.0]])
    W = np.array([[1.0, 1e6, 1.0], [1e6, 1.0, 1e6], [1.0, 1e6, 1.0]])
    result = lopro.nearest_correlation(G, W, tol=1e-7)
    assert result.success
    np.testing.assert_allclose(result.x[0, 2], 0.28, atol=1e-5)
    assert result.fun == pytest.approx(0.28**2, rel=1e-4)
    assert result.certificate.lower_bound <= 0.28**2
    # Entries of weight zero are free: with X_13 = 0.28 the others are kept.
    W[0, 2] = W[2, 0] = 0.0
    free = lopro.nearest_correlation(G, W / 1e6)
    assert free.success is False or free.fun <= 1e-6
    np.testing.assert_allclose(free.x[[0, 1], [1, 2]], 0.8, atol=1e-3)


@pytest.mark.parametrize("least", [0.0, 0.2])
@pytest.mark.parametrize("kind", ["rank one", "any"])
def test_weights_of_entries_agree_with_other_solvers(rng, kind, least):
    """Weights ``w_i w_j`` are those of variables; other weights are compared with Clarabel."""
    n = 10
    G, w = uniform(rng, n), rng.uniform(0.3, 2.0, n)
    if kind == "rank one":
        ours = lopro.nearest_correlation(G, np.outer(w, w), min_eigenvalue=least, tol=1e-8)
        theirs = lopro.nearest_correlation(G, w, min_eigenvalue=least, tol=1e-8)
        expected, X = theirs.fun, theirs.x
    else:
        cp = pytest.importorskip("cvxpy")
        W = rng.uniform(0.1, 1.0, (n, n))
        W = np.where(rng.uniform(size=(n, n)) < 0.2, 0.0, W)
        W = W + W.T
        ours = lopro.nearest_correlation(G, W, min_eigenvalue=least, tol=1e-8)
        Y = cp.Variable((n, n), symmetric=True)
        cost = 0.5 * cp.sum(cp.multiply(W, cp.square(Y - G)))
        cp.Problem(cp.Minimize(cost), [cp.diag(Y) == 1, Y - least * np.eye(n) >> 0]).solve(
            "CLARABEL"
        )
        expected, X = cost.value, Y.value
    assert ours.success
    assert ours.fun == pytest.approx(expected, rel=1e-6)
    assert ours.certificate.lower_bound <= expected * (1 + 1e-7)
    if kind == "rank one":
        np.testing.assert_allclose(ours.x, X, atol=1e-4)
    assert np.array_equal(ours.x, ours.x.T) and np.array_equal(np.diag(ours.x), np.ones(n))
    assert np.linalg.eigvalsh(ours.x)[0] >= least - 1e-15
    assert ours.certificate.violation == 0.0


def test_weights_of_entries_are_checked(rng):
    G = uniform(rng, 3)
    W = np.ones((3, 3))
    for match, given, options in (
        ("weights must not be negative", -W, {}),
        ("weights of entries must be symmetric", np.triu(W), {}),
        (r"weights must have shape \(3, 3\)", np.ones((2, 2)), {}),
        ("fixed keeps G", W, {"fixed": np.ones((3, 3), dtype=bool), "min_eigenvalue": 0.99}),
    ):
        with pytest.raises(ValueError, match=match):
            lopro.nearest_correlation(G, given, **options)


def test_single_precision_with_weights_of_entries(rng):
    G, W = uniform(rng, 30).astype(np.float32), rng.uniform(0.1, 1.0, (30, 30)).astype(np.float32)
    W = W + W.T
    result = lopro.nearest_correlation(G, W, tol=1e-4)
    assert result.success and result.x.dtype == np.float32
    assert np.linalg.eigvalsh(result.x.astype(np.float64))[0] >= -1e-15
    exact = lopro.nearest_correlation(G.astype(np.float64), W.astype(np.float64))
    assert exact.certificate.lower_bound <= result.fun * (1.0 + 1e-6)
    np.testing.assert_allclose(result.x, exact.x, atol=1e-2)


def kept_entries(rng, n, count):
    """Return a random matrix with some entries from a correlation matrix, and the mask of these."""
    B = rng.standard_normal((n, 2 * n))
    C = B @ B.T
    C /= np.sqrt(np.outer(C.diagonal(), C.diagonal()))
    G, fixed = uniform(rng, n), np.zeros((n, n), dtype=bool)
    i, j = np.tril_indices(n, -1)
    at = rng.choice(len(i), count, replace=False)
    fixed[i[at], j[at]] = fixed[j[at], i[at]] = True
    return np.where(fixed, 0.5 * (C + C.T), G), fixed


@pytest.mark.parametrize("least", [0.0, 0.05])
@pytest.mark.parametrize("count", [2, 20])
def test_fixed_entries_with_weights_of_entries(rng, count, least):
    cp = pytest.importorskip("cvxpy")
    n = 9
    G, fixed = kept_entries(rng, n, count)
    W = rng.uniform(0.1, 1.0, (n, n))
    W = W + W.T
    ours = lopro.nearest_correlation(G, W, fixed, least, tol=1e-8)
    Y = cp.Variable((n, n), symmetric=True)
    rows = [cp.diag(Y) == 1, Y - least * np.eye(n) >> 0]
    rows += [Y[i, j] == G[i, j] for i, j in zip(*np.nonzero(np.tril(fixed)), strict=True)]
    cost = 0.5 * cp.sum(cp.multiply(W, cp.square(Y - G)))
    cp.Problem(cp.Minimize(cost), rows).solve("CLARABEL")
    assert ours.success and ours.certificate.violation == 0.0
    assert ours.fun == pytest.approx(cost.value, rel=1e-6)
    assert ours.certificate.lower_bound <= cost.value * (1.0 + 1e-7)
    assert np.array_equal(ours.x[fixed], G[fixed]) and np.array_equal(np.diag(ours.x), np.ones(n))
    assert np.linalg.eigvalsh(ours.x)[0] >= least - 1e-15


def test_fixed_entries_with_weights_that_are_products(rng):
    n = 30
    G, fixed = kept_entries(rng, n, 40)
    w = rng.uniform(0.5, 2.0, n)
    ours = lopro.nearest_correlation(G, np.outer(w, w), fixed, tol=1e-8)
    theirs = lopro.nearest_correlation(G, w, fixed, tol=1e-8)
    assert ours.success and theirs.success
    assert ours.fun == pytest.approx(theirs.fun, rel=1e-7)
    assert ours.certificate.lower_bound <= theirs.fun and theirs.certificate.lower_bound <= ours.fun
    assert ours.counts.matvecs <= 1500
    single = lopro.nearest_correlation(
        G.astype(np.float32), np.outer(w, w).astype(np.float32), fixed, tol=1e-4
    )
    assert single.success and single.x.dtype == np.float32
    assert np.array_equal(single.x[fixed], G.astype(np.float32)[fixed])


def test_fixed_entries_that_exclude_each_other_for_all_weights():
    G, fixed = np.eye(4), np.zeros((4, 4), dtype=bool)
    for i, j, entry in ((0, 1, 0.9), (1, 2, 0.9), (0, 2, -0.9)):
        G[i, j] = G[j, i] = entry
        fixed[i, j] = fixed[j, i] = True
    result = lopro.nearest_correlation(G, np.ones((4, 4)), fixed)
    assert result.status is lopro.Status.INFEASIBLE and len(result.ray) == 7


def test_a_fixed_correlation_of_one_with_weights_of_entries():
    """There is no interior, and a multiplier need not exist: all claims are true nevertheless."""
    G = np.array([[1.0, 1.0, 0.9], [1.0, 1.0, 0.1], [0.9, 0.1, 1.0]])
    fixed = np.zeros((3, 3), dtype=bool)
    fixed[0, 1] = fixed[1, 0] = True
    result = lopro.nearest_correlation(G, np.ones((3, 3)), fixed)
    assert result.certificate.lower_bound <= 0.32
    assert result.x[0, 1] == 1.0
    assert np.linalg.eigvalsh(result.x)[0] >= -result.certificate.violation
