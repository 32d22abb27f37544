"""All pairs without a list of them: every result equals that of the list."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.metric_known import classes

import lopro
from lopro.core.counting import Counts, counting
from lopro.metric import PairLoss, SparseMetric
from lopro.metric import pairs as pairs_module
from lopro.metric.all_pairs import AllPairsLoss
from lopro.metric.loss_step import ByEntries, Iterative, loss_step

Matrix = Any

SHAPES = [(12, 4, 3), (30, 7, 2), (5, 6, 5), (40, 3, 12), (2, 1, 2)]


def both(shape: tuple[int, int, int], seed: int = 0) -> tuple[AllPairsLoss, PairLoss]:
    N, d, groups = shape
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, groups, N)
    labels[:2] = 0, 1
    X = rng.standard_normal((N, d)) * rng.uniform(0.1, 5.0, d)
    first, second = np.triu_indices(N, 1)
    targets = np.where(labels[first] == labels[second], 0.0, 2.0)
    return AllPairsLoss(X, labels), PairLoss(X, (first, second), targets)


def symmetric(rng: np.random.Generator, d: int) -> Matrix:
    G = rng.standard_normal((d, d))
    return G + G.T


@pytest.mark.parametrize("shape", SHAPES)
def test_it_is_the_loss_of_the_list(shape: tuple[int, int, int], rng: np.random.Generator) -> None:
    moments, listed = both(shape)
    assert moments.count == listed.count
    for _ in range(3):
        A = symmetric(rng, shape[1])
        assert moments.value(A) == pytest.approx(listed.value(A), rel=1e-12)
        slope = listed.subgradient(A)
        np.testing.assert_allclose(moments.subgradient(A), slope, atol=1e-10 * abs(slope).max())
        np.testing.assert_allclose(
            moments.normal(A), listed.normal(A), atol=1e-10 * abs(listed.normal(A)).max()
        )
        # The list that it produces uses its own order of the samples.
        assert moments.listed().value(A) == pytest.approx(listed.value(A), rel=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_weights_of_pairs_are_those_of_the_list(
    shape: tuple[int, int, int], rng: np.random.Generator
) -> None:
    """In all operations of the dual: sums, multiples, inner products and matrices."""
    moments, listed = both(shape)
    A, B = symmetric(rng, shape[1]), symmetric(rng, shape[1])
    w, v = (
        0.3 * f.residuals(A) - 0.7 + f.distances(B) / 5.0 - 0.1 * f.targets + 2.0 * f.ones()
        for f in (moments, listed)
    )
    np.testing.assert_allclose(moments.target_terms(w), listed.target_terms(v), rtol=1e-11)
    M = listed.adjoint(v)
    np.testing.assert_allclose(moments.adjoint(w), M, atol=1e-11 * abs(M).max())
    assert listed.largest(v) <= moments.largest(w) <= 20.0 * listed.largest(v)
    for name in ("total_target", "target_size", "target_square"):
        assert getattr(moments, name) == pytest.approx(getattr(listed, name), rel=1e-14)
    np.testing.assert_allclose(moments.identity_terms(), listed.identity_terms(), rtol=1e-12)
    for f, weights in ((moments, w), (listed, v)):
        X, Y = f.factors(weights)
        np.testing.assert_allclose(X.T @ Y, M, atol=1e-11 * abs(M).max())


@pytest.mark.parametrize("shape", SHAPES)
def test_the_smoothness_is_a_close_upper_bound(shape: tuple[int, int, int]) -> None:
    moments, listed = both(shape)
    sharp = listed.smoothness().value
    assert sharp * (1.0 - 1e-9) <= moments.smoothness().value <= sharp * (1.0 + 1e-5)


def test_sides() -> None:
    moments, _ = both((30, 7, 2))
    sides = moments.sides()
    assert set(sides) == {-1.0, 1.0}
    np.testing.assert_array_equal(sides == sides[0], moments._classes == moments._classes[0])
    assert both((12, 4, 3))[0].sides() is None


@pytest.mark.parametrize("way", [ByEntries, Iterative])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_loss_step_is_that_of_the_list(
    shape: tuple[int, int, int], way: Any, rng: np.random.Generator
) -> None:
    moments, listed = both(shape)
    V = symmetric(rng, shape[1])
    wished = ByEntries(listed)(V, 0.05)
    np.testing.assert_allclose(way(moments)(V, 0.05), wished, atol=1e-7 * abs(V).max())
    assert not isinstance(loss_step(moments), type(None))


def test_the_hessian_comes_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    moments, _ = both((30, 7, 2))
    whole = ByEntries(moments)._hessian
    monkeypatch.setattr("lopro.metric.loss_step._BLOCK", 7)
    np.testing.assert_allclose(ByEntries(moments)._hessian, whole, rtol=1e-12)


@pytest.mark.parametrize("l1", [0.0, 0.01, 1.0])
@pytest.mark.parametrize(("shape", "units"), [((30, 5), 1.0), ((30, 5), 1e5), ((12, 20), 1.0)])
def test_learning_gives_the_same(
    shape: tuple[int, int], units: float, l1: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, labels = classes(3, *shape, groups=3)
    X = X * np.geomspace(1.0, units, shape[1])
    listed = lopro.learn_metric(X, labels, l1=l1, tol=1e-3)
    monkeypatch.setattr(pairs_module, "LISTED_UP_TO", 0)
    moments = lopro.learn_metric(X, labels, l1=l1, tol=1e-3)
    assert listed.success and moments.success
    scale = max(listed.fun, 1e-6)
    assert abs(moments.fun - listed.fun) <= 2e-3 * scale
    # Each bound holds for the point of the other.
    assert moments.certificate.lower_bound <= listed.fun + 1e-9 * scale
    assert listed.certificate.lower_bound <= moments.fun + 1e-9 * scale
    problem = SparseMetric(pairs_module.pair_loss(X, labels, None, None, 10**6, None).listed(), l1)
    assert problem.value(moments.x) == pytest.approx(moments.fun, rel=1e-7, abs=1e-9)


def test_learning_by_conjugate_gradients_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """As above 70 features, where the system of the loss step is too large to be factored."""
    X, labels = classes(3, 60, 8, groups=3)
    expected = lopro.learn_metric(X, labels, l1=0.01, tol=1e-5)
    monkeypatch.setattr(pairs_module, "LISTED_UP_TO", 0)
    monkeypatch.setattr("lopro.metric.loss_step.LARGEST_SYSTEM", 10)
    result = lopro.learn_metric(X, labels, l1=0.01, tol=1e-5)
    assert result.success and result.fun == pytest.approx(expected.fun, rel=2e-5)


def test_labels_mean_all_pairs_of_any_number_of_samples() -> None:
    """Two copies of the same samples: all pairs weigh the copies alike, so that the optimum is known."""
    X, labels = classes(5, 1500, 4, groups=3)
    twice = lopro.learn_metric(np.vstack([X, X]), np.tile(labels, 2), l1=0.01, tol=1e-6)
    assert twice.success
    # n pairs become 4 n, and N pairs of a sample with its copy are added, whose target 0 is met.
    n, n2 = 1500 * 1499 / 2, 3000 * 2999 / 2
    once = lopro.learn_metric(X, labels, l1=0.01 * n2 / (4 * n), tol=1e-6)
    assert twice.fun == pytest.approx(once.fun * 4 * n / n2, rel=3e-6)
    np.testing.assert_allclose(twice.x, once.x, atol=2e-3 * abs(once.x).max())


def test_a_limit_of_pairs_still_draws_them() -> None:
    X, labels = classes(5, 300, 4)
    one, same, other = (
        lopro.learn_metric(X, labels, l1=0.01, max_pairs=500, seed=seed).fun for seed in (1, 1, 2)
    )
    assert one == same != other


@pytest.mark.parametrize("method", [None, lopro.ConsensusADMM()])
@pytest.mark.parametrize("N", [30, 400])
def test_single_precision(N: int, method: Any) -> None:
    X, labels = classes(5, N, 6)
    result = lopro.learn_metric(X.astype(np.float32), labels, l1=0.01, tol=1e-3, method=method)
    double = lopro.learn_metric(X, labels, l1=0.01, tol=1e-3)
    assert result.success and result.x.dtype == np.float32
    assert result.fun == pytest.approx(double.fun, rel=3e-3)


def test_other_methods_and_the_conic_form() -> None:
    """They use a smooth function with a gradient, or the list where they need one."""
    X, labels = classes(5, 220, 3)
    best = lopro.learn_metric(X, labels, l1=0.02, tol=1e-6)
    for method in (lopro.LoPGD(), lopro.baselines.ProjectedSubgradient()):
        result = lopro.learn_metric(X, labels, l1=0.02, tol=0.05, method=method, max_iter=300)
        assert result.certificate.lower_bound <= best.fun <= result.fun * (1.0 + 1e-6)


def test_few_products_by_conjugate_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    """The preconditioner: on Gaussian samples a loss step takes a few products, not hundreds."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 80)) @ np.diag(np.geomspace(1.0, 30.0, 80))
    loss = AllPairsLoss(X, np.arange(600) % 2)
    step = Iterative(loss)
    V = symmetric(rng, 80)

    def products(beta: float) -> int:
        counts = Counts()
        step._last = None
        with counting(counts):
            step(V, beta * step.curvature)
        return counts.matvecs

    with_it = [products(beta) for beta in (1e-6, 1e-4, 1e-2)]
    monkeypatch.setattr(Iterative, "_preconditioned", lambda self, R, beta: R)
    without = [products(beta) for beta in (1e-6, 1e-4, 1e-2)]
    assert max(with_it) <= 60 and without[:2] == [201, 201] and without[2] > 2 * with_it[2]


def test_a_time_limit_holds_during_the_set_up() -> None:
    X, labels = classes(5, 30_000, 60)
    result = lopro.learn_metric(X, labels, l1=0.01, tol=1e-9, time_limit=0.3)
    assert result.status is lopro.Status.TIME_LIMIT
    # The Hessian of the loss alone is 100 times as much work, of which little was done.
    assert result.iterations == 0
