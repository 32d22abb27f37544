"""Protocols of methods, inner algorithms and the workbench, and the declaration of a method.

A method is a generator: it yields candidates and receives verdicts. It contains only its mathematics;
budgets, the clock, records, certificates and the status belong to the driver. An inner algorithm (the "any
algorithm" of Theorem 1, applied to the penalised objective) never projects and never decides to stop.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar

import numpy as np

from lopro.certificates import Target
from lopro.constraints import Constraint
from lopro.core.arrays import Array
from lopro.driver.candidate import Candidate, Verdict
from lopro.functions import Image
from lopro.objectives import Objective
from lopro.penalties import Penalised, Penalty
from lopro.problem import Problem

__all__ = [
    "Candidates",
    "Card",
    "InnerAlgorithm",
    "Method",
    "Stepper",
    "Workbench",
]

PAPER = "Yang, Lin, Zhang (ICML 2017)"


@dataclass(frozen=True)
class Card:
    """A method's declaration: one line each on what matters for choosing it.

    A method has it as the class attribute ``card``; the table of methods in the documentation and on
    the command line is made from these declarations.

    Parameters
    ----------
    assumptions : str
        What must be true of the problem.
    oracles : str
        What it requires of the objective and of the constraint.
    rate : str
        Iterations for an ``eps``-optimal point, or the error after ``T`` of them.
    projections : str
        The number of projections.
    reference : str
        Its source.

    Examples
    --------
    >>> import lopro
    >>> lopro.LoPGD.card.projections
    'O(log 1/eps): one per epoch'
    """

    assumptions: str
    oracles: str
    rate: str
    projections: str
    reference: str = PAPER


F = TypeVar("F", contravariant=True)


class Stepper(Protocol[F]):
    """An algorithm that the workbench can advance, on a state of any type."""

    def init(self, F: F, x: Array, rng: np.random.Generator, /) -> Any:
        """Return the state that starts at ``x``."""
        ...

    def step(self, F: F, state: Any, /) -> Any:
        """Return the state one iteration later; the old one may be reused."""
        ...

    def output(self, state: Any, /) -> Array:
        """Return the point whose value the theory bounds."""
        ...


class InnerAlgorithm(Stepper[Penalised], Protocol):
    """The protocol of `lopro.inner`: a stepper for penalised objectives, with a check and an error bound."""

    def check(self, problem: Any) -> None:
        """Raise `MissingCapabilityError` if the problem lacks what the algorithm needs."""
        ...

    def bound(self, state: Any, distance: float) -> float | None:
        """Return ``B_T`` with ``F(output) - F(z) <= B_T`` for every z with ``|x_1 - z| <= distance``.

        None where no such bound is known.
        """
        ...


G = TypeVar("G")


#: The return type of `Method.run`: ``verdict = yield candidate``.
Candidates: TypeAlias = Generator[Candidate, Verdict, None]


class Workbench(Protocol):
    """The oracles and services that a method may use."""

    #: The problem as it was given, its parts with their own types; calls on it are not counted.
    problem: Problem
    #: The same problem, its oracles counted.
    counted: Problem

    @property
    def rng(self) -> np.random.Generator:
        """The random generator, made from the seed of the call."""
        ...

    @property
    def target(self) -> Target:
        """The required accuracy."""
        ...

    @property
    def unit(self) -> float:
        """A typical length of ``x``, in its units: the scale of first steps."""
        ...

    @property
    def multipliers0(self) -> Image | None:
        """The initial multipliers, one array for each of the user's sets of rows; None for zero."""
        ...

    @property
    def warm(self) -> bool:
        """Whether initial multipliers are given."""
        ...

    @property
    def objective(self) -> Objective:
        """The objective, its oracles counted."""
        ...

    @property
    def constraint(self) -> Constraint:
        """The constraint, its oracles counted; it cannot project, only `project` can."""
        ...

    @property
    def followed(self) -> Constraint:
        """The constraint prepared for many nearby points, counted (`Constraint.followed`)."""
        ...

    def penalised(self, penalty: Penalty, like: Array, *, followed: bool = False) -> Penalised:
        """Return ``f + h`` with counted oracles; with ``followed``, h of the constraint for nearby points."""
        ...

    def advance(self, inner: Stepper[G], G: G, state: Any, steps: int) -> Any:
        """Advance an inner algorithm by ``steps`` steps, or by fewer if a budget runs out."""
        ...

    def minimize(self, inner: Stepper[G], G: G, x: Array, steps: int) -> Any:
        """Start an inner algorithm at ``x`` and advance it; return its state."""
        ...

    def project(self, x: Array) -> Array:
        """Project onto the feasible set; counted."""
        ...

    def tick(self) -> bool:
        """Count one iteration of a method without an inner algorithm; return whether it may continue."""
        ...

    def hand_over(self, method: Method) -> None:
        """Record that another method continues from here; the result names it."""
        ...

    def observe(self) -> Any:
        """Return a context in which calls are counted as those of certificates."""
        ...

    @property
    def cut_short(self) -> bool:
        """Whether the last inner run made fewer steps than requested, so that no theorem applies to it."""
        ...

    @property
    def exhausted(self) -> bool:
        """Whether a budget has run out, so that the method should return."""
        ...


class Method(Protocol):
    """A method for `lopro.solve`."""

    #: Its assumptions, oracles and guarantees.
    card: ClassVar[Card]

    def check(self, problem: Problem) -> None:
        """Raise `MissingCapabilityError`, before any work, if the method does not fit the problem."""
        ...

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        """Yield candidates; return when the method is complete."""
        ...
