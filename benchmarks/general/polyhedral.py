"""Objectives over rows: least squares, logistic, isotonic and convex regression, linear programs.

python -m benchmarks.general.polyhedral [half-spaces] [logistic] [shape] [linear] [--small]
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse

import lopro
from benchmarks._report import write_json
from benchmarks.general.by_proxqp import solve_by_proxqp
from benchmarks.general.measure import Run, interleaved, judge, print_table, records
from lopro.constraints import Affine, Box, Constraint, Intersection
from lopro.engines import (
    QuadraticProgram,
    solve_by_clarabel,
    solve_by_highs,
    solve_by_piqp,
)
from lopro.methods.second_order import composite
from lopro.newton import Settings, solve
from lopro.objectives import LeastSquares, Linear, Logistic, SquaredDistance

#: A name, the problem, and the solvers, which return a point and multipliers.
Case = tuple[str, lopro.Problem, dict[str, Callable[[], Any]]]
TOL = 1e-6
SECONDS = 60.0  # the limit of every solver that has one


def newton(make: Callable[[], lopro.Problem]) -> Callable[[], Any]:
    """Return Newton's method of lopro as a solver; each round forms the problem, so nothing is reused."""

    def run() -> Any:
        outcome = solve(composite(make()), tol=TOL, settings=Settings(max_steps=500))
        return outcome.x, outcome.multipliers

    return run


def by_lopro(make: Callable[[], lopro.Problem], tol: float) -> Callable[[], Any]:
    """Return `lopro.solve` as a solver; setting up the problem is part of its time."""

    def run() -> Any:
        result = lopro.solve(make(), tol=tol, time_limit=SECONDS)
        return result.x, result.multipliers

    return run


def engine(solver: Callable[..., Any], make: Callable[[], QuadraticProgram]) -> Callable[[], Any]:
    """Return a function that forms the program (which is part of its time) and solves it."""

    def run() -> Any:
        program = make()
        answer = solver(program, 1e-9)
        return answer.x, ([answer.rows, answer.box] if program.boxed else [answer.rows])

    return run


def osqp(make: Callable[[], QuadraticProgram]) -> Callable[[], Any]:
    def run() -> Any:
        import osqp

        p = make()
        solver = osqp.OSQP()
        P = scipy.sparse.triu(scipy.sparse.csc_matrix(p.P), format="csc")
        solver.setup(
            P, p.q, scipy.sparse.csc_matrix(p.A), p.lower, p.upper, eps_abs=1e-9, eps_rel=1e-9,
            max_iter=20000, polishing=True, verbose=False,
        )  # fmt: skip
        result = solver.solve()
        return result.x, [result.y]

    return run


def least_squares(B: Any, b: Any, rows: Any, upper: Any) -> lopro.Problem:
    return lopro.Problem(LeastSquares(B, b), Affine(rows, upper=upper))


def normal_equations(B: Any, b: Any, rows: Any, upper: Any) -> QuadraticProgram:
    return QuadraticProgram.of(B.T @ B, -(B.T @ b), rows, upper=upper)


def half_spaces(small: bool) -> Iterator[Case]:
    """Least squares over unit rows, half as many active as variables, and over rows active at a vertex."""
    for d, m in ((50, 500),) if small else ((200, 2000), (500, 5000)):
        rng = np.random.default_rng(0)
        A = rng.standard_normal((m, d))
        B = rng.standard_normal((2 * d, d))
        b = B @ rng.standard_normal(d) + rng.standard_normal(2 * d)
        unit = A / np.linalg.norm(A, axis=1)[:, None]
        tight = A @ rng.standard_normal(d) + rng.uniform(size=m)
        for name, rows, upper in (("unit", unit, np.ones(m)), ("tight", A, tight)):
            make = partial(normal_equations, B, b, rows, upper)
            ours = partial(least_squares, B, b, rows, upper)
            peers = {
                "lopro": by_lopro(ours, TOL),
                "newton": newton(ours),
                "piqp": engine(solve_by_piqp, make),
                "proxqp": engine(solve_by_proxqp, make),
                "osqp": osqp(make),
                "clarabel": engine(solve_by_clarabel, make),
            }
            yield f"half-spaces {name} {d}x{m}", least_squares(B, b, rows, upper), peers


def fair(A: Any, labels: Any, C: Any, ridge: float) -> lopro.Problem:
    return lopro.Problem(Logistic(A, labels, l2=ridge), Affine(C, -0.01, 0.01))


def logistic(small: bool) -> Iterator[Case]:
    """Logistic regression with 20 rows that are bounded on both sides, with and without a ridge."""
    for n in (2000,) if small else (10_000, 100_000):
        rng = np.random.default_rng(0)
        A, C = rng.standard_normal((n, 50)), rng.standard_normal((20, 50)) / np.sqrt(50)
        odds = 1.0 / (1.0 + np.exp(-3.0 * A @ rng.standard_normal(50) / np.sqrt(50)))
        labels = np.where(rng.uniform(size=n) < odds, 1.0, -1.0)
        for ridge in (0.0, 1e-3):
            ours = partial(fair, A, labels, C, ridge)
            peers = {"lopro": by_lopro(ours, TOL), "newton": newton(ours)}
            peers["clarabel"] = clarabel_logistic(A, labels, C, ridge)
            yield f"logistic {n}x50 ridge {ridge:g}", fair(A, labels, C, ridge), peers


def clarabel_logistic(A: Any, labels: Any, C: Any, ridge: float) -> Callable[[], Any]:
    def run() -> Any:
        import cvxpy as cp

        x = cp.Variable(A.shape[1])
        loss = cp.sum(cp.logistic(-cp.multiply(labels, A @ x))) / len(labels)
        rows = [C @ x <= 0.01, C @ x >= -0.01]
        objective = cp.Minimize(loss + 0.5 * ridge * cp.sum_squares(x))
        cp.Problem(objective, rows).solve(solver="CLARABEL", time_limit=SECONDS)
        return x.value, [rows[0].dual_value - rows[1].dual_value]

    return run


def second_differences(t: Any) -> Any:
    h = np.diff(t)
    n = len(t)
    return scipy.sparse.diags_array(
        [1 / h[:-1], -1 / h[:-1] - 1 / h[1:], 1 / h[1:]], offsets=[0, 1, 2], shape=(n - 2, n)
    ).tocsr()


def shape(small: bool) -> Iterator[Case]:
    """Isotonic and convex regression: projections on sparse rows."""
    rng = np.random.default_rng(0)
    cases = []
    for n in (500,) if small else (2000, 100_000):
        y = np.linspace(0.0, 3.0, n) + rng.standard_normal(n)
        ones = np.ones(n - 1)
        D = scipy.sparse.diags_array([-ones, ones], offsets=[0, 1], shape=(n - 1, n)).tocsr()
        cases.append((f"isotonic {n}", y, D))
    for n in (100,) if small else (300, 1000):
        for name, t in (("even", np.linspace(0, 1, n)), ("uneven", np.sort(rng.uniform(size=n)))):
            y = 4.0 * (t - 0.4) ** 2 + 0.1 * rng.standard_normal(n)
            cases.append((f"convex {name} {n}", y, second_differences(t)))
    for name, y, D in cases:
        make = partial(projection, y, D)
        regression = partial(shaped, y, D)
        peers = {
            "lopro": by_lopro(regression, TOL),
            "newton": newton(regression),
            "piqp": engine(solve_by_piqp, make),
            "clarabel": engine(solve_by_clarabel, make),
        }
        if len(y) <= 2000:
            peers["proxqp"] = engine(solve_by_proxqp, make)
        yield name, regression(), peers


def shaped(y: Any, D: Any) -> lopro.Problem:
    return lopro.Problem(SquaredDistance(y), Affine(D, lower=0.0))


def projection(y: Any, D: Any) -> QuadraticProgram:
    P = scipy.sparse.eye_array(len(y), format="csc")
    return QuadraticProgram.of(P, -y, D, lower=np.zeros(D.shape[0]))


def linear(small: bool) -> Iterator[Case]:
    """Dense random linear programs: a random vertex, a cone of rows, a packing problem."""
    n, m = (40, 200) if small else (200, 1000)
    rng = np.random.default_rng(0)
    A = rng.standard_normal((m, n))
    positive = rng.uniform(size=(m, n))
    cases = [
        (
            "vertex",
            A,
            A @ rng.standard_normal(n) + rng.uniform(size=m),
            -(rng.uniform(size=m) @ A),
            None,
        ),
        ("ball", A, np.full(m, np.sqrt(n)), rng.standard_normal(n), None),
        (
            "packing",
            positive,
            positive.sum(1) * rng.uniform(0.5, 1.5, m),
            -rng.uniform(size=n),
            0.0,
        ),
    ]
    for name, rows, upper, q, least in cases:
        make = partial(QuadraticProgram.of, None, q, rows, upper=upper, least=least)
        problem = partial(linear_program, q, rows, upper, least)
        peers = {
            "lopro": by_lopro(problem, TOL),
            "newton": newton(problem),
            "highs": engine(solve_by_highs, make),
            "piqp": engine(solve_by_piqp, make),
        }
        yield f"linear {name} {n}x{m}", problem(), peers


def linear_program(q: Any, rows: Any, upper: Any, least: float | None) -> lopro.Problem:
    sets: list[Constraint] = [Affine(rows, upper=upper)]
    if least is not None:
        sets.append(Box(np.full(len(q), least), np.full(len(q), np.inf)))
    return lopro.Problem(Linear(q), Intersection(*sets))


FAMILIES = {"half-spaces": half_spaces, "logistic": logistic, "shape": shape, "linear": linear}


def main(arguments: list[str]) -> None:
    small = "--small" in arguments
    chosen = [name for name in arguments if name in FAMILIES] or list(FAMILIES)
    runs: list[Run] = []
    for family in chosen:
        for name, problem, peers in FAMILIES[family](small):
            for peer, (seconds, answer, note) in interleaved(peers).items():
                found = answer is not None and answer[0] is not None
                judged = (
                    judge(composite(problem), np.asarray(answer[0]), answer[1]) if found else None
                )
                runs.append(Run(name, peer, seconds, judged, note))
    print_table(runs)
    if not small:
        write_json("general_polyhedral", {"runs": records(runs)})


if __name__ == "__main__":
    main(sys.argv[1:])
