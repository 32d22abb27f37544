"""Auto: choose the method by what the problem offers, and need no constants."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from lopro._arrays import Array
from lopro.about import About
from lopro.epochs import Epoch, Scheme, Workbench
from lopro.errors import MissingCapabilityError
from lopro.problem import Problem
from lopro.schemes.lopgd import LoPGD
from lopro.schemes.multipliers import MultiplierMethod

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

    about: ClassVar[About] = About(
        assumptions="none: it picks by what the problem offers",
        oracles="those of the method it picks",
        rate="that of the method it picks",
        projections="O(log 1/eps)",
        reference="this library",
    )

    def choose(self, problem: Problem) -> Scheme:
        """Return the method that will be used."""
        method = MultiplierMethod()
        try:
            method.check(problem)
        except MissingCapabilityError:
            return LoPGD()
        return method

    def check(self, problem: Problem) -> None:
        self.choose(problem).check(problem)

    def epochs(self, bench: Workbench, x0: Array) -> Iterator[Epoch]:
        return self.choose(bench.problem).epochs(bench, x0)
