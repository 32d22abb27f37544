"""Theorem 3 (LoPNAG): invariants, Prop 2 within every epoch, the proximal variant, and what must fail."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from support.theorem_checks import (
    PrintedAlgorithm2,
    Run,
    accelerated_bound,
    error_bound_ratio,
    iterates,
    run_schedule,
)
from support.theory_problems import Known, t1, t3, t4, t6_ellipsoid, t7

import lopro
from lopro import LoPNAG
from lopro.constraints import ResidualBall
from lopro.methods.inner import AcceleratedGradient, Backtracking, FixedSmoothness
from lopro.methods.paper.theorems import Theorem3
from lopro.methods.theory import ProblemConstants
from lopro.penalties import QuadraticHinge

RUNS = [
    pytest.param(t4, 1e-1, id="T4-1e-1"),
    pytest.param(t4, 1e-2, id="T4-1e-2"),
    pytest.param(t4, 1e-3, id="T4-1e-3"),
    pytest.param(t6_ellipsoid, 1e-3, id="T6"),
    pytest.param(lambda: t3(smooth=True), 1e-6, id="T3 proximal"),
]


def schedule(known: Known, eps: float, kind: Any = Theorem3, **changes: Any) -> Any:
    """Return the theorem's schedule for the constants of the problem."""
    return kind(known.constants, known.eps0, eps, known.sigma, known.theta, **changes)


def improved(F: Any, x: Any) -> Any:
    """Return a point where F is close to its minimum."""
    inner = AcceleratedGradient(step_rule=Backtracking(), restart=True)
    *_, (_, z) = iterates(inner, F, x, 300)
    return z


def prop_2_ratio(known: Known, run: Run) -> float:
    """Return the worst ``(F_k(x^_k) - F_k(z)) / (2 L_k |x_(k-1) - z|^2 / (t_k + 1)^2)`` over the epochs.

    Comparators are the solution, a point far away, and (sharpest) a point close to the minimiser of F_k.
    """
    worst = 0.0
    for epoch in run.epochs:
        start, F = epoch.plan.start, epoch.F
        bound = accelerated_bound(epoch.plan.inner.step_rule.L, start)
        for z in (known.solution, known.solution + 1.0, improved(F, known.solution)):
            excess = F.value(epoch.x_hat) - F.value(z)
            if excess > 1e-12 * (1.0 + abs(known.optimum)):
                worst = max(worst, excess / bound(epoch.plan.steps, z))
    return worst


@pytest.mark.parametrize(("make", "eps"), RUNS)
def test_theorem_3(make: Any, eps: float) -> None:
    """Thm 3: invariant and feasibility for all k, 2 eps at the end, K projections, Prop 2 in every epoch.

    T3 is the proximal variant: ``|x|_1`` is handled by its prox and counts as ``L_f = 0``.
    """
    known = make()
    plan = schedule(known, eps)
    run = run_schedule(known, LoPNAG(plan), known.eps0, eps)
    assert run.worst <= 1.0
    assert prop_2_ratio(known, run) <= 1.0
    assert run.projections == run.counted == len(run.epochs) == plan.epochs
    assert plan.epochs == math.ceil(math.log2(known.eps0 / eps))
    assert run.iterations == sum(plan.steps(k) for k in range(1, plan.epochs + 1))


def test_theorem_3_numbers() -> None:
    """Thm 3 on T4: ``gamma_k``, ``L_k`` and ``t_k`` are the statement's (with P2), the sum obeys E5."""
    known, eps = t4(), 1e-2
    plan = schedule(known, eps)
    run = run_schedule(known, LoPNAG(plan), known.eps0, eps)
    lam, slope, Lbar = (
        known.G / known.rho,
        math.sqrt(2.0 * known.Lc),
        1.3009 * known.G / known.rho * known.Lc,
    )
    scale = known.sigma / eps ** (1.0 - known.theta)
    for k, epoch in enumerate(run.epochs):
        remaining = known.eps0 / 2.0**k
        gamma = remaining / (6.0 * math.log(2.0))
        first, second = (
            lam * slope * math.sqrt(18.0 * math.log(2.0)),
            math.sqrt(12.0 * Lbar * remaining),
        )
        assert epoch.F.penalty.gamma == pytest.approx(gamma)
        assert epoch.plan.steps == math.ceil(scale * max(first, second))
        assert (
            pytest.approx(Lbar + (lam * slope) ** 2 / (4.0 * gamma)) == epoch.plan.inner.step_rule.L
        )
        assert epoch.verdict.exact
    total = scale * (
        first * plan.epochs + math.sqrt(24.0 * Lbar * known.eps0) / (math.sqrt(2.0) - 1.0)
    )
    assert run.iterations <= plan.epochs + total


def test_theorem_3_steps_where_the_smooth_part_dominates() -> None:
    """Thm 3: ``t_k = ceil(sigma / eps^(1-theta) sqrt(12 p Lbar eps_(k-1)))`` where c is almost flat.

    With ``lam = G / rho = 2``, ``Lbar = 3 + 2 * 5 = 13``; printed, ``lam = 4``, ``p = 2``, ``Lbar = 23``.
    """
    constants = ProblemConstants(G=2.0, Gc=0.01, rho=1.0, Lf=3.0, Lc=5.0)
    ours = Theorem3(constants, eps0=4.0, eps=0.25, sigma=2.0, theta=0.5)
    assert [ours.steps(k) for k in (1, 2, 3, 4)] == [
        100,
        71,
        50,
        36,
    ]  # from 99.92, 70.7, 49.96, 35.3
    printed = Theorem3.printed(constants, eps0=4.0, eps=0.25, sigma=2.0, theta=0.5)
    assert [printed.steps(k) for k in (1, 2, 3, 4)] == [188, 133, 94, 67]
    assert ours.smoothing(3) == pytest.approx(4.0 / (6.0 * math.log(2.0)) / 4.0)
    assert printed.smoothing(3) == pytest.approx(4.0 / (12.0 * math.log(2.0)) / 4.0)


@pytest.mark.parametrize("make", [t4, lambda: t3(smooth=True)])
def test_theorem_3_printed(make: Any) -> None:
    """Thm 3 with the printed factor (``lam = 2 G / rho``, p = 2): the bounds hold, at more iterations."""
    known, eps = make(), 0.01
    printed, ours = schedule(known, eps, Theorem3.printed), schedule(known, eps)
    run = run_schedule(known, LoPNAG(printed), known.eps0, eps)
    assert run.worst <= 1.0
    assert prop_2_ratio(known, run) <= 1.0
    assert run.projections == printed.epochs == ours.epochs
    fewer = sum(ours.steps(k) for k in range(1, ours.epochs + 1))
    assert run.iterations >= 2 * fewer


@dataclass(frozen=True)
class BestSmoothing(Theorem3):
    """Theorem 3 with the quadratic hinge (P3): ``gamma_k = 2 eps_(k-1) / 3`` and 3 for sqrt(18 ln 2)."""

    def plan(self, start: Any, k: int, last: Any) -> Any:
        plan = super().plan(start, k, last)
        if plan is None:
            return None
        lam, c, remaining = self.weight, self.constants, self.eps0 / 2.0 ** (k - 1)
        h, base = QuadraticHinge(lam, 2.0 * remaining / 3.0), c.base_smoothness(lam, 2.0)
        first, second = 3.0 * lam * math.sqrt(c.squared_slope), math.sqrt(12.0 * base * remaining)
        steps = math.ceil(self.sigma / self.eps ** (1.0 - self.theta) * max(first, second))
        L = base + h.curvature(c.squared_slope)
        return replace(
            plan, penalty=h, inner=AcceleratedGradient(step_rule=FixedSmoothness(L)), steps=steps
        )


@pytest.mark.parametrize("make", [t4, lambda: t3(smooth=True)])
def test_theorem_3_with_the_best_smoothing(make: Any) -> None:
    """P3 in Thm 3: the quadratic hinge keeps the invariant as well."""
    known, eps = make(), 0.01
    run = run_schedule(known, LoPNAG(schedule(known, eps, BestSmoothing)), known.eps0, eps)
    assert run.worst <= 1.0
    assert prop_2_ratio(known, run) <= 1.0


def test_theorem_3_proximal_on_the_residual_ball() -> None:
    """Thm 3, proximal, on T7 with theta = 1/2 and three times the sigma that sampling finds (1.0)."""
    known, eps = replace(t7(), sigma=3.0), 0.02
    rng = np.random.default_rng(0)
    assert error_bound_ratio(known, known.sigma, 0.5, known.eps0, rng) <= 0.5
    run = run_schedule(known, LoPNAG(schedule(known, eps)), known.eps0, eps)
    assert run.worst <= 1.0
    assert prop_2_ratio(known, run) <= 1.0
    assert run.projections == schedule(known, eps).epochs


# Negative controls, through the same functions.


@pytest.mark.parametrize("T", [1500, 3000])
def test_theorem_3_rejects_the_gradient_at_x(T: int) -> None:
    """R5, negative control: on T1 the printed Algorithm 2 breaks Prop 2 within one epoch; ours does not."""
    known = replace(t1(), G=1.5)  # any upper bound of the slope will do, and F has a minimiser
    right = lopro.theorems.corollary_2a(known.constants, T, known.distance)
    printed = replace(right, inner=PrintedAlgorithm2(step_rule=right.inner.step_rule))
    ratios = [
        prop_2_ratio(known, run_schedule(known, m, known.eps0, 1.0)) for m in (right, printed)
    ]
    assert ratios[0] <= 1.0
    assert ratios[1] > 10.0


@pytest.mark.parametrize("share", [0.5, 0.9])
@pytest.mark.parametrize("make", [t4, lambda: t3(smooth=True)])
def test_theorem_3_rejects_small_weights(make: Any, share: float) -> None:
    """Thm 3, negative control: a weight below the multiplier breaks the invariant."""
    known, eps = make(), 1e-3
    plan = schedule(known, eps, lam=share * known.zeta)
    assert run_schedule(known, LoPNAG(plan), known.eps0, eps).worst > 1.0


@dataclass(frozen=True)
class Unhalved(Theorem3):
    """Theorem 3 with the first smoothing in every epoch (broken)."""

    def smoothing(self, k: int) -> float:
        return super().smoothing(1)


def test_theorem_3_rejects_constant_smoothing() -> None:
    """Thm 3, negative control: without halving gamma the bias of the first epoch stays."""
    known, eps = t4(), 1e-3
    broken = replace(schedule(known, eps, Unhalved), lam=4.0 * known.zeta)
    right = replace(schedule(known, eps), lam=4.0 * known.zeta)
    assert run_schedule(known, LoPNAG(right), known.eps0, eps).worst <= 1.0
    assert run_schedule(t4(), LoPNAG(broken), known.eps0, eps).worst > 1.0


class Unprojected(ResidualBall):
    """An ellipsoid whose projection does nothing (broken)."""

    def project(self, x: Any) -> Any:
        return 1.0 * x


def test_theorem_3_rejects_missing_projections() -> None:
    """Thm 3, negative control: without projections the values are low and the points infeasible."""
    known, eps = t4(), 1e-2
    broken = replace(known, constraint=Unprojected(known.constraint.A.matrix, np.zeros(5), 1.0))
    # A weight at which the penalty alone does not keep the points inside.
    plan = schedule(broken, eps, lam=1.2 * known.zeta)
    assert run_schedule(known, LoPNAG(plan), known.eps0, eps).worst <= 1.0
    assert math.isinf(run_schedule(broken, LoPNAG(plan), broken.eps0, eps).worst)


def test_theorem_3_rejects_theta_one_on_a_curved_set() -> None:
    """A2, negative control: epochs for ``theta = 1`` are too short on the ellipsoid.

    The right ``theta = 1/2`` would take over a million steps at this accuracy (larger eps are run above);
    since 0.8 already suffices, the length of the epochs alone is the cause.
    """
    worst = {}
    for theta in (1.0, 0.8):
        known, eps = t4(), 1e-6
        plan = replace(schedule(known, eps), theta=theta, lam=6.0 * known.zeta)
        worst[theta] = run_schedule(known, LoPNAG(plan), known.eps0, eps).worst
    assert worst[0.8] <= 1.0 < worst[1.0]


def test_theorem_3_requires_smoothness() -> None:
    """Thm 3: without smoothness constants the schedule refuses before the first step."""
    known = t4()
    rough = replace(known, Lc=math.inf)
    with pytest.raises(lopro.MissingCapabilityError, match="smoothness"):
        lopro.solve(known.problem, known.x0, LoPNAG(schedule(rough, 0.1)))
