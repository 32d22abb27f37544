"""What a method is, and the workbench it works at.

A method is a generator: it yields candidates and receives verdicts. It owns its mathematics and nothing else;
budgets, the clock, records, certificates and the status are the driver's.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar

import numpy as np

from lopro.certificates import Target
from lopro.constraints import Constraint
from lopro.core.arrays import Array
from lopro.functions import Image
from lopro.objectives import Objective
from lopro.penalties import Penalised, Penalty
from lopro.problem import Problem
from lopro.protocol.candidate import Candidate, Verdict
from lopro.protocol.card import Card
from lopro.protocol.inner_algorithm import Stepper

F = TypeVar("F")

__all__ = ["Candidates", "Method", "Workbench", "next_candidate"]

#: What `Method.run` returns: ``verdict = yield candidate``.
Candidates: TypeAlias = Generator[Candidate, Verdict, None]


class Workbench(Protocol):
    """What a method may use."""

    #: The problem as it was given, its parts with their own types; calls on it are not counted.
    problem: Problem
    #: The same problem, its oracles counted.
    counted: Problem

    @property
    def rng(self) -> np.random.Generator:
        """Random numbers, of the seed that the call was given."""
        ...

    @property
    def target(self) -> Target:
        """The accuracy asked for."""
        ...

    @property
    def unit(self) -> float:
        """A length that is typical of ``x``, in its units: what first steps are compared with."""
        ...

    @property
    def multipliers0(self) -> Image | None:
        """Multipliers to begin with, one array for each set of rows as a user counts them; None for zero."""
        ...

    @property
    def warm(self) -> bool:
        """Whether there are multipliers to begin with."""
        ...

    @property
    def objective(self) -> Objective:
        """The objective, its oracles counted."""
        ...

    @property
    def constraint(self) -> Constraint:
        """The constraint, its oracles counted; it cannot project, only `project` can."""
        ...

    def penalised(self, penalty: Penalty, like: Array) -> Penalised:
        """Return ``f + h`` with counted oracles."""
        ...

    def advance(self, inner: Stepper[F], F: F, state: Any, steps: int) -> Any:
        """Advance an inner algorithm by up to ``steps`` steps (fewer when a budget runs out)."""
        ...

    def minimize(self, inner: Stepper[F], F: F, x: Array, steps: int) -> Any:
        """Start an inner algorithm at ``x`` and advance it; return its state."""
        ...

    def project(self, x: Array) -> Array:
        """Project on the feasible set; counted."""
        ...

    def tick(self) -> bool:
        """Count one iteration of a method that steps on its own; return whether it may go on."""
        ...

    def hand_over(self, method: Method) -> None:
        """Say that another method goes on from here; the result names it."""
        ...

    def observe(self) -> Any:
        """Return a context in which calls go to the certificate's counters."""
        ...

    @property
    def cut_short(self) -> bool:
        """Whether the last inner run got fewer steps than were asked for: no theorem covers it."""
        ...

    @property
    def exhausted(self) -> bool:
        """Whether a budget has run out, so that the method should wrap up."""
        ...


class Method(Protocol):
    """A method for `lopro.solve`."""

    #: What it assumes, asks for and promises.
    card: ClassVar[Card]

    def check(self, problem: Problem) -> None:
        """Raise `MissingCapabilityError` before any work if the problem does not fit."""
        ...

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        """Yield candidates; returning means that the method is done."""
        ...


def next_candidate(candidates: Candidates, verdict: Verdict | None) -> Candidate | None:
    """Answer a method's last candidate (None before the first) and return the next; None at the end."""
    try:
        return next(candidates) if verdict is None else candidates.send(verdict)
    except StopIteration:
        return None
