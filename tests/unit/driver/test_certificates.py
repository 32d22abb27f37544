"""Certificates: bounds below the optimum, for the point that is returned."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from support.driver_cases import BUILDERS, ellipsoid, l1_halfspace

import lopro
from lopro import Problem
from lopro.certificates import Certificate
from lopro.driver.minorants import lower_bound
from lopro.errors import BoundContradictionWarning
from lopro.methods.inner import (
    AcceleratedGradient,
    ConstantStep,
    FixedSmoothness,
    LinearWeights,
    SubgradientDescent,
    WeightedInverseTimeStep,
)
from lopro.methods.theory import ProblemConstants, constants_of
from lopro.objectives import L1Norm, Linear
from lopro.penalties import CentredHinge, CentredSoftplus, Hinge, MemberPenalties, Softplus
from lopro.protocol import Candidate, Claim, ProvedBound

METHODS = {
    "auto": lopro.Auto(),
    "lopgd": lopro.LoPGD(),
    "subgradient": lopro.OneProjection(SubgradientDescent(ConstantStep(0.02)), Hinge(2.0), 60),
    "accelerated": lopro.OneProjection(AcceleratedGradient(), Softplus(2.0, 0.1), 60),
}


def rounding(known) -> float:
    return 1e-10 * (1.0 + abs(known.optimum))


@pytest.mark.parametrize("build", BUILDERS, ids=lambda build: build.__name__)
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())
@pytest.mark.parametrize("seed", range(3))
def test_no_lower_bound_is_above_the_optimum(build, method, seed):
    rng = np.random.default_rng(seed)
    known = build(rng)
    x0 = rng.standard_normal(known.solution.shape)
    x0 = 0.5 * (x0 + x0.T)
    seen = []
    options = {"method": method, "max_iter": int(rng.integers(1, 1500)), "tol": 1e-8}
    result = lopro.solve(known.problem, x0, callback=seen.append, **options)
    for iterate in seen:
        assert iterate.lower_bound <= known.optimum + rounding(known)
        assert iterate.fun >= known.optimum - 1e-8 * (1.0 + abs(known.optimum))
    c = result.certificate
    assert c.lower_bound <= known.optimum + rounding(known)
    assert c.gap >= result.fun - known.optimum - rounding(known)


@pytest.mark.parametrize("seed", range(300))
def test_weak_duality_for_random_points_and_multipliers(seed):
    """Any point and any multiplier give a lower bound; 300 problems, five multipliers each."""
    rng = np.random.default_rng(seed)
    known = BUILDERS[seed % len(BUILDERS)](rng)
    problem, constraint = known.problem, known.problem.constraint
    x = 10.0 ** rng.uniform(-2, 2) * rng.standard_normal(known.solution.shape)
    x = 0.5 * (x + x.T)
    feasible = constraint.project(x)
    fun = problem.objective.value(feasible)
    weight = 10.0 ** rng.uniform(-2, 2)
    member = MemberPenalties.of(constraint, weight)
    members = [
        member,
        member.recentred(constraint, member.image(constraint, feasible + 0.1 * x)),
        Softplus(weight, 0.1 * weight),
        CentredSoftplus(weight, 0.3, 0.4 * weight),
        CentredHinge(weight, 0.2),
    ]
    normals = [penalty.valid_inequality(constraint, x) for penalty in members]
    normals.append(constraint.valid_inequality(x, weight))
    for normal in normals:
        # The multiplier is a valid inequality ...
        slack = normal.support - float(np.sum(normal.direction * feasible))
        size = np.linalg.norm(normal.direction) * (1.0 + np.linalg.norm(feasible))
        assert slack >= -1e-10 * (1.0 + size)
        # ... and what it proves is below the optimum.
        bound, source = lower_bound(problem, x, normal, fun)
        scale = abs(known.optimum) + abs(normal.support) + size
        assert bound <= known.optimum + 1e-11 * (1.0 + scale), source
        assert math.isfinite(bound) or "no lower bound" in source


def test_not_all_bounds_of_multipliers_are_trivial():
    """The optimal multiplier closes the gap, so the test above is about real bounds."""
    known = l1_halfspace(np.random.default_rng(1))
    normal = known.problem.constraint.valid_inequality(
        known.solution, 0.5
    )  # zeta* = 1 / max a = 1/2
    bound, _ = lower_bound(known.problem, known.solution, normal, known.optimum)
    assert bound == pytest.approx(known.optimum, rel=1e-12)


def test_a_multiplier_of_the_wrong_sign_would_be_detected():
    known = l1_halfspace(np.random.default_rng(1))
    normal = known.problem.constraint.valid_inequality(known.solution, -0.5)
    slack = normal.support - float(normal.direction @ (2.0 * known.solution))
    assert slack < -1e-3


@pytest.mark.parametrize("build", BUILDERS, ids=lambda build: build.__name__)
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())
def test_the_certificate_is_that_of_the_returned_point(rng, build, method):
    known = build(rng)
    result = lopro.solve(known.problem, method=method, max_iter=300, tol=0.0)
    c = result.certificate
    assert result.fun == known.problem.objective.value(result.x)
    assert c.violation == known.problem.constraint.violation(result.x)
    # The gain from violating the inequality of the bound, within rounding, is added.
    gap, gained = max(0.0, result.fun - c.lower_bound), 0.0
    if "rounding included" in c.source:
        normal = result.multiplier
        gained = max(0.0, float(normal.direction @ result.x) - normal.support)
    assert gap + gained <= c.gap <= gap + gained + 1e-13 * abs(result.fun)
    assert c.source
    # What the gap is relative to, by hand: the terms of f(x), or 1e-8 of the value at the start, which for
    # linear functions is 0 there and has the slope over a typical length in its place.
    f, origin = known.problem.objective, np.zeros_like(known.solution)
    terms, first = abs(result.fun), abs(f.value(origin))
    if isinstance(f, Linear):
        terms = float(np.abs(f.a * result.x).sum())
        first = float(np.linalg.norm(f.a)) * known.problem.typical_size(origin)
    unit = max(1e-8 * first, terms)
    assert c.relative_gap == pytest.approx(c.gap / unit, rel=1e-14)


def claimed(T: int, gap: float) -> lopro.OneProjection:
    """A method with a claim that is smaller than any gap proved in the run."""
    inner = AcceleratedGradient(step_rule=FixedSmoothness(1e4))
    return lopro.OneProjection(inner, Softplus(2.0, 0.1), T, Claim(gap, "a theorem"))


def test_a_complete_epoch_has_its_claim(rng):
    result = lopro.solve(ellipsoid(rng).problem, method=claimed(20, 1e-3), tol=0.0)
    assert result.claim.source == "a theorem"
    assert result.claim.gap == pytest.approx(1e-3)
    assert result.history["claimed_bound"] == pytest.approx([result.fun - 1e-3])


def test_a_claim_is_no_certificate_and_gives_no_success(rng):
    """A claim from given constants does not count: the gap is the one that is proved."""
    problem = ellipsoid(rng).problem
    plain = lopro.solve(problem, method=dataclasses.replace(claimed(20, 1e-3), claim=None), tol=0.5)
    for gap in (1e-3, 0.0):
        result = lopro.solve(problem, method=claimed(20, gap), tol=0.5)
        assert plain.certificate == result.certificate and plain.claim is None
        assert result.certificate.relative_gap > 0.5
        assert result.status is lopro.Status.SCHEDULE_DONE and not result.success
        assert result.claim == Claim(pytest.approx(gap), "a theorem")
        assert result.message.endswith(f"claimed, not proved: {gap:.3g} (a theorem)")


class _FalseBound:
    """A method that claims to have proved a bound above the value of its feasible point."""

    card = lopro.LoPGD.card

    def check(self, problem):
        pass

    def run(self, bench, x0):
        x = np.array([1.0, 0.0])
        yield Candidate(x, ProvedBound(1.5, "an error"))
        yield Candidate(x, ProvedBound(0.5, "a proof"))


def test_a_bound_above_a_feasible_value_is_dropped_with_a_warning():
    box = lopro.constraints.Polyhedron.box(-np.ones(2), np.ones(2))
    problem = Problem(L1Norm(shape=(2,)), box)
    with pytest.warns(BoundContradictionWarning, match="1.5 was dropped, a feasible point has 1"):
        result = lopro.solve(problem, method=_FalseBound(), tol=1e-6)
    assert (result.fun, result.certificate.lower_bound) == (1.0, 0.5)
    assert result.certificate.source == "a proof" and "an error" in result.warnings[0]


def test_false_constants_give_no_success():
    """Cor 2a with a distance of 1 from a start that is 1e10 away: it ends there, without a proved gap."""
    f = lopro.objectives.FunctionObjective(
        lambda x: math.hypot(1.0, *x), gradient=lambda x: x / math.hypot(1.0, *x), shape=(2,)
    )
    half = lopro.constraints.FunctionConstraint(
        lambda x: float(x[0]) - 10.0,
        lambda x: np.array([1.0, 0.0]),
        lambda x: np.minimum(x, [10.0, np.inf]),
        smooth=True,
        shape=(2,),
    )
    constants = ProblemConstants(G=1.0, Gc=1.0, rho=1.0, Lf=1.0, Lc=0.0)
    method = lopro.theorems.corollary_2a(constants, 100, D=1.0)
    result = lopro.solve(Problem(f, half), np.array([-1e10, 0.0]), method, tol=1e-2)
    assert result.fun == pytest.approx(1e10, rel=1e-3)  # the optimum is 1
    assert result.claim.gap < 0.1
    assert result.certificate.gap == math.inf
    assert result.status is lopro.Status.SCHEDULE_DONE


def test_a_claim_that_a_feasible_point_refutes_is_dropped_with_a_warning(rng):
    """The value of the second epoch is below the lower bound that the first one claims."""

    class Claims:
        def check(self, problem):
            pass

        def run(self, bench, x0):
            yield Candidate(np.array([1.0]), claim=Claim(0.1, "a theorem"))
            yield Candidate(np.array([2.0]), claim=Claim(-0.5, "another"))

    problem = Problem(Linear(np.array([-1.0])), lopro.constraints.Polyhedron([[1.0]], [5.0]))
    result = lopro.solve(problem, method=Claims(), tol=0.0)
    assert result.fun == -2.0 and result.claim is None
    assert result.history["claimed_bound"] == pytest.approx([-1.1, -1.1])
    assert result.warnings == (
        "a lower bound of -1.5 was dropped, a feasible point has -2: check the constants given (another)",
    )


def test_an_epoch_cut_short_by_the_iteration_limit_does_not(rng):
    known = ellipsoid(rng)
    for limit in (1, 19):
        result = lopro.solve(known.problem, method=claimed(20, 1e-3), tol=0.0, max_iter=limit)
        assert result.claim is None
        assert result.certificate.lower_bound <= known.optimum + rounding(known)
    complete = lopro.solve(known.problem, method=claimed(20, 1e-3), tol=0.0, max_iter=20)
    assert complete.claim.source == "a theorem"


def test_an_epoch_cut_short_by_the_clock_does_not(rng):
    result = lopro.solve(
        ellipsoid(rng).problem, method=claimed(10**6, 1e-3), tol=0.0, time_limit=0.05
    )
    assert result.status is lopro.Status.TIME_LIMIT
    assert result.claim is None


def test_a_theorem_cut_short_claims_its_complete_epochs_only():
    known = l1_halfspace(np.random.default_rng(2))
    constants = constants_of(Problem(L1Norm(shape=(5,)), known.problem.constraint))
    schedule = lopro.theorems.Theorem2(constants, 2.0, 0.01, sigma=2.0, theta=1.0)
    x0 = known.problem.constraint.project(np.zeros(5))
    T = schedule.steps
    # The l1 norm has a dual bound; without one there is only the claim of the theorem.
    f = lopro.objectives.FunctionObjective(
        known.problem.objective.value, subgradient=np.sign, shape=(5,)
    )
    problem, method = Problem(f, known.problem.constraint), lopro.LoPGD(schedule)
    for limit, epochs in ((T - 1, 0), (T, 1), (2 * T + T // 2, 2), (None, schedule.epochs)):
        result = lopro.solve(problem, x0, method, max_iter=limit, tol=0.0)
        h = result.history
        assert len(h) == (schedule.epochs if limit is None else epochs + 1 - (limit == T))
        # The invariant of the proof: epoch k claims eps0 / 2^k + eps, and the best claim counts.
        claims = [h["fun"][k - 1] - 2.0 / 2.0**k - 0.01 for k in range(1, epochs + 1)]
        best = [max(claims[:k], default=-math.inf) for k in range(1, len(h) + 1)]
        assert h["claimed_bound"] == pytest.approx(best if epochs else [-math.inf], rel=1e-14)
        assert h["claimed_bound"][-1] <= known.optimum
        assert (result.claim is not None) == (epochs > 0)
        if epochs:
            assert result.claim.gap == pytest.approx(result.fun - best[-1], rel=1e-14)
            assert result.claim.source == "Theorem2 with the constants given"


def test_a_bound_above_the_value_by_rounding_gives_no_negative_gap():
    c = Certificate.of(1.0, 1.0 + 1e-15, 0.0, "rounding", absolute=0.0)
    assert c.gap == c.relative_gap == 0.0


def test_the_users_bound_on_the_solution_is_named():
    half = lopro.constraints.Polyhedron([[1.0, 1.0]], [1.0])
    problem = Problem(Linear(np.array([-1.0, -1.0])), half, solution_norm=10.0)
    result = lopro.solve(problem)
    assert "given" in result.certificate.source and "10" in result.certificate.source


@pytest.mark.parametrize("build", BUILDERS, ids=lambda build: build.__name__)
@pytest.mark.parametrize("L", [0.01, 0.3, 3.0])
@pytest.mark.parametrize("penalty", [Hinge(2.0), Softplus(2.0, 0.05)], ids=["hinge", "softplus"])
def test_a_wrong_smoothness_constant_proves_nothing(build, L, penalty):
    """The bound of accelerated steps does not hold for an L that is too small, or for a kink."""
    known = build(np.random.default_rng(3))
    method = lopro.OneProjection(AcceleratedGradient(step_rule=FixedSmoothness(L)), penalty, 100)
    with np.errstate(all="ignore"):
        result = lopro.solve(known.problem, method=method)
    # Such runs end at points as large as 1e68, and the rounding of a bound is relative to the values there.
    allowed = rounding(known) + 1e-10 * abs(result.fun)
    assert not result.certificate.lower_bound > known.optimum + allowed
    if result.success:
        assert result.fun - known.optimum <= 2e-6 * max(1.0, abs(result.fun))


def test_a_claim_that_a_feasible_point_contradicts_is_dropped_with_a_warning(rng):
    known = ellipsoid(rng)
    result = lopro.solve(known.problem, method=claimed(20, -1.0), tol=1e-6)
    assert not result.success and result.claim is None
    assert any("check the constants" in warning for warning in result.warnings)


@pytest.mark.parametrize("ball", [None, lopro.functions.Ball(np.zeros(4), 0.1)])
def test_a_wrong_strong_convexity_or_ball_proves_nothing(rng, ball):
    known = BUILDERS[5](rng)
    for mu in (1.0, 50.0):
        inner = SubgradientDescent(WeightedInverseTimeStep(mu), LinearWeights(), ball)
        method = lopro.OneProjection(inner, Hinge(4.0), 60)
        result = lopro.solve(known.problem, np.full(4, 0.2), method, tol=0.0)
        assert result.certificate.lower_bound <= known.optimum + rounding(known)


class _OnePoint:
    """A method that projects its start and returns no multiplier or other proof."""

    def check(self, problem):
        pass

    def run(self, bench, x0):
        yield Candidate(bench.project(x0), None)


def test_a_point_without_a_proof_has_a_value_and_no_bound(rng):
    known = l1_halfspace(rng)
    result = lopro.solve(known.problem, method=_OnePoint(), x0=np.zeros(5))
    assert known.optimum - 1e-12 <= result.fun < np.inf
    assert result.certificate.lower_bound == -np.inf
    assert result.certificate.source == "no lower bound was found"
