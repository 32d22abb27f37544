"""Constraint extrapolation: the saddle inequality of its proof, and the bound after one projection."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from support.budget_checks import check_library_and_iterations, check_one_projection
from support.claims import check_claims
from support.sequential_runs import agreement
from support.theorem_checks import Recorded, count_projections, iterates, penalised
from support.theory_problems import t1, t2, t3, t4, t5, t6_box, t6_ellipsoid, t9

import lopro
from lopro import Problem
from lopro.constraints import Distance, Polyhedron, ResidualNorm
from lopro.functions import Ball
from lopro.methods.baselines import ConEx
from lopro.methods.baselines.primal_dual import ExtrapolatedDescent
from lopro.methods.theory import ProblemConstants
from lopro.objectives import Linear
from lopro.penalties import Hinge


def smooth_half_space():
    return t3(smooth=True)


def norm_ball():
    return t4(form=ResidualNorm())


def cone():
    return t9(Distance())


KNOWN = [t2, t3, smooth_half_space, t4, norm_ball, t5, t6_box, t6_ellipsoid, cone]


def saddle_ratio(
    make: Any, descent: type[ExtrapolatedDescent], *, careful: float = 9.0, steps: int = 2000
) -> float:
    """Return the worst ``(f(x) + y c(x) - f_*) / ((eta D^2 + tau y^2) / 2T)`` over T and y in [0, B].

    For problems where f (up to its prox) and c are smooth and Lipschitz, with the true distance D. The
    theorem requires ``eta tau >= 9 G_c^2``; for a linear c, as here, ``G_c^2`` is enough.
    """
    known = make()
    B, M, D = 3.0 * known.zeta, known.Gc, known.distance
    tau = 3.0 * M * D / B
    eta = known.Lf + B * known.Lc + careful * M**2 / tau
    inner = descent(eta, tau, split=known.objective.split()[1] is not None)
    F, worst = penalised(known, Hinge(B)), 0.0
    for T, x in iterates(inner, F, known.x0, steps):
        c = float(known.constraint.value(x))
        for y in (0.0, 0.3 * B, B):
            left = known.gap(x) + y * c
            worst = max(worst, left * 2.0 * T / (eta * D**2 + tau * y**2))
    return worst


@pytest.mark.parametrize("make", [t1, smooth_half_space])
def test_the_saddle_inequality_holds_at_every_step(make):
    assert 0.7 <= saddle_ratio(make, ExtrapolatedDescent) <= 1.0 + 1e-9
    assert saddle_ratio(make, ExtrapolatedDescent, careful=1.01) <= 1.0 + 1e-9


class Short(ExtrapolatedDescent):
    """Does not extrapolate."""

    def extrapolated(self, state: Any) -> float:
        return state.ell


class Far(ExtrapolatedDescent):
    """Extrapolates two steps ahead."""

    def extrapolated(self, state: Any) -> float:
        return 3.0 * state.ell - 2.0 * state.ell_before


class Backwards(ExtrapolatedDescent):
    """Extrapolates in the opposite direction."""

    def extrapolated(self, state: Any) -> float:
        return 2.0 * state.ell_before - state.ell


@pytest.mark.parametrize("descent", [Short, Far, Backwards])
def test_with_another_extrapolation_the_inequality_fails(descent):
    """Negative control: with the longest steps allowed no other extrapolation converges."""
    ratios = [saddle_ratio(make, descent, careful=1.01) for make in (t1, smooth_half_space)]
    assert max(ratios) > 1.2


@dataclass
class Reference:
    """A plain implementation in the ball of radius D around the start, and its result."""

    known: Any
    T: int

    def __post_init__(self) -> None:
        k, D = self.known, self.known.distance
        B = k.G / k.rho
        L = k.Lf + (B * k.Lc if math.isfinite(k.Lc) else 0.0)
        H = 0.0 if math.isfinite(k.Lc) else B * k.Gc
        tau = 3.0 * k.Gc * D / B
        eta = L + 9.0 * k.Gc**2 / tau + 2.0 * H * math.sqrt(self.T) / D
        self.claim = (L * D**2 / 2.0 + 3.0 * B * k.Gc * D) / self.T + 2.0 * H * D / self.T**0.5
        f, c, x, y = k.objective, k.constraint, k.x0, 0.0
        now = before = c.value(x)  # c linearised at the last point, at the last two points
        total, self.direction, self.support = 0.0 * x, 0.0 * x, 0.0
        for _ in range(self.T):
            y = max(0.0, y + (2.0 * now - before) / tau)
            value, dc = c.value(x), c.subgradient(x)
            self.direction = self.direction + y * dc / self.T
            self.support += y * (float(np.sum(dc * x)) - value) / self.T
            moved = x - (f.subgradient(x) + y * dc) / eta - k.x0
            following = k.x0 + moved * min(1.0, D / float(np.linalg.norm(moved)))
            now, before = value + float(np.sum(dc * (following - x))), now
            x, total = following, total + following
        self.x = c.project(total / self.T)


@pytest.mark.parametrize("T", [1, 2, 7, 400])
@pytest.mark.parametrize("make", [t2, t4, norm_ball, t5, t6_box, t6_ellipsoid])
def test_it_equals_a_plain_implementation(make, T):
    """Point and claim; T4 and T6 with ``G_c`` on the ball, where the squared residual has one."""
    known = make()
    if math.isinf(known.Gc):
        ball = Ball(known.x0, known.distance)
        known = replace(known, Gc=known.constraint.lipschitz(ball).value)
    reference = Reference(known, T)
    method = ConEx(T, known.constants, known.distance)
    result = check_claims(known, method, [reference.claim])
    assert result.x == pytest.approx(reference.x, rel=1e-9, abs=1e-11)


@pytest.mark.parametrize("T", [50, 1000, 5000])
@pytest.mark.parametrize("make", [norm_ball, t5])
def test_its_multipliers_prove_the_bound_of_the_averaged_linearised_constraints(make, T):
    """For ``f = a x``: ``-mean y_t (<g_t, x_t> - c(x_t)) - |a + mean y_t g_t| R``, R that of the set."""
    known = make()
    reference = Reference(known, T)
    result = lopro.solve(known.problem, known.x0, ConEx(T, known.constants, known.distance), tol=0)
    radius = known.constraint.radius().value
    slope = known.objective.subgradient(known.x0) + reference.direction
    proved = -reference.support - float(np.linalg.norm(slope)) * radius
    assert result.fun - reference.claim < proved <= known.optimum  # otherwise the claim is larger
    assert result.certificate.lower_bound == pytest.approx(proved, rel=1e-9)


def bound_ratio(make: Any, T: int) -> float:
    """Return the gap after T iterations and one projection over the bound that the run claims for it."""
    known = make()
    recorded = Recorded(ConEx(T))
    result = lopro.solve(known.problem, known.x0, recorded, tol=0.0)
    assert result.certificate.lower_bound <= known.optimum + 1e-12 * max(1.0, abs(known.optimum))
    assert not result.warnings
    return known.gap(result.x) / recorded.seen[0].claim.gap


@pytest.mark.parametrize("T", [10, 300, 3000])
@pytest.mark.parametrize("make", KNOWN)
def test_the_bound_on_the_gap_holds(make, T):
    assert bound_ratio(make, T) <= 1.0


def test_the_bound_is_that_of_the_theorem_on_given_constants():
    smooth = ProblemConstants(G=1.0, Gc=2.0, rho=0.5, Lf=3.0, Lc=1.0)
    assert ConEx(50).bound(smooth, 2.0) == pytest.approx(
        (0.5 * 5.0 * 4.0 + 3 * 2.0 * 2.0 * 2.0) / 50
    )
    rough = ProblemConstants(G=1.0, Gc=2.0, rho=0.5)
    expected = 3 * 2.0 * 2.0 * 2.0 / 100 + 2.0 * (1.0 + 4.0) * 2.0 / 10.0
    assert ConEx(100).bound(rough, 2.0, smooth_f=False) == pytest.approx(expected)


def test_smooth_problems_converge_like_one_over_t():
    gaps = {
        T: abs(t4().gap(lopro.solve(t4().problem, t4().x0, ConEx(T), tol=0.0).x))
        for T in (300, 3000)
    }
    assert gaps[3000] <= gaps[300] / 7.0


@pytest.mark.parametrize("feasible", [True, False])
def test_one_projection_by_both_counts(feasible):
    known = t3()
    calls = count_projections(known.constraint)
    result = lopro.solve(known.problem, known.x0 if feasible else -known.x0, ConEx(50), tol=0.0)
    assert calls() == result.counts.projections == 1 + (not feasible)
    assert result.iterations == 50 and result.counts.constraint_gradients == 50


def test_it_agrees_with_cvxpy():
    """To the accuracy of its rate: 1/20 in general, 1/200 for small constants."""
    general = (
        "distance/box/",
        "matrix_distance/cone/",
        "linear/tall_ball/",
        "quadratic/tall_ball/",
    )
    worst, count = agreement(ConEx(4000), tol=1e-6, names=general)
    assert count >= 6 and worst <= 0.05
    kind = (
        "quadratic/box/",
        "linear/box/",
        "distance/tall_ball/",
        "lasso/tall_ball/",
        "l1/tall_ball/",
    )
    worst, count = agreement(ConEx(4000), tol=1e-6, names=kind)
    assert count >= 5 and worst <= 0.005


def test_a_ball_and_a_prox_exclude_each_other():
    with pytest.raises(ValueError, match="split"):
        ExtrapolatedDescent(1.0, 1.0, Ball(np.zeros(2), 1.0), split=True)


def test_missing_properties_are_named(rng):
    half = Polyhedron(np.array([[1.0, 0.0]]), np.zeros(1))
    with pytest.raises(lopro.MissingCapabilityError, match="ConEx needs a bound on the norm"):
        lopro.solve(Problem(Linear(np.array([-1.0, 0.0])), half), method=ConEx())
    many = Polyhedron(rng.standard_normal((60, 20)), np.ones(60))
    problem = Problem(Linear(rng.standard_normal(20)), many, solution_norm=50.0)
    with pytest.raises(lopro.MissingCapabilityError, match="regularity"):
        lopro.solve(problem, method=ConEx())
    given = ConEx(100, ProblemConstants(G=5.0, Gc=8.0, rho=0.1))
    assert lopro.solve(problem, method=given, tol=0.0).counts.projections == 1


def test_library_and_budgets_are_kept():
    check_library_and_iterations(ConEx(), 300)


def test_a_spent_budget_of_projections_ends_the_run():
    check_one_projection(ConEx(20))


@pytest.mark.parametrize("arguments", [{"iterations": 0}, {"constants": 3.0}, {"radius": 0.0}])
def test_bad_parameters(arguments):
    with pytest.raises((TypeError, ValueError), match=next(iter(arguments))):
        ConEx(**arguments)
