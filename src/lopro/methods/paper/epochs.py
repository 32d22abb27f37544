"""What the paper's methods share: epochs that spend an inner budget and project once.

The methods differ only in their plans: which penalty, which inner algorithm, how many steps, from where. A
schedule supplies the plans and owns whatever it has to remember between them; `run_epochs` is the
algorithm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from lopro.core.arrays import Array, norm
from lopro.penalties import Penalty
from lopro.problem import Problem
from lopro.protocol import (
    Candidate,
    Candidates,
    Claim,
    InnerAlgorithm,
    PenalisedMinimum,
    Verdict,
    Workbench,
)

__all__ = ["Epoch", "Plan", "Schedule", "check_schedule", "minimised_and_projected", "run_epochs"]

S = TypeVar("S")


@dataclass(frozen=True)
class Plan:
    """One epoch to be run."""

    penalty: Penalty
    inner: InnerAlgorithm
    steps: int
    start: Array
    claim: Claim | None = None


@dataclass(frozen=True)
class Epoch:
    """One epoch that was run: what a schedule may look at before it plans the next one."""

    plan: Plan
    x_hat: Array  # the point before projection
    x: Array  # the projected point
    state: Any  # the inner algorithm's last state
    verdict: Verdict


class Schedule(Protocol[S]):
    """Where the plans come from: the theorems' choices, or adaptive ones."""

    def init(self, bench: Workbench, x: Array) -> tuple[Plan | None, S]:
        """Return the first plan (None if ``x`` already meets the target) and what to remember."""
        ...

    def next(self, bench: Workbench, state: S, epoch: Epoch) -> tuple[Plan | None, S]:
        """Return the plan after ``epoch`` (None when the schedule is complete) and what to remember."""
        ...


def check_schedule(schedule: Schedule[Any], problem: Problem) -> None:
    """Let a schedule with needs of its own raise before any work; the others have no ``check``."""
    check = getattr(schedule, "check", None)
    if check is not None:
        check(problem)


def run_epochs(bench: Workbench, x0: Array, schedule: Schedule[Any]) -> Candidates:
    """Run a schedule: minimise the penalised objective for a while, project, repeat."""
    plan, memory = schedule.init(bench, x0)
    while plan is not None:
        candidate, state = minimised_and_projected(bench, plan)
        verdict = yield candidate
        epoch = Epoch(plan, candidate.taken_at, candidate.x, state, verdict)
        plan, memory = schedule.next(bench, memory, epoch)


def minimised_and_projected(bench: Workbench, plan: Plan) -> tuple[Candidate, Any]:
    """Run one epoch; return its candidate and the inner algorithm's last state.

    A theorem's claim needs all the steps of the plan, so it is made only if there was time for them.
    """
    F = bench.penalised(plan.penalty, plan.start)
    state = bench.minimize(plan.inner, F, plan.start, plan.steps)
    x_hat = plan.inner.output(state)

    def bound(radius: float) -> float | None:
        return plan.inner.bound(state, norm(plan.start) + radius)

    claim = None if bench.cut_short else plan.claim
    evidence = PenalisedMinimum(F, bound)
    return Candidate(bench.project(x_hat), evidence, before=x_hat, claim=claim), state
