"""LoPNAG: accelerated gradient on the smoothed penalty, one projection per epoch (Algorithm 2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from lopro._arrays import Array
from lopro._validation import check_offers
from lopro.about import About
from lopro.adaptive import AdaptiveSmoothing
from lopro.epochs import Epoch, Schedule, Workbench, run_epochs
from lopro.errors import MissingCapabilityError
from lopro.inner import AcceleratedGradient
from lopro.problem import Problem

__all__ = ["LoPNAG"]


@dataclass(frozen=True)
class LoPNAG:
    """Low-projection accelerated gradient, for smooth ``c`` and ``f`` smooth, proximable or a sum.

    Problem: min f(x) s.t. c(x) <= 0. Oracles: gradients of c and of the smooth part of f, prox of the
    rest; one projection per epoch. Theorem 3: ``O(log 1/eps)`` projections and
    ``O~(1 / eps^(1 - theta))`` iterations.

    Parameters
    ----------
    schedule : Schedule
        `lopro.schedules.Theorem3` with the theorem's constants, `lopro.schedules.HalvingSmoothing` as in
        the paper's experiments, `lopro.adaptive.Recentring` (P7); by default
        `lopro.adaptive.AdaptiveSmoothing`, which needs no constants.

    Departures
    ----------
    The gradient is taken at the extrapolated point ``y_s``. As printed (at ``x_s``) the method is not
    Nesterov's and exceeds the bound the theorem rests on.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> f = lopro.objectives.Linear(np.array([1.0, 2.0]))
    >>> ball = lopro.constraints.ResidualBall(np.diag([1.0, 3.0]), np.zeros(2), 1.0)
    >>> result = lopro.solve(lopro.Problem(f, ball), method=lopro.LoPNAG())
    >>> result.success, round(result.fun, 5)
    (True, -1.20185)
    """

    about: ClassVar[About] = About(
        assumptions="f smooth or proximable (or a sum), c smooth, local error bound with exponent theta",
        oracles="gradients of c and of the smooth part of f, prox of the rest",
        rate="O~(eps^-(1 - theta)) iterations, linear for theta = 1",
        projections="O(log 1/eps): one per epoch",
    )

    schedule: Schedule = AdaptiveSmoothing()

    def __post_init__(self) -> None:
        check_offers("schedule", self.schedule, "first", "following")

    def check(self, problem: Problem) -> None:
        AcceleratedGradient().check(problem)
        if not problem.constraint.smooth:
            raise MissingCapabilityError(
                f"LoPNAG (Theorem 3) needs a smooth constraint function; {problem.constraint!r} is not. "
                "Use its smooth form if it has one, or lopro.LoPGD() or lopro.Auto()"
            )

    def epochs(self, bench: Workbench, x0: Array) -> Iterator[Epoch]:
        return run_epochs(bench, x0, self.schedule)
