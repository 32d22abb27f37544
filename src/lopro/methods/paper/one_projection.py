"""Theorem 1: any inner algorithm on any penalty, with one projection at the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lopro.core.arrays import Array
from lopro.core.validation import check_count, check_offers
from lopro.methods.paper.epochs import Plan, minimised_and_projected
from lopro.penalties import Penalty
from lopro.problem import Problem
from lopro.protocol import Candidates, Card, Claim, InnerAlgorithm, Workbench

__all__ = ["OneProjection"]


@dataclass(frozen=True)
class OneProjection:
    """Minimise ``f + h`` by any algorithm, then project once.

    Theorem 1 with R1: for a penalty with ``h >= lam [c]_+``, ``lam >= G / rho``, and ``h <= C gamma`` on the
    feasible set, ``f(x) - f_* <= C gamma + B_T`` where ``B_T`` is the inner algorithm's bound.

    Parameters
    ----------
    inner : InnerAlgorithm
        From `lopro.inner`, or a user-defined class.
    penalty : Penalty
        From `lopro.penalties`.
    iterations : int
        Inner steps ``T``.
    claim : Claim, optional
        The guarantee for this choice of parameters; the functions of `lopro.theorems` set it.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> f = lopro.objectives.Linear(np.array([1.0, 2.0]))
    >>> ball = lopro.constraints.ResidualBall(np.diag([1.0, 3.0]), np.zeros(2), 1.0)
    >>> problem = lopro.Problem(f, ball)
    >>> constants = lopro.theory.constants_of(problem)
    >>> method = lopro.theorems.corollary_2a(constants, T=2000, D=2.0)
    >>> result = lopro.solve(problem, method=method, tol=0)
    >>> result.counts.projections, round(result.fun, 2)
    (1, -1.2)
    """

    card: ClassVar[Card] = Card(
        assumptions="those of the inner algorithm",
        oracles="subgradients, or gradients and prox: those of the inner algorithm",
        rate="O(1/sqrt T) subgradient, O~(1/T) accelerated or strongly convex",
        projections="exactly 1",
    )

    inner: InnerAlgorithm
    penalty: Penalty
    iterations: int = 1000
    claim: Claim | None = None

    def __post_init__(self) -> None:
        check_offers("inner", self.inner, "check", "init", "step", "output", "bound")
        check_offers("penalty", self.penalty, "image", "linearize_at", "valid_inequality")
        check_count("iterations", self.iterations)

    def check(self, problem: Problem) -> None:
        self.inner.check(problem)

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        plan = Plan(self.penalty, self.inner, self.iterations, x0, self.claim)
        candidate, _ = minimised_and_projected(bench, plan)
        yield candidate
