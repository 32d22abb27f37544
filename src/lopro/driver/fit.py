"""How a method fits a problem: the reason, the estimated cost, and the start with prepared data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from lopro.core.arrays import Array
from lopro.core.deadline import operations_per_second
from lopro.driver.candidate import Candidate, Verdict
from lopro.driver.method import Candidates, Method, Workbench
from lopro.errors import MissingCapabilityError
from lopro.problem import Problem

__all__ = ["Cost", "Fit", "Start", "fit_of", "next_candidate", "required_fit"]

#: The type of `Method.run`.
Start: TypeAlias = Callable[[Workbench, Array], Candidates]


@dataclass(frozen=True)
class Cost:
    """An estimate of the computing time of a method.

    Parameters
    ----------
    work : str
        In words: "12 factorisations of 500 x 500".
    operations : float
        The number of floating-point operations of a matrix product that take the same time. Methods are
        compared by these, so that the choice does not depend on the load of a machine.

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
        """The estimated time on this machine, whose speed is measured once."""
        return self.operations / operations_per_second()

    def __str__(self) -> str:
        return f"about {self.work}, {self.seconds:.2g} s"


@dataclass(frozen=True, eq=False)
class Fit:
    """A method that fits a problem, with the reason, its cost and prepared data.

    Parameters
    ----------
    method : Method
        The method.
    reason : str
        The property of the problem that makes it fit.
    cost : Cost, optional
        Its estimated cost; None where nothing is known.
    start : callable, optional
        Starts the method with the data of the problem that were prepared; `Method.run` by default.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> f = lopro.objectives.LeastSquares(np.eye(2), np.ones(2))
    >>> fit = lopro.NewtonMultipliers().fit(lopro.Problem(f))
    >>> fit.reason
    'f has second derivatives'
    """

    method: Method
    reason: str
    cost: Cost | None = None
    start: Start | None = None

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        """Run the method."""
        return (self.method.run if self.start is None else self.start)(bench, x0)

    def __str__(self) -> str:
        text = f"{self.method!r}: {self.reason}"
        return text if self.cost is None else f"{text}; {self.cost}"


def fit_of(method: Method, problem: Problem, reason: str = "") -> Fit | None:
    """Return the fit of a method to a problem, None if it does not fit; without ``fit``, `check` decides.

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
    """Return the fit of a method to a problem, or raise the error of `Method.check` if it does not fit."""
    if not hasattr(method, "fit"):
        method.check(problem)
        return Fit(method, "chosen by method=")
    found: Fit | None = method.fit(problem)
    if found is None:
        method.check(problem)
        raise MissingCapabilityError(f"{method!r} does not fit {problem!r}")
    return found


def next_candidate(candidates: Candidates, verdict: Verdict | None) -> Candidate | None:
    """Send the verdict on the last candidate (None at first), return the next one; None at the end."""
    try:
        return next(candidates) if verdict is None else candidates.send(verdict)
    except StopIteration:
        return None
