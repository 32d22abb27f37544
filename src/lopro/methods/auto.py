"""Auto: choose the method by what the problem offers, and need no constants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lopro._util.arrays import Array
from lopro.errors import MissingCapabilityError
from lopro.methods.multipliers import MultiplierMethod
from lopro.methods.paper.lopgd import LoPGD
from lopro.methods.registry import recognised
from lopro.problem import Problem
from lopro.protocol import Candidates, Card, Method, Workbench

__all__ = ["Auto"]


@dataclass(frozen=True)
class Auto:
    """The default method: `MultiplierMethod` where the problem allows it, else adaptive `LoPGD`.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> f = lopro.objectives.L1Norm()
    >>> half = lopro.constraints.Polyhedron(np.array([[-2.0, -1.0]]), np.array([-1.0]))
    >>> lopro.Auto().choose(lopro.Problem(f, half))
    MultiplierMethod(steps=25, patience=60)
    """

    card: ClassVar[Card] = Card(
        assumptions="none: it picks by what the problem offers",
        oracles="those of the method it picks",
        rate="that of the method it picks",
        projections="O(log 1/eps)",
        reference="this library",
    )

    def choose(self, problem: Problem) -> Method:
        """Return the method that will be used."""
        found = recognised(problem)
        if found is not None:
            return found[1]
        method = MultiplierMethod()
        try:
            method.check(problem)
        except MissingCapabilityError:
            return LoPGD()
        return method

    def check(self, problem: Problem) -> None:
        self.choose(problem).check(problem)

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        return self.choose(bench.problem).run(bench, x0)
