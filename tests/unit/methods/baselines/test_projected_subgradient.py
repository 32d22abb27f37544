"""Projected subgradient descent and OPGD: their rates, their counts, their agreement with others."""

from __future__ import annotations

import itertools
import math
from typing import Any

import array_api_strict
import cvxpy as cp
import numpy as np
import pytest
from support.baseline_runs import gap, referee, run
from support.theorem_checks import size
from support.theory_problems import Known, t2, t3, t4, t5, t9
from support.tilted import tilted

import lopro
from lopro.constraints import Polyhedron, PSDCone, ResidualNorm
from lopro.errors import MissingCapabilityError
from lopro.methods.baselines import OPGD, BestIterate, ProjectedSubgradient
from lopro.methods.inner import ConstantStep, LastIterate, SqrtStep, SuffixAverage, UniformAverage
from lopro.objectives import L1Norm, LeastSquares, SquaredDistance

HORIZONS = [1, 4, 30, 300]
KNOWN = {"T2": t2, "T3": t3, "T4": t4, "T5": t5}


def horizon_ratio(known: Known, T: int, factor: float = 1.0) -> float:
    """Return the gap over ``G D / sqrt T``, with steps ``factor`` times those of the theorem."""
    method = ProjectedSubgradient.with_horizon(known.G, known.distance, T)
    method = ProjectedSubgradient(ConstantStep(factor * method.step.eta), iterations=T)
    ran = run(known, method)
    assert ran.projections == ran.result.iterations == T
    return gap(known, ran.x) / (known.G * known.distance / math.sqrt(T))


@pytest.mark.parametrize("T", HORIZONS)
@pytest.mark.parametrize("problem", KNOWN)
def test_mean_obeys_its_bound_with_one_projection_per_iteration(problem: str, T: int) -> None:
    assert horizon_ratio(KNOWN[problem](), T) <= 1.0


def test_bound_rejects_steps_that_are_too_short_or_too_long() -> None:
    assert horizon_ratio(t3(), 300, 1e-3) > 1.0
    assert horizon_ratio(t3(), 300, 300.0) > 1.0


def decaying_ratio(known: Known, diameter: float, average: Any, T: int) -> float:
    """Return the gap over ``(D^2 / (2 eta0) + eta0 G^2) / sqrt T`` with ``eta0 = D / (sqrt 2 G)``."""
    eta0 = diameter / (math.sqrt(2.0) * known.G)
    ran = run(known, ProjectedSubgradient(SqrtStep(eta0), average, iterations=T))
    return gap(known, ran.x) * math.sqrt(T) / (math.sqrt(2.0) * known.G * diameter)


@pytest.mark.parametrize("T", HORIZONS)
@pytest.mark.parametrize("average", [ProjectedSubgradient().average, BestIterate()], ids=str)
def test_decaying_steps_obey_their_bound_at_any_time(average: Any, T: int) -> None:
    assert decaying_ratio(t2(), 2.0 * math.sqrt(5.0), average, T) <= 1.0
    assert decaying_ratio(t5(), 2.0, average, T) <= 1.0


def test_averages_are_those_of_a_plain_implementation() -> None:
    known = t3()
    x, seen = known.x0, []
    for t in range(1, 31):
        seen.append(x)
        x = known.constraint.project(x - 0.4 / math.sqrt(t) * np.sign(x))
    expected = {
        UniformAverage(): np.mean(seen, axis=0),
        SuffixAverage(0.5, 30): np.mean(seen[15:], axis=0),
        LastIterate(): x,
    }
    for average, point in expected.items():
        ran = run(known, ProjectedSubgradient(SqrtStep(0.4), average, iterations=30))
        assert ran.x == pytest.approx(point, abs=1e-12)


def test_best_iterate_has_the_least_value_of_all() -> None:
    known = t3()
    runs = [
        run(known, ProjectedSubgradient(SqrtStep(0.3), average, iterations=40, report=1))
        for average in (LastIterate(), BestIterate())
    ]
    # The last iterate is the one after the step, the best is among those before it.
    met = np.minimum.accumulate([known.eps0] + [known.gap(e.x) for e in runs[0].epochs])
    assert [known.gap(e.x) for e in runs[1].epochs] == pytest.approx(list(met[:-1]))
    assert known.gap(runs[0].x) > known.gap(runs[1].x)


@pytest.mark.parametrize("method", [ProjectedSubgradient, OPGD])
def test_no_argument_is_needed_and_it_agrees_with_an_interior_point_solver(
    method: Any, rng: np.random.Generator
) -> None:
    d = 6
    A, z = rng.standard_normal((9, d)), rng.standard_normal(d)
    b, w = A @ z - 0.3 * np.ones(9), rng.uniform(0.5, 1.5, d)
    best, _ = referee(d, lambda x: cp.norm1(cp.multiply(w, x)), lambda x: [A @ x <= b])
    polyhedron = Polyhedron(A, b)
    given = {} if method is ProjectedSubgradient else {"lam": 5.0}
    result = lopro.solve(
        lopro.Problem(L1Norm(w), polyhedron), method=method(**given, iterations=3000), tol=0
    )
    assert best - 1e-6 <= result.fun <= best + 0.02 * best
    assert result.certificate.lower_bound <= best + 1e-6
    assert polyhedron.value(result.x) <= 1e-9


def test_multipliers_of_the_projections_certify_the_answer() -> None:
    for known in (t3(), t4(form=ResidualNorm())):
        method = ProjectedSubgradient(SqrtStep(0.3), iterations=4000)
        result = lopro.solve(known.problem, known.x0, method, tol=0)
        assert result.certificate.lower_bound <= known.optimum + 1e-9
        assert result.certificate.gap <= 0.02


@pytest.mark.parametrize("eta", [0.3, 0.01])
def test_the_error_of_inexact_projections_is_charged(eta: float) -> None:
    """At a corner of T2 the last step proves the optimum, less the effect of 2^16 units of rounding.

    ``v - x+ = -eta a`` exactly: its length and its product with solutions of norm ``sqrt d`` are the only
    terms that errors of size ``2^16 eps (|v - x+| + |x+|)`` in a projection change.
    """
    known = t2()
    method = ProjectedSubgradient(ConstantStep(eta), LastIterate(), iterations=2000)
    result = lopro.solve(known.problem, known.x0, method, tol=0)
    assert result.x == pytest.approx(known.solution, abs=1e-14)
    far = math.sqrt(known.x0.size)
    error = 2.0**16 * np.finfo(float).eps * (eta * known.G + far)
    charged = error * (far + eta * known.G + far) / eta
    assert result.certificate.gap == pytest.approx(charged, rel=1e-3)


def test_psd_cone_one_eigendecomposition_per_iteration() -> None:
    known = t9()
    ran = run(known, ProjectedSubgradient(ConstantStep(0.5), LastIterate(), iterations=40))
    assert ran.projections == ran.result.counts.eigendecompositions == 40
    assert gap(known, ran.x) <= 1e-10


def test_infeasible_start_costs_one_projection_more() -> None:
    known = t3()
    ran = run(known, ProjectedSubgradient(iterations=20), x0=-np.ones(4))
    assert ran.projections == 21
    assert run(known, ProjectedSubgradient(iterations=50), max_projections=7).projections == 7


def test_stochastic_slopes_obey_the_bound_in_the_mean(rng: np.random.Generator) -> None:
    A, b = rng.standard_normal((30, 3)), rng.standard_normal(30)
    box = Polyhedron.box(-0.1 * np.ones(3), 0.1 * np.ones(3))
    problem = lopro.Problem(LeastSquares(A, b), box)
    best = lopro.solve(problem, tol=1e-9).fun
    # A row drawn at random: the mean square of the slope is convex, and largest at a corner.
    corners = 0.1 * np.array(list(itertools.product((-1, 1), repeat=3)))
    squares = 30 * (A**2).sum(1) @ (A @ corners.T - b[:, None]) ** 2
    G, D, T = math.sqrt(squares.max()), 0.2 * math.sqrt(3.0), 2000
    method = ProjectedSubgradient(SqrtStep(D / (math.sqrt(2.0) * G)), iterations=T, stochastic=True)
    runs = [lopro.solve(problem, method=method, tol=0, seed=seed) for seed in range(4)]
    mean = np.mean([result.fun - best for result in runs])
    assert 0.0 <= mean <= math.sqrt(2.0) * G * D / math.sqrt(T)
    assert runs[0].fun != runs[1].fun


@pytest.mark.parametrize("cls", [ProjectedSubgradient, OPGD])
def test_stochastic_slopes_need_an_objective_that_has_them(cls: Any) -> None:
    with pytest.raises(MissingCapabilityError, match="stochastic_subgradient"):
        lopro.solve(t3().problem, method=cls(stochastic=True))


def test_library_and_precision_are_kept() -> None:
    z = array_api_strict.asarray([2.0, -0.5], dtype=array_api_strict.float32)
    box = Polyhedron.box(0.0 * z - 1.0, 0.0 * z + 1.0)
    for method in (ProjectedSubgradient(iterations=50), OPGD(lam=3.0, iterations=50)):
        x = lopro.solve(lopro.Problem(SquaredDistance(z), box), method=method, tol=0).x
        assert isinstance(x, type(z)) and x.dtype == array_api_strict.float32


# OPGD.


def opgd_ratio(known: Known, T: int, weight: float = 1.0) -> float:
    """Return the gap over ``Gbar D / sqrt T``; the hinge has ``weight`` times its proper weight."""
    lam = known.constants.weight
    bar = known.constants.subgradient_bound(lam)
    step = ConstantStep(known.distance / (bar * math.sqrt(T)))
    ran = run(known, OPGD(weight * lam, step, iterations=T))
    assert ran.projections == 1 and ran.result.iterations == T
    return gap(known, ran.x) / (bar * known.distance / math.sqrt(T))


@pytest.mark.parametrize("problem", KNOWN)
def test_opgd_scales_its_own_steps_to_the_slope_outside(problem: str) -> None:
    """``(unit + |x|) / (|df| + lam |dc|) / sqrt t`` at the start, in the unit of the problem's x."""
    known, lam = KNOWN[problem](), 3.0
    of_f, of_c = (size(p.subgradient(known.x0)) for p in (known.objective, known.constraint))
    unit = known.problem.typical_size(known.x0)
    step = SqrtStep((unit + size(known.x0)) / (of_f + lam * of_c))
    own, given = (run(known, OPGD(lam, rule, iterations=40)) for rule in (None, step))
    assert own.x == pytest.approx(given.x, rel=1e-12)


@pytest.mark.parametrize("T", [*HORIZONS, 3000])
@pytest.mark.parametrize("problem", ["T2", "T3", "T5"])
def test_opgd_obeys_its_bound_with_one_projection(problem: str, T: int) -> None:
    assert opgd_ratio(KNOWN[problem](), T) <= 1.0


def test_opgd_rejects_a_hinge_without_weight() -> None:
    known = t3()
    T = 20_000
    assert opgd_ratio(known, T) <= 1.0
    assert opgd_ratio(known, T, 0.01) > 1.0


def test_opgd_names_a_missing_constant() -> None:
    problem = lopro.Problem(SquaredDistance(np.eye(2)), PSDCone(2))
    with pytest.raises(MissingCapabilityError, match=r"lam.*Lipschitz"):
        lopro.solve(problem, method=OPGD())
    assert lopro.solve(problem, method=OPGD(lam=1.0, iterations=10), tol=0).counts.projections == 1


def test_opgd_finds_a_weight_where_solutions_are_bounded() -> None:
    known = tilted()
    bounded = lopro.Problem(known.objective, known.constraint, solution_norm=4.0)
    result = lopro.solve(bounded, known.x0, OPGD(iterations=4000), tol=0)
    assert result.counts.projections == 1
    assert result.history["penalty_weight"][0] >= known.zeta
    assert known.gap(result.x) <= 0.1


@pytest.mark.parametrize("cls", [ProjectedSubgradient, OPGD])
def test_bad_arguments_are_named(cls: Any) -> None:
    with pytest.raises(TypeError, match="step"):
        cls(step=0.1)
    with pytest.raises(TypeError, match="average"):
        cls(average="mean")
    with pytest.raises(ValueError, match="iterations"):
        cls(iterations=0)
