"""The claims of methods with one projection as exact numbers, in the method and in the result of a run."""

from __future__ import annotations

import math

import pytest
from scipy.optimize import minimize_scalar
from support.claims import check_claims
from support.theory_problems import Known, t1, t3, t4, t6_box

import lopro
from lopro.penalties import QuadraticHinge, Softplus


@pytest.mark.parametrize("T", [3, 40, 1000])
@pytest.mark.parametrize("quadratic", [False, True], ids=["softplus", "quadratic"])
@pytest.mark.parametrize("known", [t1(), t3(smooth=True), t4()], ids=lambda k: k.name)
def test_cor_2a_takes_the_best_gamma(known: Known, quadratic: bool, T: int) -> None:
    """Cor 2a, P8: gamma minimises ``C gamma + 2 L_F D^2 / (T + 1)^2``, and the minimum is the claim.

    ``L_F = Lbar + kappa lam^2 G_c^2 / gamma`` with ``(C, kappa)`` as in P8: nothing here comes from the code.
    """
    D, lam = 1.7, known.G / known.rho
    C, kappa = (0.25, 0.5) if quadratic else (math.log(2.0), 0.25)
    effective = math.isinf(known.Gc)
    slope = 2.0 * known.Lc * abs(known.c_min) if effective else known.Gc**2
    factor = (2.0 if quadratic else 1.3009) if effective else 1.0
    Lbar = known.Lf + factor * lam * known.Lc

    def smoothness(gamma: float) -> float:
        return Lbar + kappa * lam**2 * slope / gamma

    def bound(gamma: float) -> float:
        return C * gamma + 2.0 * smoothness(gamma) * D**2 / (T + 1) ** 2

    best = minimize_scalar(
        lambda s: bound(math.exp(s)), bounds=(-25, 15), method="bounded", options={"xatol": 1e-9}
    )
    method = lopro.theorems.corollary_2a(known.constants, T, D, quadratic=quadratic)
    assert isinstance(method.penalty, QuadraticHinge if quadratic else Softplus)
    assert method.penalty.lam == pytest.approx(lam)
    # The minimum is flat: its location has the square root of the accuracy of its value.
    assert method.penalty.gamma == pytest.approx(math.exp(best.x), rel=1e-5)
    assert method.claim.gap == pytest.approx(best.fun, rel=1e-12)
    assert pytest.approx(smoothness(method.penalty.gamma), rel=1e-12) == method.inner.step_rule.L


@pytest.mark.parametrize("quadratic", [False, True], ids=["softplus", "quadratic"])
def test_cor_2a_in_the_certificate(quadratic: bool) -> None:
    """Cor 2a on T3, ``L_f = L_c = 0``: ``sqrt(2 ln 2)`` or 1 times ``lam G_c D / (T + 1)``."""
    known, T = t3(smooth=True), 60
    factor = 1.0 if quadratic else math.sqrt(2.0 * math.log(2.0))
    claim = factor * known.G / known.rho * known.Gc * known.distance / (T + 1)
    method = lopro.theorems.corollary_2a(known.constants, T, known.distance, quadratic=quadratic)
    check_claims(known, method, [claim])


@pytest.mark.parametrize("alpha", [0.25, 0.5, 0.8])
def test_cor_1_in_the_certificate(alpha: float) -> None:
    """Cor 1 on T6: ``(2 + 2.5 ln(1 / (1 - alpha))) / alpha Gbar^2 / (mu T)``."""
    known, T = t6_box(), 50
    bar = known.G + known.G / known.rho * known.Gc
    claim = (2.0 - 2.5 * math.log(1.0 - alpha)) / alpha * bar**2 / (known.mu * T)
    ball = lopro.theorems.solution_ball(known.problem, known.x0)
    check_claims(known, lopro.theorems.corollary_1(known.constants, T, alpha, ball), [claim])


def test_c1_in_the_certificate() -> None:
    """C1' on T6: ``2 Gbar^2 / (mu (T + 1))``, on the ball of radius ``|g| / mu``."""
    known, T = t6_box(), 50
    bar = known.G + known.G / known.rho * known.Gc
    ball = lopro.theorems.solution_ball(known.problem, known.x0)
    # f = |x - z|^2 / 2: the ball reaches exactly to z.
    z = known.x0 - known.objective.subgradient(known.x0)
    assert ball.radius == pytest.approx(float(((known.x0 - z) ** 2).sum() ** 0.5))
    method = lopro.theorems.weighted_average(known.constants, T, ball)
    check_claims(known, method, [2.0 * bar**2 / (known.mu * (T + 1))])
