"""SGD with only one projection (Mahdavi et al. 2012), for convex and for strongly convex objectives."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from lopro.core.arrays import Array
from lopro.core.validation import check_count
from lopro.methods.baselines._saddle import SaddleDescent
from lopro.methods.baselines.projected_subgradient import check_stochastic
from lopro.methods.inner import InverseTimeStep, StochasticSubgradient, SubgradientDescent
from lopro.methods.paper.epochs import Plan, minimised_and_projected
from lopro.methods.paper.one_projection import OneProjection
from lopro.methods.setting import Needs, Setting, check_constants
from lopro.methods.starts import feasible_candidate
from lopro.methods.theory import ProblemConstants
from lopro.penalties import Hinge, Softplus
from lopro.problem import Problem
from lopro.protocol import Candidates, Card, Claim, Multiplier, Workbench

__all__ = ["OneProjectionSaddle", "OneProjectionSmoothed"]


@dataclass(frozen=True)
class OneProjectionSaddle:
    """Primal-dual SGD with one projection, a baseline: descend in x, ascend in a damped multiplier.

    Problem: min f(x) s.t. c(x) <= 0, both convex and Lipschitz on a ball that holds a solution.
    Oracles: subgradients of f and c, values of c; one projection, at the end. Iteration:
    ``x+ = Pi_B(x - eta (df(x) + m dc(x)))``, ``m+ = [(1 - g eta) m + eta c(x)]_+``; the mean of the
    iterates is projected. Theorem, with ``D`` the radius of the ball, ``C >= |c|`` on it,
    ``eta <= 1 / (4 G_c)`` and ``g = 4 eta G_c^2``: the gap is at most
    ``D^2 / (2 eta T) + eta (G^2 + C^2) + G^2 / (2 rho^2) (4 eta G_c^2 + 1 / (eta T))``, which is
    ``O(1 / sqrt T)`` for ``eta = min(D / sqrt(2 T (G^2 + C^2)), 1 / (4 G_c))``, the choice made here.

    Parameters
    ----------
    iterations : int
        T.
    constants : ProblemConstants, optional
        ``G, Gc, rho``; by default what the problem knows on the ball. With sampled slopes G should bound
        their root mean square, which no objective knows: then give it.
    radius : float, optional
        D: a solution is at most that far from the (feasible) start. By default from the problem.
    stochastic : bool
        Sample the subgradients of f. The theorem then holds in the mean, and nothing is claimed.

    References
    ----------
    M. Mahdavi, T. Yang, R. Jin, S. Zhu, J. Yi, "Stochastic gradient descent with only one projection",
    NIPS 2012.

    Departures
    ----------
    The bound in the mean is re-derived: factors differ from the paper's high-probability bound, whose rate
    it shares. The ball is centred at the start, and an infeasible start is projected first, which counts.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from lopro.methods.baselines import OneProjectionSaddle
    >>> f = lopro.objectives.Linear(np.array([1.0, 2.0]))
    >>> box = lopro.constraints.Box(-np.ones(2), np.ones(2))
    >>> method = OneProjectionSaddle(iterations=20_000)
    >>> result = lopro.solve(lopro.Problem(f, box), method=method, tol=0)
    >>> round(result.fun, 1), result.counts.projections
    (-3.0, 1)
    """

    card: ClassVar[Card] = Card(
        assumptions="f and c convex and Lipschitz on a ball",
        oracles="(stochastic) subgradients of f, subgradients and values of c",
        rate="O(1/sqrt T)",
        projections="exactly 1",
        reference="Mahdavi, Yang, Jin, Zhu, Yi (NIPS 2012)",
    )

    iterations: int = 10_000
    constants: ProblemConstants | None = None
    radius: float | None = None
    stochastic: bool = False

    def __post_init__(self) -> None:
        check_count("iterations", self.iterations)
        check_constants(self.constants, self.radius)

    def check(self, problem: Problem) -> None:
        if self.stochastic:
            check_stochastic(problem, "OneProjectionSaddle(stochastic=True)")
        self._needs.check(problem)

    @property
    def _needs(self) -> Needs:
        return Needs("OneProjectionSaddle", self.constants, self.radius)

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        s = self._needs.find(bench, x0)
        if s.solved:
            yield feasible_candidate(s.start)
            return
        largest = abs(float(bench.constraint.value(s.start))) + s.constants.Gc * s.ball.radius
        eta = self.step_size(s.constants, s.ball.radius, largest)
        damping = 4.0 * eta * s.constants.Gc**2
        inner = SaddleDescent(eta, damping, s.ball, self.stochastic)
        bound = self.bound(s.constants, s.ball.radius, largest)
        claim = _claim(s, bound, "Mahdavi et al., convex", self.stochastic)
        plan = Plan(Hinge(s.weight), inner, self.iterations, s.start, claim)
        candidate, state = minimised_and_projected(bench, plan)
        yield replace(candidate, evidence=Multiplier(state.valid_inequality))

    def step_size(self, constants: ProblemConstants, D: float, C: float) -> float:
        """Return eta for ``|x_1 - x_*| <= D`` and ``|c| <= C`` on the ball."""
        balanced = D / math.sqrt(2.0 * self.iterations * (constants.G**2 + C**2))
        return min(balanced, 0.25 / constants.Gc) if constants.Gc > 0.0 else balanced

    def bound(self, constants: ProblemConstants, D: float, C: float) -> float:
        """Return the bound on the gap that the theorem gives.

        Examples
        --------
        >>> from lopro.methods.baselines import OneProjectionSaddle
        >>> from lopro.methods.theory import ProblemConstants
        >>> unit = ProblemConstants(G=1.0, Gc=1.0, rho=1.0)
        >>> round(OneProjectionSaddle(iterations=10_000).bound(unit, 1.0, 1.0), 3)
        0.04
        """
        eta, T = self.step_size(constants, D, C), self.iterations
        regret = D**2 / (2.0 * eta * T) + eta * (constants.G**2 + C**2)
        return regret + 0.5 * constants.weight**2 * (4.0 * eta * constants.Gc**2 + 1.0 / (eta * T))


@dataclass(frozen=True)
class OneProjectionSmoothed:
    """Strongly convex SGD with one projection, a baseline: descend on a smoothed penalty.

    Problem: min f(x) s.t. c(x) <= 0, f mu-strongly convex, both Lipschitz on a ball that holds the
    solution. Oracles: subgradients of f and c, values of c; one projection, at the end. Iteration:
    ``x+ = Pi_B(x - dF(x) / (mu t))`` on ``F = f + gamma log(1 + exp(lam c / gamma))`` with
    ``gamma = log T / T``; the mean of the iterates is projected. Theorem, with ``lam = G / rho`` and
    ``Gbar = G + lam G_c``: the gap is at most ``Gbar^2 (1 + log T) / (2 mu T) + log 2 log T / T``,
    which is ``O(log T / T)``.

    Parameters
    ----------
    iterations : int
        T, at least 2.
    constants : ProblemConstants, optional
        ``G, Gc, rho, mu``; by default what the problem knows on the ball. With sampled slopes G should
        bound their root mean square.
    radius : float, optional
        The solution is at most that far from the (feasible) start; by default ``|g| / mu``.
    stochastic : bool
        Sample the subgradients of f. The theorem then holds in the mean, and nothing is claimed.

    References
    ----------
    M. Mahdavi, T. Yang, R. Jin, S. Zhu, J. Yi, "Stochastic gradient descent with only one projection",
    NIPS 2012.

    Departures
    ----------
    The bound in the mean is re-derived: ``lam = G / rho`` is enough, and the projection adds no factor,
    because ``f(P x) <= f(x) + G / rho [c(x)]_+`` for every x. The ball is centred at the start, and an
    infeasible start is projected first, which counts.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from lopro.methods.baselines import OneProjectionSmoothed
    >>> f = lopro.objectives.SquaredDistance(np.array([2.0, 0.5]))
    >>> box = lopro.constraints.Box(-np.ones(2), np.ones(2))
    >>> result = lopro.solve(lopro.Problem(f, box), method=OneProjectionSmoothed(), tol=0)
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

    iterations: int = 10_000
    constants: ProblemConstants | None = None
    radius: float | None = None
    stochastic: bool = False

    def __post_init__(self) -> None:
        check_count("iterations", self.iterations, minimum=2)
        check_constants(self.constants, self.radius)

    def check(self, problem: Problem) -> None:
        if self.stochastic:
            check_stochastic(problem, "OneProjectionSmoothed(stochastic=True)")
        self._needs.check(problem)

    @property
    def _needs(self) -> Needs:
        return Needs("OneProjectionSmoothed", self.constants, self.radius, strongly_convex=True)

    @property
    def smoothing(self) -> float:
        """``gamma = log T / T``."""
        return math.log(self.iterations) / self.iterations

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        s = self._needs.find(bench, x0)
        if s.solved:
            yield feasible_candidate(s.start)
            return
        descent = StochasticSubgradient if self.stochastic else SubgradientDescent
        inner = descent(InverseTimeStep(s.constants.mu), ball=s.ball)
        claim = _claim(
            s, self.bound(s.constants), "Mahdavi et al., strongly convex", self.stochastic
        )
        penalty = Softplus(s.weight, self.smoothing)
        yield from OneProjection(inner, penalty, self.iterations, claim).run(bench, s.start)

    def bound(self, constants: ProblemConstants) -> float:
        """Return the bound on the gap that the theorem gives.

        Examples
        --------
        >>> from lopro.methods.baselines import OneProjectionSmoothed
        >>> from lopro.methods.theory import ProblemConstants
        >>> unit = ProblemConstants(G=1.0, Gc=1.0, rho=1.0, mu=1.0)
        >>> round(OneProjectionSmoothed(iterations=10_000).bound(unit), 4)
        0.0027
        """
        slope, T = constants.subgradient_bound(constants.weight), self.iterations
        regret = slope**2 * (1.0 + math.log(T)) / (2.0 * constants.mu * T)
        return regret + math.log(2.0) * self.smoothing


def _claim(s: Setting, gap: float, source: str, stochastic: bool) -> Claim | None:
    """Return what may be claimed: nothing in the mean, and nothing from estimates."""
    return Claim(gap, source) if s.certain and not stochastic else None
