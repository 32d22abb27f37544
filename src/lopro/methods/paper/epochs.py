"""The loop of the paper's methods: epochs of inner steps on a penalised objective, each with one projection.

The methods differ in their plans: penalty, inner algorithm, number of steps and start. A schedule returns the
plans and its own state between them; `run_epochs` is the algorithm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from lopro.core.arrays import Array, norm
from lopro.methods.setting import feasible_start
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

__all__ = [
    "Epoch",
    "NumberedEpochs",
    "Plan",
    "Schedule",
    "check_schedule",
    "minimised_and_projected",
    "run_epochs",
]

S = TypeVar("S")


@dataclass(frozen=True)
class Plan:
    """What one epoch runs: penalty, inner algorithm, number of steps and start."""

    penalty: Penalty
    inner: InnerAlgorithm
    steps: int
    start: Array
    claim: Claim | None = None


@dataclass(frozen=True)
class Epoch:
    """The result of one epoch, from which a schedule makes the next plan."""

    plan: Plan
    x_hat: Array  # the point before projection
    x: Array  # the projected point
    state: Any  # the last state of the inner algorithm
    verdict: Verdict


class Schedule(Protocol[S]):
    """A sequence of plans, from a theorem or adaptive."""

    def init(self, bench: Workbench, x: Array) -> tuple[Plan | None, S]:
        """Return the first plan (None if ``x`` already meets the target) and the state."""
        ...

    def next(self, bench: Workbench, state: S, epoch: Epoch) -> tuple[Plan | None, S]:
        """Return the plan after ``epoch`` (None when the schedule is complete) and the state."""
        ...


class NumberedEpochs:
    """Base of schedules that depend on the number of the epoch; each starts from the last projection."""

    def plan(self, start: Array, k: int, last: Epoch | None) -> Plan | None:
        """Return the plan of epoch ``k`` (from 1), which follows ``last``; None after all of them."""
        raise NotImplementedError

    def init(self, bench: Workbench, x: Array) -> tuple[Plan | None, int]:
        """Return the first plan and the number of its epoch."""
        return self.plan(feasible_start(bench, x), 1, None), 1

    def next(self, bench: Workbench, state: int, epoch: Epoch) -> tuple[Plan | None, int]:
        """Return the plan of the next epoch and its number."""
        return self.plan(epoch.x, state + 1, epoch), state + 1


def check_schedule(schedule: Schedule[Any], problem: Problem) -> None:
    """Call the ``check`` of a schedule, if it has one, before the run."""
    check = getattr(schedule, "check", None)
    if check is not None:
        check(problem)


def run_epochs(bench: Workbench, x0: Array, schedule: Schedule[Any]) -> Candidates:
    """Run a schedule: for each plan, minimise the penalised objective and project."""
    plan, state = schedule.init(bench, x0)
    while plan is not None:
        candidate, inner_state = minimised_and_projected(bench, plan)
        verdict = yield candidate
        epoch = Epoch(plan, candidate.taken_at, candidate.x, inner_state, verdict)
        plan, state = schedule.next(bench, state, epoch)


def minimised_and_projected(bench: Workbench, plan: Plan) -> tuple[Candidate, Any]:
    """Run one epoch; return its candidate and the last state of the inner algorithm.

    The claim of a theorem needs all steps of the plan; it is dropped if a budget cut them short. Claim and
    bound need exact values of c, because ``F(x_hat)`` may exceed the mean of minorants at the iterates. So
    the steps use the cheaper, approximate function of a constraint only if nothing is claimed.
    """
    F = bench.penalised(plan.penalty, plan.start)
    stepped = (
        F if plan.claim is not None else bench.penalised(plan.penalty, plan.start, followed=True)
    )
    state = bench.minimize(plan.inner, stepped, plan.start, plan.steps)
    x_hat = plan.inner.output(state)
    minorants = any(c.approximate for c in stepped.constraint.members())

    def bound(radius: float) -> float | None:
        if minorants:
            return None
        return plan.inner.bound(state, norm(plan.start) + radius)

    claim = None if bench.cut_short or minorants else plan.claim
    evidence = PenalisedMinimum(F, bound)
    return Candidate(bench.project(x_hat), evidence, before=x_hat, claim=claim), state
