"""Completing the multiplier of a small problem: the slack is psd, its slope stays in the box."""

from __future__ import annotations

from typing import Any

import array_api_strict
import numpy as np
import pytest
from metric.known import all_pairs, classes, constructed

from lopro.constraints import PSDCone
from lopro.metric import PairMultiplier, SparseMetric
from lopro.metric.completion import Completion

Matrix = Any


def completed(M: Matrix, tau: float, theta: float, most: int = 5000) -> Completion:
    search = Completion(M, tau)
    for _ in range(most):
        if search.feasible(theta):
            return search
        search.step(theta)
    raise AssertionError(f"not feasible after {most} steps, apart by {search.apart}")


def check(search: Completion, M: Matrix, tau: float, theta: float) -> None:
    slack = np.asarray(search.slack(theta))
    np.testing.assert_allclose(slack, slack.T, atol=1e-14 * abs(slack).max())
    Y = slack + theta * M
    assert abs(np.diag(Y)).max() <= 1e-14 * abs(M).max()
    assert abs(Y).max() <= tau * (1.0 + 1e-12)
    root = 1.0 / np.sqrt(theta * np.abs(np.diag(M)))
    assert np.linalg.eigvalsh(root[:, None] * slack * root)[0] >= -1e-8


@pytest.mark.parametrize("theta", [0.5, 0.9, 0.99, 0.999])
@pytest.mark.parametrize("seed", range(4))
def test_optimal_weights_are_completed(seed: int, theta: float) -> None:
    """A completion exists for them: the slack of the solution, scaled."""
    known = constructed(np.random.default_rng(seed), 10, 4, 2)
    objective = known.problem.objective
    M = objective.loss.adjoint(known.w)
    search = completed(M, known.tau, theta)
    check(search, M, known.tau, theta)
    # It proves the share of the optimum that was promised: b(theta w), exactly feasible.
    multiplier = PairMultiplier(-search.slack(theta), 0.0, theta * known.w)
    bound, source = objective.dual_bound(PSDCone(10), known.A, multiplier, known.optimum)
    n, t, w = len(known.w), known.targets, theta * known.w
    assert bound >= float(t @ w - 0.5 * n * w @ w) * (1.0 - 1e-6)
    assert bound <= known.optimum * (1.0 + 1e-12) and "dual point" in source


def test_less_can_be_given_up_from_one_search_to_the_next(rng: np.random.Generator) -> None:
    known = constructed(rng, 10, 4, 2)
    M = known.problem.objective.loss.adjoint(known.w)
    search = completed(M, known.tau, 0.9)
    for theta in (0.97, 0.99, 0.997):
        for _ in range(5000):
            if search.feasible(theta):
                break
            search.step(theta)
        check(search, M, known.tau, theta)


def test_what_has_no_completion_is_not_declared_feasible(rng: np.random.Generator) -> None:
    """|M_01| > tau + sqrt(M_00 M_11): no Y in the box will do, for any theta near 1."""
    M = np.array([[-1.0, 2.0], [2.0, -1.0]])
    search = Completion(M, 0.5)
    for _ in range(500):
        search.step(0.9)
        assert not search.feasible(0.9)
    assert search.apart > 0.1 and np.all(np.asarray(search.excess) > 0.0)
    # Half of it would be: 1 <= 0.5 + 0.5.
    check(completed(M, 0.5, 0.45), M, 0.5, 0.45)


def test_the_excess_points_at_the_features_that_are_missing(rng: np.random.Generator) -> None:
    known = constructed(rng, 10, 4, 2)
    M = known.problem.objective.loss.adjoint(known.w)
    M[2, 7] = M[7, 2] = 3.0 * np.abs(M).max()
    search = Completion(M, known.tau)
    for _ in range(300):
        search.step(0.95)
    assert set(np.argsort(-np.asarray(search.excess))[:2]) == {2, 7}


def test_features_in_which_nothing_differs() -> None:
    X, labels = classes(0, 10, 4)
    X[:, 1] = 0.0
    objective = SparseMetric(all_pairs(X, labels), 0.05)
    M = objective.loss.adjoint(-np.ones(45))
    search = completed(M, 0.05, 0.9)
    slack = search.slack(0.9)
    assert not slack[1].any() and np.linalg.eigvalsh(slack)[0] >= -1e-9


def test_other_libraries_and_inputs_kept(rng: np.random.Generator) -> None:
    known = constructed(rng, 6, 3, 2)
    M = known.problem.objective.loss.adjoint(known.w)
    before = M.copy()
    plain = completed(M, known.tau, 0.9)
    np.testing.assert_array_equal(M, before)
    strict = completed(array_api_strict.asarray(M), known.tau, 0.9)
    np.testing.assert_allclose(np.from_dlpack(strict.slack(0.9)), plain.slack(0.9), atol=1e-10)
