"""Completing the multiplier of a small problem: the slack is psd, its slope stays in the box."""

from __future__ import annotations

from typing import Any

import array_api_strict
import numpy as np
import pytest
from metric.known import Known, all_pairs, classes, constructed

from lopro.constraints import PSDCone
from lopro.metric import PairMultiplier, SparseMetric
from lopro.metric.completion import Completion, lowered
from lopro.metric.loss import PairLoss

Matrix = Any


def search_for(objective: SparseMetric) -> Completion:
    return Completion(objective.loss, objective.l1, objective.spread.diagonal)


def advance(search: Completion, most: int = 5000) -> Completion:
    for _ in range(most):
        if search.feasible():
            return search
        search.step()
    raise AssertionError(f"not feasible after {most} steps, apart by {search.apart}")


def check(search: Completion, tau: float) -> None:
    """Nothing but rounding outside of the box; a slack that is psd but for what bounds pay for."""
    slack, M = (np.asarray(np.from_dlpack(A)) for A in (search.slack(), search.M))
    np.testing.assert_allclose(slack, slack.T, atol=1e-14 * abs(slack).max())
    Y = slack + M
    assert abs(np.diag(Y)).max() <= 1e-14 * abs(M).max()
    assert abs(Y).max() <= tau * (1.0 + 1e-12)
    sizes = np.from_dlpack(search.sizes)
    root = np.divide(1.0, np.sqrt(sizes), out=np.zeros_like(sizes), where=sizes > 0.0)
    assert np.linalg.eigvalsh(root[:, None] * slack * root)[0] >= -2e-3 * search._unit


@pytest.mark.parametrize("share", [0.3, 0.1, 1e-2, 1e-3])
@pytest.mark.parametrize("seed", range(6))
def test_optimal_weights_are_completed(seed: int, share: float) -> None:
    """A completion exists for them, and proves the optimum but for the share that is given up."""
    known = constructed(np.random.default_rng(seed), 10, 4, 2)
    objective = known.problem.objective
    search = search_for(objective)
    search.aim(known.w, known.optimum, share)
    advance(search)
    check(search, known.tau)
    multiplier = PairMultiplier(-search.slack(), 0.0, weights=search.weights)
    bound, source = objective.dual_bound(PSDCone(10), known.A, multiplier, known.optimum)
    assert (1.0 - 2.0 * share) * known.optimum <= bound <= known.optimum * (1.0 + 1e-12)
    assert "dual point" in source


def test_less_is_given_up_from_one_search_to_the_next(rng: np.random.Generator) -> None:
    known = constructed(rng, 10, 4, 2)
    search = search_for(known.problem.objective)
    for share in (0.1, 0.03, 1e-2, 1e-3, 1e-4):
        search.aim(known.w, known.optimum, share)
        check(advance(search), known.tau)


@pytest.mark.parametrize("share", [0.1, 1e-3])
def test_what_lowered_weights_cost(share: float, rng: np.random.Generator) -> None:
    """About the share of the value that was announced, where targets are distances."""
    X, labels = classes(0, 20, 4)
    loss = all_pairs(X, labels)
    weights = (loss.targets - loss.distances(0.1 * np.eye(4))) / len(loss.targets)
    n, t = len(weights), loss.targets

    def dual(w: Matrix) -> float:
        return float(t @ w - 0.5 * n * w @ w)

    fun = dual(weights)
    lost = fun - dual(lowered(loss, weights, fun, share))
    assert 0.0 < lost <= 2.0 * share * fun


@pytest.mark.parametrize("share", [0.3, 1e-3])
def test_lowered_weights_give_up_the_share_in_two_parts(
    share: float, rng: np.random.Generator
) -> None:
    """M4: ``(1 - eta) w - delta 1``, where eta and what ``delta sum t`` costs of the value add up to it."""
    loss = all_pairs(*classes(0, 20, 4))
    n, fun = loss.targets.shape[0], 0.7
    one, other = rng.standard_normal((2, n))
    delta = -lowered(loss, 0.0 * one, fun, share)
    assert np.ptp(delta) == 0.0 < delta[0]
    kept = (lowered(loss, one, fun, share) - lowered(loss, other, fun, share)) / (one - other)
    eta = 1.0 - kept
    assert np.ptp(eta) <= 1e-12 and eta[0] > 0.0
    assert eta[0] + delta[0] * float(loss.targets.sum()) / fun == pytest.approx(share, rel=1e-9)


def without_completion() -> tuple[PairLoss, Matrix]:
    """``M = [[-1, 2], [2, -1]]``: no Y within 0.5 makes up for it."""
    Z = np.array([[1.0, 1.0], [1.0, -1.0]])
    return PairLoss.from_differences(Z, np.ones(2)), np.array([0.5, -1.5])


def test_what_has_no_completion_is_not_declared_feasible() -> None:
    loss, w = without_completion()
    np.testing.assert_allclose(loss.adjoint(w), [[-1.0, 2.0], [2.0, -1.0]])
    search = Completion(loss, 0.5, np.array([2.0, 2.0]))
    search.aim(w, fun=0.1, share=0.1)
    for _ in range(500):
        search.step()
        assert not search.feasible()
    assert search.apart > 0.1 and np.all(search.excess > 0.0)
    # A part of it has one: 2 c <= 0.5 + c.
    search.aim(0.45 * w, fun=0.1, share=0.1)
    check(advance(search), 0.5)


def test_the_excess_points_at_the_features_that_are_missing() -> None:
    """Weights of a problem that lacks two features know nothing of them."""
    rng = np.random.default_rng(0)
    known: Known = constructed(rng, 10, 4, 2)
    search = search_for(known.problem.objective)
    search.aim(known.w, known.optimum, 0.05)
    far = 3.0 * np.abs(search.M).max()
    search.M[2, 7] = search.M[7, 2] = far
    for _ in range(300):
        search.step()
    assert not search.feasible()
    assert set(np.argsort(-search.excess)[:2]) == {2, 7}


def test_features_in_which_nothing_differs() -> None:
    X, labels = classes(0, 10, 4)
    X[:, 1] = 0.0
    objective = SparseMetric(all_pairs(X, labels), 0.05)
    search = search_for(objective)
    search.aim(-np.ones(45), 1.0, 0.1)
    slack = advance(search).slack()
    assert not slack[1].any() and np.linalg.eigvalsh(slack)[0] >= -1e-9


def test_other_libraries_and_inputs_kept() -> None:
    known = constructed(np.random.default_rng(1), 10, 4, 2)
    objective, weights = known.problem.objective, known.w.copy()
    plain = search_for(objective)
    plain.aim(weights, known.optimum, 0.1)
    np.testing.assert_array_equal(weights, known.w)
    check(advance(plain), known.tau)
    other = array_api_strict.asarray
    loss = PairLoss.from_differences(other(known.Z), other(known.targets))
    strict = Completion(loss, known.tau, other(objective.spread.diagonal))
    strict.aim(other(known.w), known.optimum, 0.1)
    check(advance(strict), known.tau)
