"""SDPLIB: `lopro.solve` on semidefinite programs against Clarabel and SCS, all judged by the same proof.

python -m benchmarks.general.sdplib [PATH] [--only NAME ...] [--seconds S] [--rounds N] [--ours] [--kernel]

PATH is a folder with ``.dat-s`` files; by default ``sdplib`` in the folder that LOPRO_DATA names. All answers
are projected on the cone, corrected to satisfy their rows, and proved by the same code; certified means a
relative gap of at most 1e-4, charges included, at a relative violation of at most 1e-9.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse

import lopro
from benchmarks._report import write_json
from benchmarks.general.collections import folder_of
from benchmarks.general.measure import interleaved
from lopro.certificates import Bound
from lopro.engines import solve_cones
from lopro.newton.sdp import Outcome, SemidefiniteProgram, Status, read_sdpa, solve
from lopro.newton.sdp.dual_form import dual_form, primal_blocks
from lopro.newton.sdp.search import SemidefiniteSearch
from lopro.newton.sdp.solve import work_of_a_step
from lopro.newton.spectral import Spectrum

TOL = 1e-4
#: The largest number of operations of one step; Clarabel checks its time limit between steps.
_TOO_LARGE = 2e11
_SOLVED = (Status.CONVERGED, Status.INFEASIBLE, Status.UNBOUNDED)


def by_lopro(problem: lopro.Problem, seconds: float) -> Outcome:
    """Return the answer of `lopro.solve` in the form of the kernel's results; gaps relative to the value."""
    result = lopro.solve(replace(problem, gap_scale=0.0), tol=TOL, time_limit=seconds)
    c = result.certificate
    charge = c.gap - max(0.0, result.fun - c.lower_bound)
    engine = result.method.rpartition("-> ")[2]
    return Outcome(
        result.status,
        (result.x,),
        np.zeros(0),
        result.fun,
        Bound(c.lower_bound, np.zeros(0), np.zeros(0), limit=c.radius),
        charge,
        c.violation,
        engine=engine,
    )


def by_clarabel(program: SemidefiniteProgram, seconds: float) -> Outcome:
    """Return Clarabel's answer to the program, judged."""
    if work_of_a_step(program) > _TOO_LARGE:
        raise ValueError("one step would take minutes")
    answer = solve_cones(dual_form(program), 1e-8, seconds, scaled=False, threads=1)
    no_solution = answer.status.empty or answer.status.unbounded
    return judged(program, primal_blocks(program, answer.rows), answer.x, no_solution)


def by_scs(program: SemidefiniteProgram, seconds: float) -> Outcome:
    """Return the answer of SCS to the dual form, judged."""
    import scs

    linear = [p for p in program.blocks if p.diagonal]
    matrices = [p for p in program.blocks if not p.diagonal]
    places = [_lower(p.size) for p in matrices]
    rows = [p.A.T.tocsr() for p in linear]
    rows += [
        scipy.sparse.diags_array(scale) @ p.A.T.tocsr()[i * p.size + j]
        for p, (i, j, scale) in zip(matrices, places, strict=True)
    ]
    sides = [p.C for p in linear]
    sides += [scale * p.C[i, j] for p, (i, j, scale) in zip(matrices, places, strict=True)]
    data = {"A": scipy.sparse.csc_matrix(scipy.sparse.vstack(rows)), "b": np.concatenate(sides)}
    data["c"] = -program.b
    cone = {"l": sum(p.size for p in linear), "s": [p.size for p in matrices]}
    found = scs.solve(
        data, cone, eps_abs=1e-6, eps_rel=1e-6, time_limit_secs=seconds, verbose=False,
        max_iters=10**7,
    )  # fmt: skip
    X, start = {}, 0
    for p in linear:
        X[id(p)], start = found["y"][start : start + p.size], start + p.size
    for p, (i, j, scale) in zip(matrices, places, strict=True):
        x = np.zeros((p.size, p.size))
        x[i, j] = x[j, i] = found["y"][start : start + len(i)] / scale
        X[id(p)], start = x, start + len(i)
    rays = "infeasible" in found["info"]["status"] or "unbounded" in found["info"]["status"]
    return judged(program, tuple(X[id(p)] for p in program.blocks), found["x"], rays)


def _lower(n: int) -> tuple[Any, Any, Any]:
    """Return the indices of the lower triangle, column by column, and the scaling that keeps norms."""
    i, j = np.tril_indices(n)
    order = np.lexsort((i, j))
    i, j = i[order], j[order]
    return i, j, np.where(i == j, 1.0, np.sqrt(2.0))


def _positive(x: Any) -> Any:
    """Return the nearest point of the cone."""
    return np.maximum(x, 0.0) if x.ndim == 1 else Spectrum(x).positive_part()


def judged(program: SemidefiniteProgram, X: Any, y: Any, rays: bool) -> Outcome:
    """Judge an answer in the units of the program."""
    search = SemidefiniteSearch(program, TOL, 0.0, lambda: False)
    X, y = tuple(_positive(np.nan_to_num(x)) for x in X), np.nan_to_num(y)
    if rays and search.check_rays(
        tuple(x / search.units.x for x in X), y * search.units.rows / search.units.cost
    ):
        return search.outcome(Status.STALLED)
    done = search.consider(X, y)
    return search.outcome(Status.CONVERGED if done else Status.STALLED)


def row_of(
    name: str, peer: str, seconds: float, found: Outcome | None, note: str
) -> dict[str, Any]:
    """Return a run as plain data."""
    row: dict[str, Any] = {"file": name, "peer": peer, "seconds": seconds, "note": note}
    if found is None:
        return row | {"status": "ERROR"}
    gap = found.gap / abs(found.fun) if found.fun else math.nan
    row |= {"status": found.status.name, "engine": found.engine, "value": -found.fun}
    numbers = {"gap": gap, "violation": found.violation, "radius": found.radius}
    return row | {k: v if math.isfinite(v) else None for k, v in numbers.items()}


def line(row: dict[str, Any], best: float) -> str:
    """Return a row of the table."""
    gap, violation = row.get("gap"), row.get("violation")
    shown = f"{gap:9.1e}{violation:10.1e}" if gap is not None and violation is not None else ""
    ratio = f"{row['seconds'] / best:7.2f}" if math.isfinite(best) else f"{'-':>7s}"
    return (
        f"{row['file']:10s}{row['peer']:10s}{row['status']:11s}{row['seconds']:9.3f}{ratio} "
        f"{row.get('value', math.nan):14.7g}{shown} {row.get('engine', '')} {row['note']}"
    )


def main() -> None:
    """Run the benchmark and print its table; ratios are to the fastest certified peer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", nargs="?", default=None)
    parser.add_argument("--only", nargs="*", default=None)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--ours", action="store_true", help="without the peers")
    parser.add_argument("--kernel", action="store_true", help="with the kernel by itself")
    options = parser.parse_args()
    folder = folder_of("sdplib", options.path)
    runs: list[dict[str, Any]] = []
    for path in sorted(folder.glob("*.dat-s")):
        name = path.name.removesuffix(".dat-s")
        if options.only and name not in options.only:
            continue
        program = read_sdpa(path)
        peers: dict[str, Callable[[], Any]] = {
            "lopro": partial(by_lopro, lopro.read_sdpa(path), options.seconds)
        }
        if options.kernel:
            peers["kernel"] = partial(solve, program, TOL, options.seconds, 0.0)
        if not options.ours:
            peers["clarabel"] = partial(by_clarabel, program, options.seconds)
            peers["scs"] = partial(by_scs, program, options.seconds)
        found = interleaved(peers, options.rounds, options.seconds)
        rows = [row_of(name, peer, *answer) for peer, answer in found.items()]
        solved = [r["seconds"] for r in rows if r["status"] in [s.name for s in _SOLVED]]
        for row in rows:
            print(line(row, min(solved, default=math.nan)), flush=True)
        runs += rows
    ours = [r for r in runs if r["peer"] == "lopro"]
    certified = sum(r["status"] in [s.name for s in _SOLVED] for r in ours)
    print(f"lopro: {certified} of {len(ours)} certified")
    if options.only is None:
        write_json("general_sdplib", {"tol": TOL, "seconds": options.seconds, "runs": runs})


if __name__ == "__main__":
    main()
