"""Linear programs: `lopro.solve` against HiGHS, on networks and on the Netlib collection.

    python -m benchmarks.general.linear [networks] [netlib] [infeasible] [--only NAME ...] [--small]

Both solve the same sparse programs in one process, in turns; the least processor time of three runs counts,
for lopro with set-up and proof. The collection (``netlib``, as .mat files) is read from the folder that
LOPRO_DATA names.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.optimize
import scipy.sparse

import lopro
from benchmarks._report import write_json
from benchmarks.general.collections import folder_of
from benchmarks.general.measure import Judged, Run, in_turns, judge, print_table, records
from lopro.engines import QuadraticProgram
from lopro.engines.one_sided import OneSided
from lopro.newton.programs import program_composite

#: The value of infinite bounds in the files of the collection.
NO_BOUND = 1e20
#: Added to times before the geometric mean, in seconds.
SHIFT = 0.01
LIMIT = 20.0
Lines = Iterator[tuple[str, QuadraticProgram]]


def read_netlib(path: Path) -> QuadraticProgram:
    """Read a file of the collection: ``A x = b``, ``h_l <= G x <= h_u``, ``x_l <= x <= x_u``."""
    content = scipy.io.loadmat(path)
    rows = [scipy.sparse.csr_array(content[key], dtype=float) for key in ("A", "G")]

    def side(key: str) -> Any:
        values = content[key].ravel().astype(float)
        return np.where(np.abs(values) >= NO_BOUND, np.copysign(np.inf, values), values)

    b = side("b")
    lower, upper = np.concatenate([b, side("h_l")]), np.concatenate([b, side("h_u")])
    A = scipy.sparse.vstack([M for M in rows if M.shape[0]], format="csr")
    return QuadraticProgram.of(None, side("c"), A, lower, upper, side("x_l"), side("x_u"))


def transport(bins: int, smooth: bool) -> QuadraticProgram:
    """Return a transport problem between random histograms, with squared distances or random costs."""
    rng = np.random.default_rng(0)
    mass = [p / p.sum() for p in rng.random((2, bins))]
    place = np.linspace(0.0, 1.0, bins)
    cost = (place[:, None] - place) ** 2 if smooth else rng.random((bins, bins))
    return _marginals(cost, np.concatenate(mass))


def assignment(size: int) -> QuadraticProgram:
    """Return an assignment problem with random costs."""
    return _marginals(np.random.default_rng(0).random((size, size)), np.ones(2 * size))


def _marginals(cost: Any, sides: Any) -> QuadraticProgram:
    k, ones = len(cost), np.ones((1, len(cost)))
    eye = scipy.sparse.eye_array(k)
    parts = [scipy.sparse.kron(eye, ones), scipy.sparse.kron(ones, eye)]
    A = scipy.sparse.vstack(parts, format="csr")
    return QuadraticProgram.of(None, cost.ravel(), A, sides, sides, least=0.0)


def shortest_path(arcs: int) -> QuadraticProgram:
    """Return the shortest path between two nodes of a random graph with ten arcs for each node."""
    rng, nodes = np.random.default_rng(0), arcs // 10
    tail, head = rng.integers(0, nodes, (2, arcs))
    # A cycle through all nodes, so that a path exists.
    tail[:nodes], head[:nodes] = np.arange(nodes), np.roll(np.arange(nodes), -1)
    entries = np.concatenate([np.ones(arcs), -np.ones(arcs)])
    places = np.concatenate([tail, head]), np.tile(np.arange(arcs), 2)
    A = scipy.sparse.csr_array((entries, places), (nodes, arcs))
    sides = np.zeros(nodes)
    sides[0], sides[nodes // 2] = 1.0, -1.0
    return QuadraticProgram.of(None, rng.random(arcs), A, sides, sides, least=0.0)


def networks(small: bool) -> Lines:
    """Yield transport, assignment and path problems."""
    for bins in (10, 20) if small else (100, 200, 300):
        yield f"transport smooth {bins}", transport(bins, smooth=True)
        yield f"transport random {bins}", transport(bins, smooth=False)
    yield "assignment", assignment(10 if small else 200)
    yield "shortest path", shortest_path(100 if small else 100_000)


def collection(kind: str) -> Lines:
    """Yield the feasible or the infeasible programs of Netlib."""
    for path in sorted((folder_of("netlib") / kind).glob("*.mat")):
        yield path.stem, read_netlib(path)


def by_highs(program: QuadraticProgram) -> Run:
    """HiGHS through SciPy with its default tolerances; splitting the rows is not counted."""
    rows = OneSided(program)
    bounds = np.column_stack([program.least, program.most])
    begin = time.process_time()
    found = scipy.optimize.linprog(
        program.q, rows.G, rows.h, rows.A, rows.b, bounds, "highs", options={"time_limit": LIMIT}
    )
    seconds, judged = time.process_time() - begin, None
    if found.x is not None:
        multipliers = rows.multipliers(-found.eqlin.marginals, -found.ineqlin.marginals)
        judged = judge(program_composite(program), found.x, [multipliers, 0.0 * found.x])
    return Run("", "highs", seconds, judged, found.message[:30])


def by_lopro(program: QuadraticProgram) -> Run:
    """`lopro.solve` with its defaults; the time includes setting up the problem."""
    begin = time.process_time()
    c = lopro.constraints
    sets: list[Any] = [c.Affine(program.A, program.lower, program.upper)]
    if program.boxed:
        sets.append(c.Box(program.least, program.most))
    problem = lopro.Problem(lopro.objectives.Linear(program.q), c.Intersection(*sets))
    result = lopro.solve(problem, time_limit=LIMIT)
    seconds, known = time.process_time() - begin, result.certificate
    reach = known.radius / max(float(np.linalg.norm(result.x)), np.finfo(float).tiny)
    judged = Judged(result.fun, known.violation, known.relative_gap, reach)
    return Run("", "lopro", seconds, judged, f"{result.status.name} {result.method}")


def compare(lines: Lines, status: str, only: set[str]) -> list[Run]:
    """Run both on every program and print the ratios; ``status`` is the one of a solved program."""
    runs: list[Run] = []
    for name, program in lines:
        if only and name not in only:
            continue
        pair = in_turns(name, PEERS, program)
        runs += pair
        print_table(pair)
        print(f"{name:28s}{'ratio':12s}{pair[1].seconds / pair[0].seconds:9.2f}", flush=True)
    ours = [r for r in runs if r.peer == "lopro"]
    means = [_shifted_mean([r.seconds for r in runs if r.peer == p]) for p in ("highs", "lopro")]
    done = sum(r.note.startswith(status) for r in ours)
    print(f"{status}: {done} of {len(ours)}; shifted means {means[0]:.4f} and {means[1]:.4f} s, "
          f"ratio {means[1] / means[0]:.2f}")  # fmt: skip
    return runs


PEERS: tuple[Callable[[QuadraticProgram], Run], ...] = (by_highs, by_lopro)


def _shifted_mean(seconds: list[float]) -> float:
    return float(np.exp(np.mean(np.log(np.array(seconds) + SHIFT))) - SHIFT)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("family", nargs="*", help="all by default")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args(arguments)
    only = set(options.only)
    families = options.family or ["networks", "netlib", "infeasible"]
    if "networks" in families:
        runs = compare(networks(options.small), "CONVERGED", only)
        write_json("general_networks", {"runs": records(runs)})
    if "netlib" in families:
        runs = compare(collection("feasible"), "CONVERGED", only)
        write_json("general_netlib", {"runs": records(runs)})
    if "infeasible" in families:
        runs = compare(collection("infeasible"), "INFEASIBLE", only)
        write_json("netlib_infeasible", {"runs": records(runs)})


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
