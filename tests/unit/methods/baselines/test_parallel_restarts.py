"""Parallel restarts: the bound on their time, which fails without the exchange of points."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.budget_checks import check_library_and_iterations, check_one_projection
from support.sequential_runs import agreement
from support.theorem_checks import Recorded, count_projections
from support.theory_problems import t1, t3, t4, t5

import lopro
from lopro import Problem
from lopro.constraints import Polyhedron
from lopro.methods.baselines import ParallelRestarts
from lopro.methods.paper.restarts import AcceleratedSolver, SubgradientSolver
from lopro.methods.paper.restarts.subproblem_solvers import initial_gap
from lopro.methods.setting import Needs
from lopro.objectives import Linear


class Alone(ParallelRestarts):
    """Runs that never restart and never exchange points."""

    def improved(self, copy: Any, value: float) -> bool:
        return False


def time_bound(known: Any, method: ParallelRestarts, eps: float) -> int:
    """Return ``sum_n (3 K_n + 1)``, the steps that each run may need."""

    class Bench:
        problem = counted = known.problem
        objective, constraint = known.problem.objective, known.problem.constraint

        def observe(self) -> Any:
            return lopro.core.counting.counting(lopro.core.counting.Counts())

    s = Needs("test", method.constants, method.radius).find(Bench(), known.x0)
    accuracies = method.accuracies(eps, initial_gap(known.problem, s))
    reach = [known.sigma * (5.0 * e) ** known.theta for e in accuracies]
    return sum(3 * method.solver.steps(s, d, e) + 1 for d, e in zip(reach, accuracies, strict=True))


def ratio(make: Any, kind: type[ParallelRestarts], solver: Any, eps: float) -> float:
    """Return the gap after exactly the steps of the theorem, over eps."""
    known = make()
    arguments = {"target": eps, "radius": known.distance, "constants": known.constants}
    if not math.isfinite(known.Gc):
        del arguments["constants"]
    bound = time_bound(known, ParallelRestarts(solver, **arguments), eps)
    assert bound <= 10_000, "too slow for a test"
    method = kind(solver, reports=1, first=bound, **arguments)
    return reached(known, method) / eps


def reached(known: Any, method: ParallelRestarts) -> float:
    """Return the larger gap of the penalised value before, and of f after the one projection."""
    recorded = Recorded(method)
    result = lopro.solve(known.problem, known.x0, recorded, tol=0.0)
    assert result.counts.projections == 1
    return max(known.gap(result.x), recorded.seen[0].penalised - known.optimum)


def smooth_half_space():
    return t3(smooth=True)


CASES = [
    (t1, SubgradientSolver(), 1e-3),
    (t5, SubgradientSolver(), 0.08),
    (smooth_half_space, AcceleratedSolver(), 1e-3),
    (t4, AcceleratedSolver(), 1e-2),
]


@pytest.mark.parametrize(("make", "solver", "eps"), CASES)
def test_the_target_is_met_in_the_time_of_the_theorem(make, solver, eps):
    assert ratio(make, ParallelRestarts, solver, eps) < 1.0


def test_without_restarts_the_target_is_not_met():
    """Negative control: the same runs and the same time without restarts."""
    assert ratio(t1, Alone, SubgradientSolver(), 1e-3) > 1.0


def test_accuracies_cover_the_start():
    for eps0 in (1e-3, 0.7, 40.0):
        accuracies = ParallelRestarts().accuracies(1e-2, eps0)
        assert accuracies[0] == 5e-3
        assert 5.0 * accuracies[-1] >= eps0
        assert len(accuracies) == 1 or 5.0 * accuracies[-2] < eps0


def reference(known: Any, accuracies: list[float], D: float, steps: int) -> float:
    """Return the least ``F`` of all runs on T1, by a plain implementation.

    ``F = -x + [x]_+`` has the slopes -1 and 0: iterates increase by ``eps / Gbar^2`` up to zero.
    """
    bar = known.G + known.G / known.rho * known.Gc

    def F(x: float) -> float:
        return -x + max(x, 0.0)

    x0 = float(known.x0[0])
    # For each run: its start, the sum and number of its points, and its current point.
    started = [x0] * len(accuracies)
    state = [(0.0, 0, x0)] * len(accuracies)
    best = F(x0)
    for _ in range(steps):
        messages: list[float | None] = [None] * len(accuracies)
        for n, eps in enumerate(accuracies):
            total, t, x = state[n]
            total, t = total + x, t + 1
            g = -1.0 if x <= 0.0 else 0.0
            x = min(x - eps / bar**2 * g, x0 + D)
            state[n] = total, t, x
            mean = total / t
            best = min(best, F(mean))
            if F(mean) <= F(started[n]) - eps:
                started[n], state[n] = mean, (0.0, 0, mean)
                if n > 0:
                    messages[n - 1] = mean
        for n, message in enumerate(messages):
            if message is not None and F(message) <= F(started[n]) - accuracies[n]:
                started[n], state[n] = message, (0.0, 0, message)
    return best


@pytest.mark.parametrize("steps", [3, 10, 25, 60])
def test_restarts_and_exchanges_are_those_of_a_plain_implementation(steps):
    """On T1, where ``f(x) = F(x^)`` up to the end: the best value of all runs is the one reported."""
    # With the exact constant 1 the mean of nine points would be better by exactly eps, up to rounding.
    known = replace(t1(-3.0), Gc=1.3)
    method = ParallelRestarts(
        reports=1, first=steps, target=0.1, constants=known.constants, radius=4.0
    )
    result = lopro.solve(known.problem, known.x0, method, tol=0.0)
    accuracies = method.accuracies(0.1, 4.0)  # |g| D bounds the first gap
    assert result.iterations == steps * len(accuracies) == steps * 5
    assert result.fun == pytest.approx(reference(known, accuracies, 4.0, steps), abs=1e-12)


@pytest.mark.parametrize("reports", [1, 4])
@pytest.mark.parametrize("feasible", [True, False])
def test_one_projection_per_report_by_both_counts(reports, feasible):
    known = t3()
    calls = count_projections(known.constraint)
    method = ParallelRestarts(reports=reports, first=8, target=0.1)
    result = lopro.solve(known.problem, known.x0 if feasible else -known.x0, method, tol=0.0)
    assert calls() == result.counts.projections == reports + (not feasible)
    runs = result.history["iterations"][0] // 8
    assert [n // runs for n in result.history["iterations"]] == [8 * 2**r for r in range(reports)]


def test_it_agrees_with_cvxpy():
    names = ("distance/box/", "distance/tall_ball/", "linear/box/")
    worst, count = agreement(ParallelRestarts(reports=4), tol=1e-3, names=names)
    assert count >= 3 and worst <= 0.05
    smooth = ParallelRestarts(AcceleratedSolver(), reports=3)
    worst, count = agreement(smooth, tol=1e-5, names=("distance/tall_ball/",))
    assert count >= 1 and worst <= 1e-3


def test_missing_properties_are_named():
    half = Polyhedron(np.array([[1.0, 0.0]]), np.zeros(1))
    problem = Problem(Linear(np.array([-1.0, 0.0])), half)
    with pytest.raises(lopro.MissingCapabilityError, match="ParallelRestarts needs a bound"):
        lopro.solve(problem, method=ParallelRestarts())


def test_library_and_budgets_are_kept():
    check_library_and_iterations(ParallelRestarts(), 300, tol=1e-3)


def test_a_spent_budget_of_projections_ends_the_run():
    check_one_projection(ParallelRestarts(first=16))


@pytest.mark.parametrize(
    "arguments", [{"solver": 1}, {"reports": 0}, {"first": 0}, {"target": 0.0}]
)
def test_bad_parameters(arguments):
    with pytest.raises((TypeError, ValueError), match=next(iter(arguments))):
        ParallelRestarts(**arguments)
