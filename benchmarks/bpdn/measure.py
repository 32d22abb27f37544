"""Running methods on problems: warm-up, timed repeats, a time cap, and the verdict on the answer."""

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

#: Methods that watch the clock get this much longer before they are stopped from outside.
GRACE = 1.5
#: Seconds for the projections and certificates of one method's answer and curve.
JUDGE_CAP = 120.0


@dataclass
class Row:
    """One method on one problem; only ``note`` is set where there is no answer."""

    method: str
    note: str
    #: Median time of the repeats, and all of them; the judge's projection is not in them.
    seconds: float | None = None
    all_seconds: list[float] = field(default_factory=list)
    products: int | None = None
    forward: int | None = None
    adjoint: int | None = None
    projections: int | None = None
    iterations: int | None = None
    verdict: Verdict | None = None
    #: Relative to the lowest value any method reached on this problem; set when all are done.
    suboptimality: float | None = None
    #: The bound that the method itself has proved, and the relative gap it leaves.
    own_lower_bound: float | None = None
    own_gap: float | None = None
    #: (seconds, products, relative gap)
    curve: list[tuple[float, int, float]] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


def warm_up(adapters: Sequence[Adapter]) -> dict[str, str]:
    """Let every package import and compile on a toy problem; return why some cannot take part."""
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
    """Measure every method on one problem; each gets a row whether it has an answer or not."""
    judge = Judge(instance)
    trials = [Trial(adapter) for adapter in adapters]
    for trial in trials:
        refusal = failed.get(trial.adapter.name) or trial.adapter.refuses(instance)
        if refusal is not None:
            trial.note = refusal
        else:
            say(f"{instance.name}: preparing {trial.adapter.name}")
            trial.prepare(instance, cap)
    # Round by round, so that a slow minute of the machine hits every method alike.
    for _ in range(repeats):
        for trial in trials:
            if trial.wants_more(cap):
                say(f"{instance.name}: {trial.adapter.name}")
                trial.run(instance, cap)
    rows = [trial.row(instance, judge, cap, curves) for trial in trials]
    _compare(rows)
    return rows


class Trial:
    """One method on one problem: its times, its last answer, or why there is none."""

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
        """Whether to run it (again): one run that takes half the cap is enough."""
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
        """Have the answer judged, and write everything down."""
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
    """Return the method's own history, or the judge's gap of the points it passed."""
    if answer.history:
        return answer.history
    points = answer.snapshots or adapter.curve(instance, cap)
    return [(seconds, products, judge(x).relative_gap) for seconds, products, x in points]


def _compare(rows: Sequence[Row]) -> None:
    """Fill in the suboptimality: projected points are feasible, so the lowest value is the best known."""
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
