"""SGD with one projection: the bounds of the primal-dual and of the smoothed version."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from support.baseline_runs import gap, referee, run
from support.claims import check_claims
from support.theorem_checks import size
from support.theory_problems import Known, t1, t2, t3, t4, t5, t6_box, t9
from support.tilted import ball_radius, noisy, outside, tilted

import lopro
from lopro.constraints import Box, Polyhedron, ResidualBall, ResidualNorm
from lopro.errors import MissingCapabilityError
from lopro.methods.baselines import OneProjectionSaddle, OneProjectionSmoothed, primal_dual
from lopro.objectives import L1Norm, Linear, Quadratic, SquaredDistance

CONVEX = {"T1": t1, "T2": t2, "T3": t3, "T4": lambda: t4(form=ResidualNorm()), "T5": t5}
STRONG = {"tilted": tilted, "T6": t6_box, "T9": t9}


def saddle_ratio(known: Known, T: int) -> float:
    """Return the gap over the bound of the theorem; there must be one projection."""
    method = OneProjectionSaddle(T, known.constants, known.distance)
    ran = run(known, method)
    assert ran.projections == 1 and ran.result.iterations == T
    largest = abs(known.constraint.value(known.x0)) + known.Gc * known.distance
    return gap(known, ran.x) / method.bound(known.constants, known.distance, largest)


@pytest.mark.parametrize("T", [1, 10, 100, 3000])
@pytest.mark.parametrize("problem", CONVEX)
def test_saddle_obeys_its_bound_with_one_projection(problem: str, T: int) -> None:
    assert saddle_ratio(CONVEX[problem](), T) <= 1.0


def test_saddle_bound_rejects_a_multiplier_that_stays_zero(monkeypatch: Any) -> None:
    step = primal_dual.SaddleDescent.step

    def forgetful(self: Any, F: Any, state: Any) -> Any:
        state = step(self, F, state)
        state.multiplier = 0.0
        return state

    monkeypatch.setattr(primal_dual.SaddleDescent, "step", forgetful)
    assert saddle_ratio(t3(), 3000) > 1.0


def test_saddle_bound_is_of_order_one_over_root_T() -> None:
    known = t3()
    bounds = [
        OneProjectionSaddle(T).bound(known.constants, known.distance, 1.0) for T in (10**4, 10**6)
    ]
    assert bounds[0] / bounds[1] == pytest.approx(10.0, rel=0.05)


def smoothed_ratio(known: Known, T: int) -> float:
    """Return the gap over the bound of the theorem; there must be one projection."""
    method = OneProjectionSmoothed(T, known.constants, ball_radius_of(known))
    ran = run(known, method)
    assert ran.projections == 1 and ran.result.iterations == T
    return gap(known, ran.x) / method.bound(known.constants)


def ball_radius_of(known: Known) -> float:
    return float(np.linalg.norm(known.objective.subgradient(known.x0))) / known.mu


@pytest.mark.parametrize("T", [2, 10, 100, 3000])
@pytest.mark.parametrize("problem", STRONG)
def test_smoothed_obeys_its_bound_with_one_projection(problem: str, T: int) -> None:
    assert smoothed_ratio(STRONG[problem](), T) <= 1.0


def test_smoothed_bound_rejects_a_weight_below_the_multiplier() -> None:
    known = tilted()
    light = replace(known, rho=30.0 * known.rho)  # a regularity that the set does not have
    assert light.constants.weight < known.zeta < known.constants.weight
    assert smoothed_ratio(known, 10_000) <= 1.0
    assert smoothed_ratio(light, 10_000) > 1.0


def test_claims_become_certificates_and_are_true() -> None:
    for known, method in (
        (t2(), OneProjectionSaddle(3000)),
        (tilted(), OneProjectionSmoothed(3000)),
    ):
        result = lopro.solve(known.problem, known.x0, method, tol=0)
        assert math.isfinite(result.certificate.gap)
        assert result.certificate.lower_bound <= known.optimum + 1e-9
        assert not result.warnings


def test_bounds_of_the_saddle_multiplier_improve_with_the_length_of_the_run() -> None:
    """The mean of the linearised constraints tends to the multiplier; damping biases it for finite T."""
    known = t4(form=ResidualNorm())
    slope = known.zeta * known.constraint.subgradient(known.solution)
    errors, unproved = [], []
    for T in (1000, 10_000):
        ran = run(known, OneProjectionSaddle(T, known.constants, known.distance))
        direction = ran.epochs[-1].inequality.direction
        errors.append(np.linalg.norm(direction - slope) / np.linalg.norm(slope))
        unproved.append(known.optimum - ran.result.certificate.lower_bound)
    assert errors[1] <= 0.3 and errors[1] <= 0.6 * errors[0]
    assert 0.0 <= unproved[1] <= 0.25 and unproved[1] <= 0.6 * unproved[0]


def saddle_constants(known: Known, T: int) -> tuple[float, float]:
    """Return ``C >= |c|`` on the ball and eta, from the formulas of the docstring."""
    D = known.distance
    C = abs(known.constraint.value(known.x0)) + known.Gc * D
    return C, min(D / math.sqrt(2.0 * T * (known.G**2 + C**2)), 1.0 / (4.0 * known.Gc))


@pytest.mark.parametrize("T", [2, 30, 500])
@pytest.mark.parametrize("problem", CONVEX)
def test_saddle_equals_a_plain_implementation(problem: str, T: int) -> None:
    """``x+ = Pi_B(x - eta (df + m dc))``, ``m+ = [(1 - 4 eta^2 G_c^2) m + eta c(x)]_+``, means projected."""
    known = CONVEX[problem]()
    _, eta = saddle_constants(known, T)
    x, m, total = known.x0, 0.0, np.zeros_like(known.x0)
    for _ in range(T):
        total += x
        value = known.constraint.value(x)
        g = known.objective.subgradient(x) + m * known.constraint.subgradient(x)
        m = max(0.0, (1.0 - 4.0 * eta**2 * known.Gc**2) * m + eta * value)
        moved = x - eta * g - known.x0
        x = known.x0 + moved * min(1.0, known.distance / size(moved))
    expected = known.constraint.project(total / T)
    ran = run(known, OneProjectionSaddle(T, known.constants, known.distance))
    assert ran.x == pytest.approx(expected, rel=1e-9, abs=1e-11)


@pytest.mark.parametrize("T", [2, 500, 100_000])
def test_saddle_claims_the_bound_of_the_theorem(T: int) -> None:
    """Both branches of eta occur: in short runs it is limited by ``1 / (4 G_c)``."""
    known = t3()
    C, eta = saddle_constants(known, T)
    G, lam = known.G, known.G / known.rho
    gap = known.distance**2 / (2.0 * eta * T) + eta * (G**2 + C**2)
    gap += 0.5 * lam**2 * (4.0 * eta * known.Gc**2 + 1.0 / (eta * T))
    method = OneProjectionSaddle(T, known.constants, known.distance)
    assert method.bound(known.constants, known.distance, C) == pytest.approx(gap, rel=1e-13)
    if T < 1000:
        check_claims(known, method, [gap])


@pytest.mark.parametrize("T", [2, 300])
def test_smoothed_claims_the_bound_of_the_theorem(T: int) -> None:
    """``Gbar^2 (1 + log T) / (2 mu T) + log 2 log T / T``."""
    known = tilted()
    bar = known.G + known.G / known.rho * known.Gc
    gap = bar**2 * (1.0 + math.log(T)) / (2.0 * known.mu * T) + math.log(2.0) * math.log(T) / T
    check_claims(known, OneProjectionSmoothed(T, known.constants, ball_radius(known)), [gap])


def ellipsoid_problem(rng: np.random.Generator) -> tuple[Any, Any, Any]:
    A = np.diag([1.0, 1.5, 2.0]) + 0.2 * rng.standard_normal((3, 3))
    return A, rng.standard_normal(3), rng.standard_normal(3)


def test_both_agree_with_an_interior_point_solver_without_any_argument(
    rng: np.random.Generator,
) -> None:
    A, y, q = ellipsoid_problem(rng)
    ball = ResidualBall(A, y, 1.0, ResidualNorm())
    inside = lambda x: [cp.norm(A @ x - y) <= 1.0]  # noqa: E731
    best, _ = referee(3, lambda x: q @ x, inside)
    problem = lopro.Problem(Linear(q), ball, solution_norm=5.0)
    start = np.linalg.solve(A, y)
    result = lopro.solve(problem, start, OneProjectionSaddle(20_000), tol=0)
    assert best - 1e-6 <= result.fun <= best + 0.02 * (1.0 + abs(best))
    P = np.diag([1.0, 2.0, 1.5])
    best, _ = referee(3, lambda x: 0.5 * cp.quad_form(x, P) + q @ x, inside)
    problem = lopro.Problem(Quadratic(P, q), ball)
    result = lopro.solve(problem, start, OneProjectionSmoothed(20_000), tol=0)
    assert best - 1e-6 <= result.fun <= best + 0.02 * (1.0 + abs(best))


def test_sampled_slopes_obey_the_bounds_in_the_mean() -> None:
    known, deviation, T = tilted(), 3.0, 1000
    # G bounds the root mean square of the sampled slopes.
    sampled = noisy(replace(known, G=math.hypot(known.G, deviation)), deviation)
    largest = abs(known.constraint.value(known.x0)) + known.Gc * known.distance
    saddle = OneProjectionSaddle(T, sampled.constants, known.distance, stochastic=True)
    smoothed = OneProjectionSmoothed(T, sampled.constants, ball_radius(known), stochastic=True)
    bounds = {
        saddle: saddle.bound(sampled.constants, known.distance, largest),
        smoothed: smoothed.bound(sampled.constants),
    }
    for method, bound in bounds.items():
        gaps = [gap(sampled, run(sampled, method, seed=seed).x) for seed in range(5)]
        assert len(set(gaps)) == 5
        assert np.mean(gaps) <= bound
        again = gap(sampled, run(sampled, method, seed=0).x)
        assert again == gaps[0]
        check_claims(sampled, method, [None])


@pytest.mark.parametrize("method", [OneProjectionSaddle(20), OneProjectionSmoothed(20)], ids=repr)
def test_an_infeasible_start_costs_one_projection_more(method: Any) -> None:
    known = tilted()
    assert run(known, method, x0=outside(known)).projections == 2


@pytest.mark.parametrize("method", [OneProjectionSaddle(20), OneProjectionSmoothed(20)], ids=repr)
def test_a_start_that_needs_no_constraint_is_returned(method: Any) -> None:
    z = np.array([0.2, -0.3])
    problem = lopro.Problem(SquaredDistance(z), Box(-np.ones(2), np.ones(2)))
    result = lopro.solve(problem, z, method)
    assert result.success and result.fun == 0.0 and result.counts.projections == 0


def test_missing_constants_are_named_before_any_work() -> None:
    half = Polyhedron(-np.ones((1, 2)), -np.ones(1))
    unbounded = lopro.Problem(Linear(np.ones(2)), half)
    with pytest.raises(MissingCapabilityError, match="norm of a solution"):
        lopro.solve(unbounded, method=OneProjectionSaddle())
    with pytest.raises(MissingCapabilityError, match="strongly convex"):
        lopro.solve(lopro.Problem(L1Norm(), half), method=OneProjectionSmoothed())
    loose = lopro.Problem(SquaredDistance(np.ones(2)), Polyhedron(np.eye(2), np.ones(2)))
    unknown = lopro.constraints.FunctionConstraint(
        lambda x: float(x @ x) - 1.0, lambda x: 2.0 * x, shape=(2,)
    )
    with pytest.raises(MissingCapabilityError, match="rho"):
        lopro.solve(replace(loose, constraint=unknown), method=OneProjectionSmoothed())
    with pytest.raises(MissingCapabilityError, match="stochastic_subgradient"):
        lopro.solve(t3().problem, method=OneProjectionSaddle(stochastic=True))
    with pytest.raises(TypeError, match="constants"):
        OneProjectionSaddle(constants=3.0)
    with pytest.raises(ValueError, match="iterations"):
        OneProjectionSmoothed(iterations=1)
