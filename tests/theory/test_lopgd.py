"""Theorem 2 (LoPGD): the invariant of every epoch, the end, the projections, and what must fail."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from support.theorem_checks import run_schedule
from support.theory_problems import Known, t1, t2, t3, t4, t5, t6_box

import lopro
from lopro import LoPGD
from lopro.constraints import Polyhedron, ResidualNorm
from lopro.methods.paper.theorems import Theorem2

#: The problems, each with an accuracy that keeps the schedule short.
RUNS = [
    pytest.param(t2, 1e-3, id="T2"),
    pytest.param(t3, 1e-4, id="T3"),
    pytest.param(lambda: t4(form=ResidualNorm()), 0.1, id="T4"),
    pytest.param(t5, 0.01, id="T5"),
    pytest.param(lambda: t6_box(2), 0.2, id="T6"),
]


def schedule(known: Known, eps: float, kind: Any = Theorem2, **changes: Any) -> Any:
    """Return the theorem's schedule for the constants of the problem."""
    return kind(known.constants, known.eps0, eps, known.sigma, known.theta, **changes)


@pytest.mark.parametrize(("make", "eps"), RUNS)
def test_theorem_2(make: Any, eps: float) -> None:
    """Thm 2: ``f(x_k) - f_* <= eps0/2^k + eps``, ``c(x_k) <= 0`` for all k, 2 eps last, K projections."""
    known = make()
    plan = schedule(known, eps)
    assert plan.epochs == math.ceil(math.log2(known.eps0 / eps))
    slope = known.G + known.G / known.rho * known.Gc
    assert plan.steps == math.ceil(
        4.0 * known.sigma**2 * slope**2 / eps ** (2.0 * (1.0 - known.theta))
    )
    run = run_schedule(known, LoPGD(plan), known.eps0, eps)
    assert run.worst <= 1.0
    assert run.projections == run.counted == len(run.epochs) == plan.epochs
    assert run.iterations == plan.epochs * plan.steps


@pytest.mark.parametrize("factor", [1.5, 4.0])
def test_theorem_2_on_the_kink(factor: float) -> None:
    """Thm 2 on T1, with a weight above ``G / rho``: any such weight will do (R1).

    At ``lam = G / rho`` itself F is flat outside, the certified gap is exactly 0, and the run ends early.
    """
    known, eps = t1(), 1e-3
    plan = schedule(known, eps, lam=factor)
    run = run_schedule(known, LoPGD(plan), known.eps0, eps)
    assert run.worst <= 1.0
    assert run.projections == run.counted == len(run.epochs) == plan.epochs


@pytest.mark.parametrize(("make", "eps"), RUNS[:2])
def test_theorem_2_halves_the_steps(make: Any, eps: float) -> None:
    """Thm 2: ``eta_1 = eps0 / (2 Gbar^2)``, halved every epoch; the epochs start at the projected points."""
    known = make()
    plan = schedule(known, eps)
    run = run_schedule(known, LoPGD(plan), known.eps0, eps)
    for k, epoch in enumerate(run.epochs):
        slope = known.G + known.G / known.rho * known.Gc
        assert epoch.plan.inner.step_rule.eta == pytest.approx(
            known.eps0 / (2.0 * slope**2) / 2.0**k
        )
        assert epoch.verdict.exact  # R2 along the way
        start = known.x0 if k == 0 else run.epochs[k - 1].x
        assert epoch.plan.start == pytest.approx(start, abs=0.0)


@pytest.mark.parametrize("make", [t1, t2, t3])
def test_theorem_2_printed(make: Any) -> None:
    """Thm 2 as printed (``lam = 2 G / rho``, p = 2): the bounds hold too, at many times the iterations."""
    known, eps = make(), 0.02
    printed = schedule(known, eps, Theorem2.printed)
    assert (printed.p, printed.weight) == (
        pytest.approx(2.0),
        pytest.approx(2.0 * known.G / known.rho),
    )
    run = run_schedule(known, LoPGD(printed), known.eps0, eps)
    assert run.worst <= 1.0
    assert run.projections == printed.epochs
    ours = schedule(known, eps)
    assert printed.epochs == ours.epochs
    assert printed.steps >= 8 * ours.steps  # p^2 (1 + 2 Gc/rho)^2 / (1 + Gc/rho)^2, 9 to 16
    assert printed.steps <= 16 * ours.steps + 1


def test_theorem_2_needs_nothing_when_the_start_is_good() -> None:
    """E6: for ``eps >= eps0`` there are no epochs and no projections; the start is the answer."""
    known = t3()
    result = lopro.solve(known.problem, known.x0, LoPGD(schedule(known, 2.0 * known.eps0)), tol=0)
    assert result.iterations == 0
    assert known.gap(result.x) <= 2.0 * known.eps0


# Negative controls, all on T3 through the function that the positive tests use.

ACCURACY = 1e-4


@dataclass(frozen=True)
class Unhalved(Theorem2):
    """Theorem 2 with the same step in every epoch (broken)."""

    def plan(self, start: Any, k: int, last: Any) -> Any:
        plan, first = super().plan(start, k, last), super().plan(start, 1, None)
        return plan and first and replace(plan, inner=first.inner)


def test_theorem_2_rejects_unhalved_steps() -> None:
    """Thm 2, negative control: without halving eta the invariant breaks."""
    known = t3()
    run = run_schedule(known, LoPGD(schedule(known, ACCURACY, Unhalved)), known.eps0, ACCURACY)
    assert run.worst > 1.0


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_theorem_2_rejects_small_weights(share: float) -> None:
    """Thm 2, negative control: a weight below the multiplier breaks the invariant."""
    known = t3()
    plan = schedule(known, ACCURACY, lam=share * known.zeta)
    run = run_schedule(known, LoPGD(plan), known.eps0, ACCURACY)
    assert run.worst > 1.0


class Unprojected(Polyhedron):
    """A polyhedron whose projection does nothing (broken)."""

    def project(self, x: Any) -> Any:
        return 1.0 * x


def test_theorem_2_rejects_missing_projections() -> None:
    """Thm 2, negative control: without projections the values are low and the points infeasible."""
    known = t3()
    a = -known.constraint.subgradient(known.x0)
    broken = replace(known, constraint=Unprojected(-a[None, :], np.array([-1.5])))
    run = run_schedule(broken, LoPGD(schedule(broken, ACCURACY)), broken.eps0, ACCURACY)
    assert math.isinf(run.worst)


def test_theorem_2_rejects_short_epochs() -> None:
    """Thm 2, negative control: with a hundredth of sigma the epochs are too short."""
    known = t3()
    plan = replace(schedule(known, ACCURACY), sigma=known.sigma / 100.0)
    run = run_schedule(known, LoPGD(plan), known.eps0, ACCURACY)
    assert run.worst > 1.0


def test_the_box_hides_a_small_weight() -> None:
    """On the box T2 a weight below the multiplier still gives the right vertex.

    So T2 cannot serve as a negative control.
    """
    known = t2()
    run = run_schedule(known, LoPGD(schedule(known, 1e-3, lam=0.9 * known.zeta)), known.eps0, 1e-3)
    assert run.worst <= 1.0
