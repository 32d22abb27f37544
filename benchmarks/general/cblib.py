"""CBLIB: second-order cone programs by lopro (in cone form, and through CVXPY) against Clarabel.

    python -m benchmarks.general.cblib [--only NAME ...] [--no-cvxpy]

The collection (``cblib``, as .cbf.gz files) is read from the folder that LOPRO_DATA names. The least
processor time of three runs in one process, in turns; Clarabel's is that of its own call with default
tolerances, and its gap is the difference of its value and lopro's.
"""

from __future__ import annotations

import argparse
import gzip
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from benchmarks._report import write_json
from benchmarks.general.collections import folder_of
from benchmarks.general.measure import Judged, Run, in_turns, print_table, records
from lopro.engines import ConeProgram, solve_cones
from lopro.engines.cone_bound import ConicData
from lopro.engines.cones import Nonnegative, SecondOrder, Zero
from lopro.engines.proved_cones import solve_conic

LIMIT = 60.0


def read_cbf(path: Path) -> tuple[ConicData, float]:
    """Read a file of linear and second-order cones, and the constant of its objective."""
    with gzip.open(path, "rt") as file:
        lines = [line.strip() for line in file if line.strip() and not line.startswith("#")]
    parts: dict[str, Any] = {}
    at = 0

    def numbers(count: int) -> list[list[str]]:
        nonlocal at
        at += count
        return [line.split() for line in lines[at - count : at]]

    while at < len(lines):
        name = lines[at]
        at += 1
        if name in ("VER", "OBJSENSE", "OBJBCOORD"):
            parts[name] = numbers(1)[0][0]
        elif name in ("VAR", "CON"):
            size, count = (int(v) for v in numbers(1)[0])
            parts[name] = size, [(kind, int(rows)) for kind, rows in numbers(count)]
        elif name in ("OBJACOORD", "ACOORD", "BCOORD"):
            parts[name] = numbers(int(numbers(1)[0][0]))
        else:
            raise ValueError(f"{path}: {name} is not read")
    return _data(parts), float(parts.get("OBJBCOORD", 0.0))


def _data(parts: dict[str, Any]) -> ConicData:
    n, m = parts["VAR"][0], parts.get("CON", (0, []))[0]
    sign = -1.0 if parts["OBJSENSE"] == "MAX" else 1.0
    q, b = np.zeros(n), np.zeros(m)
    for j, value in parts.get("OBJACOORD", []):
        q[int(j)] = sign * float(value)
    for i, value in parts.get("BCOORD", []):
        b[int(i)] = float(value)
    entries = parts.get("ACOORD", [])
    index = [[int(e[k]) for e in entries] for k in (0, 1)]
    A = scipy.sparse.csr_array(([float(e[2]) for e in entries], index), (m, n))
    blocks: dict[str, list[tuple[Any, Any]]] = {"0": [], "+": [], "Q": []}
    own = scipy.sparse.eye_array(n, format="csr")
    for M, offset, kinds in (
        (A, b, parts.get("CON", (0, []))[1]),
        (own, np.zeros(n), parts["VAR"][1]),
    ):
        start = 0
        for kind, rows in kinds:
            _add(blocks, kind, M[start : start + rows], offset[start : start + rows])
            start += rows
    chosen = [block for kind in ("0", "+", "Q") for block in blocks[kind]]
    counts = [sum(len(offset) for _, offset in blocks[kind]) for kind in ("0", "+")]
    cones: list[Any] = [Zero(counts[0]), Nonnegative(counts[1])]
    cones += [SecondOrder(len(offset)) for _, offset in blocks["Q"]]
    stacked = scipy.sparse.vstack([M for M, _ in chosen], format="csr")
    sides = np.concatenate([offset for _, offset in chosen])
    empty = scipy.sparse.csr_array((n, n))
    return ConicData(empty, q, -stacked, sides, [(cone, cone.rows) for cone in cones if cone.rows])


def _add(blocks: dict[str, list[tuple[Any, Any]]], kind: str, M: Any, offset: Any) -> None:
    """Sort rows ``M x + offset`` of a cone of the format into zero, nonnegative and second-order ones."""
    if kind == "F":
        return
    if kind == "L=":
        blocks["0"].append((M, offset))
    elif kind in ("L+", "L-"):
        sign = 1.0 if kind == "L+" else -1.0
        blocks["+"].append((sign * M, sign * offset))
    elif kind == "Q":
        blocks["Q"].append((M, offset))
    elif kind == "QR":
        # 2 u v >= |w|^2, u, v >= 0 is |(u - v, sqrt(2) w)| <= u + v.
        rows = M.shape[0]
        turn = scipy.sparse.diags_array(np.r_[1.0, -1.0, np.full(rows - 2, np.sqrt(2.0))]).tolil()
        turn[0, 1], turn[1, 0] = 1.0, 1.0
        turn = turn.tocsr()
        blocks["Q"].append((turn @ M, turn @ offset))
    else:
        raise ValueError(f"cones of the kind {kind} are not read")


def by_clarabel(data: ConicData) -> Run:
    cones = [cone for cone, _ in data.cones]
    program = ConeProgram(data.P, data.q, data.A, data.b, cones)
    begin = time.process_time()
    answer = solve_cones(program, 1e-8, LIMIT, scaled=False, threads=1)
    seconds = time.process_time() - begin
    fun = float(data.q @ answer.x)
    return Run("", "clarabel", seconds, Judged(fun, np.nan, np.nan, np.nan), answer.status.name)


def by_lopro(data: ConicData) -> Run:
    begin = time.process_time()
    outcome = solve_conic(data, 1e-6, LIMIT)
    seconds = time.process_time() - begin
    reach = outcome.radius / max(float(np.linalg.norm(outcome.x)), np.finfo(float).tiny)
    judged = Judged(outcome.fun, outcome.violation, outcome.gap / outcome.unit, reach)
    return Run("", "lopro", seconds, judged, outcome.status.name)


def through_cvxpy(data: ConicData) -> Run:
    import cvxpy as cp

    import lopro.cvxpy

    x = cp.Variable(len(data.q))
    rows, start = [], 0
    for cone, size in data.cones:
        slack = data.b[start : start + size] - data.A[start : start + size] @ x
        if isinstance(cone, Zero):
            rows.append(slack == 0)
        elif isinstance(cone, Nonnegative):
            rows.append(slack >= 0)
        else:
            rows.append(cp.SOC(slack[0], slack[1:]))
        start += size
    problem = cp.Problem(cp.Minimize(data.q @ x), rows)
    chain = problem.get_problem_data(solver=lopro.cvxpy.Lopro())
    begin = time.process_time()
    problem.solve(solver=lopro.cvxpy.Lopro(), time_limit=LIMIT)
    seconds = time.process_time() - begin
    del chain
    judged = Judged(float(problem.value), np.nan, np.nan, np.nan)
    return Run("", "lopro by cvxpy", seconds, judged, str(problem.status))


def compared(runs: list[Run]) -> list[Run]:
    """Return the runs; the gap of other solvers is the relative difference of their value and lopro's."""
    (ours,) = (run.judged for run in runs if run.peer == "lopro")
    assert ours is not None
    found = []
    for run in runs:
        if run.judged is not None and not np.isfinite(run.judged.gap):
            gap = abs(run.judged.fun - ours.fun) / abs(ours.fun)
            run = replace(run, judged=replace(run.judged, violation=0.0, gap=gap))
        found.append(run)
    return found


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--no-cvxpy", action="store_true")
    options = parser.parse_args(arguments)
    runs: list[Run] = []
    for path in sorted(folder_of("cblib").glob("*.cbf.gz")):
        name = path.name.removesuffix(".cbf.gz")
        if options.only and name not in options.only:
            continue
        data, _ = read_cbf(path)
        peers = [by_clarabel, by_lopro] + ([] if options.no_cvxpy else [through_cvxpy])
        own = compared(in_turns(name, peers, data))
        print_table(own)
        print(f"{name:28s}{'ratio':12s}{own[1].seconds / own[0].seconds:9.2f}", flush=True)
        runs += own
    write_json("general_cblib", {"runs": records(runs)})


if __name__ == "__main__":
    main(sys.argv[1:])
