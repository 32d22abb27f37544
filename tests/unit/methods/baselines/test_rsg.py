"""RSG and R2SG: the invariant of every stage, and their counts."""

from __future__ import annotations

import math
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from support.baseline_runs import gap, referee, run
from support.theorem_checks import run_schedule
from support.theory_problems import Known, t1, t2, t3, t4, t5

import lopro
from lopro.constraints import Polyhedron
from lopro.errors import MissingCapabilityError
from lopro.methods.baselines import R2SG, RSG, rsg
from lopro.objectives import L1Norm, Linear, SquaredDistance

PROBLEMS = {"T1": t1, "T2": t2, "T3": t3, "T4": t4, "T5": t5}


def theorem(known: Known, eps: float) -> RSG:
    return RSG.with_error_bound(known.G, known.eps0, eps, known.sigma, known.theta)


@pytest.mark.parametrize("eps", [0.1, 0.03])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_every_stage_keeps_the_invariant_with_one_projection_per_step(
    problem: str, eps: float
) -> None:
    known = PROBLEMS[problem]()
    method = theorem(known, eps)
    ran = run_schedule(known, method, known.eps0, eps)
    assert ran.worst <= 1.0
    K = math.ceil(math.log2(known.eps0 / eps))
    t = math.ceil(4.0 * (known.G * known.sigma) ** 2 / eps ** (2.0 * (1.0 - known.theta)))
    assert len(ran.epochs) == K
    assert ran.projections == ran.counted == ran.iterations == K * t


def test_invariant_rejects_steps_that_are_not_halved(monkeypatch: Any) -> None:
    known, eps = t3(), 1e-3
    assert run_schedule(known, theorem(known, eps), known.eps0, eps).worst <= 1.0
    constant = rsg.ConstantStep

    def first_step_only(eta: float) -> Any:
        return constant(known.eps0 / (2.0 * known.G**2))

    monkeypatch.setattr(rsg, "ConstantStep", first_step_only)
    known = t3()
    assert run_schedule(known, theorem(known, eps), known.eps0, eps).worst > 1.0


@pytest.mark.parametrize("cls", [RSG, R2SG])
@pytest.mark.parametrize("problem", ["T2", "T3"])
def test_the_first_step_of_its_own_is_eps0_over_twice_the_squared_slope(
    cls: Any, problem: str
) -> None:
    """T3 has the infimum 0; T2 has none, and its eps0 is ``G`` times the largest distance of a solution."""
    known = PROBLEMS[problem]()
    far = float(np.linalg.norm(known.x0)) + math.sqrt(known.x0.size)
    eps0 = known.objective.value(known.x0) if problem == "T3" else known.G * far
    own = run(known, cls(steps=20, stages=3))
    given = run(known, cls(steps=20, stages=3, step=eps0 / (2.0 * known.G**2)))
    assert own.result.history["fun"] == pytest.approx(given.result.history["fun"], rel=1e-12)
    other = run(known, cls(steps=20, stages=3, step=1.1 * eps0 / (2.0 * known.G**2)))
    assert own.result.history["fun"] != pytest.approx(other.result.history["fun"], rel=1e-6)


def test_invariant_rejects_stages_that_are_too_short() -> None:
    known, eps = t2(), 1e-3
    method = theorem(known, eps)
    short = RSG(2, method.stages, method.step)
    assert run_schedule(known, short, known.eps0, eps).worst > 1.0


# R2SG.


def rounds_ratio(known: Known, method: R2SG, eps: float, first: float) -> float:
    """Return the worst gap at the end of round s over ``eps0 / 2^K + eps_1 / 2^(s-1)``."""
    ran = run(known, method)
    total = sum(method.stages * method.length(s) for s in range(1, method.rounds + 1))
    assert ran.projections == ran.result.iterations == total
    assert len(ran.epochs) == method.rounds * method.stages
    ends = ran.epochs[method.stages - 1 :: method.stages]
    bounds = [eps + first / 2.0**s for s in range(method.rounds)]
    return max(gap(known, e.x) / bound for e, bound in zip(ends, bounds, strict=True))


@pytest.mark.parametrize("problem", ["T2", "T3", "T4", "T5"])
def test_rounds_halve_the_accuracy(problem: str) -> None:
    known = PROBLEMS[problem]()
    first, rounds = 0.25 * known.eps0, 3
    t = rsg.stage_length(known.G, first, known.sigma, known.theta)
    eps = first / 2.0 ** (rounds - 1)
    K = math.ceil(math.log2(known.eps0 / eps))
    step = known.eps0 / (2.0 * known.G**2)
    method = R2SG(t, K, rounds, known.theta, step)
    assert rounds_ratio(known, method, eps, first) <= 1.0
    # A theta that is too small is safe: stages only grow faster.
    if known.theta < 1.0:
        assert rounds_ratio(known, R2SG(t, K, 2, 0.0, step), eps, first) <= 1.0


def test_a_round_starts_where_the_last_one_ended() -> None:
    known = t2()
    both = run(known, R2SG(7, 3, 2, 0.5, 0.2))
    first = run(known, RSG(7, 3, 0.2))
    second = run(known, RSG(14, 3, 0.2), x0=first.x)
    assert [list(e.x) for e in both.epochs] == [list(e.x) for e in first.epochs + second.epochs]


def test_rounds_reject_a_single_stage_of_each() -> None:
    known = t3()
    step = known.eps0 / (2.0 * known.G**2)
    method = R2SG(8, 1, 6, 1.0, step)
    assert rounds_ratio(known, method, 1e-3, 0.01) > 1.0


@pytest.mark.parametrize("method", [RSG(100, 14), R2SG(15, 10, 2)], ids=repr)
def test_agrees_with_an_interior_point_solver_without_constants(
    method: Any, rng: np.random.Generator
) -> None:
    A = rng.standard_normal((3, 5))
    b = A @ rng.standard_normal(5) - 0.5
    best, _ = referee(5, cp.norm1, lambda x: [A @ x <= b])
    result = lopro.solve(lopro.Problem(L1Norm(), Polyhedron(A, b)), method=method, tol=0)
    assert best - 1e-6 <= result.fun <= best + 1e-2
    assert result.certificate.lower_bound <= best + 1e-6
    assert result.certificate.gap <= 2e-2


def test_missing_constants_are_named_before_any_work() -> None:
    half = Polyhedron(-np.ones((1, 2)), -np.ones(1))
    for cls in (RSG, R2SG):
        with pytest.raises(MissingCapabilityError, match="step="):
            lopro.solve(lopro.Problem(Linear(np.ones(2)), half), method=cls())
        # Strong convexity bounds the solutions, and a ball has a Lipschitz constant.
        cls().check(lopro.Problem(SquaredDistance(np.zeros(2)), half))
        with pytest.raises(ValueError, match="step must be"):
            cls(step=0.0)
    given = RSG(steps=20, stages=3, step=0.1)
    result = lopro.solve(lopro.Problem(Linear(np.ones(2)), half), np.ones(2), given, tol=0)
    assert result.counts.projections == 60
    assert (
        lopro.solve(
            lopro.Problem(Linear(np.ones(2)), half), np.ones(2), given, tol=0, max_iter=25
        ).iterations
        == 25
    )
