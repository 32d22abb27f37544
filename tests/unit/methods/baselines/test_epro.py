"""Epro-SGD and Epro-ORDA: the gap halves in every epoch, with one projection each."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from support.baseline_runs import Ran, gap, referee, run
from support.claims import check_claims
from support.theorem_checks import iterates, penalised, size
from support.theory_problems import Known, t6_box
from support.tilted import ball_radius, first_bound, noisy, outside, tilted

import lopro
from lopro.constraints import Box, Constraint, Polyhedron, ResidualBall
from lopro.errors import MissingCapabilityError
from lopro.functions import Constant, Source
from lopro.methods.baselines import EproORDA, EproSGD
from lopro.methods.baselines.dual_averaging import DualAveraging
from lopro.objectives import FunctionObjective, L1Norm, Quadratic, SquaredDistance
from lopro.penalties import Hinge


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


def test_halving_rejects_constant_steps(monkeypatch: Any) -> None:
    known = tilted()
    V, inner = first_bound(known), EproSGD.inner
    monkeypatch.setattr(EproSGD, "length", lambda self, s, gap: 1600)
    monkeypatch.setattr(EproSGD, "inner", lambda self, s, gap, steps: inner(self, s, V, steps))
    ran = run(known, prepared(EproSGD, known, 9 * 1600))
    assert len(ran.epochs) == 9
    assert halving_ratio(known, ran) > 1.0


@pytest.mark.parametrize("case", CASES)
def test_every_epoch_claims_half_of_the_gap_before(case: str) -> None:
    """``V / 2^k`` with ``V = |g_1|^2 / (2 mu)``: not more, and not less."""
    cls, problem, T = CASES[case]
    known = problem()
    method = prepared(cls, known, T)
    V, count = first_bound(known), len(epochs_of(method, known))
    check_claims(known, method, [V / 2.0**k for k in range(1, count + 1)])


@pytest.mark.parametrize("cls", [EproSGD, EproORDA])
def test_the_schedule_needs_no_argument_and_claims_the_same(cls: Any) -> None:
    """All constants are found. Their claim is reported, and the gap proved by the problem is smaller."""
    known = tilted((1.0, 1.1, 1.2))
    result = lopro.solve(known.problem, known.x0, cls(15_000), tol=0)
    count = len(result.history)
    assert count >= 2
    halved = [first_bound(known) / 2.0**k for k in range(1, count + 1)]
    values = np.array(result.history["fun"])
    bounds = np.maximum.accumulate(values - halved)
    assert result.history["claimed_bound"] == pytest.approx(bounds, rel=1e-9)
    assert max(result.certificate.lower_bound, bounds[-1]) <= known.optimum
    assert cls.__name__ in result.claim.source
    assert not result.warnings


@dataclass
class Guessing(Constraint):
    """A half-space whose Lipschitz constant is marked as an estimate."""

    known: Known

    def __post_init__(self) -> None:
        self.shape = self.known.x0.shape

    def value(self, x: Any) -> float:
        return self.known.constraint.value(x)

    def subgradient(self, x: Any) -> Any:
        return self.known.constraint.subgradient(x)

    def project(self, x: Any) -> Any:
        return self.known.constraint.project(x)

    def regularity(self) -> Constant:
        return self.known.constraint.regularity()

    def lipschitz(self, ball: Any = None) -> Constant:
        return Constant(self.known.Gc, Source.ESTIMATED, "a guess")


@pytest.mark.parametrize("cls", [EproSGD, EproORDA])
def test_estimates_support_no_claim(cls: Any) -> None:
    known = tilted((1.0, 1.1, 1.2))
    problem = lopro.Problem(known.objective, Guessing(known))
    result = lopro.solve(problem, known.x0, cls(15_000), tol=0)
    assert len(result.history) >= 2
    assert result.claim is None


def test_a_first_epoch_that_does_not_fit_is_cut_and_claims_nothing() -> None:
    known = tilted()
    result = check_claims(known, prepared(EproSGD, known, 50), [None])
    assert (result.counts.projections, result.iterations) == (1, 50)
    first = epochs_of(prepared(EproSGD, known, 10_000), known)[0]
    check_claims(known, prepared(EproSGD, known, first - 2), [None])
    check_claims(known, prepared(EproSGD, known, first + 1), [0.5 * first_bound(known)])


def test_the_steps_of_an_epoch_are_those_of_a_plain_implementation() -> None:
    """``x+ = Pi_B(x - eta dF(x))`` with ``eta = V / (2 Gbar^2)``, halved with V; means are projected."""
    known = tilted()
    c, V, radius = known.constants, first_bound(known), ball_radius(known)
    bar, start = known.G + c.weight * known.Gc, known.x0
    history = run(known, prepared(EproSGD, known, 12_000)).result.history
    expected = []
    for steps in np.diff([0, *history["iterations"]]):
        x, total = start, np.zeros_like(start)
        for _ in range(steps):
            total += x
            g = known.objective.subgradient(x)
            if known.constraint.value(x) > 0.0:
                g = g + c.weight * known.constraint.subgradient(x)
            x = x - V / (2.0 * bar**2) * g
            offset = x - known.x0
            x = known.x0 + offset * min(1.0, radius / size(offset))
        start = known.constraint.project(total / steps)
        expected.append(known.objective.value(start))
        V /= 2.0
    assert len(expected) >= 2
    assert history["fun"] == pytest.approx(expected, rel=1e-9)


def test_dual_averaging_of_an_epoch_uses_its_own_distance() -> None:
    """Epoch k starts within ``sqrt(2 V / mu)`` of the solution: this is the D for which beta is balanced."""
    known = tilted((1.0, 1.1, 1.2), reach=2.0)
    c, V = known.constants, first_bound(known)
    T = epochs_of(prepared(EproORDA, known, 30_000), known)[0]
    M, D = 2.0 * c.weight * known.Gc, math.sqrt(2.0 * V / known.mu)
    beta = 2.0 * known.Lf + M / D * math.sqrt((2 * T + 1) * T * (T + 1) / 6.0)
    inner = DualAveraging(beta, known.Lf, M)
    *_, (_, x) = iterates(inner, penalised(known, Hinge(c.weight)), known.x0, T)
    first = run(known, prepared(EproORDA, known, T + 1)).x
    assert first == pytest.approx(known.constraint.project(x), rel=1e-11)


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
        check_claims(sampled, method, [None] * count)


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
