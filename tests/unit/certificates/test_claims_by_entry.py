"""Problems on which claims were once false, in every entry that accepts them: claims are true.

The entries that have to succeed are listed; others may stop without a proof, but may claim nothing false.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

import lopro
import lopro.cvxpy
from lopro import Problem, Status
from lopro.cli import main
from lopro.constraints import Affine, Box, Constraint, Intersection, Polyhedron, ResidualBall
from lopro.core.deadline import Deadline
from lopro.driver.workbench import Options, RunWorkbench
from lopro.objectives import GroupNorm, L1Norm, LeastSquares, Linear, Quadratic, TotalVariation

INF = np.inf
_RNG = np.random.default_rng(0)
A, Y = _RNG.standard_normal((3, 6)), _RNG.standard_normal(3)
FREE = np.array([0.0, 0.0, 0.0, 1.0, 1.0, 1.0])
F = np.array(
    [
        [2.4842e-3, -0.41902, 1.7571e7, -226.3],
        [3.5063e-3, 0.5941, 4.027e7, -260.19],
        [4.9757e-4, -0.052439, 1.959e8, 497.86],
    ]
)
B = F @ np.array([313.33, 1.9957, -2.0267e-8, -1.3882e-3])
ZEROS = np.vstack([np.random.default_rng(0).standard_normal((3, 4)), np.zeros((1, 4))])
SIDES = np.array([100.0, 100.0, 100.0, -7e-18])
#: x_1 >= 1, 1e-9 x_2 >= x_1, |x_1| <= x_2 + 1.
FAR = np.array([[1.0, 0.0], [-1.0, 1e-9], [1.0, -1.0], [-1.0, -1.0]])


@dataclass(frozen=True)
class Case:
    """A problem with its optimal value (infinity: infeasible), and the entries in which it succeeds."""

    make: Callable[[], Problem]
    least: float
    succeeds: frozenset[str]
    posed: Callable[[], tuple[Any, list[Any]]]
    size: float = 1.0


def free_columns() -> tuple[Any, list[Any]]:
    x = cp.Variable(6)
    return cp.norm1(cp.multiply(FREE, x)), [A @ x == Y]


def large_row() -> tuple[Any, list[Any]]:
    x = cp.Variable(2)
    return cp.norm(x), [x[0] >= 1.0, 1e12 * x[1] <= -0.5e12]


def far_entry_set() -> Constraint:
    box = Polyhedron.box([-1.0, 1e12], [5.0, 1e12])
    return Intersection(Affine([[1.0, 0.0], [1.0, 1e-12]], [1.0, -10.0], [INF, INF]), box)


def far_entry() -> tuple[Any, list[Any]]:
    x = cp.Variable(2)
    sides = [x[0] >= -1.0, x[0] <= 5.0, x[1] == 1e12]
    return x[0], [x[0] >= 1.0, x[0] + 1e-12 * x[1] >= -10.0, *sides]


def fit() -> tuple[Any, list[Any]]:
    x = cp.Variable(4)
    return 0.5 * cp.sum_squares(F @ x - B), [np.zeros((1, 4)) @ x <= 0.0]


def far_out() -> tuple[Any, list[Any]]:
    x = cp.Variable(2)
    return x[0], [x[0] >= 1.0, 1e-9 * x[1] >= x[0], cp.abs(x[0]) <= x[1] + 1.0]


def feasibility() -> tuple[Any, list[Any]]:
    return 0.0, [cp.Variable(2) == 1.0]


def variation() -> tuple[Any, list[Any]]:
    x = cp.Variable(6)
    return cp.tv(x), [x >= np.linspace(-1.0, 0.5, 6), x <= np.linspace(0.6, 1.0, 6)]


def falling() -> tuple[Any, list[Any]]:
    x = cp.Variable(2)
    return -x[1], [x[0] >= 1.0, x[0] <= 0.0]


def noise_rows() -> tuple[Any, list[Any]]:
    x = cp.Variable(4)
    return 0.5 * cp.sum_squares(x) - cp.sum(x), [ZEROS @ x <= SIDES]


LARGE_ROW = Affine([[1.0, 0.0], [0.0, 1e12]], [1.0, -INF], [INF, -0.5e12])
ALL = frozenset({"solve", "solve_many", "iterate", "minimize", "cvxpy"})
CASES = {
    "1 free columns": Case(
        lambda: Problem(L1Norm(FREE), ResidualBall(A, Y, 0.0)), 0.0, ALL - {"minimize"}, free_columns
    ),
    "2 a large row": Case(
        lambda: Problem(GroupNorm(np.eye(2), 2), LARGE_ROW), math.sqrt(1.25), ALL, large_row
    ),
    "3 a large entry": Case(
        lambda: Problem(Linear([1.0, 0.0]), far_entry_set()), 1.0, ALL - {"minimize"}, far_entry
    ),
    "4 units of columns": Case(
        lambda: Problem(LeastSquares(F, B), Affine(np.zeros((1, 4)), None, [0.0])),
        0.0,
        ALL - {"minimize"},
        fit,
        float(B @ B),
    ),
    "5 far out": Case(
        lambda: Problem(Linear([1.0, 0.0]), Affine(FAR, [1.0, 0.0, -INF, -INF], [INF, INF, 1.0, 1.0])),
        1.0,
        ALL - {"minimize"},
        far_out,
    ),
    "6 feasibility": Case(
        lambda: Problem(Linear(np.zeros(2)), Affine(np.eye(2), np.ones(2), np.ones(2))),
        0.0,
        ALL,
        feasibility,
    ),
    "6 total variation": Case(
        lambda: Problem(
            TotalVariation((6,)),
            Polyhedron.box(np.linspace(-1.0, 0.5, 6), np.linspace(0.6, 1.0, 6)),
        ),
        0.0,
        ALL - {"minimize"},
        variation,
    ),
    "7 empty, falling": Case(
        lambda: Problem(Linear([0.0, -1.0]), Affine([[1.0, 0.0]] * 2, [1.0, -INF], [INF, 0.0])),
        INF,
        ALL - {"minimize"},
        falling,
    ),
    "10 rows of zeros": Case(
        lambda: Problem(Quadratic(np.eye(4), -np.ones(4)), Affine(ZEROS, None, SIDES)),
        -2.0,
        ALL,
        noise_rows,
    ),
}  # fmt: skip


def by_minimize(problem: Problem) -> Any:
    f = problem.objective
    return lopro.minimize(
        f.value, problem.start(None), f.subgradient, constraint=problem.constraint, time_limit=5.0
    )


def by_iterate(problem: Problem) -> Any:
    run = lopro.iterate(problem)
    for _ in run:
        pass
    return run.result()


ENTRIES: dict[str, Callable[[Problem], Any]] = {
    "solve": lopro.solve,
    "solve_many": lambda problem: lopro.solve_many([problem, problem])[1],
    "iterate": by_iterate,
    "minimize": by_minimize,
}


@pytest.mark.filterwarnings("ignore::lopro.errors.ZeroRowWarning")
@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("name", CASES)
def test_claims_of_entries_are_true(name: str, entry: str) -> None:
    case = CASES[name]
    problem = case.make()
    result = ENTRIES[entry](problem)
    found, size = result.certificate, max(case.size, abs(case.least))
    if case.least == INF:
        assert result.status is Status.INFEASIBLE or entry not in case.succeeds
        assert not result.success and result.status is not Status.UNBOUNDED
        return
    assert result.status not in (Status.INFEASIBLE, Status.UNBOUNDED)
    assert found.lower_bound <= case.least + 1e-12 * size or not math.isfinite(found.radius)
    assert result.success or entry not in case.succeeds, result
    if result.success:
        assert problem.constraint.violation(result.x) <= 1e-9
        assert abs(result.fun - case.least) <= 2e-6 * size
        assert found.lower_bound <= case.least + 1e-12 * size
    elif math.isinf(found.gap):
        assert found.relative_gap == INF


@pytest.mark.filterwarnings("ignore::lopro.errors.ZeroRowWarning")
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("name", CASES)
def test_claims_through_cvxpy_are_true(name: str) -> None:
    case = CASES[name]
    objective, constraints = case.posed()
    problem = cp.Problem(cp.Minimize(objective), constraints)
    problem.solve(solver=lopro.cvxpy.Lopro())
    if case.least == INF:
        assert problem.status == "infeasible"
        return
    found = problem.solver_stats.extra_stats
    assert problem.status == "optimal" and found.violation <= 1e-9
    size = max(case.size, abs(case.least))
    assert problem.value == pytest.approx(case.least, abs=2e-6 * size)
    # CVXPY may leave a constant of the objective out of the data it passes.
    assert found.gap <= 2e-6 * size


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("size", [cp.norm1, cp.norm, cp.norm_inf, lambda v: cp.sum(cp.pos(v))])
@pytest.mark.parametrize("ball", [False, True])
def test_values_of_zero_are_optimal_through_cvxpy(size: Any, ball: bool, seed: int) -> None:
    """Epigraph variables of cones are lowered, and multipliers such as 1/2 cancel the slope exactly."""
    rng = np.random.default_rng(seed)
    M, y, x = rng.standard_normal((3, 6)), rng.standard_normal(3), cp.Variable(6)
    problem = cp.Problem(
        cp.Minimize(size(cp.multiply(FREE, x))), [cp.norm(M @ x - y) <= 0.0 if ball else M @ x == y]
    )
    problem.solve(solver=lopro.cvxpy.Lopro())
    assert problem.status == "optimal" and abs(problem.value) <= 1e-12


def test_free_columns_in_bpdn_and_on_the_command_line(tmp_path: Path, capsys: Any) -> None:
    result = lopro.bpdn(A, Y, 0.0, weights=FREE)
    assert result.success and (result.fun, result.certificate.lower_bound) == (0.0, 0.0)
    files = {"A": A, "y": Y, "w": FREE}
    for key, array in files.items():
        np.save(tmp_path / f"{key}.npy", array)
    places = [str(tmp_path / f"{key}.npy") for key in files]
    assert main(["bpdn", *places[:2], "--sigma", "0", "--weights", places[2], "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["fun"] == 0.0 and printed["success"]


@pytest.mark.parametrize("unit", [1.0, 2.0**28])
def test_what_counts_as_zero_in_a_cone_does_not_depend_on_the_units_of_columns(unit: float) -> None:
    """All sides are 0: the units of columns are determined up to a factor, and the largest is set to 1."""
    q, row = np.array([-2.0 * unit, 9.0, -3.0]), np.array([[-unit, 1.0, -1.0]])
    cone = Intersection(Affine(row, [0.0], [INF]), Box([-INF, 0.0, -INF], [INF, INF, INF]))
    for set_ in (cone, Affine(row, [0.0], [INF])):
        bench = RunWorkbench(Problem(Linear(q), set_), Options(tol=1e-3), Deadline(), np.zeros(3))
        assert bench.target.scale == 1e-8 * (2.0 + 9.0 + 3.0)
