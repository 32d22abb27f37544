"""Accelerated gradient that works with images, against textbook loops with plain points."""

from __future__ import annotations

import numpy as np
import pytest

from lopro.constraints import Polyhedron, ResidualBall
from lopro.core.arrays import inner
from lopro.methods.inner import (
    AcceleratedGradient,
    Backtracking,
    ConstantMomentum,
    FixedSmoothness,
    NoMomentum,
    accelerated,
)
from lopro.objectives import L1Norm, LeastSquares, Linear, SquaredDistance
from lopro.penalties import QuadraticHinge, Softplus
from lopro.penalties.penalised import Penalised

T = 200


class Plain:
    """The penalised function in formulas of ``x`` alone: no images, no shared products."""

    def __init__(self, rng, proximable):
        self.A, self.b = rng.standard_normal((6, 4)), rng.standard_normal(6)
        self.M, self.y, self.sigma = rng.standard_normal((3, 4)), rng.standard_normal(3), 0.4
        self.lam, self.gamma, self.w = 1.3, 0.5, 0.3 if proximable else 0.0
        objective = LeastSquares(self.A, self.b)
        if proximable:
            objective = objective + self.w * L1Norm()
        ball = ResidualBall(self.M, self.y, self.sigma)
        self.F = Penalised(objective, ball, Softplus(self.lam, self.gamma), np.zeros(4))
        self.L = np.linalg.norm(self.A, 2) ** 2 + 2.0 * self.lam * np.linalg.norm(
            self.M, 2
        ) ** 2 * (1.3009 + 0.25 * self.lam / self.gamma * self.sigma**2)
        self.x0 = rng.standard_normal(4)

    def value(self, x):
        c = np.sum((self.M @ x - self.y) ** 2) - self.sigma**2
        h = self.gamma * np.logaddexp(0.0, self.lam * c / self.gamma)
        return 0.5 * np.sum((self.A @ x - self.b) ** 2) + h

    def gradient(self, x):
        r = self.M @ x - self.y
        q = 1.0 / (1.0 + np.exp(-self.lam * (r @ r - self.sigma**2) / self.gamma))
        return self.A.T @ (self.A @ x - self.b) + self.lam * q * 2.0 * self.M.T @ r

    def prox(self, x, step):
        return np.sign(x) * np.maximum(np.abs(x) - step * self.w, 0.0)


@pytest.fixture(params=[False, True], ids=["smooth", "proximal"])
def plain(request, rng):
    return Plain(rng, request.param)


def steps(plain, algorithm, n=T):
    state = algorithm.init(plain.F, plain.x0, np.random.default_rng(0))
    for _ in range(n):
        state = algorithm.step(plain.F, state)
        yield np.array(state.x), state


def points(plain, algorithm, n=T):
    return np.array([x for x, _ in steps(plain, algorithm, n)])


def test_the_formulas_of_this_file_are_right(plain, rng):
    x, v = rng.standard_normal(4), 1e-6 * rng.standard_normal(4)
    slope = (plain.value(x + v) - plain.value(x - v)) / 2.0
    assert slope == pytest.approx(plain.gradient(x) @ v, rel=1e-6)
    assert plain.F.linearize_at(plain.F.image(x))[0] == pytest.approx(plain.value(x), rel=1e-13)


def test_without_momentum_it_is_gradient_descent(plain):
    x, expected = plain.x0, []
    for _ in range(T):
        x = plain.prox(x - plain.gradient(x) / plain.L, 1.0 / plain.L)
        expected.append(x)
    algorithm = AcceleratedGradient(NoMomentum(), FixedSmoothness(plain.L))
    np.testing.assert_allclose(points(plain, algorithm), expected, atol=1e-12)


def fista(plain, n=T):
    x = y = plain.x0
    t = 1.0
    for _ in range(n):
        new = plain.prox(y - plain.gradient(y) / plain.L, 1.0 / plain.L)
        t_new = (1.0 + np.sqrt(1.0 + 4.0 * t * t)) / 2.0
        y = new + ((t - 1.0) / t_new) * (new - x)
        x, t = new, t_new
        yield x


def test_it_is_fista(plain):
    algorithm = AcceleratedGradient(step_rule=FixedSmoothness(plain.L))
    np.testing.assert_allclose(points(plain, algorithm), list(fista(plain)), atol=1e-12)


def test_the_printed_algorithm_is_another_one(plain):
    """Negative control: with the gradient at x, as printed, the points differ visibly."""
    x = y = plain.x0
    t, found = 1.0, []
    for _ in range(T):
        new = plain.prox(y - plain.gradient(x) / plain.L, 1.0 / plain.L)
        t_new = (1.0 + np.sqrt(1.0 + 4.0 * t * t)) / 2.0
        y, x, t = new + ((t - 1.0) / t_new) * (new - x), new, t_new
        found.append(x)
    assert np.abs(np.array(found) - list(fista(plain))).max() > 1e-3


def test_with_constant_momentum_it_is_nesterovs_strongly_convex_method(plain):
    mu = np.linalg.svd(plain.A, compute_uv=False)[-1] ** 2
    beta = (np.sqrt(plain.L) - np.sqrt(mu)) / (np.sqrt(plain.L) + np.sqrt(mu))
    x = y = plain.x0
    expected = []
    for _ in range(T):
        new = plain.prox(y - plain.gradient(y) / plain.L, 1.0 / plain.L)
        y, x = new + beta * (new - x), new
        expected.append(x)
    algorithm = AcceleratedGradient(ConstantMomentum(mu), FixedSmoothness(plain.L))
    np.testing.assert_allclose(points(plain, algorithm), expected, atol=1e-12)


def test_with_restarts_it_is_the_gradient_scheme_of_odonoghue_and_candes(plain):
    x = y = plain.x0
    t, expected, restarts = 1.0, [], 0
    for _ in range(T):
        new = plain.prox(y - plain.gradient(y) / plain.L, 1.0 / plain.L)
        if (y - new) @ (new - x) > 0.0:
            x = y = new
            t, restarts = 1.0, restarts + 1
        else:
            t_new = (1.0 + np.sqrt(1.0 + 4.0 * t * t)) / 2.0
            y, x, t = new + ((t - 1.0) / t_new) * (new - x), new, t_new
        expected.append(x)
    assert restarts > 1
    algorithm = AcceleratedGradient(step_rule=FixedSmoothness(plain.L), restart=True)
    np.testing.assert_allclose(points(plain, algorithm), expected, atol=1e-10)


def test_backtracking_from_the_right_constant_changes_nothing(plain):
    fixed = points(plain, AcceleratedGradient(step_rule=FixedSmoothness(plain.L)))
    searching = points(plain, AcceleratedGradient(step_rule=Backtracking(plain.L)))
    np.testing.assert_array_equal(fixed, searching)


def test_the_images_do_not_drift(plain):
    *_, (_, state) = steps(plain, AcceleratedGradient(restart=True), 2000)
    for point, image in ((state.x, state.image_x), (state.y, state.image_y)):
        for kept, anew in zip(image, plain.F.image(point), strict=True):
            np.testing.assert_allclose(kept, anew, atol=1e-11)


# Backtracking near a solution.


def true_constants(rng, dtype):
    """Functions with the smallest L of the whole space, or of the part the iterates are in."""
    A, b = rng.standard_normal((6, 4)).astype(dtype), rng.standard_normal(6).astype(dtype)
    b = b + dtype(1e3)  # large values at the solution: their differences are all rounding
    far = Polyhedron.box(dtype(-1e6) * np.ones(4, dtype), dtype(1e6) * np.ones(4, dtype))
    row = Polyhedron(np.array([[1.0, 2.0, 0.0, 0.0]], dtype), np.array([-1.0], dtype))
    z = np.array([1.0, 2.0, 3.0, 4.0], dtype)
    L = np.linalg.norm(A, 2) ** 2
    return {
        "least-squares": (LeastSquares(A, b), far, Softplus(1.0, 1.0), L),
        "lasso": (LeastSquares(A, b) + 3.0 * L1Norm(), far, Softplus(1.0, 1.0), L),
        "softplus": (SquaredDistance(z), row, Softplus(3.0, 0.1), 1.0 + 9.0 * 5.0 / 0.4),
        "quadratic-hinge": (
            SquaredDistance(z),
            row,
            QuadraticHinge(3.0, 0.1),
            1.0 + 9.0 * 5.0 / 0.2,
        ),
    }


NAMES = ["least-squares", "lasso", "softplus", "quadratic-hinge"]


def largest_constant(rng, name, restart, dtype, n=2500):
    f, c, penalty, L = true_constants(rng, dtype)[name]
    x0 = np.full(4, 0.5, dtype)
    F = Penalised(f, c, penalty, x0)
    algorithm = AcceleratedGradient(restart=restart)
    state = algorithm.init(F, x0, rng)
    largest = 0.0
    for _ in range(n):
        state = algorithm.step(F, state)
        largest = max(largest, state.L)
    return largest / L, state


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("restart", [False, True], ids=["plain", "restart"])
@pytest.mark.parametrize("name", NAMES)
def test_backtracking_keeps_its_constant_long_after_convergence(rng, name, restart, dtype):
    ratio, state = largest_constant(rng, name, restart, dtype)
    assert ratio <= 4.0 * (1.0 + 1e-3)
    assert state.x.dtype == dtype
    if dtype is np.float64 and restart:
        assert state.slope <= 1e-7 * (1.0 + np.linalg.norm(state.x)) * state.L


def naive_model_holds(F, value, g, *rest):
    move, image, L = rest[-3:]
    reached, _ = F.linearize_at(image)
    return reached <= value + inner(g, move) + 0.5 * L * inner(move, move) or L > 1e30


def test_the_naive_test_on_values_diverges(rng, monkeypatch):
    """Negative control: near a solution the difference of two values is all rounding."""
    monkeypatch.setattr(accelerated, "model_holds", naive_model_holds)
    ratio, _ = largest_constant(rng, "least-squares", False, np.float64)
    assert ratio > 1e6


def test_backtracking_on_a_linear_function_stays_finite():
    row = Polyhedron([[1.0, 0.0]], [0.0])
    F = Penalised(Linear(np.array([-1.0, 0.0])), row, Softplus(3.0, 0.1), np.zeros(2))
    algorithm = AcceleratedGradient()
    state = algorithm.init(F, np.array([-50.0, 0.0]), np.random.default_rng(0))
    for _ in range(2000):
        state = algorithm.step(F, state)
    assert state.L <= 4.0 * 9.0 / 0.4
    # F has its minimum where 3 expit(30 x) = 1.
    assert state.x[0] == pytest.approx(np.log(0.5) / 30.0, abs=1e-6)


def test_the_rounding_of_the_point_does_not_refuse_a_constant():
    """At 1e8 a move by 1e-8 is rounded to 1.5e-8: the change of the slope of ``x^2`` is 50 % too large."""
    half = Polyhedron([[1.0]], [1e9])
    y, move = np.array([1e8]), np.array([1e-8])
    F = Penalised(
        LeastSquares(np.array([[np.sqrt(2.0)]]), np.zeros(1)), half, Softplus(1.0, 1.0), y
    )
    value, gradient = F.linearize_at(F.image(y))
    g, after = gradient(), F.image(y + move)
    assert 2.5 < (F.linearize_at(after)[1]() - g)[0] / move[0] < 3.5
    assert accelerated.model_holds(F, value, g, y, move, after, 2.0)
