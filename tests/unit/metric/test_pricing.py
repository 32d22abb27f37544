"""Reduced costs of features: adding one with a negative reduced cost lowers the optimum, others do not."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from support.metric_known import all_pairs, by_clarabel, classes, constructed

import lopro
from lopro.metric import SparseMetric
from lopro.metric.api import metric_problem
from lopro.metric.working_set import WorkingProblem, prices

Matrix = Any


def solved(objective: SparseMetric, features: list[int], accuracy: float = 1e-9) -> WorkingProblem:
    work = WorkingProblem(objective, np.array(features), np.eye(len(features)))
    assert work.solve(accuracy, tick=lambda: True)
    return work


def priced(objective: SparseMetric, work: WorkingProblem) -> dict[int, float]:
    """Return the prices of the features outside, relative to their ``-M_ii``."""
    M = objective.loss.adjoint(work.multiplier.weights)
    inside, outside = work.features, work.outside
    S = -0.5 * (work.multiplier.direction + work.multiplier.direction.T)
    diagonal = np.diag(M)[outside]
    found = prices(S, M[np.ix_(inside, outside)], diagonal, objective.l1, steps=3000)
    return {int(i): float(q / abs(c)) for i, q, c in zip(outside, found, diagonal, strict=True)}


@pytest.mark.parametrize("pull", [0.2, 0.9, 3.0, -3.0])
def test_the_price_of_a_feature_beside_one_other_by_hand(pull: float) -> None:
    """``q(x) = s x^2 - 2 m x + 2 tau |x| - M_ii`` over ``1 + x^2``, at the least of ``q + rho (1 + x^2)``."""
    s, tau, own, threshold = 1.7, 0.8, -0.6, 1e-3
    rho = threshold * abs(own)
    x = np.sign(pull) * max(abs(pull) - tau, 0.0) / (s + rho)
    q = s * x**2 - 2.0 * pull * x + 2.0 * tau * abs(x) - own
    found = prices(np.array([[s]]), np.array([[pull]]), np.array([own]), tau, threshold)
    assert found == pytest.approx([q / (1.0 + x**2)], rel=1e-9)


def test_a_feature_violates_if_and_only_if_it_lowers_the_optimum() -> None:
    answers = []
    for seed in range(12):
        known = constructed(np.random.default_rng(seed), 8, 5, 2, tau=0.5)
        objective = known.problem.objective
        inside = np.flatnonzero(np.diag(known.A))[:-1].tolist()
        work = solved(objective, inside)
        expected = set(work.violated(most=8, threshold=1e-3).tolist())
        for i, price in priced(objective, work).items():
            assert (i in expected) == (price < -1e-3)
            gain = (work.fun - solved(objective, [*inside, i]).fun) / work.fun
            # The decrease is of second order in the price.
            assert gain > 1e-8 if i in expected else gain <= 1e-6, (seed, i, price, gain)
            answers.append(i in expected)
    assert 10 < sum(answers) < len(answers) - 10


@pytest.mark.parametrize("seed", range(3))
def test_no_feature_violates_at_the_optimum(seed: int) -> None:
    known = constructed(np.random.default_rng(seed), 12, 4, 2)
    objective = known.problem.objective
    used = np.flatnonzero(np.diag(known.A)).tolist()
    assert solved(objective, used).violated(most=12, threshold=1e-3).size == 0
    missing = solved(objective, used[1:]).violated(most=12, threshold=1e-3)
    assert used[0] in missing


@pytest.mark.parametrize("singular", [True, False])
def test_prices_decide_whether_a_feature_lowers_the_optimum(
    singular: bool, rng: np.random.Generator
) -> None:
    """Whether some x makes ``q(x) + rho (1 + |x|^2)`` negative: the same by CVXPY."""
    f, k, tau = 5, 30, 0.3
    B = rng.standard_normal((f, 2 if singular else f))
    S = B @ B.T
    M = rng.standard_normal((f, k)) * 10.0 ** rng.uniform(-1.0, 0.5, k)
    diagonal = -(10.0 ** rng.uniform(-1.0, 1.0, k))
    found = prices(S, M, diagonal, tau, steps=20_000)
    answers = []
    for i in range(k):
        rho = 1e-3 * abs(diagonal[i])
        x = cp.Variable(f)
        q = cp.sum_squares(B.T @ x) - 2 * M[:, i] @ x + 2 * tau * cp.norm1(x) - diagonal[i]
        least = cp.Problem(cp.Minimize(q + rho * (1 + cp.sum_squares(x)))).solve(cp.CLARABEL)
        assert (found[i] < -rho) == (least < 0.0)
        answers.append(least < 0.0)
    assert any(answers) and not all(answers)


def test_features_with_unbounded_prices_violate_and_do_not_overflow() -> None:
    """With S = 0 the price of a feature whose slope passes tau has no lower bound."""
    S, M = np.zeros((2, 2)), np.array([[0.4, 0.1], [0.0, -0.2]])
    found = prices(S, M, np.array([-1.0, -1.0]), 0.3)
    assert np.isfinite(found).all()
    assert found[0] < -1e-3 and found[1] > 0.0


def test_constant_features_do_not_violate() -> None:
    X, labels = classes(0, 12, 4)
    X[:, 2] = 0.0
    work = solved(SparseMetric(all_pairs(X, labels), 0.05), [3])
    expected = work.violated(most=4, threshold=1e-3).tolist()
    assert expected and 2 not in expected


@pytest.mark.parametrize("seed", range(3))
def test_growing_by_price_ends_at_the_optimum(seed: int) -> None:
    objective = SparseMetric(all_pairs(*classes(seed, 20, 7, groups=3)), 0.1)
    optimum, _ = by_clarabel(objective)
    work = solved(objective, [6], 1e-7)
    for _ in range(7):
        added = work.violated(most=1, threshold=1e-6)
        if added.size == 0:
            break
        before = work.fun
        work.join(added)
        assert work.solve(1e-7, tick=lambda: True)
        assert work.fun <= before * (1.0 + 1e-12)
    assert work.fun == pytest.approx(optimum, rel=1e-4)
    problem = metric_problem(objective.loss, objective.l1)
    method = lopro.FeatureWorkingSet(all_below=0, join=1)
    result = lopro.solve(problem, method=method, tol=1e-5)
    assert result.success and result.fun == pytest.approx(optimum, rel=1e-5)


def test_a_budget_ends_the_work_and_keeps_a_point(rng: np.random.Generator) -> None:
    objective = SparseMetric(all_pairs(*classes(0, 20, 5)), 0.1)
    work = WorkingProblem(objective, np.arange(5), np.eye(5))
    left = iter(range(7))
    assert not work.solve(1e-9, tick=lambda: next(left, None) is not None)
    assert work.admm.iterations == 8 and np.isfinite(work.fun) and work.gap >= 0.0
    assert np.linalg.eigvalsh(work.point)[0] >= -1e-12


def test_entries_below_the_weight_of_the_norm_need_no_search() -> None:
    """``x = 0`` minimises ``q_i`` where no ``|M_iF|`` exceeds ``tau``; `violated` skips such features."""
    rng = np.random.default_rng(4)
    F = rng.standard_normal((3, 3))
    M = np.array([[0.9, -1.0, 1.5], [-0.9, 0.2, 0.0], [0.5, 1.0, 0.0]])
    found = prices(F.T @ F, M, np.array([-2.0, 3.0, 0.5]), 1.0)
    np.testing.assert_array_equal(found[:2], [2.0, -3.0])
    assert found[2] < -0.5
