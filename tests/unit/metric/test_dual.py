"""The lower bounds of sparse metric learning: below every value, sharp at the optimum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.metric_cases import CASES, heavy_norm, narrow, only_dead_but_one, psd
from support.metric_known import all_pairs, by_clarabel, classes, constructed, value

import lopro
from lopro.constraints import Box, PSDCone
from lopro.constraints.base import ValidInequality
from lopro.metric import PairMultiplier, SparseMetric
from lopro.metric import dual as dual_module
from lopro.metric.api import metric_problem
from lopro.metric.dual import dual_bound, dual_value, shortfall
from lopro.metric.loss import PairLoss
from lopro.metric.spread import Spread

Matrix = Any


def multipliers(
    rng: np.random.Generator, objective: SparseMetric, A: Matrix
) -> list[ValidInequality]:
    """Guesses of every kind: none, random psd, indefinite, huge, with weights of their own."""
    d, n = len(A), objective.loss.targets.shape[0]
    G = rng.standard_normal((d, d))
    found = [ValidInequality(-scale * psd(rng, d, d), 0.0) for scale in (0.0, 1e-3, 1.0, 1e3)]
    found.append(ValidInequality(G + G.T, 0.0))
    for scale in (1e-3, 0.1, 1.0, 10.0):
        w = scale * rng.standard_normal(n) / n
        found.append(PairMultiplier(-psd(rng, d, d), 0.0, weights=w))
        # With mostly negative weights M(w) is negative: the favourable case.
        found.append(PairMultiplier(0.0 * A, 0.0, weights=-np.abs(w)))
    return found


@pytest.mark.parametrize("case", CASES)
def test_weak_duality(case: Any, rng: np.random.Generator) -> None:
    """No bound, from any point and multiplier, exceeds the optimum or the value of any psd point."""
    objective = case()
    d = objective.shape[0]
    optimum, _ = by_clarabel(objective)
    cone = PSDCone(d)
    points = [size * psd(rng, d, rank) for rank in (0, 1, 2, d) for size in (0.01, 0.3, 3.0)]
    values = [value(objective, A) for A in points]
    assert min(values) >= optimum - 1e-8 * (1.0 + optimum)
    for A, fun in zip(points, values, strict=True):
        for normal in multipliers(rng, objective, A):
            bound, _ = objective.dual_bound(cone, A, normal, fun)
            assert 0.0 <= bound <= optimum * (1.0 + 1e-7) + 1e-12


#: The other two are nearly unconstrained, so nothing is repaired.
@pytest.mark.parametrize("case", [c for c in CASES if c not in (only_dead_but_one, heavy_norm)])
def test_a_bound_without_its_repair_is_no_bound(
    case: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Negative control: if a slack that is not psd is accepted, bounds exceed the optimum."""
    objective = case()
    optimum, _ = by_clarabel(objective)
    monkeypatch.setattr(dual_module, "shortfall", lambda S: 0.0)
    A = 0.0 * np.eye(objective.shape[0])
    bound, _ = objective.dual_bound(
        PSDCone(len(A)), A, ValidInequality(0.0 * A, 0.0), value(objective, A)
    )
    assert bound > 1.01 * optimum + 1e-6


@pytest.mark.parametrize("repair", ["diagonal", "sum"])
def test_both_repairs_are_exact_in_the_limit(repair: str, rng: np.random.Generator) -> None:
    known = constructed(rng, 6, 3, 2, tau=0.3)
    objective = known.problem.objective
    loss, tau, spread = objective.loss, objective.l1, objective.spread
    D = rng.standard_normal((6, 6))
    losses = []
    for size in (1e-2, 1e-4, 1e-6, 0.0):
        w = known.w * (1.0 + size * rng.standard_normal(len(known.w)))
        M = loss.adjoint(w)
        S = dual_module.boxed(M + known.S + size * (D + D.T), tau) - M
        if repair == "diagonal":
            found = dual_module._by_diagonal(loss, tau, spread, S, w, known.optimum)
        else:
            found = dual_module._by_sum(loss, tau, spread, S, w)
        for bound, _ in found:
            assert bound <= known.optimum * (1.0 + 1e-12)
        losses.append(max(known.optimum - bound for bound, _ in found))
    assert losses[0] > losses[1] > losses[2] > 0.0
    assert losses[2] <= 1e-3 * known.optimum
    assert losses[3] <= 1e-10 * known.optimum


@pytest.mark.parametrize("case", CASES)
def test_the_bound_tends_to_the_optimum(case: Any) -> None:
    objective = case()
    optimum, _ = by_clarabel(objective)
    problem = metric_problem(objective.loss, objective.l1)
    # Where the optimum is 0, the value of the reference is its own error.
    result = lopro.solve(problem, method=lopro.ConsensusADMM(), tol=1e-7, max_iter=40_000)
    assert result.success
    assert result.fun == pytest.approx(optimum, rel=1e-6, abs=3e-8)
    assert result.certificate.lower_bound == pytest.approx(optimum, rel=1e-6, abs=3e-8)


def test_a_tiny_feature_that_separates_the_classes_is_used() -> None:
    """Without the norm the scale of a feature must not matter, however small it is beside others."""
    X, labels = classes(8, 12, 3, shift=0.0)
    X[:, 2] = 1e-6 * labels
    objective = SparseMetric(all_pairs(X, labels), 0.0)
    # A = 2e12 e3 e3' meets all targets.
    perfect = np.diag([0.0, 0.0, 2e12])
    assert value(objective, perfect) <= 1e-12
    cone, start = PSDCone(3), np.zeros((3, 3))
    admm = lopro.solve(
        metric_problem(objective.loss, 0.0), method=lopro.ConsensusADMM(), tol=1e-6, max_iter=2000
    )
    assert admm.certificate.lower_bound <= 1e-9
    bound, _ = objective.dual_bound(
        cone, start, ValidInequality(start, 0.0), value(objective, start)
    )
    assert bound <= 1e-9


def test_a_tiny_difference_of_two_features_is_not_overlooked() -> None:
    """Two features are nearly equal, and the solution is along their difference."""
    X, labels = classes(8, 12, 3, shift=0.0)
    X[:, 2] = X[:, 1] + 1e-5 * labels
    objective = SparseMetric(all_pairs(X, labels), 0.0)
    v = np.array([0.0, -1.0, 1.0])
    assert value(objective, 2e10 * np.outer(v, v)) <= 1e-9
    problem = metric_problem(objective.loss, 0.0)
    result = lopro.solve(problem, method=lopro.ConsensusADMM(), tol=1e-6, max_iter=2000)
    assert result.certificate.lower_bound <= 1e-9


def test_the_bound_does_not_depend_on_the_units_of_a_feature(rng: np.random.Generator) -> None:
    X, labels = classes(9, 12, 3)
    units = np.array([1.0, 1e-5, 1e4])
    A = 0.1 * psd(rng, 3, 2)
    plain = SparseMetric(all_pairs(X, labels), 0.0)
    scaled = SparseMetric(all_pairs(X * units, labels), 0.0)
    B = A / np.outer(units, units)
    S = psd(rng, 3, 2)
    one, _ = plain.dual_bound(PSDCone(3), A, ValidInequality(-S, 0.0), 1.0)
    two, _ = scaled.dual_bound(
        PSDCone(3), B, ValidInequality(-S * np.outer(units, units), 0.0), 1.0
    )
    assert two == pytest.approx(one, rel=1e-6, abs=1e-12)


def test_over_other_sets_there_is_no_bound() -> None:
    objective = narrow()
    box = Box(-np.ones(16), np.ones(16))
    A = np.eye(4)
    assert objective.dual_bound(box, A, ValidInequality(0.0 * A, 0.0), 1.0) is None


def test_single_precision_points_get_bounds_of_double_precision(rng: np.random.Generator) -> None:
    known = constructed(rng, 6, 3, 2)
    loss = PairLoss.from_differences(known.Z.astype(np.float32), known.targets.astype(np.float32))
    objective = SparseMetric(loss, known.tau)
    A = known.A.astype(np.float32)
    multiplier = PairMultiplier(-known.S, 0.0, weights=known.w)
    bound, _ = objective.dual_bound(PSDCone(6), A, multiplier, known.optimum)
    assert bound == pytest.approx(known.optimum, rel=1e-5)
    assert objective.spread.diagonal.dtype == np.float64


def test_the_greatest_value_along_a_ray(rng: np.random.Generator) -> None:
    loss = all_pairs(*classes(10, 6, 3))
    n = loss.targets.shape[0]
    for most in (1.0, 0.3):
        for _ in range(20):
            w = rng.standard_normal(n) / n
            values = [
                c * float(loss.targets @ w) - 0.5 * n * c * c * float(w @ w)
                for c in np.linspace(0.0, most, 2001)
            ]
            assert dual_value(loss, w, most) == pytest.approx(max(values), abs=1e-6)
    assert dual_value(loss, 0.0 * loss.targets) == 0.0


@pytest.mark.parametrize("d", [1, 5, 450])
def test_the_shortfall_makes_a_matrix_semidefinite(d: int, rng: np.random.Generator) -> None:
    """Above 400 rows it comes from Lanczos and a factorisation."""
    Q, _ = np.linalg.qr(rng.standard_normal((d, d)))
    for lowest in (-1.0, -1e-6, 0.0, 0.5):
        values = np.concatenate([[lowest], rng.uniform(1.0, 2.0, d - 1)])
        S = (Q * values) @ Q.T
        S = 0.5 * (S + S.T)
        s = shortfall(S)
        assert max(-lowest, 0.0) - 1e-12 <= s <= 1.06 * max(-lowest, 0.0) + 1e-11
        assert np.linalg.eigvalsh(S + s * np.eye(d))[0] >= -1e-14


def test_the_spread_of_the_pairs(rng: np.random.Generator) -> None:
    X, labels = classes(11, 9, 4)
    X[:, 3] = 1.0
    loss = all_pairs(X, labels)
    first, second = loss.pairs
    Z = X[first] - X[second]
    M1 = Z.T @ Z
    spread = Spread.of(loss, 0.05)
    np.testing.assert_allclose(spread.diagonal, np.diag(M1))
    assert spread.largest == pytest.approx(np.abs(M1 - np.diag(np.diag(M1))).max())
    assert not spread.full_rank and spread.whitening.shape == (4, 3)
    np.testing.assert_allclose(spread.whitening.T @ M1 @ spread.whitening, np.eye(3), atol=1e-10)
    spread = Spread.of(loss, 0.0)
    assert dual_bound(loss, 0.0, spread, 0.0 * M1, ValidInequality(0.0 * M1, 0.0), 1.0)[0] >= 0.0
    white = spread.white
    np.testing.assert_allclose(white.T.T @ M1 @ white.T, np.eye(3), atol=1e-10)
    np.testing.assert_allclose((X - X.mean(axis=0)) @ white.T, white.loss.X, atol=1e-10)
    G = rng.standard_normal((3, 3))
    np.testing.assert_allclose(white.forth(white.back(G + G.T)), G + G.T, atol=1e-10)
    inner = np.sum(white.multiplier_back(G + G.T) * white.back(np.eye(3)))
    assert inner == pytest.approx(2.0 * np.trace(G))
    assert not white.back(np.eye(3))[3].any()
