"""LoPGD and LoPNAG (Algorithms 1 and 2): inner steps on a penalised objective, one projection per epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from lopro.core.arrays import Array
from lopro.core.validation import check_offers
from lopro.errors import MissingCapabilityError
from lopro.methods.inner import AcceleratedGradient
from lopro.methods.paper.adaptive import AdaptiveSmoothing, DoublingSubgradient
from lopro.methods.paper.epochs import Schedule, check_schedule, run_epochs
from lopro.problem import Problem
from lopro.protocol import Candidates, Card, Workbench

__all__ = ["LoPGD", "LoPNAG"]


class _LowProjection:
    """Base of both methods: they run the epochs of a schedule."""

    schedule: Schedule[Any]

    def __post_init__(self) -> None:
        check_offers("schedule", self.schedule, "init", "next")

    def check(self, problem: Problem) -> None:
        check_schedule(self.schedule, problem)

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        return run_epochs(bench, x0, self.schedule)


@dataclass(frozen=True)
class LoPGD(_LowProjection):
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


@dataclass(frozen=True)
class LoPNAG(_LowProjection):
    """Low-projection accelerated gradient, for smooth ``c`` and for ``f`` smooth, proximable or a sum.

    Problem: min f(x) s.t. c(x) <= 0. Oracles: gradients of c and of the smooth part of f, prox of the
    rest; one projection per epoch. Theorem 3: ``O(log 1/eps)`` projections and
    ``O~(1 / eps^(1 - theta))`` iterations.

    Parameters
    ----------
    schedule : Schedule
        `lopro.theorems.Theorem3` with the theorem's constants, `lopro.theorems.HalvingSmoothing` as in
        the paper's experiments, `lopro.adaptive.Recentring` (P7); by default
        `lopro.adaptive.AdaptiveSmoothing`, which needs no constants.

    Departures
    ----------
    The gradient is taken at the extrapolated point ``y_s``. As printed (at ``x_s``) the method is not
    Nesterov's and exceeds the bound that the theorem uses.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> f = lopro.objectives.Linear(np.array([1.0, 2.0]))
    >>> ball = lopro.constraints.ResidualBall(np.diag([1.0, 3.0]), np.zeros(2), 1.0)
    >>> result = lopro.solve(lopro.Problem(f, ball), method=lopro.LoPNAG())
    >>> result.success, round(result.fun, 5)
    (True, -1.20185)
    """

    card: ClassVar[Card] = Card(
        assumptions="f smooth or proximable (or a sum), c smooth, local error bound with exponent theta",
        oracles="gradients of c and of the smooth part of f, prox of the rest",
        rate="O~(eps^-(1 - theta)) iterations, linear for theta = 1",
        projections="O(log 1/eps): one per epoch",
    )

    schedule: Schedule[Any] = AdaptiveSmoothing()

    def check(self, problem: Problem) -> None:
        super().check(problem)
        AcceleratedGradient().check(problem)
        if not problem.constraint.smooth:
            raise MissingCapabilityError(
                f"LoPNAG (Theorem 3) needs a smooth constraint function; {problem.constraint!r} is not. "
                "Use its smooth form if it has one, or lopro.LoPGD() or lopro.Auto()"
            )
