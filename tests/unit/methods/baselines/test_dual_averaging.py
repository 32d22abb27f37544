"""Dual averaging, the inner algorithm of Epro-ORDA: its iterates, its bound, and the best beta for it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from support.theorem_checks import iterates, penalised, size
from support.theory_problems import t1
from support.tilted import tilted

from lopro.constraints import Polyhedron
from lopro.methods.baselines.dual_averaging import DualAveraging
from lopro.objectives import L1Norm, SquaredDistance
from lopro.penalties import Hinge
from lopro.penalties.penalised import Penalised


def bound_after(inner: DualAveraging, T: int, D: float) -> float | None:
    """Return the bound that the algorithm claims after T steps on T1."""
    known = t1()
    F = penalised(known, Hinge(2.0))
    state = inner.init(F, known.x0, np.random.default_rng(0))
    for _ in range(T):
        state = inner.step(F, state)
    return inner.bound(state, D)


@pytest.mark.parametrize(("L", "M"), [(0.0, 3.0), (2.0, 3.0), (2.0, 0.0)])
@pytest.mark.parametrize("T", [1, 4, 30])
def test_the_bound_is_that_of_the_theorem(L: float, M: float, T: int) -> None:
    """``beta D^2 / (T (T + 1)) + M^2 (2 T + 1) / (6 (beta - 2 L))``."""
    beta, D = 11.0, 0.7
    expected = beta * D**2 / (T * (T + 1)) + M**2 * (2 * T + 1) / (6.0 * (beta - 2.0 * L))
    assert bound_after(DualAveraging(beta, L, M), T, D) == pytest.approx(expected, rel=1e-14)


def test_nothing_is_claimed_for_samples_for_estimates_and_before_the_first_step() -> None:
    assert bound_after(DualAveraging(11.0, 0.0, 3.0), 0, 1.0) is None
    assert bound_after(DualAveraging(11.0, 0.0, 3.0, certain=False), 4, 1.0) is None
    known = t1()
    F = penalised(known, Hinge(2.0))
    plain, sampled = DualAveraging(11.0, 0.0, 3.0), DualAveraging(11.0, 0.0, 3.0, stochastic=True)
    state = plain.step(F, plain.init(F, known.x0, np.random.default_rng(0)))
    assert plain.bound(state, 1.0) is not None and sampled.bound(state, 1.0) is None


@pytest.mark.parametrize("T", [1, 10, 200])
def test_balanced_is_the_beta_of_the_least_bound(T: int) -> None:
    L, M, D = 1.5, 4.0, 0.6

    def bound(excess: float) -> float:
        return (2 * L + excess) * D**2 / (T * (T + 1)) + M**2 * (2 * T + 1) / (6.0 * excess)

    best = minimize_scalar(
        lambda s: bound(math.exp(s)), bounds=(-5, 20), method="bounded", options={"xatol": 1e-9}
    )
    found = DualAveraging.balanced(L, M, D, T)
    # At a flat minimum, the error of the minimiser is the square root of that of the value.
    assert found.beta == pytest.approx(2.0 * L + math.exp(best.x), rel=1e-5)
    assert bound_after(found, T, D) == pytest.approx(best.fun, rel=1e-12)


def dual_averaging_ratio(inner: DualAveraging, F: Any, x0: Any, T: int, points: Any) -> float:
    """Return the worst ``F(x_t) - F(z)`` over the bound, for all t up to T and all comparators."""
    worst = 0.0
    values = [F.value(z) for z in points]
    for t, x in iterates(inner, F, x0, T):
        for z, value in zip(points, values, strict=True):
            state = type("State", (), {"t": t})
            bound = inner.bound(state, size(z - x0))
            worst = max(worst, (F.value(x) - value) / bound)
    return worst


def test_dual_averaging_obeys_its_bound_for_all_comparators(rng: np.random.Generator) -> None:
    known = tilted()
    F = penalised(known, Hinge(2.0 * known.zeta))
    points = [known.solution, known.x0 + 1.0, *(known.x0 + rng.standard_normal((5, 3)))]
    M = 2.0 * 2.0 * known.zeta * known.Gc
    right = DualAveraging.balanced(known.Lf, M, known.distance, 300)
    assert dual_averaging_ratio(right, F, known.x0, 300, points) <= 1.0
    # beta below 2 L, and the bound that assumes it is false.
    bold = replace(right, beta=0.1 * known.Lf, L=0.049 * known.Lf, M=0.01)
    assert dual_averaging_ratio(bold, F, known.x0, 20, points) > 1.0


def test_dual_averaging_requires_the_nonsmooth_term_of_its_bound_at_a_kink() -> None:
    """On ``max(-x, x)`` with steps that cross the kink repeatedly, a bound without M is too low."""
    known, T = t1(), 200
    F = penalised(known, Hinge(2.0))
    balanced = DualAveraging.balanced(0.0, 4.0, known.distance, T)
    assert dual_averaging_ratio(balanced, F, known.x0, T, [known.solution]) <= 1.0
    long = replace(balanced, beta=0.01 * balanced.beta)
    assert dual_averaging_ratio(long, F, known.x0, T, [known.solution]) <= 1.0
    assert dual_averaging_ratio(replace(long, M=0.04), F, known.x0, T, [known.solution]) > 1.0


def test_dual_averaging_equals_a_plain_implementation() -> None:
    """``phi = |x - p|^2 / 2 + 3 [x_1 - 1]_+`` and ``R = |x|_1 / 2``, each step solved by hand."""
    p, lam, w, beta = np.array([2.0, 0.3, -0.2]), 3.0, 0.5, 40.0
    start = np.array([0.5, -0.4, 0.3])

    def soft(v: Any, width: float) -> Any:
        return np.sign(v) * np.maximum(np.abs(v) - width, 0.0)

    x, z, total, expected = start, start, np.zeros(3), []
    for t in range(1, 41):
        a, A = t, t * (t + 1) / 2
        y = ((A - a) * x + a * z) / A
        g = y - p + lam * (y[0] > 1.0) * np.array([1.0, 0.0, 0.0])
        total = total + a * g
        z = soft(start - total / beta, w * A / beta)
        gamma = beta * A / a**2
        x = soft(y - g / gamma, w / gamma)
        expected.append(x)
    half = Polyhedron(np.array([[1.0, 0.0, 0.0]]), np.array([1.0]))
    F = Penalised(SquaredDistance(p) + w * L1Norm(), half, Hinge(lam), start)
    seen = [np.array(x) for _, x in iterates(DualAveraging(beta, 1.0, 6.0), F, start, 40)]
    assert np.max(np.abs(np.array(seen) - expected)) <= 1e-12
