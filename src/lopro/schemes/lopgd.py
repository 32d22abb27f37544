"""LoPGD: subgradient descent on the hinge penalty, one projection per epoch (Algorithm 1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from lopro._arrays import Array
from lopro._validation import check_offers
from lopro.about import About
from lopro.adaptive import DoublingSubgradient
from lopro.epochs import Epoch, Schedule, Workbench, run_epochs
from lopro.problem import Problem

__all__ = ["LoPGD"]


@dataclass(frozen=True)
class LoPGD:
    """Low-projection subgradient descent, for nonsmooth ``f`` and ``c``.

    Problem: min f(x) s.t. c(x) <= 0, both convex and Lipschitz. Oracles: subgradients of f and c; one
    projection per epoch. Theorem 2: ``O(log 1/eps)`` projections and ``O~(1 / eps^(2(1 - theta)))``
    iterations, where theta is the exponent of the local error bound.

    Parameters
    ----------
    schedule : Schedule
        `lopro.schedules.Theorem2` with the theorem's constants; by default
        `lopro.adaptive.DoublingSubgradient`, which needs none.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> f = lopro.objectives.L1Norm()
    >>> half = lopro.constraints.Polyhedron(np.array([[-2.0, -1.0]]), np.array([-1.0]))
    >>> result = lopro.solve(lopro.Problem(f, half), method=lopro.LoPGD(), max_iter=20000, tol=1e-3)
    >>> round(result.fun, 2)
    0.5
    """

    about: ClassVar[About] = About(
        assumptions="f and c convex and Lipschitz, local error bound with exponent theta",
        oracles="subgradients of f and c",
        rate="O~(eps^(-2 (1 - theta))) iterations",
        projections="O(log 1/eps): one per epoch",
    )

    schedule: Schedule = DoublingSubgradient()

    def __post_init__(self) -> None:
        check_offers("schedule", self.schedule, "first", "following")

    def check(self, problem: Problem) -> None:
        """Subgradients are enough."""

    def epochs(self, bench: Workbench, x0: Array) -> Iterator[Epoch]:
        return run_epochs(bench, x0, self.schedule)
