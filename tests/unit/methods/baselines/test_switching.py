"""Switching subgradients: the guarantee of each level, from a bound on the distance alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import numpy as np
import pytest
from support.budget_checks import check_library_and_iterations, check_one_projection
from support.claims import silent
from support.sequential_runs import agreement
from support.theorem_checks import Recorded, count_projections
from support.theory_problems import t2, t3, t4, t5, t6_box, t9

import lopro
from lopro import Problem, Status
from lopro.constraints import Distance, FunctionConstraint, Polyhedron, ResidualBall, ResidualNorm
from lopro.methods.baselines import SwitchingSubgradient
from lopro.methods.baselines.switching import CHUNK, SwitchingSteps
from lopro.objectives import L1Norm, Linear
from lopro.penalties import Hinge
from lopro.penalties.penalised import Penalised


def norm_ball():
    return t4(form=ResidualNorm())


def cone():
    return t9(Distance())


KNOWN = [t2, t3, norm_ball, t5, t6_box, cone]


@dataclass(frozen=True)
class RecordedDistances(SwitchingSubgradient):
    """Records the distance that each level uses."""

    distances: list[float] = field(default_factory=list)

    def _level(self, bench: Any, x: Any, delta: float, D: float) -> Any:
        self.distances.append(D)
        return super()._level(bench, x, delta, D)


def worst_ratio(make: Any, method: RecordedDistances) -> float:
    """Return the worst ratio of left to right side: value, violation, both after projection, steps."""
    known = make()
    recorded = Recorded(method)
    lopro.solve(known.problem, known.x0, recorded, tol=0.0, max_iter=200_000)
    worst, H = 0.0, max(known.G, known.Gc)
    for epoch, D in zip(recorded.seen, method.distances, strict=True):
        delta, x = epoch.plan.inner.delta, epoch.x_hat
        assert float(np.linalg.norm(epoch.plan.start - known.solution)) <= D * (1.0 + 1e-12)
        worst = max(
            worst,
            known.gap(x) / delta,
            float(known.constraint.value(x)) / delta,
            known.gap(epoch.x) / (delta * (1.0 + known.G / known.rho)),
            # Checks come every CHUNK steps. G of T6 and T9 is that of a ball the iterates do not leave here.
            (epoch.state.t - CHUNK) / (D * H / delta) ** 2,
        )
    return worst


@pytest.mark.parametrize("make", KNOWN)
def test_every_level_satisfies_its_guarantees(make):
    assert worst_ratio(make, RecordedDistances(levels=5)) <= 1.0 + 1e-9


class Blind(SwitchingSteps):
    def on_objective(self, value: float) -> bool:
        return True


class Halfway(SwitchingSteps):
    """Takes constraint steps only where the violation is ten times the tolerance."""

    def on_objective(self, value: float) -> bool:
        return value <= 10.0 * self.delta


@pytest.mark.parametrize("steps", [Blind, Halfway])
@pytest.mark.parametrize("make", [t2, t3])
def test_without_the_switch_the_guarantees_fail(make, steps):
    """Negative control: the same check, with constraint steps too late or never."""

    class Broken(RecordedDistances):
        def steps(self, delta: float) -> SwitchingSteps:
            return steps(delta)

    assert worst_ratio(make, Broken(levels=5)) > 1.5


@pytest.mark.parametrize("make", KNOWN)
def test_bounds_are_valid_and_certify(make):
    known = make()
    result = lopro.solve(known.problem, known.x0, SwitchingSubgradient(levels=6), tol=0.0)
    scale = max(1.0, abs(known.optimum))
    assert max(result.history["lower_bound"]) <= known.optimum + 1e-12 * scale
    assert result.certificate.relative_gap <= 0.2
    assert not result.warnings


def test_the_claim_of_a_rough_objective_is_reported_beside_the_certificate():
    """The theorem claims ``f_* >= f(x) - delta`` along the run; the proof at the end is better."""

    def subgradient(x: Any) -> Any:
        largest = abs(x - 2.0) == abs(x - 2.0).max()
        return np.sign(x - 2.0) * largest / largest.sum()  # the mean of the ties, not their sum

    problem = Problem(
        lopro.objectives.FunctionObjective(
            lambda x: float(abs(x - 2.0).max()),
            subgradient=subgradient,
            shape=(2,),
        ),
        Polyhedron.box(-np.ones(2), np.ones(2)),
    )
    result = lopro.solve(problem, np.array([0.3, -0.2]), SwitchingSubgradient(levels=7), tol=0.0)
    assert result.history["claimed_bound"][-1] <= 1.0 <= result.fun + 1e-12
    assert result.certificate.gap <= 1e-12 < result.claim.gap <= 0.1


def reference(known: Any, delta: float, D: float, levels: int) -> list[tuple[int, float, float]]:
    """Return steps, ``f`` of the projected point and the bound of each level, by a plain implementation."""
    f, c, start, rows = known.objective, known.constraint, known.x0, []
    for _ in range(levels):
        x, spent, total, weights, steps = start, 0.0, np.zeros_like(start), 0.0, 0
        while spent < D**2 or steps % CHUNK:  # it checks after every CHUNK steps
            value = c.value(x)
            g = f.subgradient(x) if value <= delta else c.subgradient(x)
            square = float(np.sum(g * g))
            if value <= delta:
                total, weights = total + x / square, weights + 1.0 / square
                spent, x = spent + delta**2 / square, x - delta / square * g
            else:
                spent, x = spent + value**2 / square, x - value / square * g
            steps += 1
        average = total / weights
        start = c.project(average)
        rows.append((steps, f.value(start), f.value(average) - delta))
        delta /= 2.0
    return rows


@pytest.mark.parametrize("make", [t2, norm_ball, t5, t6_box])
def test_each_level_is_that_of_a_plain_implementation_and_proves_its_value_less_delta(make):
    known = make()
    D, delta, levels = 1.01 * known.distance, 0.3, 4
    rows = reference(known, delta, D, levels)
    method = SwitchingSubgradient(levels, delta, D)
    history = lopro.solve(silent(known), known.x0, method, tol=0.0).history
    assert history["iterations"] == list(np.cumsum([row[0] for row in rows]))
    assert history["fun"] == pytest.approx([row[1] for row in rows], rel=1e-9)
    proved = list(accumulate((row[2] for row in rows), max))
    assert history["claimed_bound"] == pytest.approx(proved, rel=1e-9)
    assert proved[-1] <= known.optimum


@pytest.mark.parametrize("levels", [1, 4])
@pytest.mark.parametrize("feasible", [True, False])
def test_one_projection_per_level_by_both_counts(levels, feasible):
    known = t3()
    calls = count_projections(known.constraint)
    x0 = known.x0 if feasible else -known.x0
    result = lopro.solve(known.problem, x0, SwitchingSubgradient(levels), tol=0.0)
    assert calls() == result.counts.projections == levels + (not feasible)
    assert len(result.history) == levels and result.status is Status.SCHEDULE_DONE


def test_it_agrees_with_cvxpy():
    names = (
        "distance/box/",
        "distance/tall_ball/",
        "linear/box/",
        "quadratic/box/",
        "matrix_distance/",
    )
    worst, count = agreement(SwitchingSubgradient(20), tol=1e-3, names=names, max_iter=20_000)
    assert count >= 6 and worst <= 5e-3


def test_missing_properties_are_named():
    half = Polyhedron(np.array([[1.0, 0.0]]), np.zeros(1))
    problem = Problem(Linear(np.array([-1.0, 0.0])), half)
    with pytest.raises(lopro.MissingCapabilityError, match="solution_norm="):
        lopro.solve(problem, method=SwitchingSubgradient())
    assert lopro.solve(problem, method=SwitchingSubgradient(2, radius=1.0), tol=0.0).history


def test_a_constraint_that_cannot_be_met_is_reported():
    never = FunctionConstraint(lambda x: 1.0 + float(x @ x), lambda x: 2.0 * x, shape=(2,))
    x = np.zeros(2)
    F, steps = Penalised(Linear(np.ones(2)), never, Hinge(0.0), x), SwitchingSteps(0.1)
    with pytest.raises(lopro.InfeasibleError, match="slope zero"):
        steps.step(F, steps.init(F, x, np.random.default_rng(0)))


def test_an_optimal_start_is_detected():
    problem = Problem(L1Norm(), ResidualBall(np.eye(2), np.zeros(2), 1.0))
    result = lopro.solve(problem, method=SwitchingSubgradient())
    assert result.success and result.fun == 0.0


def test_library_and_budgets_are_kept():
    check_library_and_iterations(SwitchingSubgradient(), 500)


def test_a_spent_budget_of_projections_ends_the_run():
    check_one_projection(SwitchingSubgradient())


@pytest.mark.parametrize("arguments", [{"levels": 0}, {"delta": 0.0}, {"radius": -1.0}])
def test_bad_parameters(arguments):
    with pytest.raises((TypeError, ValueError), match=next(iter(arguments))):
        SwitchingSubgradient(**arguments)
