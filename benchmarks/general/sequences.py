"""Sequences of quadratic programs: warm starts against cold starts and other solvers.

    python -m benchmarks.general.sequences [control] [drift] [portfolio] [--small] [--repeats N]

- control: consecutive steps of walking and balancing robots (``mpc``, in the folder that LOPRO_DATA names);
- drift: random dense programs n x 2n whose linear term and right-hand sides change by 2, 5 or 20 % in every
  step, 4 to 2,000 steps;
- portfolio: 500 assets with 20 factors, sectors and a limit on the turnover, 50 levels of risk aversion.

A step is set up, solved and proved from its arrays; PIQP starts cold, ProxQP from its last result. Times are
processor times of one thread, the least of all repeats of a step; printed are their medians, and the largest
of the warm ones next to their median.
"""

from __future__ import annotations

import argparse
import math
import re
import time
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Any

import numpy as np
import scipy.sparse

import lopro
from benchmarks._report import write_json
from benchmarks.general.collections import folder_of
from lopro.engines import QuadraticProgram, solve_by_piqp

#: Programs with their names; one list for each sequence.
Sequences = Iterator[tuple[str, list[QuadraticProgram]]]
#: The absolute residuals required of ProxQP.
PROXQP = 1e-8
#: The time limit of another solver for a sequence, in seconds, checked after every step.
LIMIT = 60.0
#: ProxQP's value for infinite bounds.
NO_BOUND = 1e20


def control(small: bool) -> Sequences:
    """Yield the control problems, in their order."""
    folder = folder_of("mpc")
    for robot in ("LIPMWALK", "WHLIPBAL"):
        files = sorted(folder.glob(f"{robot}*.npz"), key=lambda f: int(re.sub(r"\D", "", f.stem)))
        steps = []
        for file in files[: 3 if small else None]:
            data = np.load(file, allow_pickle=True)  # missing parts are None
            steps.append(QuadraticProgram.of(data["P"], data["q"], data["G"], upper=data["h"]))
        yield robot.lower(), steps


def drift(small: bool) -> Sequences:
    """Yield programs with an interior around zero, of which about n rows are active."""
    sizes = [(30, 10, 0.02)] if small else [
        (30, 2000, 0.02), (30, 200, 0.2), (100, 20, 0.05), (300, 8, 0.02), (300, 8, 0.2), (1000, 4, 0.02),
    ]  # fmt: skip
    for n, count, move in sizes:
        rng = np.random.default_rng(n)
        B, A = rng.standard_normal((n, n)), rng.standard_normal((2 * n, n))
        P, q = B @ B.T / n + 0.1 * np.eye(n), rng.standard_normal(n)
        h, steps = 0.5 * np.abs(rng.standard_normal(2 * n)), []
        for _ in range(count):
            q = q + move * rng.standard_normal(n)
            h = np.maximum(h + move * rng.standard_normal(2 * n), 0.05)
            steps.append(QuadraticProgram.of(P, q, A, upper=h))
        yield f"{n} x {2 * n}, {100 * move:.0f} %", steps


def portfolio(small: bool) -> Sequences:
    """Yield ``min gamma/2 (|F'x|^2 + x'Dx) - mu'x`` with its factors y = F'x and trades t >= |x - x_0|."""
    n, k, levels = (60, 4, 4) if small else (500, 20, 50)
    rng = np.random.default_rng(5)
    F, own = 0.2 * rng.standard_normal((n, k)) / np.sqrt(k), rng.uniform(0.01, 0.05, n)
    mu, before, sector = 0.05 * rng.standard_normal(n), rng.dirichlet(np.ones(n)), np.arange(n) % 10
    eye, none = scipy.sparse.eye_array(n), scipy.sparse.csr_array((n, k))
    sectors = scipy.sparse.csr_array((np.ones(n), (sector, np.arange(n))), (10, n))
    # Variables x, t, y; rows: total, sectors, factors, both sides of the trades, turnover.
    A = scipy.sparse.block_array(
        [
            [np.ones((1, n)), None, scipy.sparse.csr_array((1, k))],
            [sectors, None, None],
            [scipy.sparse.csr_array(F.T), None, -scipy.sparse.eye_array(k)],
            [eye, -eye, none],
            [-eye, -eye, none],
            [None, np.ones((1, n)), None],
        ],
        format="csr",
    )
    most = np.concatenate([[1.0], np.full(10, 0.2), np.zeros(k), before, -before, [0.5]])
    least = np.concatenate([[1.0], np.full(10, -np.inf), np.zeros(k), np.full(2 * n + 1, -np.inf)])
    box = np.concatenate([np.zeros(2 * n), np.full(k, -np.inf)])
    q, steps = np.concatenate([-mu, np.zeros(n + k)]), []
    for gamma in np.geomspace(0.1, 100.0, levels):
        P = scipy.sparse.diags_array(
            gamma * np.concatenate([own, np.zeros(n), np.ones(k)]), format="csc"
        )
        steps.append(QuadraticProgram.of(P, q, A, least, most, least=box))
    yield f"portfolio, {n} assets", steps


def problem_of(p: QuadraticProgram) -> lopro.Problem:
    """Return a program as a user writes it."""
    sets: list[Any] = [lopro.constraints.Affine(p.A, p.lower, p.upper)]
    if p.boxed:
        sets.append(lopro.constraints.Box(p.least, p.most))
    f = lopro.objectives.Quadratic(p.P, p.q)
    return lopro.Problem(f, sets[0] if len(sets) == 1 else lopro.constraints.Intersection(*sets))


def cold(steps: Sequence[QuadraticProgram]) -> Iterator[bool]:
    """Solve every step from a cold start; return whether it was proved."""
    for p in steps:
        yield lopro.solve(problem_of(p)).success


def warm(steps: Sequence[QuadraticProgram]) -> Iterator[bool]:
    """Solve every step from the result of the last one."""
    last: Any = None
    for p in steps:
        last = lopro.solve(problem_of(p), warm_start=last)
        yield last.success


def piqp(steps: Sequence[QuadraticProgram]) -> Iterator[bool]:
    """Solve every step by PIQP."""
    for p in steps:
        yield solve_by_piqp(p).finite


def proxqp(steps: Sequence[QuadraticProgram]) -> Iterator[bool]:
    """Solve the first step by ProxQP and update it for the others; the equations stay the same rows."""
    import proxsuite

    kind = proxsuite.proxqp.sparse if steps[0].sparse else proxsuite.proxqp.dense
    guess = proxsuite.proxqp.InitialGuess.WARM_START_WITH_PREVIOUS_RESULT
    qp: Any = None
    for p in steps:
        equal = p.lower == p.upper
        n, C, low, high = len(p.q), p.A[~equal], p.lower[~equal], p.upper[~equal]
        if p.boxed:
            eye = scipy.sparse.eye_array(n, format="csr") if p.sparse else np.eye(n)
            C = (scipy.sparse.vstack if p.sparse else np.vstack)([C, eye])
            low, high = np.concatenate([low, p.least]), np.concatenate([high, p.most])
        wrap = scipy.sparse.csc_matrix if p.sparse else np.ascontiguousarray
        data: dict[str, Any] = {
            "H": wrap(p.P),
            "g": p.q,
            "C": wrap(C),
            "u": np.minimum(high, NO_BOUND),
        }
        data |= {"l": np.maximum(low, -NO_BOUND)}
        if equal.any():
            data |= {"A": wrap(p.A[equal]), "b": p.lower[equal]}
        if qp is None:
            qp = kind.QP(n, int(equal.sum()), C.shape[0])
            qp.settings.eps_abs, qp.settings.eps_rel = PROXQP, 0.0
            qp.settings.initial_guess = guess
            qp.init(**data)
        else:
            qp.update(**data)
        qp.solve()
        yield qp.results.info.status == proxsuite.proxqp.PROXQP_SOLVED


PEERS: dict[str, Callable[[Sequence[QuadraticProgram]], Iterator[bool]]] = {
    "cold": cold, "warm": warm, "piqp": piqp, "proxqp": proxqp,
}  # fmt: skip


def measure(steps: Sequence[QuadraticProgram], repeats: int) -> dict[str, Any]:
    """Return the milliseconds of each solver for every step but the first, and the number of steps solved."""
    found: dict[str, Any] = {}
    times = {name: np.full((repeats, len(steps)), np.nan) for name in PEERS}
    for i in range(repeats):
        for name, peer in PEERS.items():  # in turns, so that the load is the same for all
            start = begin = time.process_time()
            solved = 0
            for j, proved in enumerate(peer(steps)):
                now = time.process_time()
                times[name][i, j], begin, solved = 1e3 * (now - begin), now, solved + proved
                if now - start > LIMIT:
                    break  # a solver that does not finish has no time
            found[f"{name} solved"] = solved
    for name, each in times.items():
        best = each.min(axis=0)[1:]
        ended = bool(np.isfinite(best).all())
        found[name], found[f"{name} largest"] = (
            (median(best), float(best.max())) if ended else (math.nan, math.nan)
        )
    return found


def entries(runs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the runs in the format of the common table: warm starts, and other solvers."""
    names = {"warm": "lopro", "piqp": "piqp", "proxqp": "proxqp"}
    return [
        {
            "problem": run["sequence"], "peer": name, "seconds": 1e-3 * run[peer],
            "status": "CONVERGED" if run[f"{peer} solved"] == run["steps"] else "",
        }
        for run in runs for peer, name in names.items() if math.isfinite(run[peer])
    ]  # fmt: skip


FAMILIES: dict[str, Callable[[bool], Sequences]] = {
    "control": control, "drift": drift, "portfolio": portfolio,
}  # fmt: skip


def main(arguments: list[str] | None = None) -> None:
    """Measure the chosen families, all by default, and print a line for each sequence."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("family", nargs="*", choices=[[], *FAMILIES], help="all by default")
    parser.add_argument("--small", action="store_true", help="toy sizes, as a test")
    parser.add_argument("--repeats", type=int, default=5, help="runs of each sequence")
    options = parser.parse_args(arguments)
    runs = []
    print(f"{'ms':24s}    cold    warm    piqp  proxqp  warm/cold  largest/median  proved of steps")
    for family in options.family or FAMILIES:
        for name, steps in FAMILIES[family](options.small):
            row = measure(steps, options.repeats)
            runs.append({"sequence": name, "steps": len(steps), **row})
            times = "".join(f"{row[peer]:8.3f}" for peer in PEERS)
            ratios = f"{row['warm'] / row['cold']:11.2f}{row['warm largest'] / row['warm']:16.1f}"
            proved = f"{row['cold solved']}, {row['warm solved']} of {len(steps)}"
            print(f"{name:24s}{times}{ratios}  {proved:>15s}", flush=True)
    name = "_".join(["sequences", *(options.family or [])])
    if not options.small:
        write_json(f"general_{name}", {"runs": entries(runs)})
    print(f"numbers in {write_json(name, {'runs': runs})}")


if __name__ == "__main__":
    main()
