"""OPGD: subgradient descent on the hinge penalty with a single projection at the end."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from lopro.core.arrays import Array, norm
from lopro.core.validation import check_fields, check_number, check_offers
from lopro.errors import MissingCapabilityError
from lopro.functions import Ball
from lopro.methods.inner import SqrtStep, UniformAverage
from lopro.methods.inner.averaging import Average, StepRule
from lopro.methods.inner.subgradient import check_stochastic, descent
from lopro.methods.paper.one_projection import OneProjection
from lopro.methods.theory import constants_of
from lopro.penalties import Hinge
from lopro.problem import Problem
from lopro.protocol import Candidates, Card, Workbench

__all__ = ["OPGD"]


@dataclass(frozen=True)
class OPGD:
    """One-projection subgradient descent, a baseline: descent on ``f + lam [c]_+``, then a projection.

    Theorem (Thm 1 with Prop 3): with ``lam >= G / rho``, ``Gbar = G + lam G_c``, ``D >= |x_1 - x_*|`` and the
    constant step ``D / (Gbar sqrt T)`` the projected mean has a gap of at most ``Gbar D / sqrt T``;
    `OneProjection` has faster choices for smooth and strongly convex problems.

    Parameters
    ----------
    lam : float, optional
        Weight of the hinge; by default ``G / rho`` of `lopro.theory.constants_of`. Where f is Lipschitz on
        bounded sets only, G holds on the ball that contains the set, or the ball of radius ``solution_norm``.
    step : StepRule, optional
        From `lopro.inner`, usually ``SqrtStep(eta0)``; by default
        ``eta0 = (u + |x_1|) / (|df(x_1)| + lam |dc(x_1)|)`` with the typical length u of x
        (`Problem.typical_size`).
    iterations : int
        T.
    average : Average
        The average that is projected; by default the mean of all iterates.
    stochastic : bool
        Sample the subgradients of f.

    References
    ----------
    T. Yang, Q. Lin, L. Zhang, "A richer theory of convex constrained optimization with reduced
    projections and improved rates", ICML 2017 (OPGD of its Table 2).

    Examples
    --------
    >>> import numpy as np, lopro
    >>> half = lopro.constraints.Polyhedron(np.array([[-2.0, -1.0]]), np.array([-1.0]))
    >>> problem = lopro.Problem(lopro.objectives.L1Norm(), half)
    >>> result = lopro.solve(problem, np.ones(2), lopro.baselines.OPGD(iterations=5000), tol=0)
    >>> round(result.fun, 1), result.counts.projections
    (0.5, 1)
    """

    card: ClassVar[Card] = Card(
        assumptions="f and c convex and Lipschitz",
        oracles="subgradients of f and c",
        rate="O(1/sqrt T)",
        projections="exactly 1",
    )

    lam: float | None = None
    step: StepRule | None = None
    iterations: int = 10_000
    average: Average = UniformAverage()
    stochastic: bool = False

    def __post_init__(self) -> None:
        if self.lam is not None:
            check_number("lam", self.lam, minimum=0.0)
        if self.step is not None:
            check_offers("step", self.step, "size")
        check_offers("average", self.average, "weight")
        check_fields(self, counts=("iterations",))

    def check(self, problem: Problem) -> None:
        if self.stochastic:
            check_stochastic(problem.objective, "OPGD(stochastic=True)")
        self._weight(problem)

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        penalty = Hinge(self._weight(bench.counted))
        step = _first_step(bench, penalty.lam, x0) if self.step is None else self.step
        inner = descent(self.stochastic)(step, self.average)
        yield from OneProjection(inner, penalty, self.iterations).run(bench, x0)

    def _weight(self, problem: Problem) -> float:
        if self.lam is not None:
            return self.lam
        try:
            return constants_of(problem, _solution_ball(problem)).weight
        except MissingCapabilityError as error:
            raise MissingCapabilityError(
                f"OPGD takes lam=, or derives it from the problem: {error}"
            ) from None


def _first_step(bench: Workbench, lam: float, x: Array) -> SqrtStep:
    """Return step sizes scaled by the size of ``x`` and by the subgradient of F outside of the set."""
    f, c = bench.objective, bench.constraint
    slope = norm(f.subgradient(x)) + lam * norm(c.subgradient(x))
    return SqrtStep((bench.unit + norm(x)) / slope if slope > 0.0 else 1.0)


def _solution_ball(problem: Problem) -> Ball | None:
    """Return a ball around zero that contains a solution; None if the problem bounds no solution.

    At a solution ``|df| <= G``, so the multiplier is at most ``G / rho``.
    """
    known = [r.value for r in (problem.radius, problem.constraint.radius()) if r is not None]
    radius = min(known, default=math.inf)
    if problem.shape is None or not math.isfinite(radius):
        return None
    return Ball(problem.start(None), radius)
