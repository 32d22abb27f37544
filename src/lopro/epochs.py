"""What a scheme is: a generator of epochs, each of which spends an inner budget and projects once.

The paper's schemes differ only in their plans: which penalty, which inner algorithm, how many steps,
from where. `run_epochs` is the algorithm they share; a schedule supplies the plans. Only schemes may
project.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from lopro._arrays import Array
from lopro.certificates import Certificate, feasibility_tolerance
from lopro.constraints.base import Normal
from lopro.inner.base import InnerAlgorithm
from lopro.penalised import Penalised
from lopro.penalties import Penalty
from lopro.problem import Problem

__all__ = ["Claim", "Epoch", "Plan", "Schedule", "Scheme", "Workbench", "run_epochs"]


@dataclass(frozen=True)
class Claim:
    """A bound on ``f(x) - f_*`` that a theorem gives for the constants a user has supplied."""

    gap: float
    source: str


@dataclass(frozen=True)
class Plan:
    """One epoch to be run."""

    penalty: Penalty
    inner: InnerAlgorithm
    steps: int
    start: Array
    index: int = 1
    claim: Claim | None = None


@dataclass
class Epoch:
    """One projection and what led to it.

    The scheme fills the first group; the driver fills the second before it asks for the next epoch,
    so that adaptive schedules can read the outcome.
    """

    x: Array  # the projected point
    x_hat: Array  # the point before projection
    F: Penalised
    plan: Plan | None = None
    state: Any = None  # the inner algorithm's last state
    normal: Normal | None = None  # a multiplier, where the scheme has a better one than F's slope

    fun: float = np.inf  # f(x)
    penalised_value: float = np.inf  # F(x_hat)
    certificate: Certificate | None = None  # of the best point so far

    @property
    def exact(self) -> bool:
        """R2: the projected point is no worse than the penalised value, ``f(x) <= F(x_hat)``.

        It always holds for ``lam >= G / rho``; where it fails, the penalty weight is too small.
        """
        slack = 1e-12 * (1.0 + abs(self.fun))
        return self.fun <= self.penalised_value + slack


class Workbench(Protocol):
    """What a scheme may use; the driver's `Run` is one."""

    problem: Problem
    rng: np.random.Generator

    def penalised(self, penalty: Penalty, like: Array) -> Penalised:
        """Return ``f + h`` with counted oracles."""
        ...

    def advance(self, inner: InnerAlgorithm, F: Penalised, state: Any, steps: int) -> Any:
        """Advance an inner algorithm by up to ``steps`` steps (fewer when a budget runs out)."""
        ...

    def minimize(self, inner: InnerAlgorithm, F: Penalised, x: Array, steps: int) -> Any:
        """Start an inner algorithm at ``x`` and advance it; return its state."""
        ...

    def project(self, x: Array) -> Array:
        """Project on the feasible set; counted."""
        ...

    def tick(self) -> bool:
        """Count one iteration of a scheme that steps on its own; return whether it may go on.

        Baselines do, whose steps project as an inner algorithm cannot, and working sets, whose steps are
        rounds.
        """
        ...

    def observe(self) -> Any:
        """Return a context in which calls go to the certificate's ledger."""
        ...

    @property
    def tol(self) -> float:
        """The relative gap to aim at."""
        ...

    def gap_wanted(self, fun: float) -> float:
        """Return the gap at which a point of this value has converged."""
        ...

    @property
    def exhausted(self) -> bool:
        """Whether a budget has run out, so that the scheme should wrap up."""
        ...


class Schedule(Protocol):
    """Where the plans come from: the theorems' choices, or adaptive ones."""

    def first(self, bench: Workbench, x: Array) -> Plan | None:
        """Return the first plan; None if ``x`` already meets the target."""
        ...

    def following(self, bench: Workbench, plan: Plan, epoch: Epoch) -> Plan | None:
        """Return the plan after ``epoch``; None when the schedule is complete."""
        ...


class Scheme(Protocol):
    """A method for `lopro.solve`."""

    def check(self, problem: Problem) -> None:
        """Raise `MissingCapabilityError` before any work if the problem does not fit."""
        ...

    def epochs(self, bench: Workbench, x0: Array) -> Iterator[Epoch]:
        """Yield one epoch per projection; returning means the schedule is complete."""
        ...


def run_epochs(bench: Workbench, x0: Array, schedule: Schedule) -> Iterator[Epoch]:
    """Run a schedule: minimise the penalised objective for a while, project, repeat."""
    plan = schedule.first(bench, x0)
    while plan is not None:
        F = bench.penalised(plan.penalty, plan.start)
        state = bench.minimize(plan.inner, F, plan.start, plan.steps)
        x_hat = plan.inner.output(state)
        epoch = Epoch(x=bench.project(x_hat), x_hat=x_hat, F=F, plan=plan, state=state)
        yield epoch
        plan = schedule.following(bench, plan, epoch)


def feasible_start(bench: Workbench, x: Array) -> Array:
    """Return ``x`` if it is feasible, else its projection (which counts)."""
    with bench.observe():
        inside = bench.problem.constraint.violation(x) <= feasibility_tolerance(x)
    return x if inside else bench.project(x)
