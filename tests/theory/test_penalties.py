"""The penalties: certificate (4), smoothness (Prop 1, P2), and the best smoothing (P3)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog, minimize_scalar
from support.theorem_checks import (
    SLACK,
    finite_difference_ratio,
    gradient_lipschitz_ratio,
    noise,
    size,
)
from support.theory_problems import Known, t1, t3, t4

from lopro.methods.theory import SOFTPLUS_CURVATURE, ProblemConstants
from lopro.penalties import CentredSoftplus, Hinge, QuadraticHinge, Softplus
from lopro.penalties.scalar import expit

WEIGHTS = [(0.3, 1.0), (1.0, 1e-3), (7.0, 2.0), (40.0, 1e-4)]


def certificate_ratio(phi: Any, lam: float, above: float, reach: float) -> float:
    """Certificate (4): the worse of ``lam c / h(c)`` for c > 0 and ``h(c) / above`` for c <= 0.

    The grid covers ``c`` in [-50, 50] times ``reach = gamma / lam``, and far beyond.
    """
    grid = np.concatenate([np.linspace(0.0, 50.0, 501), [1e3, 1e6]]) * reach
    below = max(lam * c / phi(c) if phi(c) > 0.0 else math.inf for c in map(float, grid[1:]))
    inside = [phi(-c) for c in map(float, grid)]
    assert min(inside) >= 0.0
    if above == 0.0:
        return max(below, math.inf if max(inside) > 0.0 else 0.0)
    return max(below, max(inside) / above)


@pytest.mark.parametrize(("lam", "gamma"), WEIGHTS)
def test_certificate(lam: float, gamma: float) -> None:
    """Certificate (4): ``h >= lam [c]_+`` everywhere and ``h <= C gamma`` inside, C = 0, ln 2, 1/4."""
    for penalty, C in (
        (Hinge(lam), 0.0),
        (Softplus(lam, gamma), math.log(2.0)),
        (QuadraticHinge(lam, gamma), 0.25),
    ):
        assert penalty.above == pytest.approx(C * gamma)
        assert certificate_ratio(penalty.phi, lam, penalty.above, gamma / lam) <= SLACK


@pytest.mark.parametrize("kind", [Softplus, QuadraticHinge])
def test_certificate_rejects(kind: Any) -> None:
    """Certificate (4), negative controls: a smaller C, a smaller weight, a shifted penalty."""
    h = kind(2.0, 0.5)
    assert certificate_ratio(h.phi, 2.0, 0.99 * h.above, 0.25) > 1.0
    assert certificate_ratio(kind(1.99, 0.5).phi, 2.0, h.above, 0.25) > 1.0
    assert certificate_ratio(lambda c: h.phi(c + 1e-3), 2.0, h.above, 0.25) > 1.0
    assert certificate_ratio(lambda c: h.phi(c - 1e-2) + 1e-9, 2.0, h.above, 0.25) > 1.0


@pytest.mark.parametrize("share", [0.05, 0.5, 0.93])
def test_certificate_of_the_centred_penalty(share: float) -> None:
    """P7: the centred softplus is at most 0 inside, at least ``zeta c``, and ``below`` under the hinge."""
    lam, gamma = 3.0, 0.2
    h = CentredSoftplus(lam, gamma, share * lam)
    for c in np.linspace(-50.0, 50.0, 1001) * gamma / lam:
        value, unit = h.phi(float(c)), 1e-13 * (1.0 + abs(c))
        assert c > 0.0 or value <= unit
        assert value >= share * lam * c - unit
        assert value >= lam * max(c, 0.0) - h.below - unit
    ends = [lam * max(c, 0.0) - h.phi(c) for c in (-1e3, 1e3)]
    assert max(ends) == pytest.approx(h.below)


# Smoothness.


def gradient_of(known: Known, penalty: Any) -> Any:
    """Return the gradient of ``h(c(x))``."""

    def gradient(x: Any) -> Any:
        _, slope = penalty.linearize_at(known.constraint, penalty.image(known.constraint, x))
        g = slope()
        return 0.0 * x if g is None else g

    return gradient


def pairs(known: Known, reach: float, rng: Any, radius: float = 3.0) -> Iterator[tuple[Any, Any]]:
    """Yield near pairs (1e-4 of the width of the bend) and far ones, many of them across the boundary."""
    for i in range(300):
        if i % 2:
            x = radius * rng.uniform() * noise(known, rng)
        else:
            x = known.constraint.project(10.0 * noise(known, rng))
        slope = known.constraint.subgradient(x)
        if i % 4 < 2:  # into the bend of the penalty, where its curvature is
            x = x + rng.uniform(-3.0, 3.0) * reach / float(slope @ slope) * slope
        yield x, x + 1e-4 * reach * noise(known, rng)
        yield x, x + 1e-4 * reach * slope / float(slope @ slope)
        yield x, rng.uniform(0.0, radius) * noise(known, rng)


@pytest.mark.parametrize("kind", [Softplus, QuadraticHinge])
@pytest.mark.parametrize("known", [t1(), t3()], ids=lambda k: k.name)
@pytest.mark.parametrize(("lam", "gamma"), [(1.0, 1e-3), (3.0, 1.0)])
def test_prop_1_linear(kind: Any, known: Known, lam: float, gamma: float, rng: Any) -> None:
    """Prop 1, P3: ``lam L_c + lam^2 G_c^2 / (4 gamma)`` (2 for 4: quadratic hinge) is the best constant."""
    h = kind(lam, gamma)
    L = lam * known.Lc + h.curvature(known.Gc**2)
    assert pytest.approx(lam**2 * known.Gc**2 / gamma / (4.0 if kind is Softplus else 2.0)) == L
    gradient = gradient_of(known, h)
    assert gradient_lipschitz_ratio(gradient, L, pairs(known, gamma / lam, rng)) <= 1.0 + 1e-6
    assert gradient_lipschitz_ratio(gradient, 0.98 * L, pairs(known, gamma / lam, rng)) > 1.0


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_p7_curvature(share: float, rng: Any) -> None:
    """P7: moving softplus does not bend it: ``lam^2 G_c^2 / (4 gamma)`` is the best constant on T1 too."""
    known, lam, gamma = t1(), 3.0, 0.2
    h = CentredSoftplus(lam, gamma, share * lam)
    L = lam**2 / (4.0 * gamma)
    assert h.curvature(1.0) == pytest.approx(L)
    gradient = gradient_of(known, h)
    # The steepest bend is where the slope is lam / 2, and that has moved.
    steepest = -h.shift / lam
    near = [(np.array([steepest + s]), np.array([steepest + s + 1e-5])) for s in (-0.01, 0.0, 0.01)]
    assert gradient_lipschitz_ratio(gradient, L, pairs(known, gamma / lam, rng)) <= 1.0 + 1e-6
    assert gradient_lipschitz_ratio(gradient, 0.999 * L, iter(near)) > 1.0


@pytest.mark.parametrize("kind", [Softplus, QuadraticHinge])
@pytest.mark.parametrize(("lam", "gamma"), [(1.0, 1e-2), (2.0, 1.0), (1.0, 20.0)])
def test_prop_1_on_a_ball(kind: Any, lam: float, gamma: float, rng: Any) -> None:
    """Prop 1 on T4 within the ball of radius 3, where c has the slope ``2 lambda_max 3``."""
    known = t4()
    h = kind(lam, gamma)
    L = lam * known.Lc + h.curvature((known.Lc * 3.0) ** 2)
    inside = ((x, y) for x, y in pairs(known, gamma / lam, rng) if max(size(x), size(y)) <= 3.0)
    assert gradient_lipschitz_ratio(gradient_of(known, h), L, inside) <= 1.0 + 1e-6


GLOBAL = {Softplus: SOFTPLUS_CURVATURE, QuadraticHinge: 2.0}


def globally(kind: Any, lam: float, gamma: float, factor: float, rng: Any) -> float:
    """Return the worst ratio against P2's constant with this factor of ``lam L_c``, on all of T4."""
    known = t4()
    h = kind(lam, gamma)
    slope = 2.0 * known.Lc * abs(known.c_min)
    L = factor * lam * known.Lc + h.curvature(slope)
    far = 4.0 * math.sqrt(1.0 + gamma / lam)
    top = known.constraint.A.matrix[-1] / size(known.constraint.A.matrix[-1])
    found = gradient_lipschitz_ratio(gradient_of(known, h), L, pairs(known, gamma / lam, rng, far))
    # The worst case of the proof: along the top eigenvector, at every depth of the bend.
    x = [
        math.sqrt((1.0 + s * gamma / lam) / (known.Lc / 2.0)) * top
        for s in np.linspace(-0.9, 4.0, 500)
        if s * gamma > -lam
    ]
    along = ((z, (1.0 - 1e-6) * z) for z in x)
    return max(found, gradient_lipschitz_ratio(gradient_of(known, h), L, along))


@pytest.mark.parametrize("kind", [Softplus, QuadraticHinge])
@pytest.mark.parametrize(("lam", "gamma"), [(1.0, 1e-3), (1.0, 1.0), (1.0, 50.0), (5.0, 1e4)])
def test_p2_global_smoothness(kind: Any, lam: float, gamma: float, rng: Any) -> None:
    """P2: on the whole space ``2 L_c m_0`` replaces ``G_c^2``, with 1.3009 (or 2) times ``lam L_c``."""
    assert globally(kind, lam, gamma, GLOBAL[kind], rng) <= 1.0 + 1e-6


@pytest.mark.parametrize("kind", [Softplus, QuadraticHinge])
def test_p2_factors_are_needed(kind: Any, rng: Any) -> None:
    """P2, negative control: with the factor 1 of Prop 1, or one percent below P2's, it is rejected."""
    assert globally(kind, 1.0, 200.0, 1.0, rng) > 1.0
    assert globally(kind, 1.0, 200.0, 0.99 * GLOBAL[kind], rng) > 1.0


def test_p2_constant() -> None:
    """P2: ``sup q + 2 s q (1 - q) = 1.30082`` at s = 1.980, and the constant in the code is above it."""
    found = minimize_scalar(
        lambda s: -(expit(s) + 2.0 * s * expit(s) * (1.0 - expit(s))),
        bounds=(0.0, 5.0),
        method="bounded",
    )
    assert -found.fun == pytest.approx(1.30082, abs=1e-5)
    assert found.x == pytest.approx(1.980, abs=1e-2)
    assert -found.fun <= SOFTPLUS_CURVATURE <= -found.fun + 1e-3


@pytest.mark.parametrize("Gc", [math.inf, 60.0, 5.0, 1.0])
@pytest.mark.parametrize("gamma", [1e-3, 1.0, 100.0])
def test_p2_and_prop_1_are_not_mixed(Gc: float, gamma: float, rng: Any) -> None:
    """P2: the factor 1 holds with the Lipschitz constant on a ball, but not with the effective slope.

    On the ball of radius 7.5 the constraint of T4 has slope 60, its effective slope is 4, and softplus with
    gamma = 100 has the curvature ``1.3 lam L_c`` inside.
    """
    known = replace(t4(), Gc=Gc)
    L = known.constants.smoothness(1.0, gamma)
    if Gc >= 60.0:
        top = known.constraint.A.matrix[-1] / size(known.constraint.A.matrix[-1])
        along = [(s * top, (1.0 - 1e-6) * s * top) for s in np.linspace(0.1, 7.5, 2000)]
        gradient = gradient_of(known, Softplus(1.0, gamma))
        assert gradient_lipschitz_ratio(gradient, L, iter(along)) <= 1.0
    effective = 2.0 * known.Lc * abs(known.c_min)
    base, slope = known.constants.base_smoothness(1.0), known.constants.squared_slope
    assert (base, slope) in [(SOFTPLUS_CURVATURE * known.Lc, effective), (known.Lc, Gc**2)]


# Gradients.


@dataclass(frozen=True)
class PrintedGradient(Softplus):
    """Softplus with the gradient of the last printed line: lam is missing (E10)."""

    def slope(self, c: float) -> float:
        return expit(self.lam * c / self.gamma)


def difference_ratio(known: Known, h: Any, rng: Any) -> float:
    """Return the error of the gradient of h against finite differences."""
    reach = h.gamma / h.lam
    points = [x for x, _ in pairs(known, reach, rng, 1.0)][:150]
    return finite_difference_ratio(
        lambda x: h.phi(known.constraint.value(x)),
        gradient_of(known, h),
        iter(points),
        1e-4 * reach,
        rng,
    )


@pytest.mark.parametrize("known", [t1(), t3(), t4()], ids=lambda k: k.name)
def test_prop_1_gradient(known: Known, rng: Any) -> None:
    """Prop 1: finite differences agree with ``lam expit(lam c / gamma) grad c``, the printed line fails."""
    for h in (Softplus(3.0, 0.5), CentredSoftplus(3.0, 0.5, 1.0), QuadraticHinge(3.0, 0.5)):
        assert difference_ratio(known, h, rng) <= 1.0
    assert difference_ratio(known, PrintedGradient(3.0, 0.5), rng) > 1.0


def test_prop_1_does_not_overflow() -> None:
    """E10: values and slopes are right where ``exp(lam c / gamma)`` overflows."""
    h = Softplus(2.0, 1e-8)
    assert (h.phi(3.0), h.slope(3.0)) == (6.0, 2.0)
    assert (h.phi(-3.0), h.slope(-3.0)) == (0.0, 0.0)


# The best smoothing.


def curvature_times_height(h: Any) -> float:
    """Return ``C L`` for ``G_c = 1``, where the largest slope is one: P3's product."""
    heights = h.above / h.gamma
    return heights * h.curvature(1.0) * h.gamma / h.lam**2


def least_height(L: float, n: int = 400, width: float = 2.0) -> float:
    """Return the least ``phi(0)`` of convex ``phi >= [s]_+`` with ``phi'' <= L``, by linear programming."""
    grid = np.linspace(-width, width, 2 * n + 1)
    step = grid[1] - grid[0]
    second = (
        np.eye(2 * n + 1, k=0)[:-2]
        - 2.0 * np.eye(2 * n + 1, k=1)[:-2]
        + np.eye(2 * n + 1, k=2)[:-2]
    )
    second /= step**2
    A = np.vstack([second, -second])
    b = np.concatenate([np.full(2 * n - 1, L), np.zeros(2 * n - 1)])
    cost = np.zeros(2 * n + 1)
    cost[n] = 1.0
    bounds = [(max(s, 0.0), None) for s in grid]
    return float(linprog(cost, A_ub=A, b_ub=b, bounds=bounds).fun)


@pytest.mark.parametrize("L", [1.0, 2.5])
def test_p3_no_smoothing_is_better(L: float) -> None:
    """P3: the least height ``phi(0)`` of any convex smoothing is ``1/(8L)``, found by a linear program."""
    assert least_height(L) == pytest.approx(1.0 / (8.0 * L), rel=1e-2)


def test_p3_products() -> None:
    """P3: height times curvature is 1/8 for the quadratic hinge and ln(2)/4 for softplus."""
    assert curvature_times_height(QuadraticHinge(3.0, 0.2)) == pytest.approx(0.125)
    assert curvature_times_height(Softplus(3.0, 0.2)) == pytest.approx(math.log(2.0) / 4.0)


def test_constants_without_lipschitz_constraint() -> None:
    """P2 in `ProblemConstants`: an infinite Gc is replaced, and no constant is returned without ``c_min``."""
    known = ProblemConstants(G=1.0, Gc=math.inf, rho=1.0, Lf=0.0, Lc=2.0, c_min=-1.0)
    assert known.smoothness(1.0, 1.0) == pytest.approx(2.0 * SOFTPLUS_CURVATURE + 1.0)
    assert math.isinf(
        ProblemConstants(G=1.0, Gc=math.inf, rho=1.0, Lf=0.0, Lc=2.0).smoothness(1.0, 1.0)
    )
