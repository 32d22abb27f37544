"""Timing, judging and tables for the benchmarks of this folder."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from benchmarks._report import finite
from lopro.newton import Composite
from lopro.newton.bounds import lower_bound, relative_violation, violation_charge

__all__ = ["Judged", "Run", "in_turns", "interleaved", "judge", "print_table", "records"]

#: A point counts as feasible up to this relative violation.
FEASIBLE = 1e-9


@dataclass(frozen=True)
class Judged:
    """The value, violation and gap of a point and multipliers from any solver."""

    fun: float
    violation: float
    gap: float  # relative to the value, violation charged
    reach: float  # radius for which the bound proves a gap of 1e-6, over |x|


@dataclass(frozen=True)
class Run:
    """The least processor time of a solver on a problem, and its judged answer."""

    problem: str
    peer: str
    seconds: float
    judged: Judged | None
    note: str = ""


def judge(problem: Composite, x: Any, multipliers: Sequence[Any]) -> Judged:
    """Judge a point by the problem's own rows and the bound of its multipliers."""
    convexity = problem.smooth.strong_convexity()
    bound = lower_bound(problem, x, multipliers, convexity)
    fun = problem.smooth.value(x)
    charge = violation_charge(problem, x, multipliers)
    size = max(abs(fun), np.finfo(float).tiny)
    length = max(float(np.linalg.norm(x)), np.finfo(float).tiny)
    reach = np.inf if bound.flat else 1e-6 * size / bound.slope / length
    return Judged(fun, relative_violation(problem, x), (fun + charge - bound.value) / size, reach)


def interleaved(
    runs: Mapping[str, Callable[[], Any]], rounds: int = 3, limit: float = 60.0
) -> dict[str, tuple[float, Any, str]]:
    """Run all solvers in turns, several times; return the least processor time and the last answer of each.

    Processor time of this one-threaded process, since other processes may share the machine. A solver
    that has reached its limit is not run again.
    """
    found: dict[str, tuple[float, Any, str]] = {}
    for _ in range(rounds):
        for name, run in runs.items():
            if name in found and (found[name][0] > limit / rounds or found[name][2]):
                continue
            begin = time.process_time()
            try:
                answer, note = run(), ""
            except Exception as error:  # a failure is a result, not the end of the benchmark
                answer, note = None, f"{type(error).__name__}: {error}"[:60]
            spent = time.process_time() - begin
            least = min(spent, found[name][0]) if name in found else spent
            found[name] = (least, answer, note)
    return found


def in_turns(
    problem: str,
    peers: Sequence[Callable[[Any], Run]],
    data: Any,
    rounds: int = 3,
    long: float = 2.0,
) -> list[Run]:
    """Run solvers that time themselves in turns; return the run of each with the least processor time.

    A round that takes more than ``long`` seconds is the last one.
    """
    best: list[Run] = []
    for _ in range(rounds):
        found = [replace(peer(data), problem=problem) for peer in peers]
        best = [
            min(pair, key=lambda run: run.seconds)
            for pair in zip(best or found, found, strict=True)
        ]
        if sum(run.seconds for run in found) > long:
            break
    return best


def print_table(runs: Sequence[Run]) -> None:
    """Print a line for each run, with a star at the fastest solver of each problem."""
    valid = [
        r for r in runs if r.judged and r.judged.violation <= FEASIBLE and r.judged.gap <= 1e-6
    ]
    best = {r.problem: min(s.seconds for s in valid if s.problem == r.problem) for r in valid}
    print(
        f"{'problem':28s}{'peer':12s}{'seconds':>9s} {'value':>16s}{'violation':>11s}{'gap':>9s}{'reach':>9s}"
    )
    for run in runs:
        star = "*" if run in valid and run.seconds == best[run.problem] else " "
        j = run.judged
        shown = (
            f"{j.fun:16.9g}{j.violation:11.1e}{j.gap:9.1e}{j.reach:9.1e}" if j else f"{'-':>16s}"
        )
        print(f"{run.problem:28s}{run.peer:12s}{run.seconds:9.4f}{star}{shown}  {run.note}")


def records(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Return the runs as plain data, for JSON."""
    return [finite(asdict(run)) for run in runs]
