"""Completing the multiplier of a small problem: the slack is psd, its slope stays in the box."""

from __future__ import annotations

from typing import Any

import array_api_strict
import numpy as np
import pytest
from support.metric_known import Known, all_pairs, classes, constructed

from lopro.constraints import PSDCone
from lopro.metric import SparseMetric
from lopro.metric.completion import Completion, lowered
from lopro.metric.first_factor import KnownSlack, first_factor
from lopro.metric.loss import PairLoss

Matrix = Any


def search_for(objective: SparseMetric) -> Completion:
    return Completion(objective)


def on_the_support(known: Known) -> KnownSlack:
    """The optimal slack on the working set of the features in use."""
    features = np.flatnonzero(known.A.any(axis=0))
    return KnownSlack(features, known.S[np.ix_(features, features)])


def advance(search: Completion, goal: float, most: int = 3000) -> Completion:
    for _ in range(most):
        if search.proved >= goal:
            return search
        if not search.descend(lambda: True):
            break
    raise AssertionError(f"{search.proved} is proved, not {goal}; violation {search.violation}")


def check(search: Completion, tau: float, trace: float = 0.0) -> None:
    """Check the proved value by the definition of the dual, with eigenvalues and all entries."""
    found = search.multiplier()
    assert found.factor is not None and not found.direction.any()
    B, sizes, loss = found.factor, search.sizes, search.loss
    M1 = np.asarray(np.from_dlpack(loss.adjoint(loss.ones())))
    M = np.asarray(np.from_dlpack(loss.adjoint(found.weights)))
    over = (np.square(B).sum(axis=0) + M.diagonal() - trace)[sizes > 0] / sizes[sizes > 0]
    shift = max(0.0, float(over.max()))
    M = M - shift * M1
    Y = B.T @ B + M
    np.fill_diagonal(Y, 0.0)
    scale = min(1.0, tau / float(abs(Y).max()))
    slack = scale * (Y - M) + trace * np.eye(len(M))
    assert np.linalg.eigvalsh(slack)[0] >= -1e-12 * abs(slack).max()
    along, square = loss.target_terms(found.weights - shift)
    best = min(scale, along / (loss.count * square))
    value = best * along - 0.5 * best**2 * loss.count * square if along > 0.0 else 0.0
    assert search.proved == pytest.approx(value, rel=1e-8, abs=1e-12)


@pytest.mark.parametrize("share", [0.3, 0.1, 1e-2, 1e-3])
@pytest.mark.parametrize("seed", range(6))
def test_optimal_weights_are_completed(seed: int, share: float) -> None:
    """A completion exists for them, and proves the optimum less the share used for it."""
    known = constructed(np.random.default_rng(seed), 10, 4, 2)
    objective = known.problem.objective
    search = search_for(objective)
    search.aim(known.w, known.optimum, share, on_the_support(known))
    advance(search, (1.0 - 2.0 * share) * known.optimum)
    check(search, known.tau)
    bound, source = objective.dual_bound(PSDCone(10), known.A, search.multiplier(), known.optimum)
    assert bound == pytest.approx(search.proved, rel=1e-12)
    assert (1.0 - 2.0 * share) * known.optimum <= bound <= known.optimum * (1.0 + 1e-12)
    assert "feasible" in source


def test_the_share_decreases_from_one_search_to_the_next(rng: np.random.Generator) -> None:
    """It decreases from its last value, unless the features in use have changed."""
    known = constructed(rng, 10, 4, 2)
    search, slack = search_for(known.problem.objective), on_the_support(known)
    for share in (0.1, 0.03, 1e-2, 1e-3, 1e-4):
        search.aim(known.w, known.optimum, share, slack)
        check(advance(search, (1.0 - 1.8 * share) * known.optimum), known.tau)
    kept = search.factor.copy()
    search.aim(known.w, known.optimum, 1e-4, slack)
    np.testing.assert_array_equal(search.factor, kept)
    F = np.append(slack.features, np.setdiff1d(np.arange(10), slack.features)[0])
    search.aim(known.w, known.optimum, 1e-4, KnownSlack(F, known.S[np.ix_(F, F)]))
    assert search.factor.shape != kept.shape or np.abs(search.factor - kept).max() > 0.0


@pytest.mark.parametrize("trace", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(4))
def test_every_factor_proves_a_bound(seed: int, trace: float) -> None:
    """Even one that violates all constraints: its weights are lowered and scaled until none is violated."""
    rng = np.random.default_rng(seed)
    known = constructed(rng, 10, 4, 2)
    plain = known.problem.objective
    objective = SparseMetric(plain.loss, known.tau, trace)
    search = search_for(objective)
    search.aim(known.w, known.optimum, 0.1, on_the_support(known))
    fun = known.optimum + trace * np.trace(known.A)
    for size in (0.1, 1.0, 2.0):
        slack = np.abs(search._slack)
        search._rows = size * rng.standard_normal((10, 5)) * np.sqrt(slack)[:, None]
        search._survey()
        check(search, known.tau, trace)
        bound, _ = objective.dual_bound(PSDCone(10), known.A, search.multiplier(), fun)
        assert bound == pytest.approx(search.proved, rel=1e-12)
        assert bound <= fun


def test_the_gradient_of_the_violation(rng: np.random.Generator) -> None:
    known = constructed(rng, 10, 4, 2)
    search = search_for(known.problem.objective)
    search.aim(known.w, known.optimum, 1e-6, on_the_support(known))
    search._rows = 2.0 * rng.standard_normal((10, 6)) * search._units[:, None]
    search._survey()
    B, H = search._descent.x, rng.standard_normal((10, 6))
    value, gradient = search._violation_at(B)
    h = 1e-6
    ahead, behind = (search._violation_at(B + s * h * H)[0] for s in (1.0, -1.0))
    assert (ahead - behind) / (2 * h) == pytest.approx(np.vdot(gradient, H), rel=1e-6)
    # From the definition, in units in which the diagonal of the slack is one: nothing violated is left out.
    r, M = search._units, search.loss.adjoint(search.weights)
    G, width = search.factor.T @ search.factor, 1.0 - 0.2e-6
    over = np.maximum(np.abs(G + M) - width * known.tau, 0.0)
    np.fill_diagonal(over, np.maximum(np.diag(G) - width * search._slack, 0.0))
    squares = np.square(over / np.outer(r, r))
    assert value == pytest.approx(0.25 * squares.sum(), rel=1e-10)
    search._violation_at(B)
    np.testing.assert_allclose(search.excess, squares.sum(axis=0), rtol=1e-9)


def test_entries_within_the_box_join_when_they_leave_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Listed entries are lowered; others that leave the box by that are listed by the next survey."""
    monkeypatch.setattr("lopro.metric.completion.NEAR", 1.0)
    known = constructed(np.random.default_rng(2), 30, 6, 2)
    search = search_for(known.problem.objective)
    search.aim(known.w, known.optimum, 1e-2, on_the_support(known))
    assert search._rows is not None
    search._rows *= 1.0 + 0.2 * np.random.default_rng(3).standard_normal((30, 1))
    search._survey()
    assert 0 < len(search._listed) < 30 * 29 / 2
    counts = [len(search._listed)]
    while search.violation > 0.0 and search.descend(lambda: True):
        counts.append(len(search._listed))
    assert counts[-1] > counts[0] and counts == sorted(counts)
    assert search.violation == 0.0
    check(search, known.tau)
    Y = search.factor.T @ search.factor + search.loss.adjoint(search.weights)
    np.fill_diagonal(Y, 0.0)
    assert abs(Y).max() <= (1.0 - 0.2e-2) * known.tau * (1.0 + 1e-12)


@pytest.mark.parametrize("share", [0.1, 1e-3])
def test_the_value_that_lowered_weights_lose(share: float, rng: np.random.Generator) -> None:
    """About the given share of the value, where targets are distances."""
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
def test_lowered_weights_use_the_share_in_two_parts(share: float, rng: np.random.Generator) -> None:
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


def test_weights_without_a_completion_stay_violated() -> None:
    """``M = [[-1, 2], [2, -1]]``: no Y within 0.5 is a completion, but one is for a multiple of w."""
    loss = PairLoss.from_differences(np.array([[1.0, 1.0], [1.0, -1.0]]), np.ones(2))
    w, slack = np.array([0.5, -1.5]), KnownSlack(np.array([0]), np.array([[1.0]]))
    np.testing.assert_allclose(loss.adjoint(w), [[-1.0, 2.0], [2.0, -1.0]])
    search = Completion(SparseMetric(loss, 0.5))
    search.aim(w, 0.1, 0.1, slack)
    while search.descend(lambda: True):
        pass
    # min over x of ((1.5 - x)^2 + (x - 1)^2) / 2, less the share used for the completion.
    assert search.violation == pytest.approx(1.0 / 16.0, rel=0.1) and np.all(search.excess > 0.0)
    check(search, 0.5)
    # 2 c <= 0.5 + c.
    search.aim(0.45 * w, 0.1, 0.1, KnownSlack(slack.features, 0.45 * slack.S))
    while search.violation > 0.0:
        assert search.descend(lambda: True)
    check(search, 0.5)
    # No weight is lowered or scaled: the value is that of the given weights.
    along, square = loss.target_terms(search.weights)
    assert search.proved == pytest.approx(max(0.0, along - 0.5 * loss.count * square), abs=1e-12)


def test_the_excess_points_at_the_features_that_are_missing() -> None:
    """Weights of a problem without two features do not depend on them."""
    known = constructed(np.random.default_rng(0), 10, 4, 2)
    search = search_for(known.problem.objective)
    search.aim(known.w, known.optimum, 0.05, on_the_support(known))
    search._X[:, 2] *= 3.0
    search._LX[:, 2] *= 3.0
    search._listed = search._listed[:0]
    search._survey()
    while search.descend(lambda: True):
        pass
    assert search.violation > 0.0
    assert set(np.argsort(-search.excess)[:2]) == {2, 7}


def test_constant_features() -> None:
    X, labels = classes(0, 10, 4)
    X[:, 1] = 0.0
    objective = SparseMetric(all_pairs(X, labels), 0.05)
    search = search_for(objective)
    search.aim(-np.ones(45), 1.0, 0.1, KnownSlack(np.array([0]), np.array([[1.0]])))
    while search.descend(lambda: True):
        pass
    assert search.violation == 0.0 and not search.factor[:, 1].any()
    check(search, 0.05)


@pytest.mark.parametrize("units", [1.0, 1e-3, 1e3])
@pytest.mark.parametrize("N", [12, 60])
def test_the_start_agrees_with_the_known_slack(N: int, units: float) -> None:
    """On the known features it is the known slack; elsewhere near ``-M``, with columns short enough."""
    rng = np.random.default_rng(N)
    X, labels = classes(3, N, 20)
    sizes = np.where(np.arange(20) % 2, units, 1.0)
    loss = all_pairs(X * sizes, labels)
    w = -rng.random(loss.count) / loss.count
    M, factors = loss.adjoint(w), loss.factors(w)
    F = np.array([0, 1, 5])
    slack = -np.diag(M)
    B = first_factor(*factors, slack, sizes, KnownSlack(F, -M[np.ix_(F, F)]))
    S = B.T @ B
    scale = np.outer(sizes, sizes)
    np.testing.assert_allclose(S[np.ix_(F, F)] / scale[np.ix_(F, F)], (-M / scale)[np.ix_(F, F)])
    assert np.all(np.diag(S) <= slack * (1.0 + 1e-12))
    # -M is psd here, so that a factor of it would be exact; the fit is regularised.
    assert np.linalg.norm((S + M) / scale) <= 0.2 * np.linalg.norm(M / scale)


def test_other_libraries_and_inputs_kept() -> None:
    known = constructed(np.random.default_rng(1), 10, 4, 2)
    objective, weights, slack = known.problem.objective, known.w.copy(), on_the_support(known)
    plain = search_for(objective)
    plain.aim(weights, known.optimum, 0.1, slack)
    np.testing.assert_array_equal(weights, known.w)
    check(advance(plain, 0.8 * known.optimum), known.tau)
    other = array_api_strict.asarray
    loss = PairLoss.from_differences(other(known.Z), other(known.targets))
    strict = Completion(SparseMetric(loss, known.tau))
    strict.aim(other(known.w), known.optimum, 0.1, slack)
    check(advance(strict, 0.8 * known.optimum), known.tau)
