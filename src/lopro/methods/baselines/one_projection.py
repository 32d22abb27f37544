"""Methods with one projection at the end, whose theorems need constants on a ball.

The base class makes the start feasible, finds the constants, runs one inner algorithm on one penalty and
projects. `FullTouch` and `OneProjectionSmoothed` are subgradient descent with the step sizes of two theorems.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from lopro.constraints.base import ValidInequality
from lopro.core.arrays import Array, inner
from lopro.core.validation import check_count
from lopro.core.vectors import mix
from lopro.methods.inner import ConstantStep, InverseTimeStep
from lopro.methods.inner.subgradient import descent, sampled_or_exact
from lopro.methods.paper.epochs import Plan, minimised_and_projected
from lopro.methods.setting import NeedsConstants, Setting, feasible_candidate
from lopro.methods.theory import ProblemConstants
from lopro.objectives.base import Objective
from lopro.penalties import Hinge, Softplus
from lopro.protocol import Candidates, Card, Claim, Multiplier, Workbench

__all__ = [
    "AveragedState",
    "AveragedSteps",
    "FullTouch",
    "OneProjectionSmoothed",
    "PrimalDualState",
    "SingleProjection",
]


class SingleProjection(NeedsConstants):
    """Base of methods that minimise a penalised objective for ``iterations`` steps and project once."""

    iterations: int

    #: The least T for which the theorem holds.
    fewest_iterations: ClassVar[int] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("iterations", self.iterations, minimum=self.fewest_iterations)

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        s = self.needs.find(bench, x0)
        if s.solved or s.weight == 0.0:  # weight 0: a constant objective
            yield feasible_candidate(s.start)
            return
        candidate, state = minimised_and_projected(bench, self.plan(bench, s))
        # An inner algorithm with multipliers of its own provides the inequality of the certificate.
        inequality = getattr(state, "valid_inequality", None)
        if inequality is not None:
            candidate = replace(candidate, evidence=Multiplier(inequality))
        yield candidate

    def plan(self, bench: Workbench, s: Setting) -> Plan:
        """Return the penalty, the inner algorithm with the step sizes of the theorem, and the claim."""
        raise NotImplementedError

    def claim(self, s: Setting, gap: float, source: str) -> Claim | None:
        """Return the theorem's claim; None for sampled subgradients and for estimated constants."""
        return Claim(gap, source) if s.certain and not self.stochastic else None


@dataclass(slots=True)
class AveragedState:
    """The iterate, and the weighted mean of the points that were included so far."""

    x: Array
    average: Array
    rng: np.random.Generator
    weight: float = 0.0  # sum of the weights of the mean
    t: int = 0

    def include(self, x: Array, weight: float = 1.0) -> None:
        """Include a point in the mean."""
        self.weight += weight
        self.average = x if weight == self.weight else mix(self.average, weight / self.weight, x)


@dataclass(slots=True, kw_only=True)
class PrimalDualState(AveragedState):
    """The state of a method with multipliers; it sums the linearised constraints."""

    direction: Array  # sum of the subgradients of c times their multipliers
    support: float = 0.0
    multiplier: float = 0.0

    def add_constraint(self, multiplier: float, value: float, dc: Array) -> None:
        """Add the constraint linearised at the iterate, where it has this value and subgradient."""
        self.direction = self.direction + multiplier * dc
        self.support += multiplier * (inner(dc, self.x) - value)

    @property
    def valid_inequality(self) -> ValidInequality:
        """The sum of the linearised constraints over the sum of the weights; it is valid."""
        mean = self.weight > 0.0 and math.isfinite(self.weight)
        total = ValidInequality(self.direction, self.support)
        return total.scaled(1.0 / self.weight if mean else 0.0)


class AveragedSteps:
    """Base of inner algorithms that step along subgradients and return an average of the iterates.

    Their theorems bound the gap to feasible points, after a projection: the algorithm itself has no bound.
    """

    stochastic: bool = False

    def subgradient(self, f: Objective, state: AveragedState) -> Array:
        """Return a subgradient of the objective at the iterate, or a sample of one."""
        return sampled_or_exact(f, state.x, state.rng if self.stochastic else None)

    def check(self, problem: Any) -> None:
        """Accept every problem: subgradients suffice."""

    def output(self, state: Any) -> Array:
        return state.average

    def bound(self, state: Any, distance: float) -> float | None:
        return None


@dataclass(frozen=True)
class FullTouch(SingleProjection):
    """FullTouch: many constraints through their largest violation, one projection at the end.

    Problem: min f s.t. ``c_i(x) <= 0`` for i = 1 ... m. Oracles: a subgradient of f and all m constraints
    per iteration (one product with the matrix of a polyhedron). Steps ``x - eta g`` on
    ``f + lam max(0, max_i c_i)``, projected onto a ball of radius D around a feasible start that contains a
    solution; then the average is projected. Theorem: with ``lam = G / rho``, ``Gbar = G + lam G_c`` and
    ``eta = D / (Gbar sqrt T)``, ``f(x) - f_* <= Gbar D / sqrt T`` after T steps.

    Parameters
    ----------
    iterations : int
        T.
    constants : ProblemConstants, optional
        G, G_c and rho (mu, L_f, L_c for methods that use them); by default those of the problem on
        the ball. The regularity constant of a polyhedron with many rows is not computed and has to be given.
        With sampled subgradients G should bound their root mean square.
    radius : float, optional
        D: bound on the distance from the start, or its projection, to a solution. By default from the
        problem; for a mu-strongly convex f it is ``|g| / mu``.
    stochastic : bool
        Sample the subgradients of f. The theorem then holds in expectation, and nothing is claimed.

    References
    ----------
    A. Cotter, M. Gupta, J. Pfeifer, "A light touch for heavily constrained SGD", COLT 2016.

    Departures
    ----------
    The constant of the guarantee is derived here, for exact subgradients. An infeasible start is projected
    first, which counts, so that projections stay in the ball around it.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> f = lopro.objectives.Linear(np.array([-1.0, -2.0]))
    >>> box = lopro.constraints.Polyhedron.box(np.zeros(2), np.ones(2))
    >>> result = lopro.solve(lopro.Problem(f, box), method=lopro.baselines.FullTouch(), tol=0)
    >>> round(result.fun, 1), result.counts.projections
    (-3.0, 1)
    """

    card: ClassVar[Card] = Card(
        assumptions="many constraints; G, rho and a radius known",
        oracles="subgradients of f, all m constraints per iteration",
        rate="Gbar D / sqrt(T)",
        projections="exactly 1, and 1 for an infeasible start",
        reference="Cotter, Gupta, Pfeifer (COLT 2016)",
    )

    iterations: int = 10_000
    constants: ProblemConstants | None = None
    radius: float | None = None
    stochastic: bool = False

    def plan(self, bench: Workbench, s: Setting) -> Plan:
        T, D, Gbar = self.iterations, s.ball.radius, s.slope
        steps = descent(self.stochastic)(ConstantStep(D / (Gbar * math.sqrt(T))), ball=s.ball)
        claim = self.claim(s, Gbar * D / math.sqrt(T), "FullTouch: Gbar D / sqrt(T)")
        return Plan(Hinge(s.weight), steps, T, s.start, claim)


@dataclass(frozen=True)
class OneProjectionSmoothed(SingleProjection):
    """Strongly convex SGD with one projection, a baseline: subgradient descent on a smoothed penalty.

    Problem: min f(x) s.t. c(x) <= 0, f mu-strongly convex, both Lipschitz on a ball that contains the
    solution. Iteration: ``x+ = Pi_B(x - dF(x) / (mu t))`` on ``F = f + gamma log(1 + exp(lam c / gamma))``
    with ``gamma = log T / T``; the mean of the iterates is projected. Theorem, with ``lam = G / rho`` and
    ``Gbar = G + lam G_c``: the gap is at most ``Gbar^2 (1 + log T) / (2 mu T) + log 2 log T / T``.

    Parameters
    ----------
    iterations, constants, radius, stochastic
        As for `FullTouch`; at least 2 iterations.

    References
    ----------
    M. Mahdavi, T. Yang, R. Jin, S. Zhu, J. Yi, "Stochastic gradient descent with only one projection",
    NIPS 2012.

    Departures
    ----------
    The bound in expectation is re-derived: ``lam = G / rho`` suffices, and the projection adds no factor,
    because ``f(P x) <= f(x) + G / rho [c(x)]_+`` for every x. The ball is centred at the start, and an
    infeasible start is projected first, which counts.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> f = lopro.objectives.SquaredDistance(np.array([2.0, 0.5]))
    >>> box = lopro.constraints.Box(-np.ones(2), np.ones(2))
    >>> method = lopro.baselines.OneProjectionSmoothed()
    >>> result = lopro.solve(lopro.Problem(f, box), method=method, tol=0)
    >>> round(result.fun, 2), result.counts.projections
    (0.5, 1)
    """

    card: ClassVar[Card] = Card(
        assumptions="f strongly convex, f and c Lipschitz on a ball",
        oracles="(stochastic) subgradients of f, subgradients and values of c",
        rate="O(log T / T)",
        projections="exactly 1",
        reference="Mahdavi, Yang, Jin, Zhu, Yi (NIPS 2012)",
    )
    strongly_convex: ClassVar[bool] = True
    fewest_iterations: ClassVar[int] = 2

    iterations: int = 10_000
    constants: ProblemConstants | None = None
    radius: float | None = None
    stochastic: bool = False

    @property
    def smoothing(self) -> float:
        """``gamma = log T / T``."""
        return math.log(self.iterations) / self.iterations

    def plan(self, bench: Workbench, s: Setting) -> Plan:
        steps = descent(self.stochastic)(InverseTimeStep(s.constants.mu), ball=s.ball)
        claim = self.claim(s, self.bound(s.constants), "Mahdavi et al., strongly convex")
        return Plan(Softplus(s.weight, self.smoothing), steps, self.iterations, s.start, claim)

    def bound(self, constants: ProblemConstants) -> float:
        """Return the theorem's bound on the gap."""
        slope, T = constants.subgradient_bound(constants.weight), self.iterations
        regret = slope**2 * (1.0 + math.log(T)) / (2.0 * constants.mu * T)
        return regret + math.log(2.0) * self.smoothing
