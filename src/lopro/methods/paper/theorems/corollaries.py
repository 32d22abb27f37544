"""Corollaries 1 and 2 of the paper, and improved parameters: one projection, at the end.

Each function returns a `lopro.OneProjection` whose claim is the bound of the result.
"""

from __future__ import annotations

import math

from lopro.core.arrays import Array, norm
from lopro.core.validation import check_count, check_number
from lopro.errors import MissingCapabilityError
from lopro.functions import Ball
from lopro.methods.inner import (
    AcceleratedGradient,
    ConstantMomentum,
    FixedSmoothness,
    InverseTimeStep,
    LinearWeights,
    StochasticSubgradient,
    SubgradientDescent,
    SuffixAverage,
    WeightedInverseTimeStep,
)
from lopro.methods.paper.one_projection import OneProjection
from lopro.methods.theory import QUADRATIC_CURVATURE, SOFTPLUS_CURVATURE, ProblemConstants
from lopro.penalties import Hinge, QuadraticHinge, Softplus
from lopro.problem import Problem
from lopro.protocol import Claim

__all__ = [
    "balanced",
    "corollary_1",
    "corollary_2a",
    "corollary_2b",
    "solution_ball",
    "weighted_average",
]


def corollary_1(
    constants: ProblemConstants, T: int, alpha: float = 0.5, ball: Ball | None = None
) -> OneProjection:
    """Strongly convex, nonsmooth: ``eta_t = 1/(mu t)`` and the average of the last ``alpha T`` iterates.

    Guarantee: ``(2 + 2.5 log(1/(1 - alpha))) / alpha * Gbar^2 / (mu T)``. A strongly convex function
    is not Lipschitz on the whole space; the constants hold on ``ball``, which must contain the solution.
    """
    check_number("alpha", alpha, minimum=0.0, maximum=1.0, exclusive=True)
    check_count("T", T)
    _need_strong_convexity(constants, "Cor 1")
    lam = constants.weight
    factor = (2.0 + 2.5 * math.log(1.0 / (1.0 - alpha))) / alpha
    gap = factor * constants.subgradient_bound(lam) ** 2 / (constants.mu * T)
    inner = SubgradientDescent(InverseTimeStep(constants.mu), SuffixAverage(alpha, T), ball)
    return OneProjection(inner, Hinge(lam), T, Claim(gap, "Cor 1 with the constants given"))


def weighted_average(
    constants: ProblemConstants, T: int, ball: Ball, *, stochastic: bool = False
) -> OneProjection:
    """Strongly convex, nonsmooth, with a better constant (C1'): ``eta_t = 2/(mu(t+1))``, weights ``t``.

    Guarantee: ``2 Gbar^2 / (mu (T + 1))``, where the constants hold on ``ball``. Its centre must be
    feasible and its radius at least ``|g| / mu`` for a subgradient ``g`` of f at the centre.

    With ``stochastic`` the steps use sampled subgradients of f. The same bound then holds in expectation,
    with the root mean square of the sampled ones in place of G, which is not known: no claim is made.
    """
    check_count("T", T)
    _need_strong_convexity(constants, "C1'")
    lam = constants.weight
    gap = 2.0 * constants.subgradient_bound(lam) ** 2 / (constants.mu * (T + 1))
    kind = StochasticSubgradient if stochastic else SubgradientDescent
    inner = kind(WeightedInverseTimeStep(constants.mu), LinearWeights(), ball)
    claim = None if stochastic else Claim(gap, "C1' with the constants given")
    return OneProjection(inner, Hinge(lam), T, claim)


def corollary_2a(
    constants: ProblemConstants, T: int, D: float, *, quadratic: bool = False
) -> OneProjection:
    """Smooth: ``T`` accelerated steps with ``gamma = lam G_c D / ((T + 1) sqrt(2 log 2))``.

    Guarantee: ``sqrt(2 log 2) lam G_c D / (T + 1) + 2 Lbar D^2 / (T + 1)^2`` for
    ``D >= dist(x0, solutions)``; the factor 2 is missing in print. With ``quadratic`` the optimal
    smoothing (P3) is used, and ``sqrt(2 log 2) = 1.18`` becomes 1.
    """
    check_number("D", D, minimum=0.0, exclusive=True)
    check_count("T", T)
    _need_smoothness(constants, "Cor 2a")
    lam, slope = constants.weight, math.sqrt(constants.squared_slope)
    base = constants.base_smoothness(lam, QUADRATIC_CURVATURE if quadratic else SOFTPLUS_CURVATURE)
    rest = 2.0 * base * D**2 / (T + 1) ** 2
    penalty: Softplus | QuadraticHinge
    if quadratic:
        penalty = QuadraticHinge(lam, 2.0 * lam * slope * D / (T + 1))
        gap = lam * slope * D / (T + 1) + rest
    else:
        factor = math.sqrt(2.0 * math.log(2.0))
        penalty = Softplus(lam, lam * slope * D / ((T + 1) * factor))
        gap = factor * lam * slope * D / (T + 1) + rest
    L = base + penalty.curvature(constants.squared_slope)
    inner = AcceleratedGradient(step_rule=FixedSmoothness(L))
    return OneProjection(inner, penalty, T, Claim(gap, "Cor 2a with the constants given"))


def corollary_2b(constants: ProblemConstants, T: int, alpha: float = 0.75) -> OneProjection:
    """Smooth and strongly convex, as printed: ``gamma = T^(-2 alpha)``, constant momentum.

    The error is ``O(T^(-2 alpha))`` once ``T`` is large enough; `balanced` is better.
    """
    check_number("alpha", alpha, minimum=0.5, maximum=1.0, exclusive=True)
    check_count("T", T)
    _need_strong_convexity(constants, "Cor 2b")
    _need_smoothness(constants, "Cor 2b")
    return _strongly_convex(constants, T, float(T) ** (-2.0 * alpha))


def balanced(constants: ProblemConstants, T: int) -> OneProjection:
    """Smooth and strongly convex (P4): the smallest gamma for which ``T`` steps converge.

    ``gamma = lam^2 G_c^2 / (4 (mu T^2 / (16 log^2 T) - Lbar))`` gives an error of order
    ``log^2 T / T^2``.
    """
    check_count("T", T, minimum=2)
    _need_strong_convexity(constants, "P4")
    _need_smoothness(constants, "P4")
    lam = constants.weight
    slack = constants.mu * T**2 / (16.0 * math.log(T) ** 2) - constants.base_smoothness(lam)
    if slack <= 0.0:
        raise ValueError(f"T = {T} is too small for P4: mu T^2 / (16 log^2 T) must exceed Lbar")
    return _strongly_convex(constants, T, lam**2 * constants.squared_slope / (4.0 * slack))


def _strongly_convex(constants: ProblemConstants, T: int, gamma: float) -> OneProjection:
    lam = constants.weight
    L = constants.smoothness(lam, gamma)
    inner = AcceleratedGradient(ConstantMomentum(constants.mu), FixedSmoothness(L))
    return OneProjection(inner, Softplus(lam, gamma), T)


def solution_ball(problem: Problem, center: Array) -> Ball:
    """Return the ball around a feasible point that contains the solution of a strongly convex problem."""
    mu = problem.objective.strong_convexity()
    if mu is None:
        raise ValueError("solution_ball needs a strongly convex objective")
    return Ball(center, norm(problem.objective.subgradient(center)) / mu.value)


def _need_strong_convexity(constants: ProblemConstants, result: str) -> None:
    if constants.mu <= 0.0:
        raise MissingCapabilityError(f"{result} needs a strongly convex objective: mu is 0")


def _need_smoothness(constants: ProblemConstants, result: str) -> None:
    if not math.isfinite(constants.smoothness(constants.weight, 1.0)):
        raise MissingCapabilityError(
            f"{result} needs smoothness constants Lf and Lc, and Gc (or a lower bound c_min of c)"
        )
