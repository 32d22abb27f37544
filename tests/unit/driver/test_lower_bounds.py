"""Bounds from multipliers as exact numbers: each kind against its formula."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import lopro
from lopro import Problem, Status
from lopro.certificates import Certificate
from lopro.constraints import (
    Affine,
    Box,
    FunctionConstraint,
    Polyhedron,
    ResidualBall,
    ValidInequality,
)
from lopro.driver.incumbent import Incumbent
from lopro.driver.minorants import Minorant, lower_bound
from lopro.methods.inner import ConstantStep, SubgradientDescent
from lopro.methods.paper.theorems import Theorem2
from lopro.methods.theory import ProblemConstants
from lopro.objectives import Huber, L1Norm, LeastSquares, Linear, LInfNorm, SquaredDistance
from lopro.penalties import Hinge, QuadraticHinge, Softplus
from lopro.protocol import Candidate, Multiplier, ProvedBound, Target

EPS = 2.0**-52


class Plain(SquaredDistance):
    """Half a square, of which only the radius of the sublevel sets is known."""

    def __init__(self):
        super().__init__(np.zeros(1))

    def strong_convexity(self):
        return None


HALF = Polyhedron(np.array([[1.0, 1.0]]), np.array([1.0]))  # unbounded: it has no radius


@pytest.mark.parametrize("f", [L1Norm(), L1Norm([0.0, 1.0]), Linear(np.ones(2))])
@pytest.mark.parametrize("entry", [math.nan, math.inf])
@pytest.mark.parametrize("dtype", [np.float64, np.complex64])
def test_a_multiplier_that_overflows_proves_nothing(f, entry, dtype):
    """The search for a scale that absorbs the rounding of such a direction once did not end."""
    if dtype == np.complex64 and not isinstance(f, L1Norm):
        pytest.skip("real")
    normal = ValidInequality(np.array([entry, 1.0], dtype), 1.0, blur=1.0)
    bound, _ = lower_bound(Problem(f, HALF), np.ones(2, dtype), normal, 1.0)
    assert bound == -math.inf


def test_where_the_slope_vanishes_the_bound_is_the_offset_less_rounding():
    """``f = <a, .>`` and ``<-a, z> <= 7``: the bound is -7, less 8 roundings of all that cancels."""
    a, x = np.array([3.0, -4.0]), np.array([1.0, 2.0])
    bound, source = lower_bound(Problem(Linear(a), HALF), x, ValidInequality(-a, 7.0), 0.0)
    assert bound == -7.0 - 8.0 * EPS * (0.0 + 5.0 + 7.0)
    assert source == "Lagrangian bound, its slope vanishes"


def test_the_rounding_of_the_terms_is_allowed_for():
    """Far from 0 the support of a half-space is a difference of large numbers: it requires a margin."""
    rng, beyond = np.random.default_rng(0), 0
    for _ in range(200):
        c, x, b = rng.standard_normal(3), 1e9 * rng.standard_normal(3), float(rng.standard_normal())
        problem = Problem(Linear(-2.0 * c), Polyhedron(c[None, :], [b]))
        normal = problem.constraint.valid_inequality(x, 2.0)
        bound, _ = lower_bound(problem, x, normal, 0.0)
        assert bound <= -2.0 * b  # the optimum, exactly
        beyond += -normal.support > -2.0 * b
    assert beyond > 50


@pytest.mark.parametrize("given", [None, 2.0, 7.0])
def test_a_remaining_slope_is_charged_times_the_smallest_radius(given):
    box = Polyhedron.box([-3.0, -4.0], [3.0, 4.0])  # of radius 5
    a, n, x = np.array([3.0, -4.0]), np.array([-3.0, 1.0]), np.array([0.5, 0.5])
    bound, source = lower_bound(Problem(Linear(a), box, given), x, ValidInequality(n, 2.0), 0.0)
    radius = 5.0 if given is None else min(given, 5.0)
    assert bound == pytest.approx(-2.0 - 3.0 * radius, rel=1e-13)
    assert f"|x*| <= {radius:g} " in source


def test_a_remaining_slope_is_absorbed_by_strong_convexity():
    """Half a squared distance plus a linear function is least at ``z - n``, wherever it was linearised."""
    z, n = np.array([1.0, -2.0]), np.array([0.5, 3.0])
    problem = Problem(SquaredDistance(z), HALF)
    for x in (np.zeros(2), z - n, np.array([4.0, 1.0])):
        bound, source = lower_bound(problem, x, ValidInequality(n, 1.5), 1e9)
        assert bound == pytest.approx(float(n @ z) - 0.5 * float(n @ n) - 1.5, rel=1e-13)
        assert "mu = 1" in source


def test_the_radius_of_a_sublevel_set_is_used_too():
    """``x^2 / 2 <= 2`` bounds a solution by 2; at 1/2 the slope ``1/2 - 4`` remains."""
    half = Problem(Plain(), Polyhedron([[-1.0]], [-1.0]))
    normal = ValidInequality(np.array([-4.0]), -4.0)
    bound, source = lower_bound(half, np.array([0.5]), normal, 2.0)
    assert bound == pytest.approx(0.125 - 0.25 + 4.0 - 3.5 * 2.0, rel=1e-13)
    assert "|x*| <= 2 " in source


def test_the_sublevel_set_of_a_point_outside_need_not_contain_a_solution():
    """``min |x|^2 / 2`` over ``x >= 1``: no solution is within ``sqrt(2 f(1/2)) = 1/2`` of zero."""
    known = Incumbent(Problem(Plain(), Polyhedron([[-1.0]], [-1.0])), Target(0.0), [])
    x = np.array([0.5])
    evidence = Multiplier(ValidInequality(np.array([-4.0]), -4.0))
    known.update(Candidate(x, evidence), known.judge(x).fun, None)
    # Within that, 0.125 - 0.25 + 4 - 3.5 / 2 = 2.125 would be a bound: above the optimum of 1/2.
    assert known.certificate.lower_bound == 0.125 == known.judge(x).fun


def test_a_multiplier_is_scaled_into_the_domain_of_the_conjugate():
    """``2 x + y >= 3`` scaled by 1/2 proves ``|x|_1 >= 3/2``, which is the optimum."""
    normal = ValidInequality(np.array([-2.0, -1.0]), -3.0)
    bound, source = lower_bound(Problem(L1Norm(), HALF), np.ones(2), normal, 3.0)
    assert bound == 1.5 and "Fenchel" in source
    # With the weights (3, 1/4) the second entry decides, and with (4, 2) nothing has to be scaled.
    for weights, scale in (((3.0, 0.25), 0.25), ((4.0, 2.0), 1.0)):
        f = L1Norm(np.array(weights))
        bound, _ = lower_bound(Problem(f, HALF), np.ones(2), normal, 3.0)
        assert bound == pytest.approx(3.0 * scale, rel=1e-13)


def test_a_direction_that_cancels_has_the_rounding_of_its_terms():
    """One column and a ball that it touches: multipliers of 1e13, directions of size 1 or of rounding."""
    A = np.array(
        [[-0.3946947017405861], [2.977702473454736], [-1.610015696125835], [-1.1329207678141475]]
    )
    y = np.array([-0.5219218517766222, 3.9413628212856415, -2.122484292222757, -1.500499903238802])
    ball, beyond = ResidualBall(A, y, 0.007852002054085651), 0
    for weight in 10.0 ** np.linspace(12.0, 15.0, 40):
        for x in 1.32262210379865 * (1.0 + 2.0**-52 * np.arange(-4.0, 5.0)):
            inequality = ball.valid_inequality(np.array([x]), weight)
            value, _ = lower_bound(Problem(L1Norm(), ball), np.array([x]), inequality, 1.33)
            assert value <= 1.3226221040293533
            scale = 1.0 / max(1.0, abs(float(inequality.direction[0])))
            beyond += -scale * inequality.support > 1.3226221040293533
    assert beyond > 20  # without the rounding of the direction


@pytest.mark.parametrize("f", [L1Norm(), LInfNorm()])
def test_the_rounding_of_a_direction_is_within_the_domain(f):
    """The gauge of what rounding may add: at most its size in every entry."""
    plain = ValidInequality(np.array([3.0, 0.0]), -1.0)
    problem = Problem(f, Polyhedron(np.eye(2), np.ones(2)))
    off = replace(plain, blur=1.0)
    size = 1.0 if isinstance(f, L1Norm) else 2.0
    assert lower_bound(problem, np.ones(2), plain, 5.0)[0] == pytest.approx(1.0 / 3.0)
    assert lower_bound(problem, np.ones(2), off, 5.0)[0] == pytest.approx(1.0 / (3.0 + size))


def test_the_rounding_of_a_slope_is_charged():
    slope, x = np.array([3.0, 4.0]), np.array([1.0, 0.0])
    minorant = Minorant(10.0, slope, x, mu=0.0, blur=0.5)
    assert minorant.least(2.0) == 10.0 - 5.0 * 2.0 - 0.5 * 3.0
    assert Minorant(10.0, slope, x, 2.0, blur=0.5).least(None) == 10.0 + 3.0 - 5.5**2 / 4.0
    assert Minorant(10.0, 0.0 * slope, x, 0.0, blur=0.5).least(None) == 10.0


def test_without_a_radius_or_curvature_there_is_no_bound():
    normal = ValidInequality(np.array([1.0, 0.0]), 1.0)
    bound, source = lower_bound(Problem(Linear(np.ones(2)), HALF), np.ones(2), normal, 0.0)
    assert bound == -math.inf and source.startswith("no lower bound")


# R2 in a run: F(x_hat) - C gamma - B_T.


@pytest.mark.parametrize("distance", [0.5, 2.0])
@pytest.mark.parametrize(
    ("penalty", "above"),
    [
        (Hinge(4.0), 0.0),
        (Softplus(4.0, 1e-3), 1e-3 * math.log(2.0)),
        (QuadraticHinge(4.0, 1e-3), 0.25e-3),
    ],
    ids=lambda value: type(value).__name__,
)
def test_subgradient_steps_prove_a_bound(penalty, above, distance):
    """``min -x`` over ``x <= 0``: the steps run through -1/4, -3/20, -1/20, 1/20 and repeat.

    Their slopes are -1, -1, -1 and 3, their mean is -1/10, where F is 1/10 and the multiplier proves nothing.
    """
    problem = Problem(Linear(-np.ones(1)), Polyhedron([[1.0]], [0.0]), solution_norm=distance)
    eta, T = 0.1, 4000
    method = lopro.OneProjection(SubgradientDescent(ConstantStep(eta)), penalty, T)
    result = lopro.solve(problem, np.array([-0.25]), method, tol=0.0)
    assert result.fun == pytest.approx(0.1)
    price = 0.5 * eta * (1.0 + 1.0 + 1.0 + 9.0) / 4.0 + (0.25 + distance) ** 2 / (2.0 * eta * T)
    assert result.certificate.lower_bound == pytest.approx(0.1 - above - price, rel=1e-10)
    assert result.certificate.source.startswith("R2")


def test_the_bound_of_steps_that_end_outside_is_taken_before_the_projection():
    """The weight 5/4 turns the slopes into -1 and 1/4: -1/100, 9/100, 13/200, 1/25, 3/200 and repeat.

    Their mean 1/25 is outside, with F = 1/100 there, and f = 0 after the projection.
    """
    problem = Problem(Linear(-np.ones(1)), Polyhedron([[1.0]], [0.0]), solution_norm=0.5)
    eta, T = 0.1, 5000
    method = lopro.OneProjection(SubgradientDescent(ConstantStep(eta)), Hinge(1.25), T)
    result = lopro.solve(problem, np.array([-0.01]), method, tol=0.0)
    assert result.fun == 0.0
    price = 0.5 * eta * (1.0 + 4.0 / 16.0) / 5.0 + 0.51**2 / (2.0 * eta * T)
    assert result.certificate.lower_bound == pytest.approx(0.01 - price, rel=1e-9)


def test_a_claim_holds_for_the_point_of_its_own_epoch():
    """Theorem 2 claims 1.5 after the first epoch and 1 after the second, which ends with a higher value."""
    ends = iter([-0.1, -0.3])
    half_line = FunctionConstraint(
        lambda x: float(x[0]), np.ones_like, project=lambda x: np.array([next(ends)])
    )
    problem = Problem(Linear(-np.ones(1)), half_line)  # the set of solutions has no known bound
    constants = ProblemConstants(G=1.0, Gc=1.0, rho=1.0)
    schedule = Theorem2(constants, eps0=2.0, eps=0.5, sigma=0.1, theta=1.0, lam=2.0)
    result = lopro.solve(problem, np.zeros(1), lopro.LoPGD(schedule), tol=0.0)
    assert result.fun == 0.1
    assert result.history["claimed_bound"] == pytest.approx([0.1 - 1.5, 0.3 - 1.0])
    assert result.history["lower_bound"] == [-math.inf, -math.inf]
    # The claim for the best point, with the best bound: 0.1 - (0.3 - 1).
    assert result.claim.gap == pytest.approx(0.8)


# The certificate made of a value and a bound.


@pytest.mark.parametrize(
    ("fun", "bound", "scale", "relative"),
    [(-5.0, -6.0, 1.0, 0.2), (5.0, 4.0, 10.0, 0.1), (0.5, 0.25, 1.0, 0.25), (2e-9, 1e-9, 0.0, 0.5)],
)
def test_a_gap_is_relative_to_the_value_or_to_the_scale(fun, bound, scale, relative):
    c = Certificate.of(fun, bound, 0.0, "by hand", Target(0.0, scale), absolute=0.0)
    assert (c.gap, c.relative_gap) == (pytest.approx(fun - bound), pytest.approx(relative))


def test_a_scale_is_computed_once_and_only_for_gaps_above_the_tolerance():
    calls = []
    target = Target(1e-3, lambda: calls.append(1) or 8.0)
    assert target.relative(1e-3, fun=-2.0) == 5e-4
    assert target.relative(0.5, fun=1.0, magnitude=1e3) == 5e-4
    assert target.relative(0.0, fun=0.0) == 0.0
    assert not calls
    assert target.relative(4e-3, fun=2.0) == 5e-4  # reached because of the scale alone
    assert target.relative(0.5, fun=2.0, magnitude=4.0) == 0.0625
    assert target.relative(4e-3, fun=16.0) == 2.5e-4
    assert target.gap(2.0) == 8e-3 and calls == [1]


def test_gaps_of_a_run_are_relative_to_the_scale_of_the_problem():
    ball = ResidualBall(np.eye(2), np.zeros(2), 1.0)
    f = Linear(np.array([3e-3, 4e-3]))
    for scale in (1.0, 1e-4):  # above the size of f, and below it
        problem = Problem(f, ball, gap_scale=scale)
        result = lopro.solve(problem, method=lopro.LoPNAG(), max_projections=2, tol=0.0)
        c = result.certificate
        assert c.relative_gap == pytest.approx(c.gap / max(scale, -result.fun), rel=1e-12)
        assert c.gap > 0.0


@pytest.mark.parametrize(
    ("size", "scale", "relative"),
    [(1e3, 1.0, 0.5e-3), (1e-2, 1.0, 0.5), (1e-2, 1e-3, 50.0), (1e-2, 0.1, 5.0)],
)
def test_a_run_has_converged_when_the_relative_gap_is_within_the_tolerance(size, scale, relative):
    """A bound 0.5 below a value of this size, with no other bound."""

    class Proves:
        def check(self, problem):
            pass

        def run(self, bench, x0):
            yield Candidate(x0, ProvedBound(size - 0.5, "by hand"))

    half = Polyhedron(np.array([[1.0, 0.0]]), np.array([-1.0]))
    problem = Problem(Linear(np.array([-size, 0.0])), half, gap_scale=scale)
    for factor, status in ((1.01, Status.CONVERGED), (0.99, Status.SCHEDULE_DONE)):
        tol = factor * relative
        result = lopro.solve(problem, np.array([-1.0, 0.0]), Proves(), tol=tol)
        assert result.fun == size and result.status is status
        assert result.certificate.relative_gap == pytest.approx(relative)
        expected = lopro.iterate(problem, tol=tol).bench.target.gap(-size)
        assert expected == pytest.approx(tol * max(size, scale))


def test_a_gap_is_relative_to_terms_that_cancel():
    """At (3, 3.5) the terms of x - y are 3 and 3.5: a gap of a half is 1/13 of them, and all of the value."""

    class Proves:
        def check(self, problem):
            pass

        def run(self, bench, x0):
            yield Candidate(np.array([3.0, 3.5]), ProvedBound(-1.0, "by hand"))

    inside = Polyhedron.box(np.zeros(2), np.full(2, 4.0))
    result = lopro.solve(Problem(Linear(np.array([1.0, -1.0])), inside), method=Proves(), tol=0.0)
    assert (result.fun, result.certificate.gap) == (-0.5, 0.5)
    assert result.certificate.relative_gap == pytest.approx(0.5 / 6.5, rel=1e-15)
    problem = Problem(Linear(np.array([1.0, -1.0])), inside, gap_scale=0.1)
    assert lopro.solve(problem, method=Proves(), tol=0.0).certificate.relative_gap == 1.0


@pytest.mark.parametrize("gained", [0.0, 0.125])
def test_the_gain_from_a_violation_is_a_part_of_the_gap(gained):
    class Proves:
        def check(self, problem):
            pass

        def run(self, bench, x0):
            yield Candidate(np.array([2.0]), ProvedBound(-2.5, "by hand", gained=gained))

    problem = Problem(Linear(np.array([-1.0])), Polyhedron([[1.0]], [2.0]), gap_scale=1.0)
    c = lopro.solve(problem, method=Proves(), tol=0.0).certificate
    assert (c.lower_bound, c.gap, c.relative_gap) == (-2.5, 0.5 + gained, (0.5 + gained) / 2.0)


@pytest.mark.parametrize(("outside", "charged"), [(1e-9, 1e-9), (1e-16, 0.0), (-1e-3, 0.0)])
def test_the_multiplier_times_the_violation_is_charged(outside, charged):
    """``min |x|`` over ``x >= 1``: of ``<-4, z> <= -4`` the bound uses a quarter, and so does the charge."""
    known = Incumbent(Problem(L1Norm(), Polyhedron([[-1.0]], [-1.0])), Target(0.0), [])
    x = np.array([1.0 - outside])
    evidence = Multiplier(ValidInequality(np.array([-4.0]), -4.0))
    known.update(Candidate(x, evidence), known.judge(x).fun, None)
    assert known.certificate.lower_bound == 1.0
    assert known.certificate.charge == pytest.approx(charged, rel=1e-6)
    assert known.certificate.gap == pytest.approx(max(charged, x[0] - 1.0 + charged), rel=1e-6)


def test_rounding_of_a_violation_is_not_charged():
    """Terms of 3 that differ by some roundings: a charge begins beyond 8 roundings of their sum."""
    normal = ValidInequality(np.array([-1.0]), -3.0)
    row, f = Polyhedron([[-1.0]], [-3.0]), L1Norm()
    for roundings, charged in ((4.0, 0.0), (15.0, 0.0), (40.0, 40.0 * 3.0 * EPS)):
        known = Incumbent(Problem(f, row), Target(0.0), [])
        x = np.array([3.0 * (1.0 - roundings * EPS)])
        known.update(Candidate(x, Multiplier(normal)), known.judge(x).fun, None)
        assert known.certificate.charge == pytest.approx(charged, rel=0.1, abs=0.0)


def test_the_radius_is_that_of_the_best_bound():
    """A lower bound that holds everywhere does not replace a higher one that holds within a radius."""
    problem = Problem(Linear(np.array([-1.0])), Polyhedron([[1.0]], [2.0]), gap_scale=1.0)
    proved = [(-3.0, math.inf), (-2.5, 40.0), (-2.75, math.inf)]

    class Proves:
        def check(self, problem):
            pass

        def run(self, bench, x0):
            for value, radius in proved:
                inequality = ValidInequality(np.ones(1), -value)
                yield Candidate(np.array([2.0]), ProvedBound(value, "by hand", radius, inequality))

    run = lopro.iterate(problem, np.zeros(1), Proves(), tol=0.3)
    assert [it.lower_bound for it in run] == [-3.0, -2.5]
    result = run.result()
    assert result.status is Status.CONVERGED
    assert (result.certificate.lower_bound, result.certificate.radius) == (-2.5, 40.0)
    assert result.message.endswith("among the points within a distance of 40")
    assert result.multiplier.support == 2.5
    run = lopro.iterate(problem, np.zeros(1), Proves(), tol=0.0)
    assert [it.lower_bound for it in run] == [-3.0, -2.5, -2.5]
    assert run.result().certificate.radius == 40.0


@pytest.mark.parametrize("name", ["least-squares", "huber"])
def test_a_square_that_can_vanish_is_known_to_be_least_at_zero(name):
    """Equations that a point of the set solves: multipliers alone prove a bound just below zero."""
    rng = np.random.default_rng(0)
    D, z = rng.standard_normal((6, 10)), rng.standard_normal(10)
    objective = LeastSquares(D, D @ z) if name == "least-squares" else Huber(D, D @ z)
    total = Affine(np.ones((1, 10)), z.sum(), z.sum())
    result = lopro.solve(Problem(objective, total), time_limit=20.0)
    assert result.success and result.fun < 1e-20
    assert result.certificate.lower_bound == 0.0
    assert "the least value of f anywhere" in result.certificate.source


def test_bounds_of_f_alone_are_not_used_where_the_value_is_not_close_to_zero():
    class Watched(LeastSquares):
        def infimum(self):
            raise AssertionError("not needed")

    set_ = Box(np.full(3, 2.0), np.full(3, 3.0))
    result = lopro.solve(Problem(Watched(np.eye(3), np.zeros(3)), set_))
    assert result.success and result.fun == pytest.approx(6.0)
