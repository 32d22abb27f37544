"""Methods that coincide in theory compute the same points."""

from __future__ import annotations

import numpy as np
import pytest

import lopro
from lopro import Problem
from lopro.constraints import Intersection, Polyhedron, ResidualBall
from lopro.methods.inner import (
    LBFGSB,
    AcceleratedGradient,
    ConstantStep,
    FixedSmoothness,
    LastIterate,
    SqrtStep,
    SubgradientDescent,
)
from lopro.methods.paper.epochs import Plan
from lopro.methods.paper.theorems import HalvingSmoothing, Theorem2, Theorem3
from lopro.methods.theory import ProblemConstants, constants_of
from lopro.objectives import L1Norm, LeastSquares, Linear, SquaredDistance
from lopro.penalties import Hinge, QuadraticHinge, Softplus
from lopro.penalties.penalised import Penalised


class Recorder:
    """Wraps an inner algorithm and keeps every iterate it passes through."""

    def __init__(self, inner, point):
        self.inner, self.point, self.points = inner, point, []

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def init(self, F, x, rng):
        self.points.append(np.array(x))
        return self.inner.init(F, x, rng)

    def step(self, F, state):
        state = self.inner.step(F, state)
        self.points.append(np.array(getattr(state, self.point)))
        return state


class OneEpoch:
    """The first plan of a schedule and no other."""

    def __init__(self, schedule, point):
        self.schedule, self.point = schedule, point

    def init(self, bench, x):
        plan, state = self.schedule.init(bench, x)
        self.inner = Recorder(plan.inner, self.point)
        self.plan = Plan(plan.penalty, self.inner, plan.steps, plan.start, plan.claim)
        return self.plan, state

    def next(self, bench, state, epoch):
        return None, state


@pytest.fixture
def halfspace(rng):
    a = np.array([0.6, 1.0, 0.3, 2.0])
    return Problem(L1Norm(shape=(4,)), Polyhedron(-a[None, :], [-1.5]))


@pytest.fixture
def ellipsoid():
    A = np.array([[1.0, 0.2, 0.0], [0.0, 2.0, -0.3], [0.1, 0.0, 3.0]])
    return Problem(Linear(np.array([1.0, -0.5, 0.7])), ResidualBall(A, np.zeros(3), 1.0))


def assert_same_run(problem, scheme, schedule, x0, point):
    """One epoch of the scheme against OneProjection with the same inner algorithm."""
    epoch = OneEpoch(schedule, point)
    a = lopro.solve(problem, x0, scheme(epoch), tol=0.0)
    plan = epoch.plan
    twin = Recorder(plan.inner.inner, point)
    b = lopro.solve(problem, x0, lopro.OneProjection(twin, plan.penalty, plan.steps), tol=0.0)
    assert len(epoch.inner.points) == plan.steps + 1 == len(twin.points)
    np.testing.assert_array_equal(np.array(epoch.inner.points), np.array(twin.points))
    np.testing.assert_array_equal(a.x, b.x)
    assert a.counts.projections == b.counts.projections == 1
    assert a.iterations == b.iterations == plan.steps


def test_one_epoch_of_lopgd_is_the_one_projection_method(halfspace):
    schedule = Theorem2(constants_of(halfspace), eps0=2.0, eps=0.25, sigma=1.0, theta=1.0)
    x0 = halfspace.constraint.project(np.zeros(4))
    assert_same_run(halfspace, lopro.LoPGD, schedule, x0, "x")


@pytest.mark.parametrize("steps", [1, 30])
def test_one_epoch_of_adaptive_lopgd_too(halfspace, steps):
    schedule = lopro.adaptive.DoublingSubgradient(steps=steps)
    x0 = halfspace.constraint.project(np.ones(4))
    assert_same_run(halfspace, lopro.LoPGD, schedule, x0, "x")


@pytest.mark.parametrize("schedule", ["theorem", "halving", "adaptive", "recentring"])
def test_one_epoch_of_lopnag_is_the_one_projection_method(ellipsoid, schedule):
    constants = constants_of(ellipsoid)
    made = {
        "theorem": Theorem3(constants, eps0=2.0, eps=0.25, sigma=1.0, theta=0.5),
        "halving": HalvingSmoothing(lam=2.0, gamma=0.1, steps=40),
        "adaptive": lopro.adaptive.AdaptiveSmoothing(steps=40),
        "recentring": lopro.adaptive.Recentring(steps=40),
    }[schedule]
    assert_same_run(ellipsoid, lopro.LoPNAG, made, np.full(3, 0.05), "x")


def test_lopgd_by_hand(halfspace):
    """Algorithm 1 written out: subgradient steps, their average, a projection, half the step."""
    constants = constants_of(halfspace)
    schedule = Theorem2(constants, eps0=2.0, eps=0.25, sigma=1.0, theta=1.0)
    x = halfspace.constraint.project(np.zeros(4))
    a, lam, eta = np.array([0.6, 1.0, 0.3, 2.0]), constants.weight, schedule.first_step
    run = lopro.iterate(halfspace, x, lopro.LoPGD(schedule), tol=0.0)
    for iterate in run:
        z, total = x, np.zeros(4)
        for _ in range(schedule.steps):
            total = total + z
            # Projected points are on the boundary up to rounding, so the sign of c is evaluated.
            outside = halfspace.constraint.value(z) > 0.0
            z = z - eta * (np.sign(z) - lam * outside * a)
        average = total / schedule.steps
        expected = average + max(0.0, 1.5 - a @ average) * a / (a @ a)
        np.testing.assert_allclose(iterate.x, expected, atol=1e-12)
        x, eta = iterate.x, eta / 2.0
    assert len(run.history) == schedule.epochs == 3


def test_lopnag_by_hand(ellipsoid):
    """Algorithm 2 with the gradient at the extrapolated point."""
    constants = constants_of(ellipsoid)
    schedule = Theorem3(constants, eps0=2.0, eps=0.5, sigma=0.3, theta=1.0)
    A, a = ellipsoid.constraint.A.matrix, np.array([1.0, -0.5, 0.7])
    lam, x, found = constants.weight, np.zeros(3), []
    for k in range(1, schedule.epochs + 1):
        gamma = schedule.smoothing(k)
        L = constants.smoothness(lam, gamma)
        y, old, tau = x, x, 1.0
        for _ in range(schedule.steps(k)):
            c = np.sum((A @ y) ** 2) - 1.0
            g = a + lam / (1.0 + np.exp(-lam * c / gamma)) * 2.0 * A.T @ (A @ y)
            new = y - g / L
            following = (1.0 + np.sqrt(1.0 + 4.0 * tau**2)) / 2.0
            y = new + (tau - 1.0) / following * (new - old)
            old, tau = new, following
        x = ellipsoid.constraint.project(old)
        found.append(x)
    run = lopro.iterate(ellipsoid, np.zeros(3), lopro.LoPNAG(schedule), tol=0.0)
    np.testing.assert_allclose([it.x for it in run], found, atol=1e-10)


def path(problem, inner, penalty, x0, steps):
    """The iterates of an inner algorithm on f + h, without a driver."""
    F = Penalised(problem.objective, problem.constraint, penalty, x0)
    state = inner.init(F, x0, np.random.default_rng(0))
    points = []
    for _ in range(steps):
        state = inner.step(F, state)
        points.append(np.array(state.x))
    return np.array(points)


def test_a_penalty_of_weight_zero_is_the_plain_inner_solver(rng):
    A, b = rng.standard_normal((6, 3)), rng.standard_normal(6)
    problem = Problem(LeastSquares(A, b), Polyhedron.box(-0.01 * np.ones(3), 0.01 * np.ones(3)))
    x0 = rng.standard_normal(3)
    x, expected = x0, []
    for t in range(1, 41):
        x = x - 0.05 / np.sqrt(t) * A.T @ (A @ x - b)
        expected.append(x)
    inner = SubgradientDescent(SqrtStep(0.05), LastIterate())
    np.testing.assert_allclose(path(problem, inner, Hinge(0.0), x0, 40), expected, atol=1e-13)

    L = np.linalg.norm(A, 2) ** 2
    accelerated = AcceleratedGradient(step_rule=FixedSmoothness(L))
    with_penalty = path(problem, accelerated, Softplus(0.0, 1.0), x0, 40)
    y, old, tau, expected = x0, x0, 1.0, []
    for _ in range(40):
        new = y - A.T @ (A @ y - b) / L
        following = (1.0 + np.sqrt(1.0 + 4.0 * tau**2)) / 2.0
        y, old, tau = new + (tau - 1.0) / following * (new - old), new, following
        expected.append(new)
    np.testing.assert_allclose(with_penalty, expected, atol=1e-13)


def test_an_intersection_of_one_is_its_member(rng):
    half = Polyhedron([[1.0, 1.0], [1.0, -2.0]], [0.5, 0.3])
    objective = SquaredDistance(np.array([2.0, -1.0]))
    inner = SubgradientDescent(ConstantStep(0.05))
    for penalty in (Hinge(3.0), Softplus(3.0, 0.2), QuadraticHinge(3.0, 0.2)):
        alone = Problem(objective, half)
        wrapped = Problem(objective, Intersection(half))
        x0 = rng.standard_normal(2)
        a, b = (path(p, inner, penalty, x0, 60) for p in (alone, wrapped))
        np.testing.assert_array_equal(a, b)
        method = lopro.OneProjection(inner, penalty, 60)
        a, b = (lopro.solve(p, x0, method, tol=0.0) for p in (alone, wrapped))
        np.testing.assert_array_equal(a.x, b.x)
        assert a.certificate.lower_bound == b.certificate.lower_bound


def test_an_outside_optimiser_finds_the_same_minimiser(rng):
    A, b = rng.standard_normal((6, 3)), rng.standard_normal(6)
    ball = ResidualBall(np.diag([1.0, 2.0, 3.0]), np.zeros(3), 0.3)
    problem = Problem(LeastSquares(A, b), ball)
    penalty = Softplus(5.0, 0.05)
    own = AcceleratedGradient(restart=True)
    methods = [
        lopro.OneProjection(LBFGSB(), penalty, 1),
        lopro.OneProjection(own, penalty, 3000),
    ]
    found = [lopro.solve(problem, np.ones(3), m, tol=0.0) for m in methods]
    np.testing.assert_allclose(found[0].x, found[1].x, atol=1e-6)
    assert found[0].counts.projections == 1 and found[0].iterations == 1


def test_the_constants_given_by_hand_are_those_collected(halfspace):
    a = np.array([0.6, 1.0, 0.3, 2.0])
    length = float(np.linalg.norm(a))
    by_hand = ProblemConstants(G=2.0, Gc=length, rho=length, Lf=0.0)
    collected = constants_of(halfspace)
    for name in ("G", "Gc", "rho", "Lf", "weight"):
        assert getattr(collected, name) == pytest.approx(getattr(by_hand, name), rel=1e-12)
