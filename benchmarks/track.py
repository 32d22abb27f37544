"""Ratios to other solvers over commits: each run appends an entry to ``benchmarks/results/track.json``.

    python -m benchmarks.track [--rounds N] [--file PATH] [--show]

Each ratio is the least processor time of lopro divided by that of the other solver: one thread, one process,
in turns. Ratios are comparable between similar machines, times are not; an entry has both, with the
commit and the machine. ``--show`` prints the file as a table and measures nothing.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import lopro
from benchmarks._report import RESULTS, environment
from benchmarks.bpdn.peers import SPGL1
from benchmarks.bpdn.problems import PROBLEMS as PURSUITS
from benchmarks.general.measure import interleaved
from benchmarks.metric_learning.adapter import Settings
from benchmarks.metric_learning.peers import Cvxpy
from benchmarks.metric_learning.problems import PROBLEMS as METRICS

Calls = tuple[Callable[[], Any], Callable[[], Any]]


def proved(result: lopro.Result) -> lopro.Result:
    """Return the result, which must be proved."""
    assert result.success, result
    return result


def pursuit(small: bool) -> Calls:
    """Basis pursuit denoising of the paper's size, proved to 1e-8, against SPGL1 with tolerances of 1e-4."""
    instance = PURSUITS["paper"](small)
    return (
        lambda: proved(lopro.bpdn(instance.A, instance.y, instance.sigma, tol=1e-8)),
        lambda: SPGL1(1e-4).solve(instance, 60.0),
    )


def quadratic(small: bool) -> Calls:
    """Ten dense quadratic programs of 50 variables and 100 rows, proved to 1e-6, against PIQP alone."""
    sys.path.insert(
        0, str(Path(__file__).parent)
    )  # scripts of this folder import each other by name
    from small_programs import by_lopro, by_piqp, program

    programs = [program(50, 100, seed) for seed in range(1 if small else 10)]
    return (
        lambda: [by_lopro(*data) for data in programs],
        lambda: [by_piqp(*data) for data in programs],
    )


def metric(small: bool) -> Calls:
    """A sparse metric for the wine data, proved to 1e-4, against Clarabel through CVXPY."""
    instance = METRICS["wine"](small, None)
    return (
        lambda: proved(lopro.learn_metric(instance.X, instance.labels, l1=instance.l1, tol=1e-4)),
        lambda: Cvxpy("CLARABEL", 64).solve(instance, Settings(60.0)),
    )


def penalised(small: bool) -> Calls:
    """The penalised LASSO with a tenth of the largest weight, proved to 1e-6, against celer at 1e-6."""
    import celer

    m, n = (40, 100) if small else (200, 1000)
    rng = np.random.default_rng(0)
    A, x = rng.standard_normal((m, n)), np.zeros(n)
    x[: n // 20] = rng.standard_normal(n // 20)
    y = A @ x + 0.1 * rng.standard_normal(m)
    weight = 0.1 * float(np.abs(A.T @ y).max())
    columns = np.asfortranarray(A)
    f = lopro.objectives.LeastSquares(A, y) + weight * lopro.objectives.L1Norm()
    return (
        lambda: proved(lopro.solve(lopro.Problem(f))),
        lambda: celer.celer_path(columns, y, "lasso", alphas=[weight / m], tol=1e-6),
    )


RATIOS: dict[str, Callable[[bool], Calls]] = {
    "bpdn 1000 x 5000 / SPGL1 1e-4": pursuit,
    "quadratic program 50 x 100 / PIQP": quadratic,
    "penalised LASSO 200 x 1000 / celer": penalised,
    "metric, wine / Clarabel": metric,
}


def measure(rounds: int, small: bool = False) -> dict[str, dict[str, float]]:
    """Return the seconds of both and their ratio, by name; comparisons that fail are left out."""
    found = {}
    for name, calls in RATIOS.items():
        ours, theirs = calls(small)
        times = interleaved({"ours": ours, "theirs": theirs}, rounds)
        failed = [note for _, _, note in times.values() if note]
        if failed:
            print(f"{name}: {failed[0]}", file=sys.stderr)
            continue
        seconds = {who: time for who, (time, _, _) in times.items()}
        found[name] = {**seconds, "ratio": seconds["ours"] / max(seconds["theirs"], 1e-9)}
    return found


def commit() -> str:
    """Return the commit of the checkout, with a + if files differ from it; "" without git."""
    call = ["git", "describe", "--always", "--abbrev=10", "--dirty=+"]
    done = subprocess.run(call, capture_output=True, text=True, cwd=Path(__file__).parent)
    return done.stdout.strip()


def append(path: Path, ratios: dict[str, dict[str, float]]) -> list[dict[str, Any]]:
    """Add an entry to the file; return all of them."""
    entries = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    now = datetime.now(UTC).isoformat(timespec="seconds")
    entries.append({"commit": commit(), "time": now, "ratios": ratios, **environment()})
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")
    return entries


def table(entries: list[dict[str, Any]]) -> str:
    """Return one line for each entry, one column for each ratio."""
    names = list(dict.fromkeys(name for entry in entries for name in entry["ratios"]))
    lines = ["commit       " + "  ".join(names)]
    for entry in entries:
        cells = [f"{entry['ratios'].get(n, {}).get('ratio', np.nan):{len(n)}.3g}" for n in names]
        lines.append(f"{entry['commit']:<13}" + "  ".join(cells))
    return "\n".join(lines)


def main() -> None:
    """Measure, append and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="runs of each solver")
    parser.add_argument("--file", type=Path, default=RESULTS / "track.json")
    parser.add_argument("--show", action="store_true", help="print the file, measure nothing")
    options = parser.parse_args()
    if options.show:
        print(table(json.loads(options.file.read_text(encoding="utf-8"))))
        return
    with threadpool_limits(limits=1):
        ratios = measure(options.rounds)
    print(table(append(options.file, ratios)[-10:]))


if __name__ == "__main__":
    main()
