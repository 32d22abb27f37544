"""Few features by an interior point method: its solution and multiplier, and when it is used."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from support.metric_known import by_clarabel, classes, constructed, value

import lopro
from lopro.metric import SparseMetric, working_set
from lopro.metric.all_pairs import AllPairsLoss
from lopro.metric.consensus import FEW, Consensus
from lopro.metric.interior import interior_point
from lopro.metric.loss_step import ByEntries
from lopro.metric.working_set import WorkingProblem

Matrix = Any


@pytest.mark.parametrize("seed", range(4))
def test_the_solution_is_that_of_the_construction_and_the_multiplier_proves_it(seed: int) -> None:
    known = constructed(np.random.default_rng(seed), 8, 4, 2)
    loss = known.problem.objective.loss
    A, S = interior_point(ByEntries(loss), np.full((8, 8), known.tau), np.zeros(8), 1e-10)
    np.testing.assert_allclose(A, known.A, atol=1e-5 * abs(known.A).max())
    # Multipliers are not unique, but each of them has the slope of the norm on the support, and its diagonal.
    tol = 1e-5 * abs(known.S).max()
    Y = S + loss.adjoint((known.targets - loss.distances(A)) / loss.count)
    off = ~np.eye(8, dtype=bool) & (known.A != 0.0)
    np.testing.assert_allclose(Y[off], known.tau * np.sign(known.A[off]), atol=tol)
    np.testing.assert_allclose(np.diag(Y), 0.0, atol=tol)
    assert abs(Y).max() <= known.tau + tol
    assert np.linalg.eigvalsh(S)[0] >= -tol and abs(S @ known.A).max() <= tol


@pytest.mark.parametrize("trace", [0.0, 0.05])
def test_the_state_of_admm_at_the_solution(trace: float) -> None:
    """In any units of the features: point and dual point agree with each other, and with CVXPY."""
    X, labels = classes(0, 30, 5)
    X = X * np.array([1.0, 1e-2, 1e2, 3.0, 0.3])
    objective = SparseMetric(AllPairsLoss(X, labels), 0.02, trace)
    found = Consensus(objective, np.diag(1.0 / X.var(axis=0))).by_interior_point(1e-11)
    assert found is not None
    optimum, _ = by_clarabel(objective)
    assert value(objective, found.C) == pytest.approx(optimum, rel=1e-6)
    before = found.C
    for _ in range(20):
        found.step()
    # A solution with its multipliers is where ADMM stays.
    units = np.outer(X.std(axis=0), X.std(axis=0))
    np.testing.assert_allclose(found.C * units, before * units, atol=1e-5 * (before * units).max())


def test_only_where_features_are_few_and_the_loss_is_known_by_entries() -> None:
    X, labels = classes(0, 200, FEW + 1)
    objective = SparseMetric(AllPairsLoss(X, labels), 0.02)
    assert Consensus(objective, np.eye(FEW + 1)).by_interior_point(1e-8) is None
    X, labels = classes(0, 60, 4)
    rows = SparseMetric(AllPairsLoss(X, labels), 0.02, 0.0, 0.1)
    assert Consensus(rows, np.eye(4)).by_interior_point(1e-8) is None


def test_features_of_many_sizes() -> None:
    """Breast cancer in raw units: sizes from 1e-3 to 1e3, of which the norm affects the small ones only."""
    X, labels = load_breast_cancer(return_X_y=True)
    result = lopro.learn_metric(X, labels, l1=1e-3, tol=1e-4)
    assert result.success and result.certificate.relative_gap <= 1e-4
    # Known from interior point methods, in these units and in others.
    assert result.fun == pytest.approx(0.30472, rel=2e-5)


def test_slow_progress_does_not_end_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gap that falls by one per cent at each check counts as progress; a constant gap ends the search."""
    monkeypatch.setattr(working_set, "PATIENCE", 20)
    X, labels = classes(0, 30, 5)
    work = WorkingProblem(SparseMetric(AllPairsLoss(X, labels), 0.02), np.arange(5), np.eye(5))
    work._interior_tried = True
    checks = 0

    def falling() -> None:
        nonlocal checks
        checks += 1
        work.fun, work.bound = 1.0, 1.0 - max(0.99**checks, least)

    monkeypatch.setattr(work, "_update_best", falling)
    least = 0.0
    assert work.solve(1e-2, tick=lambda: True) and work.reached(1e-2)
    checks, least = 0, 0.5
    assert work.solve(1e-2, tick=lambda: True) and not work.reached(1e-2)
    assert checks <= 69 + 11 + working_set.PATIENCE + 1


def test_the_bound_of_the_weights_has_no_units() -> None:
    """It covers every distance, and is the same for features in other units."""
    rng = np.random.default_rng(0)
    X, labels = classes(1, 30, 6)
    G = rng.standard_normal((6, 6))
    units = 2.0 ** np.array([0, -10, 10, 3, -3, 20])
    plain, other = AllPairsLoss(X, labels), AllPairsLoss(X * units, labels)
    A = G + G.T
    largest = plain.largest(plain.distances(A))
    assert other.largest(other.distances(A / np.outer(units, units))) == largest
    exact = float(np.abs(plain.listed().distances(A)).max())
    assert exact <= largest <= 10.0 * exact
