"""One projection: Cor 1 and C1' (strongly convex), Cor 2a (smooth), Cor 2b and P4 (both)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from support.theorem_checks import Recorded, count_projections, penalised, size
from support.theory_problems import Known, t1, t3, t4, t6_box, t6_ellipsoid, t8

import lopro
from lopro import OneProjection
from lopro.functions import Ball
from lopro.methods.inner import (
    AcceleratedGradient,
    ConstantStep,
    FixedSmoothness,
    InverseTimeStep,
    LinearWeights,
    PolynomialDecay,
    SubgradientDescent,
    WeightedInverseTimeStep,
)
from lopro.penalties import Hinge, QuadraticHinge, Softplus


def solved_gap(known: Known, method: Any) -> float:
    """Run the whole method, check that it projects exactly once, and return ``f(x~) - f_*``.

    A point outside the set counts as infinitely bad.
    """
    calls = count_projections(known.constraint)
    result = lopro.solve(known.problem, known.x0, method, tol=0)
    assert (calls(), result.counts.projections) == (1, 1)
    assert result.iterations == method.iterations
    outside = known.constraint.value(result.x) > 1e-12 * (1.0 + size(result.x))
    return math.inf if outside else known.gap(result.x)


# Cor 1 and C1'.

HORIZONS = [4, 10, 40, 200, 1000, 4000]


def ball_of(known: Known) -> Ball:
    """Return the ball of C1' around the start."""
    return lopro.theorems.solution_ball(known.problem, known.x0)


def bar(known: Known) -> float:
    """Return ``Gbar = G + lam Gc`` at ``lam = G / rho``."""
    return known.constants.subgradient_bound(known.constants.weight)


def strongly_convex_ratio(T: int, average: str, s: float = 3.0, alpha: float = 0.5) -> float:
    """Return gap over bound on T6 for one of the averages, each with its own constant."""
    known = t6_box()
    ball, unit = ball_of(known), bar(known) ** 2 / (known.mu * T)
    if average == "weighted":
        method = lopro.theorems.weighted_average(known.constants, T, ball)
        bound = 2.0 * bar(known) ** 2 / (known.mu * (T + 1))
        assert method.claim.gap == pytest.approx(bound)
    elif average == "suffix":
        method = lopro.theorems.corollary_1(known.constants, T, alpha, ball)
        bound = (2.0 + 2.5 * math.log(1.0 / (1.0 - alpha))) / alpha * unit
        assert method.claim.gap == pytest.approx(bound)
    else:
        inner = SubgradientDescent(InverseTimeStep(known.mu), PolynomialDecay(s), ball)
        method = OneProjection(inner, Hinge(known.constants.weight), T)
        bound = (s + 1.0) ** 2 / (2.0 * s) * unit
    return solved_gap(known, method) / bound


@pytest.mark.parametrize("T", HORIZONS)
def test_c1_weighted_average(T: int) -> None:
    """C1' on T6: ``gap <= 2 Gbar^2 / (mu (T + 1))`` with steps ``2/(mu(t+1))`` and weights t."""
    assert strongly_convex_ratio(T, "weighted") <= 1.0


@pytest.mark.parametrize("T", HORIZONS)
@pytest.mark.parametrize("alpha", [0.25, 0.5, 0.75])
def test_cor_1_suffix_average(T: int, alpha: float) -> None:
    """Cor 1 on T6: ``gap <= (2 + 2.5 ln(1/(1-alpha)))/alpha Gbar^2/(mu T)`` for the alpha-suffix average."""
    assert strongly_convex_ratio(T, "suffix", alpha=alpha) <= 1.0


@pytest.mark.parametrize("T", HORIZONS)
@pytest.mark.parametrize("s", [1.0, 3.0, 6.0])
def test_cor_1_polynomial_decay(T: int, s: float) -> None:
    """Cor 1 on T6: ``gap <= (s + 1)^2/(2 s) Gbar^2/(mu T)`` for the polynomial-decay average."""
    assert strongly_convex_ratio(T, "decay", s=s) <= 1.0


def weighted_inner_ratio(inner: Any, T: int) -> float:
    """Return the worst ``F(x^) - F(x*)`` over C1''s bound on a steep 1-D problem, for T up to a limit.

    This is ``F = x^2/2 + lam |x|``, shifted: T6 in one dimension, started at the edge of its ball.
    """
    known = t6_box(1)
    F = penalised(known, Hinge(known.constants.weight))
    state, worst = inner.init(F, known.x0, np.random.default_rng(0)), 0.0
    for t in range(1, T + 1):
        state = inner.step(F, state)
        excess = F.value(inner.output(state)) - F.value(known.solution)
        worst = max(worst, excess * known.mu * (t + 1) / (2.0 * bar(known) ** 2))
    return worst


def test_c1_rejects() -> None:
    """C1', negative controls: constant steps, or steps a hundred times as long, miss the rate 1/T."""
    known = t6_box(1)
    ball = ball_of(known)
    right = SubgradientDescent(WeightedInverseTimeStep(known.mu), LinearWeights(), ball)
    assert weighted_inner_ratio(right, 3000) <= 1.0
    constant = SubgradientDescent(ConstantStep(0.5), LinearWeights(), ball)
    assert weighted_inner_ratio(constant, 3000) > 1.0
    long = SubgradientDescent(WeightedInverseTimeStep(known.mu / 100.0), LinearWeights(), ball)
    assert weighted_inner_ratio(long, 3000) > 1.0


def test_c1_ball_holds_everything(rng: Any) -> None:
    """C1': the ball holds the solution, and projecting on the set does not leave it."""
    known = t6_box()
    ball = ball_of(known)
    assert size(known.solution - ball.center) <= ball.radius
    for _ in range(200):
        step = rng.standard_normal(4)
        x = ball.center + ball.radius * rng.uniform() * step / size(step)
        assert size(known.constraint.project(x) - ball.center) <= ball.radius * (1.0 + 1e-12)


# Cor 2a.


@pytest.mark.parametrize("quadratic", [False, True], ids=["softplus", "quadratic"])
@pytest.mark.parametrize("T", [1, 10, 30, 100, 300, 1000, 3000])
def test_cor_2a(T: int, quadratic: bool) -> None:
    """Cor 2a on T4, both smoothings: the gap is below the bound (p = 1, factor 2 in the second term)."""
    known = t4()
    c, D = known.constants, known.distance
    lam, Lbar = c.weight, (2.0 if quadratic else 1.3009) * c.weight * known.Lc
    slope = math.sqrt(2.0 * known.Lc)
    first = (1.0 if quadratic else math.sqrt(2.0 * math.log(2.0))) * lam * slope * D / (T + 1)
    bound = first + 2.0 * Lbar * D**2 / (T + 1) ** 2
    method = lopro.theorems.corollary_2a(c, T, D, quadratic=quadratic)
    assert method.claim.gap == pytest.approx(bound)
    assert solved_gap(known, method) <= bound


@pytest.mark.parametrize("quadratic", [False, True], ids=["softplus", "quadratic"])
@pytest.mark.parametrize("known", [t1(), t3(smooth=True), t8()], ids=lambda k: k.name)
def test_cor_2a_elsewhere(known: Known, quadratic: bool) -> None:
    """Cor 2a on the kink T1 and, proximal, on T3 and T8."""
    for T in (5, 50, 500):
        method = lopro.theorems.corollary_2a(
            known.constants, T, known.distance, quadratic=quadratic
        )
        assert solved_gap(known, method) <= method.claim.gap


def test_cor_2a_optimal_smoothing_is_better() -> None:
    """P3: the leading constant of the bound falls from 1.177 to 1."""
    c = t1().constants
    soft, quadratic = (lopro.theorems.corollary_2a(c, 99, 1.0, quadratic=q) for q in (False, True))
    assert soft.claim.gap / quadratic.claim.gap == pytest.approx(math.sqrt(2.0 * math.log(2.0)))


def sum_ratio(kind: Any, factor: float) -> float:
    """Return ``C gamma + F(x_T) - F(x*)`` over Cor 2a's bound on T4, with gamma off by a factor."""
    known, T, quadratic = t4(), 300, kind is QuadraticHinge
    method = lopro.theorems.corollary_2a(known.constants, T, known.distance, quadratic=quadratic)
    h = kind(method.penalty.lam, factor * method.penalty.gamma)
    Lbar = (2.0 if quadratic else 1.3009) * h.lam * known.Lc
    inner = AcceleratedGradient(step_rule=FixedSmoothness(Lbar + h.curvature(2.0 * known.Lc)))
    changed = Recorded(OneProjection(inner, h, T))
    lopro.solve(known.problem, known.x0, changed, tol=0)
    F = changed.seen[0].F
    return (h.above + F.value(changed.seen[0].x_hat) - F.value(known.solution)) / method.claim.gap


@pytest.mark.parametrize("kind", [Softplus, QuadraticHinge])
def test_cor_2a_choice_of_gamma(kind: Any) -> None:
    """Cor 2a, negative control: ``C gamma + B_T`` meets the bound at the chosen gamma, not at ten of it."""
    assert sum_ratio(kind, 1.0) <= 1.0
    assert sum_ratio(kind, 10.0) > 1.0


# Cor 2b and P4.


def error_of_2b(known: Known, method: OneProjection) -> float:
    """Return ``C gamma + rate^T (F(y_0) - F(x*) + mu/2 D^2)``: R1 and Prop 2 put together."""
    F, D = penalised(known, method.penalty), known.distance
    L = method.inner.step_rule.L
    start = F.value(known.x0) - F.value(known.solution) + 0.5 * known.mu * D**2
    return method.penalty.above + (1.0 - math.sqrt(known.mu / L)) ** method.iterations * start


@pytest.mark.parametrize("T", [10, 100, 1000, 5000])
@pytest.mark.parametrize("alpha", [0.55, 0.75, 0.95])
def test_cor_2b(T: int, alpha: float) -> None:
    """Cor 2b on T6: with ``gamma = T^(-2 alpha)`` the gap is below ``gamma ln 2`` plus the linear rate."""
    known = t6_ellipsoid()
    method = lopro.theorems.corollary_2b(known.constants, T, alpha)
    assert method.penalty.gamma == pytest.approx(T ** (-2.0 * alpha))
    assert solved_gap(known, method) <= error_of_2b(known, method)


def threshold(known: Known, alpha: float) -> int:
    """Return the least power of two that meets Cor 2b's condition on T."""
    c = known.constants
    M = c.base_smoothness(c.weight) + c.weight**2 * c.squared_slope / 4.0
    T = 2
    while (M / known.mu) ** (0.5 / (1.0 - alpha)) * (4.0 * alpha * math.log(T)) ** (
        1.0 / (1.0 - alpha)
    ) > T:
        T *= 2
    return T


def slope_of_gap(known: Known, horizons: list[int], alpha: float) -> float:
    """Return the slope of log gap over log T."""
    gaps = [
        solved_gap(known, lopro.theorems.corollary_2b(known.constants, T, alpha)) for T in horizons
    ]
    return float(np.polyfit(np.log(horizons), np.log(gaps), 1)[0])


def test_cor_2b_rate() -> None:
    """Cor 2b on T6: beyond its threshold on T the gap falls at least like ``T^(-2 alpha)``."""
    known, alpha = t6_ellipsoid(), 0.55
    T = threshold(known, alpha)
    assert T <= 40000
    assert slope_of_gap(known, [T, 2 * T], alpha) <= -2.0 * alpha + 0.02


def test_cor_2b_has_no_rate_before_the_threshold() -> None:
    """E15: for alpha near 1 the threshold is beyond any practical T, and below it the rate does not hold."""
    known = t6_ellipsoid()
    known_threshold = threshold(known, 0.95)
    assert known_threshold > 1e12
    assert slope_of_gap(known, [10, 40, 160], 0.95) > -1.9


@pytest.mark.parametrize("T", [60, 150, 500, 2000, 8000])
def test_p4(T: int) -> None:
    """P4 on T6: ``gap <= gamma ln 2 + T^-4 (Gbar_* D + L_F D^2)`` with ``T sqrt(mu/L_F) = 4 ln T``."""
    known = t6_ellipsoid()
    c = known.constants
    try:
        method = lopro.theorems.balanced(c, T)
    except ValueError:
        assert c.mu * T**2 / (16.0 * math.log(T) ** 2) <= c.base_smoothness(c.weight)
        return
    L, D = method.inner.step_rule.L, known.distance
    assert T * math.sqrt(known.mu / L) == pytest.approx(4.0 * math.log(T))
    slope = size(known.objective.subgradient(known.solution))
    slope += c.weight * size(known.constraint.subgradient(known.solution))
    bound = method.penalty.above + T**-4.0 * (slope * D + L * D**2)
    assert solved_gap(known, method) <= bound


def test_p4_beats_cor_2b() -> None:
    """P4 on T6: smaller gap and bound than ``gamma = T^(-2 alpha)`` at the same T, of order ln^2 T / T^2."""
    known, T = t6_ellipsoid(), 8000
    better = lopro.theorems.balanced(known.constants, T)
    printed = lopro.theorems.corollary_2b(known.constants, T, 0.55)
    assert solved_gap(known, better) < solved_gap(known, printed)
    assert error_of_2b(known, better) < error_of_2b(known, printed)
    half = lopro.theorems.balanced(known.constants, T // 2)
    expected = (math.log(T) / math.log(T // 2)) ** 2 / 4.0
    assert better.penalty.gamma / half.penalty.gamma == pytest.approx(expected, rel=0.05)


def strongly_convex_error(known: Known, method: OneProjection, gamma: float) -> float:
    """Return ``(C gamma + F(x_T) - F(x*))`` over the sum for the constants of ``method``."""
    bound = error_of_2b(known, method)
    inner = method.inner
    changed = Recorded(OneProjection(inner, Softplus(method.penalty.lam, gamma), method.iterations))
    lopro.solve(known.problem, known.x0, changed, tol=0)
    epoch = changed.seen[0]
    return (
        epoch.F.penalty.above + epoch.F.value(epoch.x_hat) - epoch.F.value(known.solution)
    ) / bound


def test_p4_rejects_another_gamma() -> None:
    """P4, negative control: a gamma three times as large breaks the sum that the bound consists of."""
    known = t6_ellipsoid()
    method = lopro.theorems.balanced(known.constants, 2000)
    assert strongly_convex_error(known, method, method.penalty.gamma) <= 1.0
    assert strongly_convex_error(known, method, 3.0 * method.penalty.gamma) > 1.0
