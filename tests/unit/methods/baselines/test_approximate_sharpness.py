"""Restarts under approximate sharpness: the rate of a right guess, independent of the others."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from support.budget_checks import check_one_projection
from support.sequential_runs import agreement
from support.theorem_checks import Recorded, count_projections
from support.theory_problems import t1, t3, t4, t5

import lopro
from lopro import LoPGD, LoPNAG, Problem, Status
from lopro.constraints import Polyhedron
from lopro.methods.paper.restarts import AcceleratedSolver, ApproximateSharpness, SubgradientSolver
from lopro.methods.paper.restarts.approximate_sharpness import SharpnessCell
from lopro.objectives import Linear


def smooth_half_space():
    return t3(smooth=True)


class TooShort(ApproximateSharpness):
    """Assumes solutions thirty times nearer than its constants imply."""

    def cost(self, plan: Any, cell: SharpnessCell) -> int:
        assert plan.setting is not None
        gap = self.gap(plan, cell)
        delta = cell.distance(2.0 * gap, self.scale(plan.setting, plan.eps0)) / 30.0
        return self.solver.steps(plan.setting, delta, 0.5 * gap)


def right(known: Any, cell: SharpnessCell, scale: float) -> bool:
    """Return whether a guess satisfies the assumptions of the theorem."""
    alpha, beta = known.sigma ** (-1.0 / known.theta), 1.0 / known.theta
    return cell.alpha(scale) <= alpha and cell.beta / 2.0 < beta <= cell.beta


@dataclass
class RecordedStates:
    """A schedule that records the state of another one with each plan."""

    schedule: Any
    searches: list[Any] = field(default_factory=list)

    def init(self, bench: Any, x: Any) -> Any:
        return self._kept(self.schedule.init(bench, x))

    def next(self, bench: Any, state: Any, epoch: Any) -> Any:
        return self._kept(self.schedule.next(bench, state, epoch))

    def _kept(self, answer: Any) -> Any:
        plan, state = answer
        if plan is not None:
            self.searches.append(state)
        return answer


def run(make: Any, kind: type[ApproximateSharpness], solver: Any, **arguments: Any) -> Any:
    """Return the problem, the candidates, the searches that led to them, and the result."""
    known = make()
    schedule = RecordedStates(
        kind(solver, eps0=known.eps0, radius=1.1 * known.distance, **arguments)
    )
    scheme = LoPNAG(schedule) if isinstance(solver, AcceleratedSolver) else LoPGD(schedule)
    recorded = Recorded(scheme)
    result = lopro.solve(known.problem, known.x0, recorded, tol=0.0)
    assert len(schedule.searches) == len(recorded.seen)
    return known, recorded.seen, schedule.searches, result


def worst_guess(make: Any, kind: type[ApproximateSharpness], solver: Any) -> tuple[float, int]:
    """Return the worst ``best gap / (eps0 / 2^U)`` of right guesses, and their number of restarts."""
    known, epochs, searches, _ = run(make, kind, solver, restarts=400, budget=40_000)
    scale = known.eps0 / (1.1 * known.distance)
    best, worst, count = known.eps0, 0.0, 0
    for epoch, search in zip(epochs, searches, strict=True):
        best = min(best, known.gap(epoch.x))
        if right(known, search.cell, scale):
            count += 1
            worst = max(worst, best * 2.0 ** search.restarts[search.cell] / known.eps0)
    return worst, count


CASES = [
    (t1, SubgradientSolver()),
    (t5, SubgradientSolver()),
    (smooth_half_space, AcceleratedSolver()),
    (t4, AcceleratedSolver()),
]


@pytest.mark.parametrize(("make", "solver"), CASES)
def test_a_right_guess_halves_the_gap_with_every_restart(make, solver):
    worst, count = worst_guess(make, ApproximateSharpness, solver)
    assert count >= 4
    assert worst <= 1.0


@pytest.mark.parametrize(("make", "solver"), [CASES[0], CASES[3]])
def test_with_too_few_steps_the_gap_does_not_halve(make, solver):
    """Negative control: the same guesses, at a fraction of the steps they require."""

    class Only(TooShort):
        """Right guesses alone, so that no other one lowers the gap."""

        @property
        def cells(self) -> Any:
            known = make()
            scale = known.eps0 / (1.1 * known.distance)
            return tuple(cell for cell in super().cells if right(known, cell, scale))

    worst, count = worst_guess(make, Only, solver)
    assert count >= 5
    assert worst > 1.0


def test_turns_are_taken_by_weighted_cost():
    """The weighted cost of the chosen guess never decreases, and none exceeds that of the last one."""
    _, epochs, searches, _ = run(t1, ApproximateSharpness, SubgradientSolver(), restarts=200)
    costs = [s.cell.weight * s.cost[s.cell] for s in searches]
    assert all(b >= a for a, b in pairwise(costs))
    for cell, cost in searches[-1].cost.items():
        assert cost * cell.weight <= costs[-1]
    assert searches[-1].total == sum(e.plan.steps for e in epochs)


def test_guesses():
    cell = SharpnessCell(1, 1)
    assert (cell.alpha(0.5), cell.beta, cell.weight) == (2.0, 2.0, 16.0)
    assert cell.distance(0.5, 0.5) == 0.5  # (1/4)^(1/2)
    assert cell.distance(8.0, 0.5) == 4.0  # beta may be as small as 1
    assert SharpnessCell(0, 2).distance(16.0, 1.0) == 4.0  # or 2
    assert len(ApproximateSharpness(reach=4).cells) == 9 * 3


def test_points_never_get_worse_and_guesses_retire():
    known, epochs, searches, result = run(
        t1, ApproximateSharpness, SubgradientSolver(), restarts=10_000, budget=5000, target=0.1
    )
    starts = [known.gap(e.plan.start) for e in epochs]
    assert all(b <= a + 1e-15 for a, b in pairwise(starts))
    halvings = math.ceil(math.log2(known.eps0 / 0.1))
    assert max(searches[-1].restarts.values()) == halvings
    assert result.iterations <= 5000


@pytest.mark.parametrize("feasible", [True, False])
def test_one_projection_per_restart_by_both_counts(feasible):
    known = t3()
    calls = count_projections(known.constraint)
    scheme = LoPGD(ApproximateSharpness(restarts=30))
    result = lopro.solve(known.problem, known.x0 if feasible else -known.x0, scheme, tol=0.0)
    assert calls() == result.counts.projections == 30 + (not feasible)
    assert len(result.history) == 30


def test_it_agrees_with_cvxpy():
    scheme = LoPNAG(ApproximateSharpness(AcceleratedSolver()))
    worst, count = agreement(scheme, tol=1e-5, names=("distance/tall_ball/",))
    assert count >= 1 and worst <= 1e-4
    names = ("distance/box/", "linear/box/")
    worst, count = agreement(LoPGD(ApproximateSharpness(budget=10_000)), tol=1e-3, names=names)
    assert count >= 2 and worst <= 1e-3


def test_missing_properties_are_named():
    half = Polyhedron(np.array([[1.0, 0.0]]), np.zeros(1))
    problem = Problem(Linear(np.array([-1.0, 0.0])), half)
    with pytest.raises(lopro.MissingCapabilityError, match="ApproximateSharpness needs a bound"):
        lopro.solve(problem, method=LoPGD(ApproximateSharpness()))


def test_budgets():
    known = t4()
    scheme = LoPGD(ApproximateSharpness())
    result = lopro.solve(known.problem, known.x0, scheme, tol=0.0, max_iter=50)
    assert (result.status, result.iterations) == (Status.MAX_ITER, 50)
    result = lopro.solve(known.problem, known.x0, LoPGD(ApproximateSharpness(budget=300)), tol=0.0)
    assert result.iterations <= 300 and result.status is Status.SCHEDULE_DONE


def test_a_spent_budget_of_projections_ends_the_run():
    check_one_projection(LoPGD(ApproximateSharpness()))


@pytest.mark.parametrize(
    "arguments",
    [{"solver": 1}, {"restarts": 0}, {"budget": 0}, {"reach": 0}, {"eps0": 0.0}, {"target": -1.0}],
)
def test_bad_parameters(arguments):
    with pytest.raises((TypeError, ValueError), match=next(iter(arguments))):
        ApproximateSharpness(**arguments)
