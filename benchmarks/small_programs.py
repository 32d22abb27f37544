"""Small quadratic programs: `lopro.solve`, set-up and proof included, against PIQP alone, on one thread.

    python benchmarks/small_programs.py [--rounds N] [--instances N]

``min 1/2 x'Px + q'x  s.t.  Gx <= h`` with dense random data; both start from the arrays. The two take turns,
and the medians of all runs are printed with their ratio. The target is at most 3 times PIQP or 0.5 ms,
whichever is more. The last column is the time of lopro without that of PIQP.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
import piqp
from _report import write_json
from threadpoolctl import threadpool_limits

import lopro

#: Variables and rows.
SIZES = ((16, 32), (50, 100))
RATIO_TARGET, MILLISECONDS_TARGET = 3.0, 0.5
Program = tuple[Any, Any, Any, Any]


def program(n: int, m: int, seed: int) -> Program:
    """Return P, q, G, h of a program with an interior point and some active rows."""
    rng = np.random.default_rng([n, m, seed])
    B, G, inside = (rng.standard_normal(shape) for shape in ((n, n), (m, n), n))
    P = B.T @ B / n + 0.1 * np.eye(n)
    return P, rng.standard_normal(n), G, G @ inside + 0.3 * rng.random(m)


def by_lopro(P: Any, q: Any, G: Any, h: Any) -> float:
    """Set up the problem, solve it and prove the answer; return the value."""
    f, c = lopro.objectives.Quadratic(P, q), lopro.constraints.Polyhedron(G, h)
    result = lopro.solve(lopro.Problem(f, c))
    assert result.success, result
    return float(result.fun)


def by_piqp(P: Any, q: Any, G: Any, h: Any) -> float:
    """Solve by PIQP alone, to a duality gap of 1e-8; return the value."""
    solver = piqp.DenseSolver()
    settings = solver.settings
    settings.check_duality_gap = True
    settings.eps_abs = settings.eps_rel = 1e-8
    settings.eps_duality_gap_abs = settings.eps_duality_gap_rel = 1e-8
    solver.setup(P=P, c=q, G=G, h_u=h)
    assert solver.solve().name == "PIQP_SOLVED"
    return float(solver.result.info.primal_obj)


def measure(n: int, m: int, instances: int, rounds: int) -> dict[str, Any]:
    """Return the medians of both in milliseconds."""
    programs = [program(n, m, seed) for seed in range(instances)]
    peers: dict[str, Callable[..., float]] = {"lopro": by_lopro, "piqp": by_piqp}
    for data in programs:  # warm up, and check that both solve the same problem
        ours, theirs = (solve(*data) for solve in peers.values())
        assert abs(ours - theirs) <= 1e-5 * abs(theirs), (ours, theirs)
    seconds: dict[str, list[float]] = {name: [] for name in peers}
    for _ in range(rounds):
        for data in programs:
            for name, solve in peers.items():
                begin = time.perf_counter()
                solve(*data)
                seconds[name].append(time.perf_counter() - begin)
    found = {name: 1e3 * median(times) for name, times in seconds.items()}
    limit = max(RATIO_TARGET * found["piqp"], MILLISECONDS_TARGET)
    return {
        "variables": n, "rows": m, "lopro_ms": found["lopro"], "piqp_ms": found["piqp"],
        "ratio": found["lopro"] / found["piqp"], "limit_ms": limit,
        "met": found["lopro"] <= limit, "runs": instances * rounds,
    }  # fmt: skip


def main() -> None:
    """Measure all sizes and print a line for each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20, help="runs of each program")
    parser.add_argument("--instances", type=int, default=10, help="programs of each size")
    options = parser.parse_args()
    with threadpool_limits(limits=1):
        rows = [measure(n, m, options.instances, options.rounds) for n, m in SIZES]
    print("variables   rows   lopro ms    piqp ms   ratio   limit ms   target   lopro - piqp ms")
    for row in rows:
        print(
            f"{row['variables']:9d}{row['rows']:7d}{row['lopro_ms']:11.3f}{row['piqp_ms']:11.3f}"
            f"{row['ratio']:8.1f}{row['limit_ms']:11.3f}{'met' if row['met'] else 'missed':>9s}"
            f"{row['lopro_ms'] - row['piqp_ms']:18.3f}"
        )
    print(f"numbers in {write_json('small_programs', {'runs': rows})}")


if __name__ == "__main__":
    main()
