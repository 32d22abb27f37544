"""Runs of `lopro.learn_metric`: starts, seeds, budgets, interruptions and counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.metric_known import all_pairs, check, classes, constructed, value

import lopro
from lopro import Status
from lopro.metric.api import metric_problem
from lopro.metric.consensus import Consensus
from lopro.metric.pairs import _chosen_pairs

Matrix = Any


@pytest.mark.parametrize("method", [lopro.FeatureWorkingSet(), lopro.ConsensusADMM(report=10)])
def test_a_good_start_is_used(method: Any) -> None:
    X, labels = classes(14, 40, 8, groups=3)
    options: dict[str, Any] = {"l1": 0.01, "method": method}
    best = lopro.learn_metric(X, labels, tol=1e-8, **options)
    assert best.success
    # The first check of each run, before ADMM is independent of its start.
    funs = [
        lopro.learn_metric(X, labels, A0=A0, tol=1e-8, max_iter=3, **options).fun
        for A0 in (best.x, None, 0.01 * np.eye(8), 1e6 * np.eye(8))
    ]
    assert funs[0] < funs[1] < funs[2]
    assert funs[0] == pytest.approx(best.fun, rel=1e-2)
    # A start that is worse than the zero matrix is ignored.
    assert funs[3] == funs[1]


def test_a_start_without_the_norm_in_more_features_than_samples() -> None:
    X, labels = classes(15, 6, 9)
    best = lopro.learn_metric(X, labels, l1=0.0, tol=1e-8)
    again = lopro.learn_metric(X, labels, l1=0.0, tol=1e-4, A0=best.x)
    assert again.success and again.iterations <= best.iterations
    near = lopro.learn_metric(X, labels, l1=0.0, tol=1e-8, A0=best.x, max_iter=1)
    assert near.fun <= best.fun + 1e-9


def test_a_start_of_another_kind() -> None:
    """A0 need not be psd, nor come from the library or precision of the samples."""
    X, labels = classes(16, 15, 4)
    G = np.random.default_rng(0).standard_normal((4, 4))
    best = lopro.learn_metric(X, labels, l1=0.02, tol=1e-6)
    for A0 in (G + G.T, np.zeros((4, 4)), np.eye(4, dtype=np.float32), np.eye(4).tolist()):
        result = lopro.learn_metric(X, labels, l1=0.02, tol=1e-6, A0=A0)
        check(result, X, labels, 0.02)
        assert result.success and result.fun == pytest.approx(best.fun, rel=2e-6)


def test_sampled_pairs_depend_on_the_seed_alone() -> None:
    X, labels = classes(17, 60, 4)
    options: dict[str, Any] = {"l1": 0.02, "max_pairs": 150, "tol": 1e-6}
    one = lopro.learn_metric(X, labels, seed=3, **options)
    same = lopro.learn_metric(X, labels, seed=np.random.default_rng(3), **options)
    other = lopro.learn_metric(X, labels, seed=4, **options)
    np.testing.assert_array_equal(one.x, same.x)
    assert one.fun == same.fun != other.fun
    # With all pairs there is nothing to draw.
    everything = {**options, "max_pairs": 60 * 59 // 2}
    first = lopro.learn_metric(X, labels, seed=1, **everything)
    np.testing.assert_array_equal(first.x, lopro.learn_metric(X, labels, seed=2, **everything).x)


@pytest.mark.parametrize(("N", "most"), [(5, 2), (5, 9), (6, 15), (300, 40), (300, 20_000)])
def test_sampled_pairs_are_pairs_without_repetition(N: int, most: int) -> None:
    hits = np.zeros((N, N), dtype=int)
    for seed in range(20 if N < 300 else 3):
        i, j = _chosen_pairs(N, most, np.random.default_rng(seed))
        assert len(i) == len(j) == min(most, N * (N - 1) // 2)
        assert np.all((i >= 0) & (i < j) & (j < N))
        assert len(set(zip(i.tolist(), j.tolist(), strict=True))) == len(i)
        hits[i, j] += 1
    if N < 300:
        assert np.all(hits[np.triu_indices(N, 1)] > 0)  # every pair is drawn by some seed


def test_pairs_of_very_many_samples() -> None:
    N = 3_000_000
    i, j = _chosen_pairs(N, 10_000, np.random.default_rng(0))
    assert len(i) == 10_000 and np.all((i >= 0) & (i < j) & (j < N))
    assert abs(i.mean() / N - 1 / 3) < 0.02 and abs(j.mean() / N - 2 / 3) < 0.02


METHODS = [
    lopro.FeatureWorkingSet(),
    lopro.FeatureWorkingSet(all_below=0, join=2),
    lopro.ConsensusADMM(),
]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("iterations", [1, 7, 50, 51, 120])
def test_an_iteration_limit_is_kept(iterations: int, method: Any) -> None:
    X, labels = classes(18, 30, 10, groups=3)
    result = lopro.learn_metric(X, labels, l1=0.01, tol=1e-14, max_iter=iterations, method=method)
    check(result, X, labels, 0.01)
    assert result.status is Status.MAX_ITER and not result.success
    assert result.iterations == iterations
    assert result.certificate.relative_gap > 1e-14


@pytest.mark.parametrize("method", METHODS)
def test_a_time_limit_is_kept(method: Any) -> None:
    X, labels = classes(19, 30, 12, groups=3)
    result = lopro.learn_metric(X, labels, l1=0.01, tol=0.0, time_limit=0.02, method=method)
    check(result, X, labels, 0.01)
    assert result.status in (Status.TIME_LIMIT, Status.STALLED)


@pytest.mark.parametrize("method", METHODS)
def test_a_run_with_tolerance_zero_ends(method: Any) -> None:
    """At the limits of rounding a run must end, and must not claim success."""
    X, labels = classes(20, 12, 4)
    result = lopro.learn_metric(X, labels, l1=0.02, tol=0.0, max_iter=20_000, method=method)
    check(result, X, labels, 0.02)
    assert result.status in (Status.STALLED, Status.MAX_ITER)
    assert result.certificate.relative_gap <= 1e-8


class Interrupter:
    """Raises `KeyboardInterrupt` at its n-th call."""

    def __init__(self, n: int) -> None:
        self.left = n

    def __call__(self, iterate: Any) -> None:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [1, 2, 50, 51, 120])
def test_ctrl_c_returns_the_best_point(
    method: Any, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At whichever iteration it comes."""
    X, labels = classes(21, 20, 8, groups=3)
    interrupt, step = Interrupter(n), Consensus.step

    def pressed(self: Consensus) -> None:
        interrupt(None)
        step(self)

    problem = metric_problem(all_pairs(X, labels), 0.01)
    with monkeypatch.context() as patch:
        patch.setattr(Consensus, "step", pressed)
        result = lopro.solve(problem, method=method, tol=1e-13)
    assert result.status is Status.INTERRUPTED and not result.success
    assert np.linalg.eigvalsh(result.x)[0] >= -1e-12
    assert result.fun == pytest.approx(value(problem.objective, result.x), rel=1e-9)
    assert result.certificate.lower_bound <= result.fun


def test_ctrl_c_in_a_callback_is_not_swallowed() -> None:
    """It is the user's code that was interrupted, not the run."""
    X, labels = classes(21, 20, 8, groups=3)
    with pytest.raises(KeyboardInterrupt):
        lopro.learn_metric(X, labels, l1=0.01, tol=0.0, callback=Interrupter(1))


def test_a_callback_stops_the_run() -> None:
    X, labels = classes(22, 20, 6, groups=3)
    seen: list[Any] = []

    def stop(iterate: Any) -> bool:
        seen.append(iterate)
        return len(seen) == 2

    result = lopro.learn_metric(X, labels, l1=0.01, tol=0.0, callback=stop)
    assert result.status is Status.STOPPED and len(seen) == 2
    check(result, X, labels, 0.01)
    assert result.fun == min(state.fun for state in seen)


def test_iterating_by_hand() -> None:
    problem = metric_problem(all_pairs(*classes(23, 20, 6, groups=3)), 0.01)
    run = lopro.iterate(problem, method=lopro.FeatureWorkingSet(), tol=1e-7)
    states = list(run)
    result = run.result()
    assert result.success and len(states) == len(result.history)
    bounds = [state.lower_bound for state in states]
    assert bounds == sorted(bounds)
    for state in states:
        assert state.lower_bound <= result.fun <= state.fun * (1.0 + 1e-12)
        assert np.linalg.eigvalsh(state.x)[0] >= -1e-12
    again = lopro.solve(problem, method=lopro.FeatureWorkingSet(), tol=1e-7)
    np.testing.assert_array_equal(result.x, again.x)


def test_counts_match_the_work() -> None:
    X, labels = classes(24, 20, 6, groups=3)
    admm = lopro.learn_metric(X, labels, l1=0.01, tol=1e-5, method=lopro.ConsensusADMM())
    counts = admm.counts
    assert counts.projections == admm.iterations > 0
    assert counts.eigendecompositions >= admm.iterations
    small = lopro.learn_metric(X, labels, l1=0.01, tol=1e-5)
    assert small.counts.projections == 0
    assert small.counts.eigendecompositions >= small.iterations > 0
    assert small.counts.gradients == 0
    assert "FeatureWorkingSet" in small.method and "lower bound" in str(small)


def test_other_methods_are_certified_too() -> None:
    X, labels = classes(25, 20, 4)
    best = lopro.learn_metric(X, labels, l1=0.02, tol=1e-6)
    for method in (lopro.LoPGD(), lopro.baselines.ProjectedSubgradient()):
        result = lopro.learn_metric(X, labels, l1=0.02, tol=0.05, method=method, max_iter=1500)
        check(result, X, labels, 0.02)
        assert np.isfinite(result.certificate.relative_gap)
        assert result.certificate.lower_bound <= best.fun <= result.fun * (1.0 + 1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_learn_metric_finds_the_constructed_optimum(seed: int) -> None:
    """Its targets make the chosen matrix optimal; some of them are negative."""
    known = constructed(np.random.default_rng(seed), 3, 3, 2, slack=10.0)
    assert known.targets.min() < 0.0
    result = lopro.learn_metric(pairs=known.Z, targets=known.targets, l1=known.tau, tol=1e-8)
    assert result.success and result.fun == pytest.approx(known.optimum, rel=1e-6)
    np.testing.assert_allclose(result.x, known.A, atol=1e-4 * np.linalg.norm(known.A))
