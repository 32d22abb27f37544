"""The trace: the optimum of an independent solver, bounds by hand, features and directions that vanish."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.metric_cases import psd
from support.metric_known import all_pairs, by_clarabel, classes, value

import lopro
from lopro.constraints import PSDCone
from lopro.metric import PairMultiplier, SparseMetric, diagonal_from
from lopro.metric import dual as dual_module
from lopro.metric import pairs as pairs_module
from lopro.metric.all_pairs import AllPairsLoss
from lopro.metric.diagonal import best_diagonal

Matrix = Any


@pytest.mark.parametrize("trace", [1e-3, 0.05, 1.0])
@pytest.mark.parametrize("l1", [0.0, 0.02])
@pytest.mark.parametrize("shape", [(14, 4), (6, 9), (30, 6)])
def test_clarabel_agrees(shape: tuple[int, int], l1: float, trace: float) -> None:
    X, labels = classes(sum(shape), *shape)
    objective = SparseMetric(all_pairs(X, labels), l1, trace)
    optimum, _ = by_clarabel(objective)
    result = lopro.learn_metric(X, labels, l1=l1, trace=trace, tol=1e-6)
    assert result.success, str(result)
    assert result.fun == pytest.approx(value(objective, result.x), rel=1e-9)
    assert result.fun == pytest.approx(optimum, rel=3e-6, abs=1e-9)
    assert result.certificate.lower_bound <= optimum * (1.0 + 1e-7) + 1e-9
    assert result.loss == pytest.approx(
        value(SparseMetric(objective.loss, 0.0), result.x), rel=1e-9
    )


@pytest.mark.parametrize(
    "method", [lopro.FeatureWorkingSet(all_below=0, join=2), lopro.ConsensusADMM()]
)
def test_other_methods_agree(method: Any) -> None:
    """A working set that begins small, whose multiplier is completed; and ADMM on all features."""
    X, labels = classes(4, 10, 14)
    objective = SparseMetric(all_pairs(X, labels), 0.02, 0.05)
    optimum, _ = by_clarabel(objective)
    result = lopro.learn_metric(X, labels, l1=0.02, trace=0.05, tol=1e-4, method=method)
    assert result.success and result.fun == pytest.approx(optimum, rel=2e-4)


def test_bounds_by_hand(rng: np.random.Generator) -> None:
    """``S + s I`` psd: scaled weights, or a charge for the slack. Neither bound exceeds the optimum."""
    objective = SparseMetric(all_pairs(*classes(1, 9, 5)), 0.03, 0.2)
    loss, n = objective.loss, objective.loss.count
    optimum, _ = by_clarabel(objective)
    Z = loss.X[loss.pairs[0]] - loss.X[loss.pairs[1]]
    scaled = 0
    for _ in range(60):
        w = 10.0 ** rng.uniform(-3, 0) * (loss.targets - 1.0 + 0.3 * rng.standard_normal(n)) / n
        G = 0.05 * rng.standard_normal((5, 5))
        M = Z.T @ (w[:, None] * Z)
        Y = np.clip(M - 0.2 * np.eye(5) + G + G.T, -0.03, 0.03)
        np.fill_diagonal(Y, 0.0)
        S = Y + 0.2 * np.eye(5) - M
        s = max(0.0, -float(np.linalg.eigvalsh(S)[0]))
        c = np.clip((loss.targets @ w) / (n * (w @ w)), 0.0, 0.2 / (0.2 + s))
        feasible = c * (loss.targets @ w) - 0.5 * n * c**2 * (w @ w)
        paid = loss.targets @ w - 0.5 * n * (w @ w) - s * 0.7 / 0.2
        found = dual_module._by_trace(loss, 0.2, objective.spread, S, w, 0.7)
        assert [v for v, _ in found] == pytest.approx([feasible, paid], rel=1e-7, abs=1e-10)
        bound, _ = objective.dual_bound(
            PSDCone(5), 0.0 * G, PairMultiplier(-(G + G.T), 0.0, weights=w), 2.0
        )
        assert bound <= optimum * (1.0 + 1e-7)
        scaled += c == 0.2 / (0.2 + s) < 1.0
    assert scaled >= 5


def test_features_and_directions_vanish() -> None:
    """One feature of thirty separates the classes; without the trace the diagonal is free."""
    rng = np.random.default_rng(0)
    labels = np.arange(40) % 2
    X = rng.standard_normal((40, 30))
    X[:, 7] += 8.0 * labels
    results = [
        lopro.learn_metric(X, labels, l1=0.5, tol=1e-4, trace=trace) for trace in (0.0, 0.2, 1.0)
    ]
    features = [len(result.features) for result in results]
    # Equal to the numbers of features of solutions to 1e-9.
    assert features == [14, 10, 5] and 7 in results[2].features
    ranks = [len(result.factor) for result in results]
    assert ranks[0] > ranks[1] > ranks[2] <= 3
    unused = np.delete(np.arange(30), results[2].features)
    assert not results[2].x[unused].any()


def test_the_trace_is_in_the_units_of_the_samples() -> None:
    X, labels = classes(13, 20, 4)
    result = lopro.learn_metric(X, labels, l1=0.01, trace=0.05, tol=1e-6)
    other = lopro.learn_metric(1e3 * X, labels, l1=0.01e6, trace=0.05e6, tol=1e-6)
    assert other.success and other.fun == pytest.approx(result.fun, rel=1e-5)


@pytest.mark.parametrize("trace", [0.0, 0.1])
def test_the_best_diagonal(trace: float) -> None:
    scipy = pytest.importorskip("scipy")
    X, labels = classes(6, 25, 7)
    loss, moments = all_pairs(X, labels), AllPairsLoss(X, labels)
    squares = np.square(X[loss.pairs[0]] - X[loss.pairs[1]])
    np.testing.assert_allclose(loss.diagonal_normal(), squares.T @ squares, rtol=1e-12)
    np.testing.assert_allclose(moments.diagonal_normal(), squares.T @ squares, rtol=1e-11)
    a = best_diagonal(loss, trace)
    np.testing.assert_allclose(best_diagonal(moments, trace), a, atol=1e-6 * a.max())
    if trace == 0.0:
        best, _ = scipy.optimize.nnls(squares, loss.targets)
        np.testing.assert_allclose(a, best, atol=1e-5 * best.max())
    slopes = squares.T @ (squares @ a - loss.targets) / len(squares) + trace
    assert abs(slopes[a > 0.0]).max() <= 1e-4 and slopes.min() >= -1e-4


@pytest.mark.parametrize("trace", [0.0, 0.05])
def test_the_least_weight_with_a_diagonal_metric(trace: float) -> None:
    X, labels = classes(8, 25, 4)
    limit = diagonal_from(all_pairs(X, labels), trace)

    def off(l1: float) -> float:
        A = lopro.learn_metric(X, labels, l1=l1, trace=trace, tol=1e-8).x
        return float(abs(A - np.diag(np.diag(A))).max())

    assert off(1.02 * limit) <= 1e-6 < 1e-4 < off(0.9 * limit)


@pytest.mark.parametrize("moments", [False, True])
def test_auto_is_a_tenth_of_it(moments: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if moments:
        monkeypatch.setattr(pairs_module, "LISTED_UP_TO", 0)
    X, labels = classes(8, 25, 4)
    for unit in (1.0, 1e-4, 1e5):
        result = lopro.learn_metric(unit * X, labels, l1="auto")
        limit = diagonal_from(all_pairs(X, labels))
        assert result.success and result.l1 == pytest.approx(0.1 * limit * unit**2, rel=1e-4)
    assert lopro.learn_metric(X, labels, l1=0.3).l1 == 0.3


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"l1": "best"}, TypeError, "l1"),
        ({"trace": -1.0}, ValueError, "trace must be"),
        ({"trace": "1"}, TypeError, "trace must be"),
    ],
)
def test_bad_weights_are_named(options: dict[str, Any], error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        lopro.learn_metric(*classes(8, 25, 4), **options)


def test_random_points_respect_the_bound(rng: np.random.Generator) -> None:
    X, labels = classes(3, 12, 6)
    result = lopro.learn_metric(X, labels, l1=0.02, trace=0.1, tol=1e-6)
    objective = SparseMetric(all_pairs(X, labels), 0.02, 0.1)
    for _ in range(200):
        near = result.x + 0.01 * psd(rng, 6, 2)
        assert value(objective, near) >= result.certificate.lower_bound
