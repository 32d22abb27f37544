"""Many features and few samples: no computation uses a matrix over all features."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
from support.metric_known import all_pairs, classes

from lopro.constraints import PSDCone
from lopro.core import arrays
from lopro.metric import PairMultiplier, SparseMetric, diagonal_from
from lopro.metric.all_pairs import AllPairsLoss
from lopro.metric.diagonal import best_diagonal
from lopro.metric.spread import Spread
from lopro.metric.starts import first_start, scaled_identity


@pytest.mark.parametrize("kind", [all_pairs, AllPairsLoss])
def test_blocks_of_the_adjoint_are_those_of_the_matrix(kind, rng, monkeypatch) -> None:
    monkeypatch.setattr("lopro.metric.symmetric.ENTRIES_AT_A_TIME", 7 * 30)
    X, labels = classes(1, 9, 30)
    loss = kind(X, labels)
    for w in (loss.ones(), loss.targets):
        M = loss.adjoint(w)
        np.testing.assert_allclose(loss.diagonal_of_adjoint(w), M.diagonal(), rtol=1e-12)
        for factor in (None, rng.standard_normal((2, 30))):
            found, product = np.zeros((30, 30)), 0.0 if factor is None else factor.T @ factor
            for start, part in loss.adjoint_above_diagonal(w, factor):
                found[start : start + len(part), start:] = part
            above = np.triu(M + product, 1)
            np.testing.assert_allclose(found, above, atol=1e-12 * abs(M).max())
            assert loss.largest_off_diagonal(w, factor) == pytest.approx(abs(above).max())


@pytest.mark.parametrize("kind", [all_pairs, AllPairsLoss])
@pytest.mark.parametrize("trace", [0.0, 0.1])
def test_the_best_diagonal_of_wide_samples(kind, trace) -> None:
    X, labels = classes(2, 12, 60)
    listed = all_pairs(X, labels)
    squares = np.square(X[listed.pairs[0]] - X[listed.pairs[1]])
    a = best_diagonal(kind(X, labels), trace)
    slopes = squares.T @ (squares @ a - listed.targets) / len(squares) + trace
    assert a.min() >= 0.0 and abs(slopes[a > 0.0]).max() <= 1e-5 and slopes.min() >= -1e-5
    if trace == 0.0:
        _, residual = scipy.optimize.nnls(squares, listed.targets)
        assert np.linalg.norm(squares @ a - listed.targets) == pytest.approx(residual, rel=1e-6)
    # The least weight with a diagonal metric: the largest entry of M at its residuals.
    M = listed.adjoint(listed.residuals(np.diag(a)) / listed.count)
    np.fill_diagonal(M, 0.0)
    assert diagonal_from(kind(X, labels), trace) == pytest.approx(abs(M).max(), rel=1e-9)


@pytest.mark.parametrize("factor", [3.0, -3.0])
def test_the_spread_of_many_features(factor: float) -> None:
    """Its largest entry, of either sign, is that of two large features, one a multiple of the other."""
    X, labels = classes(3, 6, 450)
    X[:, 300] *= 100.0
    X[:, 7] = factor * X[:, 300]
    loss = all_pairs(X, labels)
    spread = Spread.of(loss, 0.1)
    M1 = loss.adjoint(loss.ones())
    np.testing.assert_allclose(spread.diagonal, M1.diagonal(), rtol=1e-12)
    np.fill_diagonal(M1, 0.0)
    assert spread.largest == pytest.approx(abs(M1).max(), rel=1e-12)
    assert spread.rows == pytest.approx(np.linalg.norm(M1, axis=1).max(), rel=1e-12)


def test_values_on_the_features_in_use(rng) -> None:
    X, labels = classes(4, 6, 450)
    f = SparseMetric(all_pairs(X, labels), 0.1, 0.2, 0.3)
    A, used = np.zeros((450, 450)), np.array([3, 77, 400])
    B = rng.standard_normal((3, 3))
    A[np.ix_(used, used)] = B @ B.T
    parts = sum(float(part.value(A)) for part in f.parts)
    assert f.value(A) == pytest.approx(parts, rel=1e-12)
    assert f.value(0.0 * A) == pytest.approx(f.loss.value(0.0 * A), rel=1e-14)


def test_the_value_of_the_first_start_counts_every_term(monkeypatch) -> None:
    """The rank-one start is taken exactly where its value is the lower one."""
    X, labels = classes(5, 8, 20)
    loss = all_pairs(X, labels)
    c, v = scaled_identity(loss), np.zeros(20)
    v[:3] = 0.1
    monkeypatch.setattr("lopro.metric.starts.rank_one_direction", lambda loss: v)
    for weights in ((0.1, 0.0, 0.0), (0.1, 3.0, 0.0), (0.1, 0.0, 2.0), (50.0, 0.0, 0.0)):
        f = SparseMetric(loss, *weights)
        lower = f.value(np.outer(v, v)) < f.value(c * np.eye(20))
        assert (first_start(f).vector is not None) == lower
    assert np.array_equal(first_start(f).on(np.array([1, 2])), c * np.eye(2))


@pytest.mark.parametrize("trace", [0.0, 0.05])
@pytest.mark.parametrize("size", [0.01, 1.0, 30.0])
def test_the_bound_of_weights_in_the_box(rng, trace, size) -> None:
    """Checked by the definition: the box holds ``M(w)`` off the diagonal, which leaves a diagonal slack."""
    X, labels = classes(6, 8, 12)
    loss = all_pairs(X, labels)
    tau = 0.02
    f = SparseMetric(loss, tau, trace)
    w = size * (loss.targets - 1.0 + 0.3 * rng.standard_normal(loss.count)) / loss.count
    multiplier = PairMultiplier.of_factor(w, np.zeros((0, 12)))
    bound, _ = f.dual_bound(
        PSDCone(12), np.zeros((12, 12)), multiplier, f.value(np.zeros((12, 12)))
    )
    # The same by hand.
    M1, M = loss.adjoint(loss.ones()), loss.adjoint(w)
    s = max(0.0, ((M.diagonal() - trace) / M1.diagonal()).max())
    off = ~np.eye(12, dtype=bool)
    most = min(1.0, tau / abs((M - s * M1)[off]).max())
    along, square = loss.target_terms(w - s)
    c = min(most, max(along, 0.0) / (loss.count * square))
    expected = c * along - 0.5 * c * c * loss.count * square if along > 0.0 else 0.0
    assert bound == pytest.approx(expected, rel=1e-9, abs=1e-15)
    shifted = loss.adjoint(c * (w - s))
    assert abs(shifted[off]).max() <= tau * (1 + 1e-12)
    assert (trace - shifted.diagonal()).min() >= -1e-12
    assert bound <= f.value(0.001 * np.eye(12)) and bound <= f.value(np.zeros((12, 12)))


def test_large_copies_leave_rows_of_zeros_unwritten(monkeypatch) -> None:
    monkeypatch.setattr(arrays, "_LARGE_BYTES", 100.0)
    x = np.zeros((200, 5))
    x[7, 2], x[150, 0] = np.nan, -3.0
    for given in (x, x + 1.0, np.asfortranarray(x)):
        found = arrays.copy(given)
        assert np.array_equal(found, given, equal_nan=True) and found.dtype == given.dtype
        assert not np.shares_memory(found, given)
