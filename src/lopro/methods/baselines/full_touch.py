"""FullTouch: subgradient steps on the penalised objective that look at every constraint each time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from lopro.core.arrays import Array
from lopro.core.validation import check_count
from lopro.methods import OneProjection
from lopro.methods.baselines.projected_subgradient import check_stochastic
from lopro.methods.inner import (
    ConstantStep,
    StochasticSubgradient,
    SubgradientDescent,
    UniformAverage,
)
from lopro.methods.setting import Needs, check_constants
from lopro.methods.starts import feasible_candidate
from lopro.methods.theory import ProblemConstants
from lopro.penalties import Hinge
from lopro.problem import Problem
from lopro.protocol import Candidates, Card, Claim, Workbench

__all__ = ["FullTouch"]


@dataclass(frozen=True)
class FullTouch:
    """FullTouch: many constraints through their largest violation, one projection at the end.

    Problem: min f s.t. ``c_i(x) <= 0`` for i = 1 ... m. Oracles: a subgradient of f and all m constraints
    per iteration (one product with the matrix of a polyhedron). Steps ``x - eta g`` on
    ``f + lam max(0, max_i c_i)``, kept in a ball of radius D around a feasible start that holds a solution;
    then the average is projected. Theorem: with ``lam = G / rho``, ``Gbar = G + lam G_c`` and
    ``eta = D / (Gbar sqrt T)``, ``f(x) - f_* <= Gbar D / sqrt T`` after T steps.

    Parameters
    ----------
    iterations : int
        T.
    constants : ProblemConstants, optional
        G, G_c and rho, if you know them better than the problem does: the regularity constant of a
        polyhedron with many rows is not computed, for one.
    radius : float, optional
        D: how far from the start, or its projection, a solution may be.
    stochastic : bool
        Whether subgradients of f are sampled; the guarantee then holds for no single run.

    References
    ----------
    A. Cotter, M. Gupta, J. Pfeifer, "A light touch for heavily constrained SGD", COLT 2016.

    Departures
    ----------
    The constant of the guarantee is derived here, for exact subgradients. A start outside the set is
    projected, so that the ball around it holds all projections.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from lopro.methods.baselines import FullTouch
    >>> f = lopro.objectives.Linear(np.array([-1.0, -2.0]))
    >>> box = lopro.constraints.Polyhedron.box(np.zeros(2), np.ones(2))
    >>> result = lopro.solve(lopro.Problem(f, box), method=FullTouch(), tol=0)
    >>> round(result.fun, 1), result.counts.projections
    (-3.0, 1)
    """

    card: ClassVar[Card] = Card(
        assumptions="many constraints; G, rho and a radius known",
        oracles="subgradients of f, all m constraints per iteration",
        rate="Gbar D / sqrt(T)",
        projections="exactly 1, and 1 for a start outside",
        reference="Cotter, Gupta, Pfeifer (COLT 2016)",
    )

    iterations: int = 10_000
    constants: ProblemConstants | None = None
    radius: float | None = None
    stochastic: bool = False

    def __post_init__(self) -> None:
        check_count("iterations", self.iterations)
        check_constants(self.constants, self.radius)

    @property
    def _needs(self) -> Needs:
        return Needs("FullTouch", self.constants, self.radius)

    def check(self, problem: Problem) -> None:
        self._needs.check(problem)
        if self.stochastic:
            check_stochastic(problem, "FullTouch(stochastic=True)")

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        at, T = self._needs.find(bench, x0), self.iterations
        D, Gbar = at.ball.radius, at.slope
        if at.solved or Gbar == 0.0:
            yield feasible_candidate(at.start)
            return
        kind = StochasticSubgradient if self.stochastic else SubgradientDescent
        inner = kind(ConstantStep(D / (Gbar * math.sqrt(T))), UniformAverage(), at.ball)
        claim = None
        if at.certain and not self.stochastic:
            claim = Claim(Gbar * D / math.sqrt(T), "FullTouch: Gbar D / sqrt(T)")
        yield from OneProjection(inner, Hinge(at.weight), T, claim).run(bench, at.start)
