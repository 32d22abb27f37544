"""Agreement with an interior-point solver, and certified gaps on public data sets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.metric_known import by_clarabel, classes, value

import lopro
from lopro.metric import SparseMetric
from lopro.metric.api import metric_problem
from lopro.metric.pairs import pair_loss
from paper.experiments.colon import load_colon

Matrix = Any

COLON = Path(__file__).resolve().parents[4] / "shared" / "data" / "colon-cancer.libsvm"


def data(name: str) -> tuple[Matrix, Matrix]:
    """Return standardised samples and labels; constant features stay zero."""
    datasets = pytest.importorskip("sklearn.datasets")
    X, labels = getattr(datasets, f"load_{name}")(return_X_y=True)
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0), labels


def agree(X: Matrix, labels: Matrix, l1: float, **options: Any) -> None:
    """The default reaches the optimum that Clarabel finds, to 1e-6, and its point is no worse."""
    objective = SparseMetric(pair_loss(X, labels, None, None, 10**6, None), l1)
    optimum, A = by_clarabel(objective)
    result = lopro.learn_metric(X, labels, l1=l1, tol=1e-7, **options)
    assert result.success, str(result)
    scale = 1e-6 * optimum + 1e-9
    assert abs(result.fun - optimum) <= scale
    assert result.certificate.lower_bound <= optimum + scale
    eigenvalues, V = np.linalg.eigh(A)
    feasible = (V * np.maximum(eigenvalues, 0.0)) @ V.T
    assert result.fun <= value(objective, feasible) + scale


@pytest.mark.parametrize("l1", [0.0, 1e-3, 0.1])
@pytest.mark.parametrize("name", ["iris", "wine"])
def test_clarabel_agrees_on_data(name: str, l1: float) -> None:
    agree(*data(name), l1)


@pytest.mark.parametrize("l1", [1e-3, 0.03])
@pytest.mark.parametrize(
    ("N", "d", "groups"), [(10, 4, 2), (30, 6, 3), (6, 9, 2), (9, 12, 3), (4, 14, 2), (12, 1, 2)]
)
def test_clarabel_agrees_on_random_classes(N: int, d: int, groups: int, l1: float) -> None:
    """Some have more features than samples, where pairs do not determine the matrix."""
    agree(*classes(N + d, N, d, groups=groups), l1)


@pytest.mark.parametrize("d", [10, 14])
def test_clarabel_agrees_where_the_working_set_starts_small(d: int) -> None:
    method = lopro.FeatureWorkingSet(all_below=0, join=2)
    agree(*classes(d, 8, d), 0.03, method=method)


@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer"])
def test_certified_gaps_on_data(name: str) -> None:
    X, labels = data(name)
    result = lopro.learn_metric(X, labels, l1=1e-3, tol=1e-4)
    assert result.success and result.certificate.relative_gap <= 1e-4
    objective = SparseMetric(pair_loss(X, labels, None, None, 10**6, None), 1e-3)
    assert value(objective, result.x) == pytest.approx(result.fun, rel=1e-9)


@pytest.mark.slow
def test_certified_gap_on_digits() -> None:
    """1.6 million pairs, and three constant features."""
    X, labels = data("digits")
    result = lopro.learn_metric(X, labels, l1=1e-3, tol=1e-4)
    assert result.success and result.certificate.relative_gap <= 1e-4
    dead = np.flatnonzero(X.std(axis=0) == 0.0)
    assert dead.size and not result.x[dead].any()


@pytest.mark.slow
@pytest.mark.skipif(not COLON.is_file(), reason="the colon-cancer file is not on this machine")
def test_certified_gap_on_features_of_colon_cancer() -> None:
    samples = load_colon(COLON)
    X, labels = samples.X[:40, :200], samples.labels[:40]
    result = lopro.learn_metric(X, labels, l1=1e-3, tol=1e-4)
    assert result.success and result.certificate.relative_gap <= 1e-4
    assert np.linalg.eigvalsh(result.x)[0] >= -1e-12
    assert 45 <= len(result.features) <= 55


def test_features_that_were_only_examined_are_not_used() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 60))
    labels = X[:, 0] + X[:, 1] > 0.0
    few, every = (
        lopro.learn_metric(X, labels, l1=1e-2, tol=1e-4, method=lopro.FeatureWorkingSet(all_below))
        for all_below in (16, 64)
    )
    assert few.success and every.success
    assert set(few.features) == set(every.features)
    assert len(every.features) == 40


def test_methods_agree() -> None:
    X, labels = data("iris")
    loss = pair_loss(X, labels, None, None, 10**6, None)
    problem = metric_problem(loss, 0.01)
    first = lopro.solve(problem, method=lopro.FeatureWorkingSet(), tol=1e-7)
    second = lopro.solve(problem, method=lopro.ConsensusADMM(), tol=1e-7)
    third = lopro.solve(problem, method=lopro.FeatureWorkingSet(all_below=0, join=1), tol=1e-6)
    assert first.success and second.success and third.success
    assert first.fun == pytest.approx(second.fun, rel=2e-7)
    assert first.fun == pytest.approx(third.fun, rel=2e-6)
    # The paper's method is slower, but its values and bounds are consistent with the others.
    paper = lopro.solve(problem, method=lopro.LoPGD(), tol=1e-3, max_iter=2000)
    assert first.certificate.lower_bound <= paper.fun < problem.objective.value(np.zeros((4, 4)))
    assert paper.certificate.lower_bound <= first.fun
