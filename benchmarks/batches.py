"""Many small quadratic programs: `lopro.solve_many` with proofs against PIQP and ProxQP one at a time.

    python benchmarks/batches.py [--instances N] [--rounds N] [--device cuda]

``min 1/2 x'Px + q'x  s.t.  Gx <= h`` with dense random data, one process, one thread. All start from the
arrays; "stacked" passes them as `lopro.QuadraticPrograms`, "list" constructs each problem first. Medians over
rounds, in microseconds for one program. The target is 200 us for the small ones, with at least 99.9 %
proved to 1e-6 by the batch. With ``--device`` the stacks are PyTorch tensors there.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import numpy as np
import piqp
import proxsuite
from _report import write_json
from small_programs import SIZES, Program, by_piqp, program
from threadpoolctl import threadpool_limits

import lopro
from lopro.batch.results import METHOD

assert piqp and proxsuite  # both are measured


def by_proxqp(P: Any, q: Any, G: Any, h: Any) -> float:
    """Solve by ProxQP alone, to a duality gap of 1e-8; return the value."""
    solver = proxsuite.proxqp.dense.QP(len(q), 0, len(h))
    solver.settings.eps_abs = solver.settings.eps_duality_gap_abs = 1e-8
    solver.settings.check_duality_gap = True
    solver.init(P, q, None, None, G, None, h)
    solver.solve()
    return float(solver.results.info.objValue)


def problems_of(programs: Sequence[Program]) -> list[lopro.Problem]:
    """Return the programs as problems."""
    return [
        lopro.Problem(lopro.objectives.Quadratic(P, q), lopro.constraints.Polyhedron(G, h))
        for P, q, G, h in programs
    ]


def stacks(programs: Sequence[Program], device: str | None) -> lopro.QuadraticPrograms:
    """Return the programs stacked, on a device if one is named."""
    arrays = [np.stack(part) for part in zip(*programs, strict=True)]
    if device is not None:
        import torch

        arrays = [torch.asarray(array, device=device) for array in arrays]
    P, q, G, h = arrays
    return lopro.QuadraticPrograms(q, P, G, upper=h)


def measure(n: int, m: int, instances: int, rounds: int, device: str | None) -> dict[str, Any]:
    """Return the medians in microseconds for one program, and the share that is proved."""
    programs = [program(n, m, seed) for seed in range(instances)]
    stacked, few = stacks(programs, device), programs[: min(instances, 200)]
    calls: dict[str, tuple[int, Callable[[], Any]]] = {
        "stacked": (instances, lambda: lopro.solve_many(stacked)),
        "list": (instances, lambda: lopro.solve_many(problems_of(programs))),
        "piqp": (len(few), lambda: [by_piqp(*data) for data in few]),
        "proxqp": (len(few), lambda: [by_proxqp(*data) for data in few]),
    }
    results = lopro.solve_many(stacked)  # warm up, and check that all solve the same problem
    expected = np.array([by_piqp(*data) for data in few])
    allowed = results.gap[: len(few)] + 1e-6 * np.abs(expected)
    assert (np.abs(results.fun[: len(few)] - expected) <= allowed).all(), "values differ"
    proved = float(np.mean([r.success and r.method == METHOD for r in results]))
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, (count, call) in calls.items():
            begin = time.perf_counter()
            call()
            seconds[name].append((time.perf_counter() - begin) / count)
    found = {name: 1e6 * median(times) for name, times in seconds.items()}
    ratios = {
        f"{a}/{b}": found[a] / found[b] for a in ("stacked", "list") for b in ("piqp", "proxqp")
    }
    return {"variables": n, "rows": m, "problems": instances, "proved": proved, **found, **ratios}


def main() -> None:
    """Measure all sizes and print a line for each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--instances", type=int, default=2000, help="programs of each size")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each batch")
    parser.add_argument("--device", help="device of PyTorch for the stacks")
    options = parser.parse_args()
    with threadpool_limits(limits=1):
        rows = [measure(n, m, options.instances, options.rounds, options.device) for n, m in SIZES]
    names = ["stacked", "list", "piqp", "proxqp"]
    print("variables   rows  problems    proved " + "".join(f"{name:>9s} us" for name in names))
    for row in rows:
        print(
            f"{row['variables']:9d}{row['rows']:7d}{row['problems']:10d}{row['proved']:10.4%} "
            + "".join(f"{row[name]:12.1f}" for name in names)
        )
    print(f"numbers in {write_json('batches', {'runs': rows})}")


if __name__ == "__main__":
    main()
