"""`lopro.nearest_correlation`: answers known by hand, statuses, proofs, unusual input."""

from __future__ import annotations

import numpy as np
import pytest
from support.correlation_targets import uniform

import lopro
from lopro.core.deadline import using_clock


def test_two_variables_by_hand():
    """X_12 <= 1 - e, so it costs ``w_1 w_2 (3 - 1 + e)^2``; the diagonal costs ``w_i^2 (G_ii - 1)^2 / 2``."""
    G = np.array([[2.0, 3.0], [3.0, 0.0]])
    result = lopro.nearest_correlation(G, weights=[2.0, 5.0], min_eigenvalue=0.25, tol=1e-10)
    assert result.success
    np.testing.assert_allclose(result.x, [[1.0, 0.75], [0.75, 1.0]], atol=1e-9)
    assert result.fun == pytest.approx(10.0 * 2.25**2 + 0.5 * (4.0 + 25.0), rel=1e-9)
    assert result.certificate.lower_bound <= 65.125 <= result.fun * (1 + 1e-12)


@pytest.mark.parametrize("least", [0.0, 0.1])
def test_equal_correlations_by_hand(least):
    """Entries of -1 are infeasible: by symmetry all become x with ``1 + (n - 1) x = e``."""
    n = 5
    G = 2.0 * np.eye(n) - 1.0
    result = lopro.nearest_correlation(G, min_eigenvalue=least, tol=1e-10)
    x = (least - 1.0) / (n - 1)
    expected = (1.0 - x) * np.eye(n) + x
    np.testing.assert_allclose(result.x, expected, atol=1e-9)
    assert result.fun == pytest.approx(0.5 * n * (n - 1) * (1.0 + x) ** 2, rel=1e-9)


def test_a_fixed_entry_by_hand():
    """With X_12 = 0.28 kept, ``1 + 0.28 >= 2 x^2`` limits X_13 = X_23 = x to 0.8."""
    G = np.array([[1.0, 0.28, 1.0], [0.28, 1.0, 1.0], [1.0, 1.0, 1.0]])
    fixed = np.zeros((3, 3), dtype=bool)
    fixed[0, 1] = fixed[1, 0] = True
    result = lopro.nearest_correlation(G, fixed=fixed, tol=1e-10)
    assert result.success
    assert result.x[0, 1] == 0.28 == result.x[1, 0]
    np.testing.assert_allclose(result.x[2, :2], [0.8, 0.8], atol=1e-9)
    assert result.fun == pytest.approx(0.08, rel=1e-9)
    # If it is not fixed, the entry changes.
    assert lopro.nearest_correlation(G).fun < 0.07


def test_certificate_and_counts(rng):
    result = lopro.nearest_correlation(uniform(rng, 60), tol=1e-8)
    c = result.certificate
    assert result.status is lopro.Status.CONVERGED
    assert result.message == lopro.Status.CONVERGED.value
    assert 0.0 <= c.gap == result.fun - c.lower_bound
    assert c.relative_gap == pytest.approx(c.gap / result.fun) and c.relative_gap <= 1e-8
    assert c.violation == 0.0 and np.linalg.eigvalsh(result.x)[0] >= -1e-15
    assert 5 <= result.counts.eigendecompositions <= 12
    assert len(result.history) == 1 and result.seconds > 0.0
    assert "lower bound" in str(result)


def test_gap_bounds_the_distance_from_the_solution(rng):
    """Strong convexity: ``|X - X*|^2 <= 2 gap``, also for a run that was stopped early."""
    G = uniform(rng, 30)
    best = lopro.nearest_correlation(G, tol=1e-12)
    ticks = iter(np.arange(0.0, 1000.0, 0.01))
    with using_clock(lambda: next(ticks)):
        early = lopro.nearest_correlation(G, time_limit=0.08)
    assert early.status is lopro.Status.TIME_LIMIT
    assert not early.success
    assert 0.1 < np.linalg.norm(early.x - best.x) <= np.sqrt(2.0 * early.certificate.gap)
    assert early.certificate.lower_bound <= best.fun <= early.fun


def test_without_time_the_identity_and_no_more_claims_than_that(rng):
    G = uniform(rng, 40)
    with using_clock(iter(np.arange(0.0, 1000.0)).__next__):
        result = lopro.nearest_correlation(G, time_limit=0.5)
    assert result.status is lopro.Status.TIME_LIMIT
    assert np.array_equal(result.x, np.eye(40))
    assert result.certificate.lower_bound == 0.0
    assert result.fun == pytest.approx(0.5 * np.linalg.norm(np.eye(40) - G) ** 2)
    assert result.counts.eigendecompositions == 0


def test_entries_that_contradict_each_other_are_proved_to_do_so():
    """0.9, 0.9 and -0.9: the returned multipliers prove infeasibility, checked here by the definition."""
    G, fixed = np.eye(3), np.ones((3, 3), dtype=bool)
    for i, j, entry in ((0, 1, 0.9), (1, 2, 0.9), (0, 2, -0.9)):
        G[i, j] = G[j, i] = entry
    result = lopro.nearest_correlation(G, fixed=fixed)
    assert result.status is lopro.Status.INFEASIBLE and not result.success
    assert np.isnan(result.fun) and "fixed" in result.message
    y = result.ray
    M = np.diag(y[:3])
    for (i, j), value in zip(((1, 0), (2, 0), (2, 1)), y[3:], strict=True):
        M[i, j] = M[j, i] = value / 2.0
    # <M, X> is the same for all X with these entries, and at most largest eigenvalue * trace.
    assert np.sum(M * G) > max(np.linalg.eigvalsh(M)[-1], 0.0) * 3.0 * (1 + 1e-9)


def test_a_correlation_matrix_is_returned_as_it_is(rng):
    G = lopro.nearest_correlation(uniform(rng, 20), min_eigenvalue=0.01).x
    again = lopro.nearest_correlation(G)
    assert np.array_equal(again.x, G) and again.x is not G
    assert again.fun == 0.0 == again.certificate.gap and again.success
    assert again.counts.eigendecompositions == 0
    # For a singular one no proof is possible at the matrix itself; it moves by about rounding.
    B = rng.standard_normal((20, 3))
    B /= np.linalg.norm(B, axis=1)[:, None]
    singular = lopro.nearest_correlation(B @ B.T)
    assert singular.success and np.linalg.norm(singular.x - B @ B.T) < 1e-10


def test_a_fixed_correlation_of_one_has_no_interior():
    """No eigenvalue above 0 can be proved: the violation is stated and charged, never hidden."""
    G = np.array([[1.0, 1.0, 0.9], [1.0, 1.0, 0.1], [0.9, 0.1, 1.0]])
    fixed = np.zeros((3, 3), dtype=bool)
    fixed[0, 1] = fixed[1, 0] = True
    result = lopro.nearest_correlation(G, fixed=fixed)
    # X_13 = X_23 = 1/2 is the solution: 4 entries are off by 0.4.
    assert result.certificate.lower_bound <= 0.32
    assert result.certificate.gap >= 0.0
    assert result.x[0, 1] == 1.0
    assert np.linalg.eigvalsh(result.x)[0] >= -result.certificate.violation
    if result.success:
        assert result.fun == pytest.approx(0.32, rel=1e-6)
        assert result.certificate.violation <= 1e-9


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_units_of_the_weights(rng, unit):
    G, w = uniform(rng, 30), rng.uniform(0.5, 2.0, 30)
    one, other = lopro.nearest_correlation(G, w), lopro.nearest_correlation(G, unit * w)
    assert one.success and other.success
    np.testing.assert_allclose(one.x, other.x, atol=1e-9)
    assert other.fun == pytest.approx(unit**2 * one.fun, rel=1e-6)


def test_weights_of_very_different_size(rng):
    w = np.geomspace(1e-4, 1e4, 25)
    result = lopro.nearest_correlation(uniform(rng, 25), w)
    assert result.success and result.certificate.violation == 0.0


@pytest.mark.parametrize("kept", [False, True])
def test_single_precision_is_kept_and_certified(rng, kept):
    G = uniform(rng, 30).astype(np.float32)
    fixed = np.zeros((30, 30), dtype=bool)
    fixed[3, 4] = fixed[4, 3] = kept
    result = lopro.nearest_correlation(G, fixed=fixed, tol=1e-4)
    assert result.success and result.x.dtype == np.float32
    assert np.array_equal(result.x[fixed], G[fixed])
    assert np.linalg.eigvalsh(result.x.astype(np.float64))[0] >= -1e-15
    exact = lopro.nearest_correlation(G.astype(np.float64), fixed=fixed)
    assert exact.certificate.lower_bound <= result.fun
    np.testing.assert_allclose(result.x, exact.x, atol=1e-4)


def test_large_entries_give_true_claims(rng):
    """A covariance matrix given by mistake: the run may stall, but claims no more than it proves."""
    result = lopro.nearest_correlation(1e9 * uniform(rng, 20))
    assert np.array_equal(np.diag(result.x), np.ones(20))
    assert np.linalg.eigvalsh(result.x)[0] >= -1e-15
    assert 0.0 <= result.certificate.lower_bound <= result.fun


def test_lists_integers_and_frames(rng):
    assert lopro.nearest_correlation([[1, 2], [2, 1]]).fun == pytest.approx(1.0, rel=1e-6)
    pandas = pytest.importorskip("pandas")
    G = uniform(rng, 5)
    framed = lopro.nearest_correlation(pandas.DataFrame(G))
    assert np.array_equal(framed.x, lopro.nearest_correlation(G).x)


def test_input_is_neither_changed_nor_shared(rng):
    G, w = uniform(rng, 10), rng.uniform(1.0, 2.0, 10)
    fixed = np.eye(10, dtype=bool)
    copies = G.copy(), w.copy(), fixed.copy()
    found = lopro.nearest_correlation(G, w, fixed).x
    for array, copy in zip((G, w, fixed), copies, strict=True):
        assert np.array_equal(array, copy)
    assert not np.shares_memory(found, G)
    already = np.eye(4)
    assert not np.shares_memory(lopro.nearest_correlation(already).x, already)


def test_messages_name_argument_and_value(rng):
    G = uniform(rng, 4)
    upper, twos, all_kept = np.triu(np.ones((2, 2))), [[1, 2], [2, 1]], np.ones((2, 2), dtype=bool)
    for kind, match, G_given, options in (
        (ValueError, r"G must be square, got shape \(2, 4\)", G[:2], {}),
        (ValueError, r"G must be symmetric, got G\[0, 1\] = 1 and G\[1, 0\] = 0", upper, {}),
        (ValueError, "weights must be positive, got -2", G, {"weights": [1, 1, 1, -2]}),
        (TypeError, "fixed must be an array of bool", G, {"fixed": np.eye(4)}),
        (ValueError, r"fixed keeps G\[0, 1\] = 2", twos, {"fixed": all_kept}),
        (ValueError, "min_eigenvalue must be below 1.*got 1", G, {"min_eigenvalue": 1.0}),
        (ValueError, "tol .*got -1", G, {"tol": -1.0}),
    ):
        with pytest.raises(kind, match=match):
            lopro.nearest_correlation(G_given, **options)
