"""The level-set method: radii increase to the optimum from below, in steps that satisfy Newton's bound."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import array_api_strict
import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.linalg import aslinearoperator
from support.theorem_checks import SLACK, count_projections

import lopro
from lopro import Problem, Status
from lopro.constraints import L1Ball, Polyhedron, ResidualBall, ResidualNorm
from lopro.errors import MissingCapabilityError
from lopro.methods.baselines import LevelSetFrankWolfe, level_set
from lopro.methods.baselines.level_set import NewtonStep, newton_step
from lopro.objectives import L1Norm, Linear


def instance(seed: int = 0, m: int = 20, d: int = 50, sigma: float | None = None) -> Any:
    rng = np.random.default_rng(seed)
    A, x, noise = rng.standard_normal((m, d)), np.zeros(d), 0.05 * rng.standard_normal(m)
    x[rng.choice(d, 4, replace=False)] = [3.0, -2.0, 1.0, 2.0]
    if sigma == 0.0:
        return A, A @ x, 0.0
    return A, A @ x + noise, float(np.linalg.norm(noise))


def problem_of(A: Any, y: Any, sigma: float) -> Problem:
    return Problem(L1Norm(), ResidualBall(A, y, sigma))


def outside(A: Any, y: Any, sigma: float) -> float:
    v = cp.Variable(A.shape[1])
    limits = [cp.norm(A @ v - y) <= sigma] if sigma > 0.0 else [A @ v == y]
    return float(cp.Problem(cp.Minimize(cp.norm1(v)), limits).solve(cp.CLARABEL))


def recorded_steps(monkeypatch: Any) -> list[NewtonStep]:
    """Keep the bounds of each iteration on the residual on its ball."""
    original, seen = level_set.newton_step, []

    def recording(*arguments: Any) -> NewtonStep:
        seen.append(original(*arguments))
        return seen[-1]

    monkeypatch.setattr(level_set, "newton_step", recording)
    return seen


def radii_ratio(steps: list[NewtonStep], best: float) -> float:
    """Return the worst ``R / f_*`` over all radii: above 1 the root was passed."""
    return max(step.radius for step in steps) / best


@pytest.mark.parametrize("alpha", [1.1, 1.5, 1.9])
@pytest.mark.parametrize("seed", range(4))
def test_newton_steps_obey_their_bound(seed: int, alpha: float, monkeypatch: Any) -> None:
    A, y, sigma = instance(seed)
    best = lopro.solve(problem_of(A, y, sigma), tol=1e-10).fun
    steps = recorded_steps(monkeypatch)
    method = LevelSetFrankWolfe(alpha)
    result = lopro.solve(problem_of(A, y, sigma), method=method, tol=1e-4, max_iter=5000)
    assert result.success
    assert radii_ratio(steps, best) <= SLACK
    assert all(one.radius <= two.radius for one, two in pairwise(steps))
    left = [step for step in steps if step.good_enough(alpha)]
    assert len(left) >= 2
    for one, two in pairwise(left):
        falls = (two.lower - sigma) / (one.lower - sigma) + two.slope / one.slope
        assert falls <= alpha * SLACK
    # So the product of both decreases by (alpha / 2)^2, which bounds the number of radii.
    products = [(step.lower - sigma) * step.slope for step in left]
    count = np.log(products[0] / products[-1]) / (2.0 * np.log(2.0 / alpha))
    assert len(left) - 1 <= count + 1e-9


def test_stepping_from_the_residual_itself_passes_the_root(monkeypatch: Any) -> None:
    """Newton's step has to start from the lower bound: the residual of an inexact point is too large."""
    A, y, sigma = instance()
    best = lopro.solve(problem_of(A, y, sigma), tol=1e-10).fun
    steps = recorded_steps(monkeypatch)
    wrong = property(lambda s: s.radius + (s.u - s.sigma) / s.slope)
    monkeypatch.setattr(NewtonStep, "following", wrong)
    lopro.solve(problem_of(A, y, sigma), method=LevelSetFrankWolfe(), tol=0, max_iter=50)
    assert radii_ratio(steps, best) > 1.01


def test_each_step_proves_a_bound_for_every_radius():
    """phi(R') >= lower - slope (R' - R), for radii on both sides, checked by CVXPY."""
    A, y, sigma = instance(1, m=8, d=12)
    rng = np.random.default_rng(2)
    x = 0.3 * rng.standard_normal(12)
    R = float(np.abs(x).sum())
    r = A @ x - y
    step = newton_step(A.T @ r, r, y, R, sigma)
    v = cp.Variable(12)
    for other in (0.5 * R, R, 1.5 * R, 3.0 * R):
        phi = cp.Problem(cp.Minimize(cp.norm(A @ v - y)), [cp.norm1(v) <= other]).solve(cp.CLARABEL)
        assert phi >= step.lower - step.slope * (other - R) - 1e-7


@pytest.mark.parametrize("sigma", [None, 0.0])
@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_another_solver(seed: int, sigma: float | None) -> None:
    A, y, sigma = instance(seed, m=25, sigma=sigma)
    problem = problem_of(A, y, sigma)
    result = lopro.solve(problem, method=LevelSetFrankWolfe(), tol=1e-6, max_iter=20_000)
    assert result.status is Status.CONVERGED
    best = outside(A, y, sigma)
    assert result.fun == pytest.approx(best, rel=2e-6)
    assert max(result.history["lower_bound"]) <= best * (1.0 + 1e-6)
    assert result.certificate.violation <= 1e-9


def test_one_projection_per_epoch_and_one_linear_minimisation_per_check(monkeypatch: Any) -> None:
    A, y, sigma = instance()
    problem = problem_of(A, y, sigma)
    projections, minimizer, calls = count_projections(problem.constraint), [], []
    minimizer.append(L1Ball.linear_minimizer)

    def counting(self: Any, direction: Any) -> Any:
        calls.append(1)
        return minimizer[0](self, direction)

    monkeypatch.setattr(L1Ball, "linear_minimizer", counting)
    for T in (5, 40):
        calls.clear()
        before = projections()
        result = lopro.solve(problem, method=LevelSetFrankWolfe(), tol=0, max_iter=T)
        assert result.iterations == T
        assert result.counts.linear_minimizations == len(calls) == T + 1
        assert result.counts.projections == projections() - before == len(result.history)
        # A gradient of the residual per iteration, and the two products that the start takes.
        assert result.counts.constraint_gradients == T
        assert result.counts.gradients == result.counts.proxes == 0


def test_radii_are_few():
    """Epochs grow with the logarithm of the accuracy."""
    A, y, sigma = instance(3, m=30)
    problem = problem_of(A, y, sigma)
    epochs = [
        len(lopro.solve(problem, method=LevelSetFrankWolfe(), tol=tol, max_iter=20_000).history)
        for tol in (1e-2, 1e-4, 1e-6)
    ]
    assert epochs[0] < epochs[1] < epochs[2] <= 25


def test_zero_is_a_solution_where_it_is_feasible():
    A, y, _ = instance()
    problem = problem_of(A, y, 1.1 * float(np.linalg.norm(y)))
    result = lopro.solve(problem, method=LevelSetFrankWolfe())
    assert result.success and result.fun == 0.0 and result.counts.linear_minimizations == 0


def test_operators_and_sparse_matrices_reach_the_same_point():
    """Not by the same steps: after a search two vertices are equivalent, and rounding decides."""
    A, y, sigma = instance(4)
    for B in (A, scipy.sparse.csr_array(A), aslinearoperator(A)):
        result = lopro.solve(problem_of(B, y, sigma), method=LevelSetFrankWolfe(), tol=1e-5)
        assert result.success
        assert result.fun == pytest.approx(outside(A, y, sigma), rel=2e-5)


def test_both_forms_of_the_constraint_and_a_common_weight():
    A, y, sigma = instance(5)
    expected = lopro.solve(problem_of(A, y, sigma), method=LevelSetFrankWolfe(), tol=1e-4).fun
    norm_form = Problem(L1Norm(2.0), ResidualBall(A, y, sigma, ResidualNorm()))
    result = lopro.solve(norm_form, method=LevelSetFrankWolfe(), tol=1e-4)
    assert result.success
    assert result.fun == pytest.approx(2.0 * expected, rel=2e-4)


def test_complex_points_take_plain_steps():
    rng = np.random.default_rng(6)
    A = rng.standard_normal((15, 30)) + 1j * rng.standard_normal((15, 30))
    y = A[:, :2] @ np.array([1.0 + 1.0j, -2.0])
    problem = problem_of(A, y, 0.5)
    result = lopro.solve(problem, method=LevelSetFrankWolfe(), tol=5e-2, max_iter=5000)
    best = lopro.solve(problem, tol=1e-8).fun
    assert result.success
    assert result.certificate.lower_bound - 1e-9 <= best <= result.fun + 1e-9


def test_library_and_precision_are_kept():
    A, y, sigma = instance(7)
    for of in (array_api_strict.asarray, lambda a: a.astype(np.float32)):
        problem = problem_of(of(A), of(y), sigma)
        result = lopro.solve(problem, method=LevelSetFrankWolfe(), tol=1e-2, max_iter=2000)
        assert type(result.x) is type(of(y)) and result.x.dtype == of(y).dtype
        assert result.success


def test_unsupported_problems_are_named():
    ball = ResidualBall(np.eye(2), np.ones(2), 0.1)
    half = Polyhedron(np.eye(2), np.ones(2))
    for problem in (Problem(Linear(np.ones(2)), ball), Problem(L1Norm(), half)):
        with pytest.raises(MissingCapabilityError, match="L1Norm over a ResidualBall"):
            lopro.solve(problem, method=LevelSetFrankWolfe())
    with pytest.raises(MissingCapabilityError, match="weights are all the same"):
        weighted = Problem(L1Norm(np.array([1.0, 2.0])), ball)
        lopro.solve(weighted, method=LevelSetFrankWolfe())
    for alpha in (1.0, 2.0):
        with pytest.raises(ValueError, match="alpha"):
            LevelSetFrankWolfe(alpha)
