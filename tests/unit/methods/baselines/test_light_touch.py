"""LightTouch: its guarantee in expectation, k + 1 constraints per iteration, one projection."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import array_api_strict
import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse
from support.theorem_checks import SLACK, Recorded, count_projections
from support.touch_problems import Polygon, rows

import lopro
from lopro import Problem
from lopro.constraints import (
    Intersection,
    NormForm,
    Polyhedron,
    PSDCone,
    ResidualBall,
    ResidualNorm,
)
from lopro.errors import MissingCapabilityError
from lopro.functions import Ball
from lopro.methods.baselines import LightTouch
from lopro.methods.baselines.light_touch import LightTouchSteps, ScalarConstraints, TouchState, draw
from lopro.methods.theory import ProblemConstants
from lopro.objectives import LeastSquares, Linear, SquaredDistance

M = 40
POLYGON = Polygon(M)


def guarantee_ratio(T: int, k: int, *, seeds: int = 5, **changed: Any) -> float:
    """Return mean ``F(average) - f_*`` over ``(Gbar D + 2 B sqrt(2 log m)) / sqrt T``, from the centre."""
    _, b = rows(M)
    B = POLYGON.weight * M / k * max(POLYGON.radius - b)
    bound = (1.0 + POLYGON.weight) * POLYGON.radius + 2.0 * B * math.sqrt(2.0 * math.log(M))
    excess = []
    for seed in range(seeds):
        recorded = Recorded(LightTouch(T, k, constants=POLYGON.constants, **changed))
        lopro.solve(POLYGON.problem, np.zeros(2), recorded, tol=0, seed=seed)
        excess.append(recorded.seen[-1].penalised - POLYGON.best)
    return float(np.mean(excess)) / (bound / math.sqrt(T))


@pytest.mark.parametrize("k", [1, 7, M])
@pytest.mark.parametrize("T", [100, 1000])
def test_guarantee(T: int, k: int) -> None:
    assert guarantee_ratio(T, k) <= SLACK


def test_a_distribution_that_is_not_updated_breaks_the_guarantee() -> None:
    assert guarantee_ratio(2000, M, seeds=2, dual_step=1e-12) > 1.0


@pytest.mark.parametrize("k", [None, 12, M])
def test_its_own_dual_step_is_that_of_the_theorem(k: int | None) -> None:
    """``sqrt(2 log m / T) / B`` with ``B = lam (m / k) max sup [c_i]_+``; k is ``sqrt m``, rounded up."""
    T, count = 300, 7 if k is None else k
    _, b = rows(M)
    B = POLYGON.weight * M / count * (POLYGON.radius - b.min())
    step = math.sqrt(2.0 * math.log(M) / T) / B

    def ran(sampled: int | None, dual_step: float | None) -> Any:
        method = LightTouch(T, sampled, dual_step, POLYGON.constants)
        return lopro.solve(POLYGON.problem, np.zeros(2), method, tol=0, seed=0)

    own, given, longer = ran(k, None), ran(count, step), ran(count, 1.1 * step)
    assert own.x == pytest.approx(given.x, rel=1e-12)
    assert longer.x != pytest.approx(given.x, rel=1e-6)
    assert (own.counts.rows, given.counts.rows) == (M + T * (count + 1), T * (count + 1))


def test_errors_fall_with_the_iterations() -> None:
    few, many = (guarantee_ratio(T, 7, seeds=2, dual_step=0.1) / math.sqrt(T) for T in (100, 4000))
    assert few > 20.0 * many


class Chooser:
    """A generator that draws a given subset."""

    def __init__(self, subset: tuple[int, ...]) -> None:
        self.subset = subset

    def choice(self, m: int, k: int, replace: bool) -> Any:
        assert not replace
        return np.array(self.subset)


@pytest.mark.parametrize("k", [1, 2, 4])
def test_the_estimate_of_the_violations_is_unbiased(k: int) -> None:
    """The mean over all subsets is exact, whatever the last estimates are."""
    C, b = rows(5)
    x, seen = np.array([2.0, 1.5]), np.array([0.3, 0.0, 1.0, 2.0, 0.1])
    truth = np.maximum(C @ x - b, 0.0)
    steps = LightTouchSteps(
        ScalarConstraints(Polyhedron(C, b)), 1.0, k, 0.1, 0.1, Ball(np.zeros(2), 9.0)
    )
    estimates = []
    for subset in combinations(range(5), k):
        state = TouchState(x, x, Chooser(subset), scores=np.zeros(5), seen=seen.copy())
        estimates.append(steps._estimate(state))
        # Values of the subset are stored, the others are unchanged.
        others = np.setdiff1d(np.arange(5), subset)
        np.testing.assert_allclose(state.seen[list(subset)], truth[list(subset)])
        assert (state.seen[others] == seen[others]).all()
    np.testing.assert_allclose(np.mean(estimates, axis=0), truth, atol=1e-12)


def test_indices_are_drawn_with_the_probabilities_of_the_scores(rng: Any) -> None:
    p = np.array([0.1, 0.6, 0.0, 0.3])
    with np.errstate(divide="ignore"):
        scores = np.log(p) + 700.0
    counts = np.bincount([draw(scores, rng) for _ in range(20_000)], minlength=4) / 20_000
    assert np.abs(counts - p).max() <= 0.02 and counts[2] == 0.0


def test_agrees_with_another_solver() -> None:
    """200 sides, 16 of which are used in each iteration."""
    polygon = Polygon(200)
    method = LightTouch(5000, dual_step=0.1, constants=polygon.constants)
    result = lopro.solve(polygon.problem, method=method, tol=0, seed=0)
    assert polygon.best - 1e-9 <= result.fun <= polygon.best + 0.02
    assert result.counts.rows == 5000 * (15 + 1)


def test_an_intersection_of_several_kinds(rng: Any) -> None:
    z, C, b = np.array([2.0, 1.0, -1.0]), rng.standard_normal((10, 3)), np.ones(10)
    v = cp.Variable(3)
    limits = [cp.norm(np.diag([1.0, 2.0, 3.0]) @ v) <= 1.5, C @ v <= b, v <= 0.7]
    best = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(v - z)), limits).solve(cp.CLARABEL)
    # A weight above the sum of the multipliers makes the penalty exact.
    weight = 1.5 * float(sum(np.sum(limit.dual_value) for limit in limits))
    G = float(np.linalg.norm(z)) + 3.0
    constants = ProblemConstants(G=G, Gc=3.0, rho=G / weight)
    ball = ResidualBall(np.diag([1.0, 2.0, 3.0]), np.zeros(3), 1.5, ResidualNorm())
    norm_rows = Polyhedron(np.eye(3), np.full(3, 0.7), NormForm())
    problem = Problem(SquaredDistance(z), Intersection(ball, Polyhedron(C, b), norm_rows))
    method = LightTouch(4000, 3, 0.1, constants)
    result = lopro.solve(problem, method=method, tol=0, seed=1)
    assert best - 1e-6 <= result.fun <= best + 0.05
    assert result.counts.rows == 4000 * 4 and result.counts.projections == 1


@pytest.mark.parametrize("k", [1, 7])
@pytest.mark.parametrize("dual_step", [None, 0.1])
def test_rows_and_projections_are_counted_exactly(
    k: int, dual_step: float | None, monkeypatch: Any
) -> None:
    problem, T, looked_at = POLYGON.problem, 60, []
    original = Polyhedron.row_values

    def counting(self: Any, indices: Any, x: Any) -> Any:
        looked_at.append(len(indices))
        return original(self, indices, x)

    monkeypatch.setattr(Polyhedron, "row_values", counting)
    calls = count_projections(problem.constraint)
    method = LightTouch(T, k, dual_step, POLYGON.constants)
    result = lopro.solve(problem, np.zeros(2), method, tol=0, seed=0)
    first = 0 if dual_step is not None else M  # all of them once, for the worst estimate
    assert result.counts.rows == sum(looked_at) == first + T * (k + 1)
    assert result.counts.projections == calls() == 1
    # Never a product with all rows.
    assert result.counts.matvecs == result.counts.rmatvecs == result.counts.constraint_values == 0
    assert result.counts.gradients == T


def test_values_and_slopes_of_single_rows(rng: Any) -> None:
    """Values and slopes of rows agree with the whole, for dense and sparse and mixed constraints."""
    C, b, x = rng.standard_normal((6, 4)), rng.standard_normal(6), rng.standard_normal(4)
    ball = ResidualBall(np.eye(4), np.zeros(4), 1.0, ResidualNorm())
    dense, sparse = Polyhedron(C, b), Polyhedron(scipy.sparse.csr_array(C), b)
    chosen = np.array([5, 0, 3])
    for polyhedron in (dense, sparse, Polyhedron(C, b, NormForm())):
        alone = ScalarConstraints(polyhedron)
        assert alone.count == 6
        np.testing.assert_allclose(alone.values(chosen, x), (C @ x - b)[chosen])
        np.testing.assert_allclose(alone.subgradient(3, x), C[3])
    mixed = ScalarConstraints(Intersection(dense, ball, sparse))
    assert mixed.count == 13
    expected = np.concatenate([C @ x - b, [ball.value(x)], C @ x - b])
    np.testing.assert_allclose(mixed.values(np.arange(13), x), expected)
    np.testing.assert_allclose(mixed.values(np.array([12, 6]), x), expected[[12, 6]])
    np.testing.assert_allclose(mixed.subgradient(6, x), ball.subgradient(x))
    np.testing.assert_allclose(mixed.subgradient(12, x), C[5])
    lengths = np.linalg.norm(C, axis=1)
    np.testing.assert_allclose(
        mixed.lipschitz(Ball(x, 1.0)), np.concatenate([lengths, [1.0], lengths])
    )


def test_sampled_gradients_are_reproducible(rng: Any) -> None:
    f = LeastSquares(rng.standard_normal((50, 3)), rng.standard_normal(50))
    problem = Problem(f, Polyhedron.box(-0.1 * np.ones(3), 0.1 * np.ones(3)))
    method = LightTouch(300, 2, stochastic=True)
    one, two, other = (lopro.solve(problem, method=method, tol=0, seed=s).x for s in (1, 1, 2))
    assert (one == two).all() and (one != other).any()


def test_library_is_kept() -> None:
    C, b = (array_api_strict.asarray(a) for a in rows(12))
    problem = Problem(Linear(array_api_strict.asarray([-0.6, 0.8])), Polyhedron(C, b))
    result = lopro.solve(problem, method=LightTouch(200), tol=0, seed=0)
    assert type(result.x) is type(C)


def test_what_is_missing_is_named() -> None:
    with pytest.raises(MissingCapabilityError, match="regularity constant"):
        lopro.solve(Polygon(200).problem, method=LightTouch())
    cone = Problem(Linear(np.eye(2)), PSDCone(2))
    with pytest.raises(MissingCapabilityError, match="solution_norm"):
        lopro.solve(cone, method=LightTouch())
    with pytest.raises(ValueError, match="sampled must be at most 40"):
        lopro.solve(POLYGON.problem, method=LightTouch(10, 41))
    for bad in ({"iterations": 0}, {"sampled": 0}, {"radius": 0.0}, {"dual_step": -1.0}):
        with pytest.raises(ValueError):
            LightTouch(**bad)


def test_the_norm_of_all_rows_needs_a_larger_weight() -> None:
    """Rho belongs to the constraint's own function, and the largest row may be sqrt(m) times smaller."""
    box = -np.ones(3), np.ones(3)
    assert ScalarConstraints(Polyhedron.box(*box)).shortfall == 1.0
    assert ScalarConstraints(Polyhedron.box(*box, NormForm())).shortfall == pytest.approx(
        math.sqrt(6.0)
    )
    problem = Problem(Linear(np.array([1.0, -2.0, 0.5])), Polyhedron.box(*box, NormForm()))
    recorded = Recorded(LightTouch(100, 6))
    lopro.solve(problem, method=recorded, tol=0, seed=0)
    weight = recorded.seen[0].F.penalty.lam
    assert weight == pytest.approx(math.sqrt(6.0) * math.sqrt(5.25))
