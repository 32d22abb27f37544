"""Schedules against plain loops: every epoch of a run, compared with the same formulas written out.

Each epoch starts at the point that the run reports, so that rounding does not add up; the rules that choose
weight, smoothing, step and length are written here again, from the docstrings.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

import lopro
from lopro import Problem
from lopro.constraints import Polyhedron, ResidualBall
from lopro.methods.inner import AcceleratedGradient, Backtracking
from lopro.methods.paper.adaptive import AdaptiveSmoothing, DoublingSubgradient, Recentring
from lopro.methods.paper.theorems import HalvingSmoothing, HalvingSteps
from lopro.objectives import L1Norm, Linear, SquaredDistance
from lopro.penalties import CentredSoftplus, Softplus
from lopro.penalties.penalised import Penalised

SPREAD = np.array([[1.0, 0.2, 0.0], [0.0, 2.0, -0.3], [0.1, 0.0, 3.0]])


def halfspace() -> Problem:
    """The smallest l1 norm with ``a.x >= 1.5``; the multiplier is 1/2."""
    a = np.array([0.6, 1.0, 0.3, 2.0])
    return Problem(L1Norm(shape=(4,)), Polyhedron(-a[None, :], [-1.5]))


def ellipsoid(steepness: float = 1.0) -> Problem:
    """A linear function over ``|A x| <= 1``; the multiplier is proportional to the steepness."""
    slope = steepness * np.array([1.0, -0.5, 0.7])
    return Problem(Linear(slope), ResidualBall(SPREAD, np.zeros(3), 1.0))


def rows(problem: Problem, x0, method, epochs: int) -> list[lopro.Iterate]:
    """Return the first iterates of a run."""
    run = lopro.iterate(problem, x0, method, tol=0.0)
    return [iterate for _, iterate in zip(range(epochs), run, strict=False)]


def lengths(iterates) -> list[int]:
    """Return the steps of each epoch."""
    counts = [0, *(it.iterations for it in iterates)]
    return [after - before for before, after in pairwise(counts)]


# Subgradient descent.


def descend(problem: Problem, x, lam: float, eta: float, steps: int, longest: float = math.inf):
    """Subgradient steps on ``f + lam [c]_+``, none longer than allowed; return the mean of the iterates."""
    f, c = problem.objective, problem.constraint
    total = np.zeros_like(x)
    for _ in range(steps):
        total = total + x
        g = f.subgradient(x) + (lam * c.subgradient(x) if c.value(x) > 0.0 else 0.0)
        x = x - min(eta, longest / float(np.linalg.norm(g))) * g
    return total / steps


def test_halving_steps():
    problem, x = halfspace(), np.array([0.0, 1.5, 0.0, 0.0])
    method = lopro.LoPGD(HalvingSteps(lam=0.8, eta=0.3, steps=7, epochs=5))
    found = rows(problem, x, method, 9)
    assert lengths(found) == [7] * 5
    for k, iterate in enumerate(found):
        x_hat = descend(problem, x, 0.8, 0.3 / 2.0**k, 7)
        np.testing.assert_allclose(iterate.x, problem.constraint.project(x_hat), atol=1e-13)
        assert iterate.penalty_weight == 0.8
        x = iterate.x


def too_light(problem: Problem, x_hat, x, lam: float) -> bool:
    """R2: outside, the projected point is worse than the penalised value."""
    f, c = problem.objective, problem.constraint
    penalised = f.value(x_hat) + lam * max(c.value(x_hat), 0.0)
    return c.value(x_hat) > 0.0 and f.value(x) - penalised > 1e-12 * (1.0 + f.value(x))


def test_doubling_subgradient():
    """R2 fails at first, and the weight doubles; three cycles of halvings, each of them twice as long."""
    problem, x = halfspace(), np.array([4.0, 0.0, 0.0, 0.0])
    found = rows(problem, x, lopro.LoPGD(DoublingSubgradient(steps=20, halvings=3)), 12)
    lam = 1.0 / float(np.linalg.norm([0.6, 1.0, 0.3, 2.0]))  # |grad f| / |grad c| at the start
    size = 1.5 * lam + 4.0  # the distance of the half-space from zero, and |x|; the slope is 1
    step, longest = size / math.sqrt(20.0), 10.0 * size / math.sqrt(20.0)
    steps, cycle, doubled, expected = 20, 0, 0, []
    for iterate in found:
        expected.append((lam, steps))
        x_hat = descend(problem, x, lam, step / 2.0**cycle, steps, longest)
        np.testing.assert_allclose(iterate.x, problem.constraint.project(x_hat), atol=1e-12)
        if too_light(problem, x_hat, iterate.x, lam):
            lam, doubled = 2.0 * lam, doubled + 1
            continue  # the same epoch again
        x, cycle = iterate.x, cycle + 1
        if cycle == 3:
            cycle, steps, step = 0, 2 * steps, step / math.sqrt(2.0)
    assert doubled == 1 and steps == 160
    assert [it.penalty_weight for it in found] == pytest.approx([w for w, _ in expected])
    assert lengths(found) == [t for _, t in expected]


def test_doubling_subgradient_cuts_steps_on_steep_functions():
    """On a square the slope grows with every step that is too long; a step is cut to the longest move."""
    problem = Problem(
        SquaredDistance(np.array([1.0, 0.0])), ResidualBall(np.diag([30.0, 1.0]), np.zeros(2), 1.0)
    )
    x = np.array([0.0, 0.5])
    (first,) = rows(problem, x, lopro.LoPGD(DoublingSubgradient(steps=16)), 1)
    lam = math.sqrt(1.25) / 1.0  # f has the slope (-1, 0.5) there, c has (0, 1)
    step, longest = 1.5 / (math.sqrt(1.25) * 4.0), 15.0 / 4.0
    assert first.penalty_weight == pytest.approx(lam)
    x_hat = descend(problem, x, lam, step, 16, longest)
    assert float(np.linalg.norm(x_hat - descend(problem, x, lam, step, 16))) > 1.0
    np.testing.assert_allclose(first.x, problem.constraint.project(x_hat), atol=1e-12)


@pytest.mark.parametrize("start", ["c is flat", "f is flat"])
@pytest.mark.parametrize("method", [lopro.LoPGD(), lopro.LoPNAG()], ids=["lopgd", "lopnag"])
def test_the_first_weight_is_one_where_a_slope_vanishes(method, start):
    ball = ResidualBall(np.eye(2), np.zeros(2), 2.0)  # its slope is 0 at 0
    z = np.array([3.0, 0.0]) if start == "c is flat" else np.array([1.0, 1.0])
    x0 = np.zeros(2) if start == "c is flat" else z
    (first,) = rows(Problem(SquaredDistance(z), ball), x0, method, 1)
    assert first.penalty_weight == 1.0


def test_the_first_weight_is_the_ratio_of_the_slopes():
    """At (1/2, 0) f has the slope 5 and ``x^2 + 4 y^2 - 1`` has 1; a start outside is projected first."""
    problem = Problem(
        Linear(np.array([3.0, 4.0])), ResidualBall(np.diag([1.0, 2.0]), [0.0, 0.0], 1.0)
    )
    for x0, weight in ((np.array([0.5, 0.0]), 5.0), (np.array([7.0, 0.0]), 2.5)):
        (first,) = rows(problem, x0, lopro.LoPGD(), 1)
        assert first.penalty_weight == pytest.approx(weight)


# Accelerated gradients.


def accelerate(problem: Problem, x, penalty, steps: int, L: float | None, *, restart, unit=1.0):
    """Accelerated steps on ``f + h``; return the point, its value and the last smoothness constant.

    A first guess of that constant moves by a thousandth of ``unit + |x|``.
    """
    F = Penalised(problem.objective, problem.constraint, penalty, x, unit)
    inner = AcceleratedGradient(step_rule=Backtracking(L), restart=restart)
    state = inner.init(F, x, np.random.default_rng(0))
    for _ in range(steps):
        state = inner.step(F, state)
    x_hat = inner.output(state)
    return x_hat, F.value(x_hat), state.L


def test_halving_smoothing():
    problem, x, L, outside = ellipsoid(), np.full(3, 0.05), None, 0
    unit = float(np.linalg.norm(x))  # an ellipsoid around zero gives no size: the start does
    method = lopro.LoPNAG(HalvingSmoothing(lam=0.7, gamma=0.4, steps=9, epochs=6))
    found = rows(problem, x, method, 9)
    assert lengths(found) == [9] * 6
    for k, iterate in enumerate(found):
        penalty = Softplus(0.7, 0.4 / 2.0**k)
        x_hat, _, last = accelerate(problem, x, penalty, 9, L, restart=False, unit=unit)
        np.testing.assert_array_equal(iterate.x, problem.constraint.project(x_hat))
        assert iterate.penalty_weight == 0.7
        x, L, outside = iterate.x, 2.0 * last, outside + (problem.constraint.value(x_hat) > 0.0)
    assert outside == 6  # so that it matters that epochs start at projected points


def test_adaptive_smoothing():
    """The weight doubles until R2 holds, gamma halves once the gap is near it, epochs grow on stalling.

    From the centre, where c is flat, the first weight and the first gamma are 1.
    """
    problem = ellipsoid(steepness=8.0)
    method = lopro.LoPNAG(AdaptiveSmoothing(steps=1))
    x, lam, gamma, steps, L = np.zeros(3), 1.0, 1.0, 1, None
    gaps, decisions = [], []
    for iterate in rows(problem, x, method, 18):
        assert iterate.penalty_weight == lam
        penalty = Softplus(lam, gamma)
        x_hat, value, last = accelerate(problem, x, penalty, steps, L, restart=True)
        np.testing.assert_array_equal(iterate.x, problem.constraint.project(x_hat))
        above = math.log(2.0) * gamma
        if problem.constraint.value(x_hat) > 0.0 and iterate.fun - value > above:
            lam = 2.0 * lam
            decisions.append("doubled")
            continue  # the same epoch again
        gaps.append(iterate.gap)
        if len(gaps) > 1 and gaps[-1] > gaps[-2] / 1.5:
            steps = 2 * steps
            decisions.append("longer")
        caught_up = iterate.gap <= 10.0 * above
        decisions.append("halved" if caught_up else "kept")
        x, gamma, L = (iterate.x, gamma / 2.0, last) if caught_up else (x_hat, gamma, last)
    for decision in ("doubled", "longer", "halved", "kept"):
        assert decisions.count(decision) > 1, decision


def test_recentring():
    """The slope found becomes the multiplier, gamma stays, and epochs start where the last one ended."""
    problem = ellipsoid(steepness=8.0)
    method = lopro.LoPNAG(Recentring(steps=6))
    x, lam, zeta, steps, L = np.zeros(3), 2.0, 1.0, 6, None
    gaps, longer, wider = [], 0, 0
    for iterate in rows(problem, x, method, 10):
        assert iterate.penalty_weight == pytest.approx(lam)
        penalty = CentredSoftplus(lam, 1.0, zeta)
        x, _, L = accelerate(problem, x, penalty, steps, L, restart=True)
        np.testing.assert_allclose(iterate.x, problem.constraint.project(x), atol=1e-9)
        zeta = penalty.slope(problem.constraint.value(x))
        if zeta > 0.9 * lam:
            lam, wider = 2.0 * lam, wider + 1
        gaps.append(iterate.gap)
        if len(gaps) > 1 and gaps[-1] > gaps[-2] / 2.0:
            steps, longer = 2 * steps, longer + 1
    assert wider > 1 and longer > 1


@pytest.mark.parametrize("schedule", [AdaptiveSmoothing(steps=5), Recentring(steps=5)], ids=repr)
def test_the_first_smoothing_balances_the_curvatures(schedule):
    """P8: ``gamma = lam^2 |grad c|^2 / (4 (L_f + lam L_c / 2))``, curvatures along the gradient at x.

    Here f is linear, and both are those of ``lam |A x|^2 / 2`` along ``g``: ``lam |A'A g| / |g|``.
    """
    problem, a, x = ellipsoid(), np.array([1.0, -0.5, 0.7]), np.array([0.1, 0.2, 0.1])
    (first,) = rows(problem, x, lopro.LoPNAG(schedule), 1)
    gram, length = SPREAD.T @ SPREAD, np.linalg.norm
    ratio = length(a) / length(2.0 * gram @ x)
    lam = ratio if isinstance(schedule, AdaptiveSmoothing) else 2.0 * ratio
    assert first.penalty_weight == pytest.approx(lam)
    g = a + lam * gram @ x
    gamma = (lam * length(2.0 * gram @ x)) ** 2 / (4.0 * lam * length(gram @ g) / length(g))

    def reached(gamma: float):
        penalty = Softplus(lam, gamma) if lam == ratio else CentredSoftplus(lam, gamma, ratio)
        x_hat, _, _ = accelerate(problem, x, penalty, 5, None, restart=True, unit=float(length(x)))
        return problem.constraint.project(x_hat)

    np.testing.assert_allclose(first.x, reached(gamma), atol=1e-5)
    assert min(length(first.x - reached(factor * gamma)) for factor in (0.9, 1.1)) > 1e-3
