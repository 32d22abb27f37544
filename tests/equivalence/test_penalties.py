"""Penalties that are limits, shifts or sums of each other."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lopro.constraints import Intersection, Polyhedron, PSDCone, ResidualBall
from lopro.constraints.psd_forms import Distance
from lopro.penalties import (
    CentredHinge,
    CentredSoftplus,
    Hinge,
    MemberPenalties,
    QuadraticHinge,
    SetPenalty,
    Softplus,
)

C_VALUES = [-1e6, -30.0, -1.0, -1e-3, -1e-9, 0.0, 1e-9, 1e-3, 0.5, 1.0, 40.0, 1e6]


def linearized(penalty, constraint, x):
    value, slope = penalty.linearize_at(constraint, penalty.image(constraint, x))
    g = slope()
    return value, np.zeros_like(x) if g is None else g


@pytest.mark.parametrize("smooth", [Softplus, QuadraticHinge])
@pytest.mark.parametrize("lam", [0.3, 5.0])
def test_sharp_smoothings_tend_to_the_hinge(smooth, lam):
    """Uniformly, at the rate of gamma: |h - hinge| <= C gamma."""
    hinge = Hinge(lam)
    constant = {Softplus: math.log(2.0), QuadraticHinge: 0.25}[smooth]
    for gamma in (1.0, 1e-3, 1e-9, 1e-15, 1e-300):
        h = smooth(lam, gamma)
        worst = max(abs(h.phi(c) - hinge.phi(c)) for c in C_VALUES)
        assert worst <= constant * gamma * (1.0 + 1e-9) + 1e-15 * lam * 1e6
        assert h.phi(0.0) == pytest.approx(constant * gamma, rel=1e-12)
    for c in C_VALUES:
        if c != 0.0:
            assert smooth(lam, 1e-300).slope(c) == hinge.slope(c)


def test_sharp_softplus_gives_the_subgradients_of_the_hinge(rng):
    sets = [
        Polyhedron(rng.standard_normal((5, 3)), np.zeros(5)),
        ResidualBall(rng.standard_normal((4, 3)), np.ones(4), 0.5),
    ]
    for constraint in sets:
        for _ in range(20):
            x = rng.standard_normal(3)
            a = linearized(Softplus(2.0, 1e-12), constraint, x)
            b = linearized(Hinge(2.0), constraint, x)
            assert a[0] == pytest.approx(b[0], abs=1e-11)
            np.testing.assert_allclose(a[1], b[1], atol=1e-12)


@pytest.mark.parametrize("lam", [0.5, 4.0])
@pytest.mark.parametrize("gamma", [0.01, 1.0])
def test_centring_at_half_the_weight_is_the_plain_softplus(lam, gamma):
    plain, centred = Softplus(lam, gamma), CentredSoftplus(lam, gamma, 0.5 * lam)
    for c in C_VALUES:
        scale = 1e-12 * (1.0 + lam * abs(c))
        assert abs(plain.phi(c) - centred.phi(c) - gamma * math.log(2.0)) <= scale
        assert centred.slope(c) == pytest.approx(plain.slope(c), rel=1e-12, abs=1e-300)
    assert centred.curvature(2.0) == plain.curvature(2.0)


@pytest.mark.parametrize("multiplier", [0.1, 2.0, 3.9])
def test_centred_penalties_pass_through_zero_with_the_slope_of_the_multiplier(multiplier):
    for h in (CentredSoftplus(4.0, 0.3, multiplier), CentredHinge(2.0, multiplier)):
        assert h.phi(0.0) == pytest.approx(0.0, abs=1e-15)
        assert h.slope(0.0) == pytest.approx(multiplier, rel=1e-12)
        # Tangent from below: h >= multiplier * c, which is what makes it exact.
        assert all(h.phi(c) >= multiplier * c - 1e-9 * (1 + abs(c)) for c in C_VALUES)


@pytest.mark.parametrize("penalty", [Softplus(3.0, 0.2), QuadraticHinge(3.0, 0.2)])
def test_slopes_are_derivatives(penalty):
    for c in np.linspace(-0.5, 0.5, 41):
        numeric = (penalty.phi(c + 1e-6) - penalty.phi(c - 1e-6)) / 2e-6
        assert penalty.slope(c) == pytest.approx(numeric, abs=1e-4)


def rows(C, b, u, beta, x):
    """The sum of one centred hinge for each row, and its gradient, in plain formulas."""
    value, gradient = 0.0, np.zeros_like(x)
    for row, bound, multiplier in zip(C, b, u, strict=True):
        h = CentredHinge(beta, multiplier)
        c = float(row @ x - bound)
        value += h.phi(c)
        gradient = gradient + h.slope(c) * row
    return value, gradient


def test_a_set_penalty_on_a_polyhedron_is_a_centred_hinge_for_each_row(rng):
    C, b, beta = rng.standard_normal((6, 3)), rng.standard_normal(6), 2.5
    polyhedron = Polyhedron(C, b)
    penalty, u = SetPenalty(beta), np.zeros(6)
    for _ in range(10):
        x = 2.0 * rng.standard_normal(3)
        value, gradient = linearized(penalty, polyhedron, x)
        expected = rows(C, b, u, beta, x)
        assert value == pytest.approx(expected[0], rel=1e-11, abs=1e-12)
        np.testing.assert_allclose(gradient, expected[1], atol=1e-11)
        # And both find the same next multipliers.
        penalty = penalty.recentred(polyhedron, polyhedron.image(x))
        u = np.maximum(0.0, u + beta * (C @ x - b))
        np.testing.assert_allclose(penalty.multiplier[0], u, atol=1e-11)
        normal = penalty.valid_inequality(polyhedron, x)
        np.testing.assert_allclose(normal.direction, C.T @ np.maximum(0, u + beta * (C @ x - b)))


def test_a_set_penalty_on_a_ball_or_cone_is_half_the_squared_distance(rng):
    beta = 3.0
    ball = ResidualBall(np.eye(3), np.ones(3), 0.7)
    cone = PSDCone(3, Distance())
    for _ in range(20):
        x = 2.0 * rng.standard_normal(3)
        value, gradient = linearized(SetPenalty(beta), ball, x)
        away = x - ball.project(x)
        assert value == pytest.approx(0.5 * beta * away @ away, rel=1e-9, abs=1e-14)
        np.testing.assert_allclose(gradient, beta * away, atol=1e-9)
        X = rng.standard_normal((3, 3))
        X = X + X.T
        value, _ = linearized(SetPenalty(beta), cone, X)
        depth = max(0.0, cone.value(X))
        assert value == pytest.approx(0.5 * beta * depth**2, rel=1e-9, abs=1e-14)


def test_member_penalties_are_the_sum_over_the_members(rng):
    half = Polyhedron([[1.0, 1.0, 0.0]], [0.2])
    ball = ResidualBall(rng.standard_normal((2, 3)), np.ones(2), 0.3)
    both, beta = Intersection(half, ball), 1.7
    together, apart = MemberPenalties.of(both, beta), [SetPenalty(beta), SetPenalty(beta)]
    for _ in range(5):
        x = rng.standard_normal(3)
        value, gradient = linearized(together, both, x)
        parts = [linearized(p, m, x) for p, m in zip(apart, (half, ball), strict=True)]
        assert value == pytest.approx(sum(v for v, _ in parts), rel=1e-12, abs=1e-14)
        np.testing.assert_allclose(gradient, sum(g for _, g in parts), atol=1e-13)
        together = together.recentred(both, together.image(both, x)).stiffened(2.0)
        apart = [
            p.recentred(m, m.image(x)).stiffened(2.0)
            for p, m in zip(apart, (half, ball), strict=True)
        ]


@pytest.mark.parametrize("penalty", [Hinge(2.0), Softplus(2.0, 0.1), CentredHinge(2.0, 0.3)])
def test_a_member_alone_is_its_own_intersection(rng, penalty):
    half = Polyhedron(rng.standard_normal((4, 3)), np.zeros(4))
    for _ in range(20):
        x = rng.standard_normal(3)
        a, b = (linearized(penalty, c, x) for c in (half, Intersection(half)))
        assert a[0] == b[0]
        np.testing.assert_array_equal(a[1], b[1])
        n, m = penalty.valid_inequality(half, x), penalty.valid_inequality(Intersection(half), x)
        np.testing.assert_array_equal(n.direction, m.direction)
        assert n.support == m.support
