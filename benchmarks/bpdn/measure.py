"""Runs of methods on problems: warm-up, timed repeats, a time limit, and the judge's verdict."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

from benchmarks.bpdn.adapter import Adapter, Answer, OutOfTime, elapsed, time_cap
from benchmarks.bpdn.judge import Judge, Verdict
from benchmarks.bpdn.problems import Instance, toy

__all__ = ["Row", "measure_problem", "warm_up"]

#: The factor of the time limit after which methods with a limit of their own are stopped.
GRACE = 1.5
#: Seconds for the projections and certificates of one method's answer and curve.
JUDGE_CAP = 120.0


@dataclass
class Row:
    """The results of one method on one problem; without an answer only ``note`` is set."""

    method: str
    note: str
    #: Median time of the repeats, and all times, without the judge's projection.
    seconds: float | None = None
    all_seconds: list[float] = field(default_factory=list)
    products: int | None = None
    forward: int | None = None
    adjoint: int | None = None
    projections: int | None = None
    iterations: int | None = None
    verdict: Verdict | None = None
    #: Relative to the lowest value of all methods on this problem; set after all have run.
    suboptimality: float | None = None
    #: The bound that the method itself has proved, and the relative gap to it.
    own_lower_bound: float | None = None
    own_gap: float | None = None
    #: (seconds, products, relative gap)
    curve: list[tuple[float, int, float]] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


def warm_up(adapters: Sequence[Adapter]) -> dict[str, str]:
    """Run every method on a toy problem, so that packages are imported and compiled; return failures."""
    instance, failed = toy(), {}
    for adapter in adapters:
        absent = adapter.missing()
        if absent is not None:
            failed[adapter.name] = absent
            continue
        try:
            adapter.prepare(instance, 10.0)
            adapter.solve(instance, 10.0)
        except Exception as error:
            failed[adapter.name] = _said(error)
    return failed


def measure_problem(
    instance: Instance,
    adapters: Sequence[Adapter],
    *,
    repeats: int,
    cap: float,
    curves: bool,
    failed: dict[str, str],
    say: Callable[[str], Any],
) -> list[Row]:
    """Measure every method on one problem; methods without an answer also get a row."""
    judge = Judge(instance)
    trials = [Trial(adapter) for adapter in adapters]
    for trial in trials:
        refusal = failed.get(trial.adapter.name) or trial.adapter.refuses(instance)
        if refusal is not None:
            trial.note = refusal
        else:
            say(f"{instance.name}: preparing {trial.adapter.name}")
            trial.prepare(instance, cap)
    # In rounds, so that changes of the machine's load affect all methods equally.
    for _ in range(repeats):
        for trial in trials:
            if trial.wants_more(cap):
                say(f"{instance.name}: {trial.adapter.name}")
                trial.run(instance, cap)
    rows = [trial.row(instance, judge, cap, curves) for trial in trials]
    _compare(rows)
    return rows


class Trial:
    """One method on one problem: its times, and its last answer or the reason why there is none."""

    def __init__(self, adapter: Adapter) -> None:
        self.adapter = adapter
        self.seconds: list[float] = []
        self.answer: Answer | None = None
        self.note: str | None = None

    def prepare(self, instance: Instance, cap: float) -> None:
        """Determine, untimed, the parameters of the method."""
        try:
            self.adapter.prepare(instance, cap)
        except Exception as error:
            self.note = _said(error)

    def wants_more(self, cap: float) -> bool:
        """Return whether to run it again; after a run of more than half the limit it is not repeated."""
        return self.note is None and max(self.seconds, default=0.0) < 0.5 * cap

    def run(self, instance: Instance, cap: float) -> None:
        """Run it once and time it."""
        try:
            with time_cap(GRACE * cap):
                start = time.perf_counter()
                self.answer = self.adapter.solve(instance, cap)
                self.seconds.append(elapsed(start))
        except OutOfTime:
            self.note = f"no answer within {GRACE * cap:.0f} s"
        except Exception as error:
            self.note = _said(error)

    def row(self, instance: Instance, judge: Judge, cap: float, curves: bool) -> Row:
        """Judge the answer and return the row."""
        name, answer = self.adapter.name, self.answer
        if self.note is not None or answer is None:
            return Row(name, self.note or "no answer")
        row = Row(name, answer.status, median(self.seconds), self.seconds)
        if answer.x is None:
            row.note += ", no point"
            return row
        row.forward, row.adjoint, row.products = answer.forward, answer.adjoint, answer.products
        row.projections, row.iterations = answer.projections, answer.iterations
        row.own_lower_bound, row.curve = answer.lower_bound, answer.history
        try:
            with time_cap(JUDGE_CAP):
                row.verdict = judge(answer.x)
                if curves:
                    row.curve = _curve(self.adapter, answer, instance, judge, cap)
        except (OutOfTime, Exception) as error:
            row.note += f"; judge: {_said(error)}"
        return row


def _curve(
    adapter: Adapter, answer: Answer, instance: Instance, judge: Judge, cap: float
) -> list[tuple[float, int, float]]:
    """Return the method's own history, or the judge's gaps of its intermediate points."""
    if answer.history:
        return answer.history
    points = answer.snapshots or adapter.curve(instance, cap)
    return [(seconds, products, judge(x).relative_gap) for seconds, products, x in points]


def _compare(rows: Sequence[Row]) -> None:
    """Set the suboptimality relative to the lowest value at the projected points, which are feasible."""
    best = min((row.verdict.value for row in rows if row.verdict is not None), default=0.0)
    for row in rows:
        if row.verdict is None:
            continue
        row.suboptimality = (row.verdict.value - best) / best
        if row.own_lower_bound is not None:
            row.own_gap = max(0.0, row.verdict.value - row.own_lower_bound) / row.verdict.value
            if row.own_lower_bound > best * (1.0 + 1e-11):
                row.note += "; ITS BOUND IS WRONG: another feasible point is below it"


def _said(error: BaseException) -> str:
    first = (str(error).splitlines() or [""])[0]
    return f"{type(error).__name__}: {first}"[:110]
