"""LoPGD: subgradient descent on the hinge penalty, one projection per epoch (Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from lopro.core.arrays import Array
from lopro.core.validation import check_offers
from lopro.methods.paper.adaptive import DoublingSubgradient
from lopro.methods.paper.epochs import Schedule, check_schedule, run_epochs
from lopro.problem import Problem
from lopro.protocol import Candidates, Card, Workbench

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
        `lopro.theorems.Theorem2` with the theorem's constants; by default
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

    card: ClassVar[Card] = Card(
        assumptions="f and c convex and Lipschitz, local error bound with exponent theta",
        oracles="subgradients of f and c",
        rate="O~(eps^(-2 (1 - theta))) iterations",
        projections="O(log 1/eps): one per epoch",
    )

    schedule: Schedule[Any] = DoublingSubgradient()

    def __post_init__(self) -> None:
        check_offers("schedule", self.schedule, "init", "next")

    def check(self, problem: Problem) -> None:
        """Check the requirements of the schedule; the method itself needs subgradients only."""
        check_schedule(self.schedule, problem)

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        return run_epochs(bench, x0, self.schedule)
