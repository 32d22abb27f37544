"""Restarts over a grid of schedules: the cell the theorem names halves the gap in every epoch."""

from __future__ import annotations

import math
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
from lopro.methods.paper.restarts import AcceleratedSolver, LogScaleGrid, SubgradientSolver
from lopro.methods.setting import Needs
from lopro.objectives import Linear


def smooth_half_space():
    return t3(smooth=True)


class OneCell(LogScaleGrid):
    """The grid reduced to the cell that the theorem covers."""

    cell: tuple[int, float]

    @property
    def cells(self) -> tuple[tuple[int, float], ...]:
        return (self.cell,)


class NotHalved(OneCell):
    """Uses the accuracy of the first epoch in all epochs."""

    def accuracy(self, eps0: float, k: int) -> float:
        return 0.5 * eps0


def right_cell(known: Any, grid: LogScaleGrid) -> tuple[int, float]:
    """Return the cell that the known error bound requires."""

    class Bench:
        problem = counted = known.problem
        objective, constraint = known.problem.objective, known.problem.constraint

        def observe(self) -> Any:
            return lopro.core.counting.counting(lopro.core.counting.Counts())

    s = Needs("test", radius=2.0 * known.distance).find(Bench(), known.x0)
    return grid.cell_for(s, known.eps0, known.sigma, known.theta)


def worst_epoch(make: Any, solver: Any, kind: type[OneCell], budget: int) -> tuple[float, int]:
    """Return the worst ``(f(x_k) - f_*) / (eps0 / 2^k)`` over the epochs of the right cell."""
    known = make()
    arguments = {"budget": budget, "eps0": known.eps0, "radius": 2.0 * known.distance}
    cell = right_cell(known, LogScaleGrid(solver, **arguments))
    schedule = kind(solver, **arguments)
    object.__setattr__(schedule, "cell", cell)
    scheme = LoPNAG(schedule) if isinstance(solver, AcceleratedSolver) else LoPGD(schedule)
    recorded = Recorded(scheme)
    lopro.solve(known.problem, known.x0, recorded, tol=0.0)
    ratios = [known.gap(e.x) * 2.0**k / known.eps0 for k, e in enumerate(recorded.seen, start=1)]
    return max(ratios), len(ratios)


CASES = [
    (t1, SubgradientSolver(), 1000),
    (t3, SubgradientSolver(), 20_000),
    (t5, SubgradientSolver(), 20_000),
    (smooth_half_space, AcceleratedSolver(), 2000),
    (t4, AcceleratedSolver(), 2000),
]


@pytest.mark.parametrize(("make", "solver", "budget"), CASES)
def test_the_gap_halves_in_every_epoch_of_the_right_cell(make, solver, budget):
    ratio, epochs = worst_epoch(make, solver, OneCell, budget)
    assert epochs >= 4
    assert ratio <= 1.0


# Not T1 and T5: on a half-line and on a ball the projection removes almost all of the error.
@pytest.mark.parametrize(("make", "solver", "budget"), [CASES[1], CASES[3], CASES[4]])
def test_epochs_of_constant_accuracy_do_not_halve_the_gap(make, solver, budget):
    """Negative control: the same cell without halving the step or the smoothing."""
    ratio, _ = worst_epoch(make, solver, NotHalved, 2 * budget)
    assert ratio > 1.0


@pytest.mark.parametrize("make", [smooth_half_space, t4])
def test_the_whole_grid_is_as_good_as_its_right_cell(make):
    known = make()
    grid = LogScaleGrid(AcceleratedSolver(), 512, known.eps0, radius=2.0 * known.distance)
    epochs = len(grid.lengths(right_cell(known, grid)))
    result = lopro.solve(known.problem, known.x0, LoPNAG(grid), tol=0.0)
    assert epochs >= 3
    assert known.gap(result.x) <= known.eps0 / 2.0**epochs
    assert result.certificate.lower_bound <= known.optimum + 1e-12


def test_cells_and_lengths():
    grid = LogScaleGrid(budget=16)
    assert grid.cells == tuple((C, a) for C in (2, 4, 8, 16) for a in (0.0, 2.0, 1.0, 0.5))
    assert grid.lengths((2, 0.0)) == (2,) * 8
    assert grid.lengths((16, 2.0)) == (16,)
    assert grid.projections == sum(len(grid.lengths(cell)) for cell in grid.cells)
    assert all(sum(grid.lengths(cell)) <= 16 for cell in grid.cells)
    with pytest.raises(ValueError, match="raise the budget"):
        right_cell(t3(), grid)


@pytest.mark.parametrize("feasible", [True, False])
def test_the_number_of_projections_is_the_documented_one_by_both_counts(feasible):
    known = t3()
    calls = count_projections(known.constraint)
    grid = LogScaleGrid(budget=64)
    result = lopro.solve(known.problem, known.x0 if feasible else -known.x0, LoPGD(grid), tol=0.0)
    assert calls() == result.counts.projections == grid.projections + (not feasible)
    assert result.iterations == sum(sum(grid.lengths(cell)) for cell in grid.cells)


def test_it_agrees_with_cvxpy():
    smooth = LoPNAG(LogScaleGrid(AcceleratedSolver(), 512))
    worst, count = agreement(smooth, tol=1e-5, names=("distance/tall_ball/",))
    assert count >= 1 and worst <= 1e-4
    names = ("distance/box/", "linear/box/")
    worst, count = agreement(LoPGD(LogScaleGrid(budget=512)), tol=1e-3, names=names)
    assert count >= 2 and worst <= 0.05


def test_missing_properties_are_named():
    half = Polyhedron(np.array([[1.0, 0.0]]), np.zeros(1))
    with pytest.raises(
        lopro.MissingCapabilityError, match="LogScaleGrid needs a bound on the norm"
    ):
        lopro.solve(Problem(Linear(np.array([-1.0, 0.0])), half), method=LoPGD(LogScaleGrid()))
    with pytest.raises(lopro.MissingCapabilityError, match="smoothness constants"):
        lopro.solve(t5().problem, t5().x0, LoPNAG(LogScaleGrid(AcceleratedSolver())))


def test_a_solved_start_and_budgets():
    problem = Problem(lopro.objectives.L1Norm(), t4().constraint)
    assert lopro.solve(problem, method=LoPGD(LogScaleGrid(budget=8))).fun == 0.0
    result = lopro.solve(t4().problem, t4().x0, LoPGD(LogScaleGrid()), tol=0.0, max_iter=100)
    assert (result.status, result.iterations) == (Status.MAX_ITER, 100)
    assert math.isfinite(result.fun)


def test_a_spent_budget_of_projections_ends_the_run():
    check_one_projection(LoPGD(LogScaleGrid(budget=16)))


@pytest.mark.parametrize(
    "arguments", [{"solver": 1}, {"budget": 1}, {"eps0": 0.0}, {"radius": -1.0}]
)
def test_bad_parameters(arguments):
    with pytest.raises((TypeError, ValueError), match=next(iter(arguments))):
        LogScaleGrid(**arguments)


@pytest.mark.parametrize("theta", [0.5, 1.0])
def test_the_growth_of_a_cell_is_that_of_two_epochs(theta: float) -> None:
    """From accuracy ``eps0 / 2`` to ``eps0 / 8``, each started from the result of the previous epoch."""
    asked: list[tuple[float, float]] = []

    class Steps(SubgradientSolver):
        def steps(self, s: Any, distance: float, accuracy: float) -> int:
            asked.append((distance, accuracy))
            return 100 * len(asked) ** 2

    grid = LogScaleGrid(Steps(), budget=10**6, eps0=3.0)
    first, growth = grid.cell_for(None, 3.0, 2.0, theta)  # type: ignore[arg-type]
    assert asked == [(2.0 * 3.0**theta, 1.5), (2.0 * 0.75**theta, 0.375)]
    assert first >= 100 and growth >= 0.5 * math.log2(4.0) - 1e-9
