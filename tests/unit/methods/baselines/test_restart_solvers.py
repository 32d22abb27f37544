"""The solvers of restarts: parameters such that Theorem 1 guarantees the accuracy, and no better one."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.theory_problems import Known, t2, t3, t4, t5, t6_ellipsoid

import lopro
from lopro import LoPGD, LoPNAG, OneProjection
from lopro.functions import Ball
from lopro.methods.inner import (
    AcceleratedGradient,
    ConstantStep,
    FixedSmoothness,
    SubgradientDescent,
)
from lopro.methods.paper.restarts import AcceleratedSolver, LogScaleGrid, SubgradientSolver
from lopro.methods.setting import Setting
from lopro.penalties import Hinge, Softplus


def setting(known: Known) -> Setting:
    return Setting(known.x0, Ball(known.x0, known.distance), known.constants, True)


@pytest.mark.parametrize("eps", [1.0, 0.1, 1e-3])
@pytest.mark.parametrize("known", [t2(), t3(), t5()], ids=lambda k: k.name)
def test_subgradient_solver(known: Known, eps: float) -> None:
    """Prop 3: ``eta Gbar^2 / 2 + delta^2 / (2 eta T)`` is eps at its T, with the best eta for it."""
    lam, delta = known.G / known.rho, 0.7
    bar = known.G + lam * known.Gc
    penalty, inner = SubgradientSolver().tuned(setting(known), eps)
    assert isinstance(penalty, Hinge) and penalty.lam == pytest.approx(lam)
    eta = inner.step_rule.eta
    T = SubgradientSolver().steps(setting(known), delta, eps)

    def guaranteed(steps: float) -> float:
        return 0.5 * eta * bar**2 + delta**2 / (2.0 * eta * steps)

    assert guaranteed(T) <= eps * (1.0 + 1e-12)
    assert T == 1 or guaranteed(T - 1) > eps
    # Each term is half of it, which is optimal.
    assert 0.5 * eta * bar**2 == pytest.approx(0.5 * eps)


@pytest.mark.parametrize("eps", [1.0, 0.1, 1e-3])
@pytest.mark.parametrize("known", [t3(smooth=True), t4(), t6_ellipsoid()], ids=lambda k: k.name)
def test_accelerated_solver(known: Known, eps: float) -> None:
    """Prop 2: ``gamma ln 2 + 2 L delta^2 / (T + 1)^2`` with half of eps for each."""
    lam, delta = known.G / known.rho, 0.7
    penalty, inner = AcceleratedSolver().tuned(setting(known), eps)
    assert isinstance(penalty, Softplus) and penalty.lam == pytest.approx(lam)
    assert penalty.gamma * math.log(2.0) == pytest.approx(0.5 * eps)
    effective = math.isinf(known.Gc)
    slope = 2.0 * known.Lc * abs(known.c_min) if effective else known.Gc**2
    base = known.Lf + (1.3009 if effective else 1.0) * lam * known.Lc
    L = base + lam**2 * slope / (4.0 * penalty.gamma)
    assert pytest.approx(L) == inner.step_rule.L
    T = AcceleratedSolver().steps(setting(known), delta, eps)
    assert 2.0 * L * delta**2 / (T + 1) ** 2 <= 0.5 * eps * (1.0 + 1e-12)
    assert T == 1 or 2.0 * L * delta**2 / T**2 > 0.5 * eps


def chained(known: Known, methods: list[Any]) -> list[float]:
    """Return the values after runs of one projection each, each started from the result of the last."""
    x, values = known.x0, []
    for method in methods:
        result = lopro.solve(known.problem, x, method, tol=0)
        x = result.x
        values.append(result.fun)
    return values


def test_epochs_of_a_cell_aim_at_half_of_the_last_accuracy() -> None:
    """Epoch k of a cell is LoPGD's with ``eps0 / 2^k``: its steps are ``eps0 / (2^k Gbar^2)`` long."""
    known = t2()
    D, eps0 = 2.0 * known.distance, known.eps0
    grid = LogScaleGrid(budget=40, eps0=eps0, constants=known.constants, radius=D)
    C, a = grid.cells[0]
    assert (C, a) == (2, 0.0)
    lam = known.G / known.rho
    bar = known.G + lam * known.Gc
    expected = chained(
        known,
        [
            OneProjection(
                SubgradientDescent(ConstantStep(eps0 / 2.0**k / bar**2), ball=Ball(known.x0, D)),
                Hinge(lam),
                2,
            )
            for k in range(1, 21)
        ],
    )
    history = lopro.solve(known.problem, known.x0, LoPGD(grid), tol=0).history
    assert history["fun"][:20] == pytest.approx(expected, rel=1e-9)
    # The next cell begins at the start again, with one step size and growing epochs.
    assert np.diff(history["iterations"])[19:23].tolist() == [2, 8, 2, 4]


def test_accelerated_epochs_of_a_cell_aim_at_half_of_the_last_accuracy() -> None:
    """Epoch k of a cell is LoPNAG's with ``gamma = eps0 / (2^(k+1) ln 2)``."""
    # On a ball a Lipschitz constant is given; P2 has a smaller one, which is used.
    known = replace(t4(), Gc=100.0)
    eps0, lam = known.eps0, known.G / known.rho
    grid = LogScaleGrid(AcceleratedSolver(), 16, eps0, known.constants, 1.0)
    gammas = [eps0 / 2.0 ** (k + 1) / math.log(2.0) for k in range(1, 9)]
    base, slope = 1.3009 * lam * known.Lc, 2.0 * known.Lc
    expected = chained(
        known,
        [
            OneProjection(
                AcceleratedGradient(
                    step_rule=FixedSmoothness(base + lam**2 * slope / (4.0 * gamma))
                ),
                Softplus(lam, gamma),
                2,
            )
            for gamma in gammas
        ],
    )
    history = lopro.solve(known.problem, known.x0, LoPNAG(grid), tol=0).history
    assert history["fun"][:8] == pytest.approx(expected, rel=1e-9)
