"""Constraint extrapolation (Boob, Deng, Lan): a primal-dual method that looks one step ahead at c."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from lopro.core.arrays import Array
from lopro.core.validation import check_count
from lopro.functions import Source
from lopro.methods.baselines._extrapolation import ExtrapolatedDescent
from lopro.methods.paper.epochs import Plan, minimised_and_projected
from lopro.methods.setting import Needs, Setting, check_constants
from lopro.methods.starts import feasible_candidate
from lopro.methods.theory import ProblemConstants
from lopro.penalties import Hinge
from lopro.problem import Problem
from lopro.protocol import Candidates, Card, Claim, Multiplier, Workbench

__all__ = ["ConEx"]


@dataclass(frozen=True)
class ConEx:
    """Constraint extrapolation, a baseline: no projection but the last.

    Problem: min f(x) s.t. c(x) <= 0, both convex and Lipschitz on a ball that holds a solution. Oracles:
    (sub)gradients of f and c, values of c, the prox of f's proximable part where f and c are Lipschitz
    everywhere; one projection, at the end. Iteration, with c linearised at the last point,
    ``l_t = c(x_(t-1)) + <dc(x_(t-1)), x_t - x_(t-1)>``: first ``y+ = [y + (2 l_t - l_(t-1)) / tau]_+``, then
    ``x+ = x - (df(x) + y+ dc(x)) / eta``. The mean of the iterates is projected.

    Theorem: let ``B = G / rho``, ``D`` the distance to a solution, ``L = L_f + B L_c`` over the smooth parts
    and ``H`` the sum of ``G`` and ``B G_c`` over the others. With ``tau = 3 G_c D / B`` and
    ``eta = L + 9 G_c^2 / tau + 2 H sqrt(T) / D``,

        f(x) - f_* <= (L D^2 / 2 + 3 B G_c D) / T + 2 H D / sqrt(T).

    Parameters
    ----------
    iterations : int
        T.
    constants : ProblemConstants, optional
        ``G, Gc, rho``, and ``Lf, Lc`` where f and c are smooth; by default what the problem knows.
    radius : float, optional
        D: a solution is at most that far from the (feasible) start. By default from the problem.

    References
    ----------
    D. Boob, Q. Deng, G. Lan, "Stochastic first-order methods for convex and nonconvex functional
    constrained optimization", Mathematical Programming 197 (2023).

    Departures
    ----------
    The rates are the paper's, ``O(1/T)`` and ``O(1/sqrt T)``; the constants are re-derived. The paper bounds
    objective and violation one by one and needs a bound on the multiplier; here ``B = G / rho`` takes its
    place, and exactness of the penalty (R1) turns both into one bound after the projection. The paper
    has a multiplier for each constraint, here the set has one function c and one multiplier.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from lopro.methods.baselines import ConEx
    >>> f = lopro.objectives.Linear(np.array([1.0, 2.0]))
    >>> ball = lopro.constraints.ResidualBall(np.diag([1.0, 3.0]), np.zeros(2), 1.0)
    >>> result = lopro.solve(lopro.Problem(f, ball), method=ConEx(), tol=1e-2)
    >>> result.success, round(result.fun, 2), result.counts.projections
    (True, -1.2, 1)
    """

    card: ClassVar[Card] = Card(
        assumptions="f and c convex, constants and a ball with a solution known",
        oracles="(sub)gradients of f and c, values of c, prox of f where there is one",
        rate="O(1/T) where f (up to its prox) and c are smooth, else O(1/sqrt T)",
        projections="1",
        reference="Boob, Deng, Lan (Math. Program. 2023)",
    )

    iterations: int = 10_000
    constants: ProblemConstants | None = None
    radius: float | None = None

    def __post_init__(self) -> None:
        check_count("iterations", self.iterations)
        check_constants(self.constants, self.radius)

    @property
    def _needs(self) -> Needs:
        return Needs("ConEx", self.constants, self.radius)

    def check(self, problem: Problem) -> None:
        self._needs.check(problem)

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        s = self._needs.find(bench, x0)
        if s.solved or s.weight == 0.0:
            yield feasible_candidate(s.start)
            return
        split = _splits(bench.counted)
        smooth_f = split or bench.objective.smooth
        inner = self.inner(s, smooth_f=smooth_f, split=split)
        claim = None
        if s.certain and (self.constants is not None or _curvature_is_certain(bench.counted)):
            gap = self.bound(s.constants, s.ball.radius, smooth_f=smooth_f)
            claim = Claim(gap, "ConEx with the constants of the problem")
        plan = Plan(Hinge(s.weight), inner, self.iterations, s.start, claim)
        candidate, state = minimised_and_projected(bench, plan)
        yield replace(candidate, evidence=Multiplier(state.valid_inequality))

    def inner(self, s: Setting, *, smooth_f: bool, split: bool) -> ExtrapolatedDescent:
        """Return the iteration with the theorem's step sizes."""
        D, B, M = s.ball.radius, s.weight, s.constants.Gc
        L, H = _parts(s.constants, smooth_f)
        # A constraint without slope has no multiplier to speak of: any step will do.
        tau = 3.0 * M * D / B if M > 0.0 else 1.0
        eta = L + 9.0 * M**2 / tau + 2.0 * H * math.sqrt(self.iterations) / D
        return ExtrapolatedDescent(eta, tau, None if split else s.ball, split)

    def bound(self, constants: ProblemConstants, D: float, *, smooth_f: bool = True) -> float:
        """Return the bound on the gap that the theorem gives; ``smooth_f`` says how f is taken.

        Examples
        --------
        >>> from lopro.methods.baselines import ConEx
        >>> from lopro.methods.theory import ProblemConstants
        >>> unit = ProblemConstants(G=1.0, Gc=1.0, rho=1.0, Lf=0.0, Lc=2.0)
        >>> ConEx(iterations=100).bound(unit, 1.0)
        0.04
        """
        L, H = _parts(constants, smooth_f)
        T, B = self.iterations, constants.weight
        once = (0.5 * L * D * D + 3.0 * B * constants.Gc * D) / T
        return once + 2.0 * H * D / math.sqrt(T)


def _parts(constants: ProblemConstants, smooth_f: bool) -> tuple[float, float]:
    """Return ``L`` of what is smooth and ``H`` of what is not."""
    B = constants.weight
    smooth_f = smooth_f and math.isfinite(constants.Lf)
    smooth_c = math.isfinite(constants.Lc)
    L = (constants.Lf if smooth_f else 0.0) + (B * constants.Lc if smooth_c else 0.0)
    H = (0.0 if smooth_f else constants.G) + (0.0 if smooth_c else B * constants.Gc)
    return L, H


def _curvature_is_certain(problem: Problem) -> bool:
    """Whether no smoothness constant is an estimate."""
    smooth, _ = problem.objective.split()
    found = [problem.constraint.smoothness(), None if smooth is None else smooth.smoothness()]
    return all(L is None or L.source is not Source.ESTIMATED for L in found)


def _splits(problem: Problem) -> bool:
    """Whether f has a part to take by its prox, and no ball is needed that would spoil it."""
    _, proximable = problem.objective.split()
    everywhere = problem.objective.lipschitz(), problem.constraint.lipschitz()
    return proximable is not None and None not in everywhere
