"""Engines for quadratic programs: the collection of Maros and Meszaros, and projections on polyhedra.

    python -m benchmarks.general.programs [maros] [projections] [--without PEER ...]

The collection (``maros_meszaros``, as .mat files) is read from the folder that LOPRO_DATA names.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse

import lopro
from benchmarks._report import write_json
from benchmarks.general.by_proxqp import solve_by_proxqp
from benchmarks.general.collections import folder_of
from benchmarks.general.measure import (
    FEASIBLE,
    Judged,
    Run,
    in_turns,
    interleaved,
    judge,
    print_table,
    records,
)
from lopro.engines import QuadraticProgram, solve_by_clarabel, solve_by_piqp
from lopro.newton import Composite, Outcome, solve
from lopro.newton.programs import program_composite

#: The value of infinite bounds in the files of the collection, up to rounding.
NO_BOUND = 0.999e20
#: Added to times before the geometric mean, in seconds.
SHIFT = 0.01


def read_program(path: Path) -> QuadraticProgram:
    """Read a file of the collection; rows of the identity at the end are bounds of the variables."""
    content = scipy.io.loadmat(path)
    low, high = (content[key].ravel().astype(float) for key in ("l", "u"))
    low[low <= -NO_BOUND], high[high >= NO_BOUND] = -np.inf, np.inf
    A, P = scipy.sparse.csr_array(content["A"], dtype=float), scipy.sparse.csc_array(content["P"])
    n, rows = P.shape[0], A.shape[0]
    box = (
        rows - n
        if rows >= n and abs(A[rows - n :] - scipy.sparse.eye_array(n)).sum() == 0
        else rows
    )
    bounds = {"least": low[box:], "most": high[box:]} if box < rows else {}
    return QuadraticProgram.of(
        P.astype(float), content["q"].ravel().astype(float), A[:box], low[:box], high[:box],
        constant=float(content["r"].ravel()[0]), **bounds,
    )  # fmt: skip


def shifted_mean(seconds: list[float]) -> float:
    return float(np.exp(np.mean(np.log(np.array(seconds) + SHIFT))) - SHIFT)


def maros(without: set[str]) -> list[Run]:
    """Run engines alone, judged by the proved gap of their own multipliers, and `lopro.solve`."""
    engines = {
        "piqp": solve_by_piqp,
        "proxqp": partial(solve_by_proxqp, max_iter=1000),
        "clarabel": partial(solve_by_clarabel, seconds=60.0),
    }
    engines = {name: run for name, run in engines.items() if name not in without}
    runs: list[Run] = []
    for path in sorted(folder_of("maros_meszaros").glob("*.mat")):
        program = read_program(path)
        problem = program_composite(program)
        peers = [partial(_of_engine, name, run, problem) for name, run in engines.items()]
        runs += in_turns(path.stem, [*peers, _ours], program)
        print_table(runs[-1 - len(engines) :])
    for peer in [*engines, "lopro"]:
        mine = [r for r in runs if r.peer == peer]
        good = [
            r for r in mine if r.judged and r.judged.violation <= FEASIBLE and r.judged.gap <= 1e-6
        ]
        note = (
            f", {sum(r.note.startswith('CONVERGED') for r in mine)} proved"
            if peer == "lopro"
            else ""
        )
        mean = shifted_mean([r.seconds for r in mine])
        print(f"{peer:10s} gap of 1e-6: {len(good)} of {len(mine)}{note}; mean {1e3 * mean:.1f} ms")
    return runs


def as_problem(program: QuadraticProgram) -> lopro.Problem:
    """Return a program as a user of lopro would write it."""
    sets: list[lopro.constraints.Constraint] = []
    if program.A.shape[0]:
        sets.append(lopro.constraints.Affine(program.A, program.lower, program.upper))
    if program.boxed:
        sets.append(lopro.constraints.Box(program.least, program.most))
    f = lopro.objectives.Quadratic(program.P, program.q, program.constant)
    return lopro.Problem(f, sets[0] if len(sets) == 1 else lopro.constraints.Intersection(*sets))


def _of_engine(name: str, run: Any, problem: Composite, program: QuadraticProgram) -> Run:
    """Return the run of an engine alone, with its multipliers judged."""
    begin = time.process_time()
    answer = run(program, 1e-9)
    seconds = time.process_time() - begin
    judged = judge(problem, answer.x, [answer.rows, answer.box]) if answer.finite else None
    return Run("", name, seconds, judged, answer.status.name)


def _ours(program: QuadraticProgram) -> Run:
    """`lopro.solve` with its defaults; the time includes setting up the problem."""
    begin = time.process_time()
    try:
        result = lopro.solve(as_problem(program), tol=1e-6, time_limit=60.0)
    except ValueError as refusal:
        return Run("", "lopro", time.process_time() - begin, None, str(refusal))
    seconds, c = time.process_time() - begin, result.certificate
    reach = c.radius / max(float(np.linalg.norm(result.x)), np.finfo(float).tiny)
    judged = Judged(result.fun, c.violation, c.relative_gap, reach)
    return Run("", "lopro", seconds, judged, f"{result.status.name} {result.method}")


def projections() -> list[Run]:
    """Projections on polyhedra with dense or sparse rows, few or many of them active."""
    runs: list[Run] = []
    for name, program in _polyhedra():
        peers: dict[str, Callable[[], Any]] = {
            "piqp": partial(solve_by_piqp, program),
            "proxqp": partial(solve_by_proxqp, program),
            "clarabel": partial(solve_by_clarabel, program),
            "newton": partial(_newton, program),
        }
        problem = program_composite(program)
        for peer, (seconds, answer, note) in interleaved(peers, rounds=2, limit=30.0).items():
            judged = None
            if isinstance(answer, Outcome):
                judged = judge(problem, answer.x, answer.multipliers)
            elif answer is not None and answer.finite:
                judged = judge(problem, answer.x, [answer.rows, answer.box])
            runs.append(Run(name, peer, seconds, judged, note))
        print_table([run for run in runs if run.problem == name])
    return runs


def _newton(program: QuadraticProgram) -> Outcome:
    return solve(program_composite(program), tol=1e-6)


def _polyhedra() -> Iterator[tuple[str, QuadraticProgram]]:
    rng = np.random.default_rng(1)
    for n, m in ((20, 60), (100, 300), (100, 1000), (200, 2000), (400, 400), (400, 2000)):
        A, z = rng.standard_normal((m, n)), rng.standard_normal(n)
        inside = z + 0.1 * rng.standard_normal(n)
        far, near = np.zeros(m), A @ inside
        for kind, side in (("far", far), ("near", near)):
            upper = side + 0.3 * np.abs(rng.standard_normal(m))
            yield f"dense {kind} {n}x{m}", QuadraticProgram.of(np.eye(n), -z, A, upper=upper)
    for n, m in ((1000, 500), (1000, 3000), (20000, 10000)):
        A = scipy.sparse.random_array((m, n), density=min(1.0, 5 / n), rng=rng, format="csr")
        P = scipy.sparse.eye_array(n, format="csc")
        z = rng.standard_normal(n)
        yield f"sparse {n}x{m}", QuadraticProgram.of(P, -z, A, upper=0.1 * np.ones(m))


def main(arguments: list[str]) -> None:
    without: set[str] = set()
    if "--without" in arguments:
        place = arguments.index("--without")
        without, arguments = set(arguments[place + 1 :]), arguments[:place]
    if not arguments or "projections" in arguments:
        write_json("general_projections", {"runs": records(projections())})
    if not arguments or "maros" in arguments:
        write_json("general_maros", {"runs": records(maros(without))})


if __name__ == "__main__":
    main(sys.argv[1:])
