"""FullTouch: its guarantee after T steps, one projection, all constraints in each iteration."""

from __future__ import annotations

import math
from typing import Any

import array_api_strict
import cvxpy as cp
import numpy as np
import pytest
from support.claims import check_claims
from support.theorem_checks import SLACK, Recorded, count_projections
from support.theory_problems import t2, t6_box
from support.touch_problems import Polygon, rows

import lopro
from lopro import Problem, Status
from lopro.constraints import MaxForm, NormForm, Polyhedron, ResidualBall, ResidualNorm
from lopro.errors import MissingCapabilityError
from lopro.methods.baselines import FullTouch
from lopro.methods.theory import ProblemConstants
from lopro.objectives import L1Norm, LeastSquares, Linear

POLYGON = Polygon(40)


def guarantee_ratio(T: int, rho: float) -> float:
    """The larger of ``F(average) - f_*`` and ``f(x) - f_*`` over ``Gbar D / sqrt T``, from the centre."""
    constants = ProblemConstants(G=1.0, Gc=1.0, rho=rho)
    recorded = Recorded(FullTouch(T, constants))
    lopro.solve(POLYGON.problem, np.zeros(2), recorded, tol=0)
    (epoch,) = recorded.seen
    bound = (1.0 + constants.weight) * POLYGON.radius / math.sqrt(T)
    return (
        max(epoch.penalised, float(POLYGON.problem.objective.value(epoch.x))) - POLYGON.best
    ) / bound


@pytest.mark.parametrize("T", [1, 10, 100, 1000, 5000])
def test_guarantee(T: int) -> None:
    assert guarantee_ratio(T, POLYGON.constants.rho) <= SLACK


@pytest.mark.parametrize("T", [1000, 5000])
def test_a_weight_below_the_threshold_breaks_the_guarantee(T: int) -> None:
    assert guarantee_ratio(T, 3.0) > 1.0


@pytest.mark.parametrize("known", [t2(), t6_box()], ids=lambda k: k.name)
def test_its_own_claim_is_a_certificate(known: Any) -> None:
    """Without arguments: constants from the problem, and a certificate that holds."""
    gaps = []
    for T in (100, 2000):
        result = lopro.solve(known.problem, known.x0, FullTouch(T), tol=0)
        assert result.status is Status.SCHEDULE_DONE
        assert result.certificate.lower_bound <= known.optimum + 1e-9
        gaps.append(result.certificate.gap)
        assert 0.0 <= known.gap(result.x) <= result.certificate.gap
    assert gaps[1] < gaps[0]


@pytest.mark.parametrize("T", [1, 50])
@pytest.mark.parametrize("known", [t2(), t6_box()], ids=lambda k: k.name)
def test_it_claims_gbar_d_over_root_t(known: Any, T: int) -> None:
    method = FullTouch(T, known.constants, known.distance)
    Gbar = known.G + known.G / known.rho * known.Gc
    check_claims(known, method, [Gbar * known.distance / math.sqrt(T)])


def test_its_steps_are_those_of_a_plain_implementation() -> None:
    """``eta = D / (Gbar sqrt T)`` on ``f + lam [max c_i]_+``, in the ball around the start."""
    known, T = t2(), 300
    lam, D = known.G / known.rho, known.distance
    eta = D / ((known.G + lam * known.Gc) * math.sqrt(T))
    x, total = known.x0, np.zeros_like(known.x0)
    for _ in range(T):
        total += x
        j = int(np.argmax(np.abs(x)))
        push = lam * np.sign(x[j]) * np.eye(len(x))[j] if abs(x[j]) > 1.0 else 0.0
        moved = x - eta * (known.objective.subgradient(x) + push) - known.x0
        x = known.x0 + moved * min(1.0, D / float(np.linalg.norm(moved)))
    result = lopro.solve(known.problem, known.x0, FullTouch(T, known.constants, D), tol=0)
    assert result.x == pytest.approx(np.clip(total / T, -1.0, 1.0), abs=1e-12)


def test_agrees_with_another_solver(rng: Any) -> None:
    z, d = rng.standard_normal(4), 4
    C, b = np.vstack([np.eye(d), -np.eye(d)]), np.full(2 * d, 0.4)
    problem = Problem(LeastSquares(np.eye(4), z) + 0.1 * L1Norm(), Polyhedron.box(-b[:4], b[:4]))
    result = lopro.solve(problem, method=FullTouch(20_000), tol=0)
    v = cp.Variable(d)
    value = 0.5 * cp.sum_squares(v - z) + 0.1 * cp.norm1(v)
    best = cp.Problem(cp.Minimize(value), [C @ v <= b]).solve(cp.CLARABEL)
    assert best - 1e-7 <= result.fun <= best + 0.05


def test_one_projection_and_every_row_in_every_iteration() -> None:
    problem, T = POLYGON.problem, 50
    calls = count_projections(problem.constraint)
    result = lopro.solve(problem, np.zeros(2), FullTouch(T, POLYGON.constants), tol=0)
    assert result.iterations == T
    assert result.counts.projections == calls() == 1
    # One product with all rows per iteration: as many rows as LightTouch could evaluate.
    assert result.counts.matvecs == result.counts.constraint_values == T
    assert result.counts.gradients == T and result.counts.rows == 0


def test_a_start_outside_costs_one_projection_more() -> None:
    result = lopro.solve(
        POLYGON.problem, 50.0 * np.ones(2), FullTouch(20, POLYGON.constants), tol=0
    )
    assert result.counts.projections == 2


def test_a_bound_from_the_objective_needs_a_feasible_start() -> None:
    """The sublevel set of |x|_1 bounds the solution; an infeasible start is projected for its value."""
    half = Polyhedron(np.array([[-2.0, -1.0]]), np.array([-1.0]))
    problem = Problem(L1Norm(), half)
    inside, outside = np.array([1.0, 0.0]), np.zeros(2)
    for start, projections in ((inside, 1), (outside, 2)):
        result = lopro.solve(problem, start, FullTouch(3000), tol=0)
        assert result.counts.projections == projections
        assert 0.5 - 1e-9 <= result.fun <= 0.55
        assert result.certificate.lower_bound <= 0.5 + 1e-9


@pytest.mark.parametrize("form", [MaxForm(), NormForm()], ids=repr)
def test_both_forms_of_a_polyhedron(form: Any) -> None:
    """Each form has its own rho and G_c, and so its own guarantee: 1/sqrt(3) and 1, 1 and sqrt(2)."""
    slope, T = np.array([1.0, -2.0, 0.5]), 4000
    problem = Problem(Linear(slope), Polyhedron.box(-np.ones(3), np.ones(3), form))
    result = lopro.solve(problem, method=FullTouch(T), tol=0)
    steepness = (
        math.sqrt(3.0) if isinstance(form, MaxForm) else problem.constraint.lipschitz().value
    )
    claim = np.linalg.norm(slope) * (1.0 + steepness) * math.sqrt(3.0) / math.sqrt(T)
    assert result.claim.gap <= claim + 1e-9
    assert 0.0 <= result.fun + 3.5 <= claim


def test_sampled_gradients_are_reproducible(rng: Any) -> None:
    f = LeastSquares(rng.standard_normal((50, 3)), rng.standard_normal(50))
    problem = Problem(f, Polyhedron.box(-0.1 * np.ones(3), 0.1 * np.ones(3)))
    method = FullTouch(500, stochastic=True)
    one, two, other = (lopro.solve(problem, method=method, tol=0, seed=s).x for s in (1, 1, 2))
    assert (one == two).all() and (one != other).any()


def test_library_is_kept() -> None:
    C, b = (array_api_strict.asarray(a) for a in rows(12))
    problem = Problem(Linear(array_api_strict.asarray([-0.6, 0.8])), Polyhedron(C, b))
    result = lopro.solve(problem, method=FullTouch(200), tol=0)
    assert type(result.x) is type(C)


def test_what_is_missing_is_named() -> None:
    large = Polygon(200).problem
    with pytest.raises(MissingCapabilityError, match="regularity constant"):
        lopro.solve(large, method=FullTouch())
    assert lopro.solve(large, method=FullTouch(10, Polygon(200).constants), tol=0).iterations == 10
    half = Polyhedron(np.array([[-2.0, -1.0]]), np.array([-1.0]))
    with pytest.raises(MissingCapabilityError, match="solution_norm"):
        lopro.solve(Problem(Linear(np.ones(2)), half), method=FullTouch())
    squared = ResidualBall(np.eye(2), np.zeros(2), 1.0)
    assert (
        lopro.solve(Problem(Linear(np.ones(2)), squared), method=FullTouch(10), tol=0).iterations
        == 10
    )
    plain = ResidualBall(np.eye(2), np.zeros(2), 1.0, ResidualNorm())
    assert (
        lopro.solve(Problem(Linear(np.ones(2)), plain), method=FullTouch(10), tol=0).iterations
        == 10
    )
    with pytest.raises(MissingCapabilityError, match="stochastic_subgradient"):
        lopro.solve(Problem(Linear(np.ones(2)), plain), method=FullTouch(stochastic=True))
    for bad in ({"iterations": 0}, {"radius": 0.0}):
        with pytest.raises(ValueError):
            FullTouch(**bad)
