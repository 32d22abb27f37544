"""Epro-SGD and Epro-ORDA: the gap halves in every epoch, with one projection each."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from baselines.runs import Ran, gap, referee, run
from baselines.tilted import ball_radius, first_bound, noisy, outside, tilted
from theory.checks import iterates, penalised, size
from theory.problems import Known, t1, t6_box

import lopro
from lopro.constraints import Box, Polyhedron, ResidualBall
from lopro.errors import MissingCapabilityError
from lopro.methods.baselines import EproORDA, EproSGD
from lopro.methods.baselines._orda import DualAveraging
from lopro.objectives import FunctionObjective, L1Norm, Quadratic, SquaredDistance
from lopro.penalties import Hinge
from lopro.penalties.penalised import Penalised


def epochs_of(method: Any, known: Known) -> list[int]:
    """Return how many steps each epoch should make, from the formulas of the docstrings."""
    V, mu, c = first_bound(known), known.mu, known.constants
    bar, rough = c.subgradient_bound(c.weight), 2.0 * c.weight * c.Gc
    lengths: list[int] = []
    while True:
        if isinstance(method, EproORDA):
            steps = math.ceil(max(4.0 * math.sqrt(known.Lf / mu), 128 / 3 * rough**2 / (mu * V)))
        else:
            steps = math.ceil(8.0 * bar**2 / (mu * V))
        if sum(lengths) + steps > method.iterations:
            return lengths
        lengths.append(steps)
        V /= 2.0


def halving_ratio(known: Known, ran: Ran) -> float:
    """Return the worst gap over ``V / 2^k``."""
    V = first_bound(known)
    return max(gap(known, e.x) / (V / 2.0**k) for k, e in enumerate(ran.epochs, start=1))


def prepared(cls: Any, known: Known, T: int, **given: Any) -> Any:
    return cls(T, known.constants, ball_radius(known), **given)


CASES = {
    "SGD tilted": (EproSGD, tilted, 25_000),
    "SGD T6": (EproSGD, t6_box, 20_000),
    "ORDA tilted": (EproORDA, lambda: tilted((1.0, 1.1, 1.2), reach=2.0), 30_000),
    "ORDA T6": (EproORDA, lambda: replace(t6_box(), G=1.5 * t6_box().G), 40_000),
}


@pytest.mark.parametrize("case", CASES)
def test_the_gap_halves_with_one_projection_per_epoch(case: str) -> None:
    cls, problem, T = CASES[case]
    known = problem()
    method = prepared(cls, known, T)
    ran = run(known, method)
    lengths = epochs_of(method, known)
    assert len(lengths) >= 2
    assert ran.projections == len(ran.epochs) == len(lengths)
    # Where a length is a whole number, rounding decides whether it is rounded up.
    assert abs(ran.result.iterations - sum(lengths)) <= len(lengths)
    assert ran.result.iterations <= T
    assert halving_ratio(known, ran) <= 1.0


@pytest.mark.parametrize("cls", [EproSGD, EproORDA])
def test_halving_rejects_a_weight_below_the_multiplier(cls: Any) -> None:
    known = tilted()
    light = replace(known, rho=100.0 * known.rho)  # a regularity that the set does not have
    assert light.constants.weight < known.zeta < known.constants.weight
    assert halving_ratio(known, run(known, prepared(cls, known, 15_000))) <= 1.0
    assert halving_ratio(light, run(light, prepared(cls, light, 15_000))) > 1.0


def test_halving_rejects_steps_that_stay_as_they_are(monkeypatch: Any) -> None:
    known = tilted()
    V, inner = first_bound(known), EproSGD.inner
    monkeypatch.setattr(EproSGD, "length", lambda self, s, gap: 1600)
    monkeypatch.setattr(EproSGD, "inner", lambda self, s, gap, steps: inner(self, s, V, steps))
    ran = run(known, prepared(EproSGD, known, 9 * 1600))
    assert len(ran.epochs) == 9
    assert halving_ratio(known, ran) > 1.0


def test_the_schedule_needs_no_argument_and_its_claim_is_true() -> None:
    for cls in (EproSGD, EproORDA):
        known = tilted((1.0, 1.1, 1.2))
        result = lopro.solve(known.problem, known.x0, cls(15_000), tol=0)
        assert result.certificate.lower_bound <= known.optimum + 1e-9
        assert result.certificate.gap <= 0.5 * first_bound(known)
        assert not result.warnings


def test_a_first_epoch_that_does_not_fit_is_cut_and_claims_nothing() -> None:
    known = tilted()
    ran = run(known, prepared(EproSGD, known, 50))
    assert (ran.projections, ran.result.iterations) == (1, 50)
    assert ran.epochs[0].claim is None
    assert run(known, prepared(EproSGD, known, 5000)).epochs[0].claim is not None


@pytest.mark.parametrize("cls", [EproSGD, EproORDA])
def test_agrees_with_an_interior_point_solver(cls: Any, rng: np.random.Generator) -> None:
    P, q = np.diag([1.0, 2.0, 1.5]), np.array([-2.0, 0.3, 1.7])
    best, solution = referee(
        3,
        lambda x: 0.5 * cp.quad_form(x, P) + q @ x + 0.5 * cp.norm1(x),
        lambda x: [x <= 0.4, x >= -0.4],
    )
    f = Quadratic(P, q) + 0.5 * L1Norm()
    problem = lopro.Problem(f, Box(-0.4 * np.ones(3), 0.4 * np.ones(3)))
    result = lopro.solve(problem, method=cls(30_000), tol=0)
    assert best - 1e-6 <= result.fun <= best + 5e-3
    assert result.x == pytest.approx(solution, abs=0.1)


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
    # beta below 2 L, and a bound that believes in it, is too bold.
    bold = replace(right, beta=0.1 * known.Lf, L=0.049 * known.Lf, M=0.01)
    assert dual_averaging_ratio(bold, F, known.x0, 20, points) > 1.0


def test_dual_averaging_needs_the_rough_part_of_its_bound_at_a_kink() -> None:
    """On ``max(-x, x)`` with steps that cross the kink all the time, a bound without M is too low."""
    known, T = t1(), 200
    F = penalised(known, Hinge(2.0))
    balanced = DualAveraging.balanced(0.0, 4.0, known.distance, T)
    assert dual_averaging_ratio(balanced, F, known.x0, T, [known.solution]) <= 1.0
    long = replace(balanced, beta=0.01 * balanced.beta)
    assert dual_averaging_ratio(long, F, known.x0, T, [known.solution]) <= 1.0
    assert dual_averaging_ratio(replace(long, M=0.04), F, known.x0, T, [known.solution]) > 1.0


def test_dual_averaging_is_equal_to_a_naive_twin() -> None:
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


def test_sampled_slopes_halve_the_gap_in_the_mean() -> None:
    known, deviation = tilted((1.0, 1.1, 1.2), reach=2.0), 1.0
    sampled = noisy(replace(known, G=math.hypot(known.G, deviation)), deviation)
    for method in (
        prepared(EproSGD, sampled, 5000, stochastic=True),
        prepared(EproORDA, sampled, 14_000, stochastic=True, noise=deviation),
    ):
        runs = [run(sampled, method, seed=seed) for seed in range(3)]
        count = len(runs[0].epochs)
        assert count >= 2 and all(ran.projections == count for ran in runs)
        for k in range(count):
            gaps = [gap(sampled, ran.epochs[k].x) for ran in runs]
            assert len(set(gaps)) == 3
            assert np.mean(gaps) <= first_bound(known) / 2.0 ** (k + 1)
        assert runs[0].epochs[0].claim is None


def test_missing_capabilities_are_named_before_any_work() -> None:
    box = Box(-np.ones(2), np.ones(2))
    weak = lopro.Problem(L1Norm(), box)
    for cls in (EproSGD, EproORDA):
        with pytest.raises(MissingCapabilityError, match="strongly convex"):
            lopro.solve(weak, method=cls())
        with pytest.raises(MissingCapabilityError, match="stochastic_subgradient"):
            lopro.solve(tilted().problem, method=cls(stochastic=True))
    rough = FunctionObjective(
        lambda x: float(np.abs(x).sum() + 0.5 * x @ x),
        subgradient=lambda x: np.sign(x) + x,
        shape=(2,),
        lipschitz=9.0,
        strong_convexity=1.0,
    )
    lopro.solve(lopro.Problem(rough, box), np.ones(2), EproSGD(10), tol=0)
    with pytest.raises(MissingCapabilityError, match="EproSGD"):
        lopro.solve(lopro.Problem(rough, box), method=EproORDA())
    ball = ResidualBall(np.eye(2), np.zeros(2), 1.0)  # squared: Lipschitz on balls only
    with pytest.raises(MissingCapabilityError, match="Lipschitz everywhere"):
        lopro.solve(lopro.Problem(SquaredDistance(np.ones(2)), ball), method=EproORDA())
    with pytest.raises(ValueError, match="noise"):
        EproORDA(noise=-1.0)


def test_an_infeasible_start_costs_one_projection_more_and_an_optimal_one_nothing() -> None:
    known = tilted()
    ran = run(known, EproSGD(100), x0=outside(known))
    assert ran.projections == 2
    inside = lopro.Problem(SquaredDistance(np.zeros(2)), Polyhedron(np.eye(2), np.ones(2)))
    for cls in (EproSGD, EproORDA):
        result = lopro.solve(inside, method=cls(100))
        assert result.success and result.counts.projections == 0
