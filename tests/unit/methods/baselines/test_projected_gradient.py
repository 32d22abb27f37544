"""Projected gradient descent: its two rates, its count, its agreement with others."""

from __future__ import annotations

import math

import cvxpy as cp
import numpy as np
import pytest
from support.baseline_runs import gap, referee, run
from support.known_problem import Known
from support.theorem_checks import size

import lopro
from lopro.constraints import Box, Polyhedron
from lopro.errors import MissingCapabilityError
from lopro.methods.baselines import ProjectedGradient
from lopro.objectives import FunctionObjective, L1Norm, LeastSquares


def nearest_in_box(rank: int = 5, seed: int = 5) -> Known:
    """A least-squares problem over a box, solved by Clarabel; strongly convex for rank 5."""
    rng = np.random.default_rng(seed)
    d = 5
    A = (
        np.diag([3.0, 2.0, 1.5, 1.0, 0.7][:rank])
        @ np.linalg.qr(rng.standard_normal((d, d)))[0][:rank]
    )
    b = A @ (3.0 * rng.standard_normal(d))
    optimum, solution = referee(
        d, lambda x: 0.5 * cp.sum_squares(A @ x - b), lambda x: [x <= 1.0, x >= -1.0]
    )
    return Known(
        name="box",
        objective=LeastSquares(A, b),
        constraint=Box(-np.ones(d), np.ones(d)),
        x0=0.7 * np.cos(1.0 + np.arange(d)),
        solution=solution,
        optimum=optimum,
        zeta=np.nan,
        G=np.nan,
        Gc=1.0,
        rho=1.0,
        Lf=9.0,
        mu=0.49 if rank == d else 0.0,
    )


def worst_ratio(known: Known, L: float, T: int = 120) -> float:
    """Return the worst of gap over ``L D^2 / (2 t)`` and squared distance over its linear rate."""
    ran = run(known, ProjectedGradient(L, iterations=T, report=1))
    assert ran.projections == ran.result.iterations == T
    worst, D = 0.0, known.distance
    for t, epoch in enumerate(ran.epochs, start=1):
        rounding = 1e-7  # of the reference solver
        worst = max(worst, (gap(known, epoch.x) - rounding) * 2.0 * t / (known.Lf * D**2))
        if known.mu > 0.0:
            rate = (1.0 - known.mu / known.Lf) ** t
            excess = max(0.0, size(epoch.x - known.solution) - rounding)
            worst = max(worst, excess**2 / (rate * D**2))
    return worst


@pytest.mark.parametrize("rank", [5, 2])
def test_both_rates_hold_and_agree_with_an_interior_point_solver(rank: int) -> None:
    assert worst_ratio(nearest_in_box(rank), 9.0) <= 1.0


def test_rates_reject_steps_that_are_too_long_or_too_short() -> None:
    assert worst_ratio(nearest_in_box(), 9.0 / 3.0) > 1.0
    assert worst_ratio(nearest_in_box(), 9.0 * 100.0) > 1.0


def test_values_do_not_increase_and_the_gap_is_certified() -> None:
    known = nearest_in_box()
    ran = run(known, ProjectedGradient(iterations=500, report=1))
    values = [epoch.verdict.fun for epoch in ran.epochs]
    assert np.all(np.diff(values) <= 1e-14 * abs(values[0]))
    assert ran.result.certificate.gap <= 1e-8
    assert ran.result.certificate.lower_bound <= known.optimum + 1e-7
    assert ran.projections == 500


def test_search_for_an_unknown_constant_counts_every_projection() -> None:
    calls = []
    # Little curvature at the start, more at the solution: the first guess of L is too small.
    f = FunctionObjective(
        lambda x: float(np.sum(np.sqrt(1.0 + (x - 2.0) ** 2))),
        lambda x: (x - 2.0) / np.sqrt(1.0 + (x - 2.0) ** 2),
        shape=(3,),
    )
    half = Polyhedron(np.ones((1, 3)), np.array([3.0]))
    inside = half.project
    half.project = lambda x: (calls.append(1), inside(x))[1]
    result = lopro.solve(
        lopro.Problem(f, half, solution_norm=5.0), np.full(3, -3.0), ProjectedGradient(), tol=1e-8
    )
    assert result.success
    assert result.x == pytest.approx(np.ones(3), abs=1e-5)
    assert len(calls) == result.counts.projections > result.iterations


def searched(x: float, first: float, T: int) -> tuple[float, int]:
    """Steps of 1-D descent on ``sqrt(1 + (x - 2)^2)`` for ``x <= 1``, L doubled until the parabola holds.

    Returns the point and the projections.
    """

    def f(x: float) -> float:
        return math.sqrt(1.0 + (x - 2.0) ** 2)

    L, projections = first, 0
    for _ in range(T):
        g = (x - 2.0) / f(x)
        while True:
            y = min(1.0, x - g / L)
            projections += 1
            if f(y) <= f(x) + g * (y - x) + 0.5 * L * (y - x) ** 2 + 1e-13:
                break
            L *= 2.0
        x = y
    return x, projections


@pytest.mark.parametrize("start", [-9.0, -4.0, -1.5])
@pytest.mark.parametrize("T", [1, 2, 3, 6])
def test_the_search_doubles_until_the_parabola_holds_and_no_longer(start: float, T: int) -> None:
    f = FunctionObjective(
        lambda x: float(np.sqrt(1.0 + (x[0] - 2.0) ** 2)),
        lambda x: (x - 2.0) / np.sqrt(1.0 + (x - 2.0) ** 2),
        shape=(1,),
    )
    # The first L is the curvature along a short move uphill.
    slope = lambda x: (x - 2.0) / math.sqrt(1.0 + (x - 2.0) ** 2)  # noqa: E731
    move = -1e-3 * (1.0 + abs(start))
    first = abs(slope(start - move) - slope(start)) / abs(move)
    expected, projections = searched(start, first, T)
    half_line = Polyhedron(np.ones((1, 1)), np.ones(1))
    method = ProjectedGradient(iterations=T)
    result = lopro.solve(lopro.Problem(f, half_line), np.array([start]), method, tol=0)
    assert result.counts.projections == projections
    assert result.x == pytest.approx([expected], rel=1e-9)


def test_what_is_not_smooth_is_refused_with_a_hint() -> None:
    problem = lopro.Problem(L1Norm(), Polyhedron(-np.ones((1, 2)), -np.ones(1)))
    with pytest.raises(MissingCapabilityError, match="ProjectedSubgradient"):
        lopro.solve(problem, method=ProjectedGradient())
    with pytest.raises(ValueError, match="L must be"):
        ProjectedGradient(L=-1.0)
