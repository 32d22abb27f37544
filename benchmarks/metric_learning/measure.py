"""Runs of methods on problems: warm-up, a timed run, the judge's verdict, and gaps to the best bound."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.bpdn.adapter import OutOfTime, time_cap
from benchmarks.metric_learning.adapter import Adapter, Answer, Settings, Snapshot
from benchmarks.metric_learning.judge import Judge, Verdict
from benchmarks.metric_learning.problems import Instance, toy

__all__ = ["TARGETS", "Row", "best_bound", "measure_problem", "warm_up"]

#: The factor of the time limit after which methods with a limit of their own are stopped: conic solvers
#: do not count compilation and factorisation, and a late answer is still of interest.
GRACE = 3.0
#: Relative gaps whose times are recorded.
TARGETS = (1e-1, 1e-2, 1e-4)
#: The relative amount by which a bound may exceed another method's value, for the rounding of both.
ROUNDING = 1e-9


@dataclass
class Row:
    """The results of one method on one problem; without an answer only ``note`` is set."""

    method: str
    note: str
    seconds: float | None = None
    iterations: int | None = None
    counts: dict[str, int] | None = None
    certificate_counts: dict[str, int] | None = None
    verdict: Verdict | None = None
    #: The larger one of the bound that the method has proved and the judge's bound of its answer.
    lower_bound: float | None = None
    #: Relative gaps to that bound, and to the best bound of all methods on this problem.
    own_gap: float | None = None
    gap: float | None = None
    snapshots: list[Snapshot] = field(default_factory=list)
    #: Seconds until the gap, with the best bound of all, was below each target; None where it never was.
    seconds_to: dict[str, float | None] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


def warm_up(adapters: Sequence[Adapter]) -> dict[str, str]:
    """Run every method on a toy problem, so that packages are imported and compiled; return failures."""
    instance, settings, failed = toy(), Settings(0.2, 1e-2, tuning_iterations=2), {}
    for adapter in adapters:
        absent = adapter.missing()
        if absent is not None:
            failed[adapter.name] = absent
            continue
        try:
            adapter.prepare(instance, settings)
            with time_cap(20.0):
                adapter.solve(instance, settings)
        except (OutOfTime, Exception) as error:
            failed[adapter.name] = said(error)
    return failed


def measure_problem(
    instance: Instance,
    adapters: Sequence[Adapter],
    settings: Settings,
    failed: dict[str, str],
    say: Callable[[str], Any],
) -> list[Row]:
    """Measure every method on one problem; methods without an answer also get a row."""
    _ = instance.objective.spread  # data that all certificates share; not timed
    judge, rows = Judge(instance), []
    for adapter in adapters:
        refusal = failed.get(adapter.name) or adapter.refuses(instance)
        if refusal is None:
            say(f"{instance.name}: {adapter.name}")
            rows.append(_measured(adapter, instance, settings, judge))
        else:
            rows.append(Row(adapter.name, refusal))
    _compare(rows)
    return rows


def _measured(adapter: Adapter, instance: Instance, settings: Settings, judge: Judge) -> Row:
    try:
        told = adapter.prepare(instance, settings)
        with time_cap(GRACE * settings.time_limit):
            start = time.perf_counter()
            answer = adapter.solve(instance, settings)
            seconds = time.perf_counter() - start
    except OutOfTime:
        return Row(adapter.name, f"no answer within {GRACE * settings.time_limit:.0f} s")
    except Exception as error:
        return Row(adapter.name, said(error))
    row = Row(adapter.name, ", ".join(filter(None, [answer.status, told])), seconds)
    row.iterations = answer.iterations
    if answer.A is None:
        row.note += ", no matrix"
        return row
    try:
        _judged(row, answer, judge)
        row.snapshots = [*adapter.earlier(instance, settings), *answer.snapshots]
    except Exception as error:
        row.note += f"; judge: {said(error)}"
    return row


def _judged(row: Row, answer: Answer, judge: Judge) -> None:
    row.verdict = judge(answer.A, answer.multiplier)
    if answer.counts is not None and answer.certificate_counts is not None:
        row.counts = answer.counts.to_dict()
        row.certificate_counts = answer.certificate_counts.to_dict()
    bounds = (row.verdict.lower_bound, answer.lower_bound)
    row.lower_bound = max(b for b in bounds if b is not None and not math.isnan(b))


def best_bound(rows: Sequence[Row]) -> float:
    """Return the best bound of all methods, at least 0 since the objective is nonnegative."""
    return max((row.lower_bound for row in rows if row.lower_bound is not None), default=0.0)


def _compare(rows: Sequence[Row]) -> None:
    """Set the gaps; note where a bound contradicts another method's feasible point."""
    bound = best_bound(rows)
    best = min((row.verdict.objective for row in rows if row.verdict), default=math.inf)
    for row in rows:
        if row.verdict is None or row.lower_bound is None:
            continue
        value = row.verdict.objective
        row.own_gap, row.gap = relative(value, row.lower_bound), relative(value, bound)
        row.seconds_to = {f"{target:g}": _reached(row, bound, target) for target in TARGETS}
        if row.lower_bound > best * (1.0 + ROUNDING):
            row.note += "; ITS BOUND IS WRONG: another feasible point is below it"


def _reached(row: Row, bound: float, target: float) -> float | None:
    """Return the time at which the method reached a gap; without snapshots only its end is known."""
    for snapshot in row.snapshots:
        if relative(snapshot.objective, bound) <= target:
            return snapshot.seconds
    return row.seconds if row.gap is not None and row.gap <= target else None


def relative(value: float, bound: float) -> float:
    """Return the gap relative to the value."""
    return max(0.0, value - bound) / value if value > 0.0 else 0.0


def said(error: BaseException) -> str:
    """Return the class and the beginning of an error message on one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:160]
