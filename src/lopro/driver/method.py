"""Protocols of methods: declaration, workbench, fit to a problem, inner algorithms.

A method is a generator: it yields candidates and receives verdicts. It owns its mathematics and nothing else;
budgets, the clock, records, certificates and the status are the driver's. An inner algorithm (Theorem 1's
"any algorithm" on the penalised objective) never projects and never decides to stop.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar

import numpy as np

from lopro.certificates import Target
from lopro.constraints import Constraint
from lopro.core.arrays import Array
from lopro.core.deadline import operations_per_second
from lopro.driver.candidate import Candidate, Verdict
from lopro.errors import MissingCapabilityError
from lopro.functions import Image
from lopro.objectives import Objective
from lopro.penalties import Penalised, Penalty
from lopro.problem import Problem

__all__ = [
    "Candidates",
    "Card",
    "Cost",
    "Fit",
    "InnerAlgorithm",
    "Method",
    "Start",
    "Stepper",
    "Workbench",
    "fit_of",
    "next_candidate",
    "required_fit",
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
        How often it projects.
    reference : str
        Where it comes from.

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
        """Return the point that the theory bounds."""
        ...


class InnerAlgorithm(Stepper[Penalised], Protocol):
    """The protocol of `lopro.inner`: those three, on a penalised objective, and two more."""

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
        """Random numbers, of the seed that the call was given."""
        ...

    @property
    def target(self) -> Target:
        """The required accuracy."""
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

    @property
    def followed(self) -> Constraint:
        """The constraint for many nearby points, counted: see `Constraint.followed`."""
        ...

    def penalised(self, penalty: Penalty, like: Array, *, followed: bool = False) -> Penalised:
        """Return ``f + h`` with counted oracles, or for many nearby points."""
        ...

    def advance(self, inner: Stepper[G], G: G, state: Any, steps: int) -> Any:
        """Advance an inner algorithm by up to ``steps`` steps (fewer when a budget runs out)."""
        ...

    def minimize(self, inner: Stepper[G], G: G, x: Array, steps: int) -> Any:
        """Start an inner algorithm at ``x`` and advance it; return its state."""
        ...

    def project(self, x: Array) -> Array:
        """Project on the feasible set; counted."""
        ...

    def tick(self) -> bool:
        """Count one iteration of a method that steps on its own; return whether it may go on."""
        ...

    def hand_over(self, method: Method) -> None:
        """Record that another method continues from here; the result names it."""
        ...

    def observe(self) -> Any:
        """Return a context in which calls go to the certificate's counters."""
        ...

    @property
    def cut_short(self) -> bool:
        """Whether the last inner run made fewer steps than were requested: no theorem covers it."""
        ...

    @property
    def exhausted(self) -> bool:
        """Whether a budget has run out, so that the method should wrap up."""
        ...


class Method(Protocol):
    """A method for `lopro.solve`."""

    #: Its assumptions, oracles and guarantees.
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


#: The type of `Method.run`.
Start: TypeAlias = Callable[[Workbench, Array], Candidates]


@dataclass(frozen=True)
class Cost:
    """An estimate of the work of a method.

    Parameters
    ----------
    work : str
        In words: "12 factorisations of 500 x 500".
    operations : float
        As many floating-point operations of a matrix product take as long. Methods are compared by these, so
        that the choice does not depend on the load of a machine.

    Examples
    --------
    >>> from lopro.protocol import Cost
    >>> cost = Cost("2 factorisations of 10 x 10", 4e3)
    >>> cost.seconds < 1.0
    True
    """

    work: str
    operations: float

    @property
    def seconds(self) -> float:
        """About how long it takes on this machine, whose speed is measured once."""
        return self.operations / operations_per_second()

    def __str__(self) -> str:
        return f"about {self.work}, {self.seconds:.2g} s"


@dataclass(frozen=True, eq=False)
class Fit:
    """A method that fits a problem, why, at which cost, and what it has prepared for it.

    Parameters
    ----------
    method : Method
        The method.
    reason : str
        What of the problem makes it fit.
    cost : Cost, optional
        What it would cost; None where nothing is known.
    start : callable, optional
        Starts it with what it has read of the problem already; `Method.run` by default.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> f = lopro.objectives.LeastSquares(np.eye(2), np.ones(2))
    >>> fit = lopro.NewtonMultipliers().fit(lopro.Problem(f))
    >>> fit.reason
    'f has second derivatives at hand'
    """

    method: Method
    reason: str
    cost: Cost | None = None
    start: Start | None = None

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        """Run the method."""
        return (self.method.run if self.start is None else self.start)(bench, x0)

    def __str__(self) -> str:
        said = f"{self.method!r}: {self.reason}"
        return said if self.cost is None else f"{said}; {self.cost}"


def fit_of(method: Method, problem: Problem, reason: str = "") -> Fit | None:
    """Return how a method fits a problem, None if it does not; without ``fit``, its `check` decides.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from lopro.protocol import fit_of
    >>> fit_of(lopro.ProgramEngines(), lopro.Problem(lopro.objectives.L1Norm(shape=(2,)))) is None
    True
    """
    if hasattr(method, "fit"):
        found: Fit | None = method.fit(problem)
        return found
    try:
        method.check(problem)
    except MissingCapabilityError:
        return None
    return Fit(method, reason)


def required_fit(method: Method, problem: Problem) -> Fit:
    """Return how a method fits a problem, or raise the error of `Method.check` that says what is missing."""
    if not hasattr(method, "fit"):
        method.check(problem)
        return Fit(method, "chosen by method=")
    found: Fit | None = method.fit(problem)
    if found is None:
        method.check(problem)
        raise MissingCapabilityError(f"{method!r} does not fit {problem!r}")
    return found
