"""Away steps and pairwise steps converge linearly on polytopes, where the plain method does not."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from support.frank_wolfe_runs import CASES, Case, count_linear_minimizations, values_along
from support.theorem_checks import SLACK, count_projections

import lopro
from lopro import Problem, Status
from lopro.constraints import Box, L1Ball, Simplex, Spectrahedron
from lopro.errors import MissingCapabilityError
from lopro.methods.baselines import AwayStepFrankWolfe, FrankWolfe, PairwiseFrankWolfe
from lopro.methods.baselines.frank_wolfe_steps import ActiveSet, LineSearch, OpenLoop, ShortStep
from lopro.objectives import LeastSquares, Quadratic, SquaredDistance

METHODS = [AwayStepFrankWolfe, PairwiseFrankWolfe]
every_method = pytest.mark.parametrize("method", METHODS)
POLYTOPES = [case for case in CASES if case.name != "spectrahedron"]


class Polytope:
    """A quadratic with eigenvalues 1 ... 3 over a polytope whose widths are known.

    The solution lies inside a face, which makes plain Frank-Wolfe zigzag.
    """

    mu, L = 1.0, 3.0

    def __init__(
        self, constraint: Any, z: Any, slope: Any, diameter: float, pyramidal_width: float
    ) -> None:
        V = np.linalg.qr(np.random.default_rng(5).standard_normal((len(z), len(z))))[0]
        P = (V * np.linspace(self.mu, self.L, len(z))) @ V.T
        self.problem = Problem(Quadratic(0.5 * (P + P.T), -P @ z), constraint)
        #: A point whose gradient selects a corner that is not in the face of the solution.
        self.start = z + np.linalg.solve(P, slope)
        self.corner = constraint.linear_minimizer(slope)
        self.eccentricity = (pyramidal_width / diameter) ** 2
        self.best = lopro.solve(self.problem, tol=1e-13, max_iter=100_000).certificate.lower_bound

    def rho(self, method: Any) -> float:
        """Return the share of the error that a good step removes, by the theorem."""
        rho = self.mu * self.eccentricity / self.L
        return min(0.5, rho) if method is PairwiseFrankWolfe else rho / 4.0


def cube() -> Polytope:
    """[-1, 1]^3: diameter 2 sqrt 3 and pyramidal width 2 / sqrt 3."""
    z = np.array([1.7, 0.2, -0.1])
    slope = np.array([1.0, 0.0, 0.0])
    return Polytope(Box(-np.ones(3), np.ones(3)), z, slope, 2.0 * 3**0.5, 2.0 / 3**0.5)


def simplex() -> Polytope:
    """The unit simplex with 4 corners: diameter sqrt 2 and pyramidal width 2 / sqrt 4."""
    z = np.array([0.55, 0.45, -0.4, 0.5])
    slope = np.array([0.0, 0.0, -1.0, 0.0])
    return Polytope(Simplex(4), z, slope, 2.0**0.5, 1.0)


def good_steps(monkeypatch: Any) -> list[bool]:
    """Record of each step whether it was not cut short by the weight of a vertex."""
    take, seen = ActiveSet.take, []

    def recording(self: Any, move: Any, gamma: float, s: Any) -> None:
        seen.append(gamma < move.longest or move.away == 0.0)
        take(self, move, gamma, s)

    monkeypatch.setattr(ActiveSet, "take", recording)
    return seen


def linear_ratio(known: Polytope, values: list[float], good: list[bool], rho: float) -> float:
    """The worst ``(f(x_t) - f_*) / ((1 - rho)^k (f(x_1) - f_*))`` after k good steps since x_1."""
    first, worst = values[0] - known.best, 0.0
    done = np.cumsum([0, *good[1 : len(values)]])
    for value, k in zip(values, done, strict=False):
        excess = value - known.best - 1e-12
        worst = max(worst, excess / (first * (1.0 - rho) ** float(k)))
    return worst


@pytest.mark.parametrize("make", [cube, simplex])
@pytest.mark.parametrize("rule", [LineSearch(), ShortStep()], ids=repr)
@every_method
def test_linear_convergence(method: Any, rule: Any, make: Any, monkeypatch: Any) -> None:
    known, good = make(), good_steps(monkeypatch)
    values = values_along(known.problem, method(rule, report=1), 800, known.start)
    assert linear_ratio(known, values, good, known.rho(method)) <= SLACK
    assert values[-1] - known.best <= 1e-12
    if method is AwayStepFrankWolfe:
        assert sum(good) >= len(good) / 2


@pytest.mark.parametrize("make", [cube, simplex])
def test_the_plain_method_is_not_linear(make: Any) -> None:
    """Negative control: the same check rejects steps that only move towards corners."""
    known, T = make(), 4000
    values = values_along(known.problem, FrankWolfe(report=1), T, known.corner)
    rho = known.rho(AwayStepFrankWolfe)
    assert linear_ratio(known, values, [True] * T, rho) > 1.0
    assert values[-1] - known.best > 1e-7


@pytest.mark.parametrize("case", POLYTOPES, ids=str)
@every_method
def test_agrees_with_another_solver(method: Any, case: Case) -> None:
    result = lopro.solve(case.problem(), method=method(), tol=1e-8)
    assert result.status is Status.CONVERGED
    assert result.fun == pytest.approx(case.optimum(), abs=1e-6)


@every_method
def test_lasso_on_the_l1_ball(method: Any, rng: Any) -> None:
    A, b = rng.standard_normal((40, 20)), rng.standard_normal(40)
    problem = Problem(LeastSquares(A, b), L1Ball(20, 0.7))
    result = lopro.solve(problem, method=method(), tol=1e-9)
    v = cp.Variable(20)
    outside = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(A @ v - b)), [cp.norm1(v) <= 0.7])
    assert result.success
    assert result.fun == pytest.approx(outside.solve(cp.CLARABEL), abs=1e-6)
    # Few vertices with positive weights make a sparse point, equal to their combination.
    assert np.count_nonzero(np.abs(result.x) > 1e-9) < 20


@every_method
def test_one_linear_minimisation_per_iteration_and_one_to_start(method: Any, rng: Any) -> None:
    A, b, T = rng.standard_normal((40, 20)), rng.standard_normal(40), 12
    problem = Problem(LeastSquares(A, b), L1Ball(20, 0.7))
    projections = count_projections(problem.constraint)
    calls = count_linear_minimizations(problem.constraint)
    result = lopro.solve(problem, method=method(report=5), tol=0, max_iter=T)
    assert result.iterations == T
    assert result.counts.linear_minimizations == result.counts.gradients == T + 1
    assert result.certificate_counts.linear_minimizations == len(result.history) == 3
    assert calls() == T + 1 + 3
    assert result.counts.projections == projections() == 0
    # Images of vertices in the active set are not computed again.
    assert result.counts.matvecs <= T + 2


@pytest.mark.parametrize("pairwise", [False, True])
def test_the_active_set_is_a_convex_combination(pairwise: bool, rng: Any) -> None:
    from lopro.methods.baselines.frank_wolfe_steps import dual_gap, take_step

    f, c = LeastSquares(rng.standard_normal((15, 8)), rng.standard_normal(15)), Simplex(8)
    walker = ActiveSet(f, np.eye(8)[0], pairwise=pairwise)
    for t in range(100):
        seen = dual_gap(f, c, walker)
        if seen.gap <= seen.resolution:
            break
        take_step(f, walker, seen, LineSearch(), t)
        assert min(walker.weights) > 0.0 and sum(walker.weights) == pytest.approx(1.0)
        combined = sum(w * v for w, v in zip(walker.weights, walker.vertices, strict=True))
        np.testing.assert_allclose(walker.x, combined, atol=1e-12)
        np.testing.assert_allclose(walker.image[0], f.image(combined)[0], atol=1e-11)
        assert len({v.tobytes() for v in walker.vertices}) == len(walker.vertices)


@every_method
def test_unsupported_problems_are_named(method: Any) -> None:
    problem = Problem(SquaredDistance(np.eye(3)), Spectrahedron(3))
    with pytest.raises(MissingCapabilityError, match="infinitely many extreme points"):
        lopro.solve(problem, method=method())
    with pytest.raises(TypeError, match="away steps need a descent"):
        method(OpenLoop())
