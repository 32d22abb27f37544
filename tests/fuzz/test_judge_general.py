"""The judge of objectives over sets accepts what is right and rejects every forgery."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from fuzz.general.balls import ResidualBall
from fuzz.general.case import MinimizeCase, SolveCase
from fuzz.general.judge import CallOptions, judge_model
from fuzz.general.matrix_sets import PSDCone, Spectrahedron
from fuzz.general.model import Model
from fuzz.general.more_objectives import Farthest
from fuzz.general.objectives import L1, LeastSquares, Linear, SquaredDistance
from fuzz.general.sets import Box, Polyhedron, Simplex
from fuzz.judge.claims import Claims, Outcome
from fuzz.judge.verdict import Class

EPS = float(np.finfo(np.float64).eps)
OPTIONS = CallOptions(tol=1e-6, dtype=np.float64, eps=EPS)


def claims_at(x, fun, bound=None, status="CONVERGED", violation=0.0):
    """Return claims whose fields fit together."""
    bound = fun if bound is None else bound
    gap = max(fun - bound, 0.0) if math.isfinite(bound) else math.inf
    return Claims(
        status,
        status == "CONVERGED",
        np.asarray(x, float),
        fun,
        bound,
        gap,
        gap / max(1.0, abs(fun)),
        violation,
    )


SQUARE = Model(
    Linear(np.array([1.0, 2.0])), (Box(-np.ones(2), np.ones(2)),), (2,), inside=np.zeros(2)
)
POINT = Model(
    SquaredDistance(np.array([3.0, 4.0])),
    (Polyhedron(np.zeros((0, 2)), np.zeros(0), np.eye(2), np.array([1.0, 2.0])),),
    (2,),
    inside=np.array([1.0, 2.0]),
)
FACE = Model(
    Linear(np.array([3.0, 1.0, 2.0])), (Simplex(3, 2.0, True),), (3,), inside=np.full(3, 2.0 / 3.0)
)
CONE = Model(SquaredDistance(np.diag([2.0, -1.0])), (PSDCone(2),), (2, 2), inside=np.eye(2))
RIGHT = {
    "square": (SQUARE, claims_at([-1.0, -1.0], -3.0)),
    "point": (POINT, claims_at([1.0, 2.0], 4.0)),
    "face": (FACE, claims_at([0.0, 2.0, 0.0], 2.0)),
    "cone": (CONE, claims_at(np.diag([2.0, 0.0]), 0.5)),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_claims_are_certified(name):
    model, claims = RIGHT[name]
    assert judge_model(model, OPTIONS, claims).kind is Class.CERTIFIED
    stalled = replace(claims, status="STALLED", success=False)
    assert judge_model(model, OPTIONS, stalled).kind is Class.HONEST


FORGERIES = {
    "bound above optimum": (SQUARE, claims_at([1.0, 1.0], 3.0, bound=-2.9, status="TIME_LIMIT")),
    "bound above optimum, slightly": (
        SQUARE,
        claims_at([0.0, 0.0], 0.0, bound=-3.0 + 1e-9, status="TIME_LIMIT"),
    ),
    "bound above optimum, of a point": (POINT, claims_at([1.0, 2.0], 4.0, bound=4.0 + 1e-9)),
    "bound above optimum, of a face": (FACE, claims_at([0.0, 2.0, 0.0], 2.0, bound=2.0 + 1e-9)),
    "bound above optimum, of a cone": (CONE, claims_at(np.diag([2.0, 0.0]), 0.5, bound=0.5 + 1e-8)),
    "bound above optimum, success": (SQUARE, claims_at([-1.0, -0.9], -2.8)),
    "infeasible success": (SQUARE, claims_at([-1.0, -1.0 - 1e-6], -3.0 - 2e-6)),
    "infeasible success, equation": (FACE, claims_at([0.0, 2.0 - 1e-6, 0.0], 2.0 - 1e-6)),
    "infeasible success, eigenvalue": (
        CONE,
        claims_at(np.diag([2.0, -1e-6]), 0.5 * (1 - 1e-6) ** 2),
    ),
    "violation understated": (SQUARE, claims_at([-2.0, 0.0], -2.0, bound=-3.0, status="MAX_ITER")),
    "value misstated": (SQUARE, claims_at([-1.0, -1.0], -3.0 + 1e-9)),
    "false INFEASIBLE": (
        POINT,
        claims_at([0.0, 0.0], math.nan, bound=-math.inf, status="INFEASIBLE"),
    ),
    "false INFEASIBLE, of a face": (
        FACE,
        claims_at(np.zeros(3), math.nan, -math.inf, "INFEASIBLE"),
    ),
    "false UNBOUNDED": (SQUARE, claims_at([0.0, 0.0], 0.0, bound=-math.inf, status="UNBOUNDED")),
    "dtype changed": (SQUARE, replace(RIGHT["square"][1], x=np.float32([-1.0, -1.0]))),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forgeries_are_found(name):
    model, claims = FORGERIES[name]
    found = judge_model(model, OPTIONS, claims)
    assert (found.kind, found.label) == (Class.WRONG, name.split(",")[0]), found


@pytest.mark.parametrize("name", [name for name in FORGERIES if "UNBOUNDED" not in name])
@pytest.mark.parametrize("unit", [2.0**-40, 2.0**40])
def test_forgeries_are_found_in_other_units(name, unit):
    """Violations of a millionth stay visible however small or large the points are."""
    model, claims = FORGERIES[name]
    model = model.changed(
        objective=model.objective.stretched(unit),
        members=tuple(m.stretched(unit) for m in model.members),
        unit=unit,
        inside=model.inside * unit,
    )
    if claims.x.dtype == np.float64:
        claims = replace(claims, x=claims.x * unit)
    assert judge_model(model, OPTIONS, claims).label == name.split(",")[0]


def test_callables_are_measured_by_values_and_slopes():
    """The violation is ``c / |g|`` relative to ``|x|``, which does not depend on the units of ``x``."""
    for form in ("callable", "kinked"):
        for unit in (1.0, 1e-9, 1e9):
            ball = ResidualBall(2.0 * np.eye(2), np.zeros(2), 2.0 * unit, form)
            x = unit * np.array([3.0, 4.0])
            assert ball.violation(x, unit) == pytest.approx(0.8, rel=1e-12)  # 4 of 5
            assert ball.violation(x / 5.0, unit) == 0.0
            assert ball.violation(x * 0.2 * (1 + 1e-6), unit) == pytest.approx(1e-6, rel=1e-3)
    assert ResidualBall(2.0 * np.eye(2), np.zeros(2), 2.0).violation([3.0, 4.0], 1.0) == (
        pytest.approx(4.0)
    )


def test_a_violation_of_callables_may_not_be_understated():
    ball = ResidualBall(np.eye(2), np.zeros(2), 1.0, "callable")
    model = Model(Linear(np.array([1.0, 0.0])), (ball,), (2,), inside=np.zeros(2))
    far = claims_at([1e4, 0.0], 1e4, bound=-1.0, status="TIME_LIMIT", violation=0.5)
    assert judge_model(model, OPTIONS, far).kind is Class.HONEST  # half of it: squares
    assert (
        judge_model(model, OPTIONS, replace(far, violation=1e-4)).label == "violation understated"
    )
    assert judge_model(model, OPTIONS, claims_at([-1 - 1e-6, 0.0], -1 - 1e-6)).label == (
        "infeasible success"
    )


def test_callables_alone_promise_no_precision():
    ball = ResidualBall(np.eye(2), np.zeros(2), 1.0, "callable")
    for objective, x0, promised in (
        (Farthest(np.ones(2)), None, None),
        (Farthest(np.ones(2)), np.zeros(2), "float32"),
        (Linear(np.ones(2)), None, "float32"),
    ):
        case = SolveCase(Model(objective, (ball,), (2,)), x0=x0, dtype="float32")
        assert case.call_options().dtype == promised
    case = SolveCase(Model(Farthest(np.ones(2)), (replace(ball, form=""),), (2,)), dtype="float32")
    assert case.call_options().dtype == "float32"


def test_sets_of_scipy_are_callables():
    ball = ResidualBall(np.eye(2), np.zeros(2), 1.0)
    model = Model(Linear(np.array([1.0, 0.0])), (ball,), (2,), inside=np.zeros(2))
    case = MinimizeCase(model, x0=np.zeros(2), scipy=True)
    far = claims_at([1e4, 0.0], 1e4, bound=-1.0, status="TIME_LIMIT", violation=0.5)
    assert case.judge(Outcome(claims=(far,))).kind is Class.HONEST
    kept = replace(case, scipy=False)
    assert kept.judge(Outcome(claims=(far,))).label == "violation understated"


def test_success_that_misses_the_tolerance_is_found():
    found = judge_model(
        SQUARE,
        OPTIONS,
        replace(
            claims_at([-1.0, -1.0 + 1e-4], -3.0 + 2e-4),
            lower_bound=-3.0,
            gap=2e-4,
            relative_gap=1e-7,
        ),
    )
    assert found.label in ("gap understated", "not within tol")
    loose = replace(OPTIONS, gap_scale=1e3)  # gaps relative to a larger number would be within it
    honest = replace(claims_at([-1.0, -0.9], -2.8), lower_bound=-3.0, gap=0.2, relative_gap=2e-4)
    assert judge_model(SQUARE, replace(loose, tol=1e-3), honest).kind is Class.CERTIFIED
    assert judge_model(SQUARE, replace(loose, tol=1e-5), honest).label == "fields contradict"


def test_empty_and_unbounded_problems_may_be_reported_as_such():
    apart = (Box(np.zeros(2), np.ones(2)), Box(np.full(2, 2.0), np.full(2, 3.0)))
    empty = Model(SQUARE.objective, apart, (2,))
    claims = claims_at([0.0, 0.0], math.nan, bound=-math.inf, status="INFEASIBLE")
    assert judge_model(empty, OPTIONS, claims).kind is Class.CERTIFIED
    assert judge_model(empty, OPTIONS, claims_at([1.0, 1.0], 3.0)).label == "infeasible success"
    half = Box(np.array([-np.inf, 0.0]), np.full(2, np.inf))
    falling = Model(SQUARE.objective, (half,), (2,), inside=np.ones(2), ray=np.array([-1.0, 0.0]))
    claims = claims_at([0.0, 0.0], 0.0, bound=-math.inf, status="UNBOUNDED")
    assert judge_model(falling, OPTIONS, claims).kind is Class.CERTIFIED
    claims = claims_at([-1e9, 0.0], -1e9)
    assert judge_model(falling, OPTIONS, claims).label == "bound above optimum"


def test_reference_and_safe_points_agree_on_each_set(rng):
    """The conic form of each set and objective agrees with its evaluation in long double."""
    n = 4
    A, p = rng.standard_normal((5, n)), np.array([0.3, 0.5, 0.1, 0.2])
    sets = [
        Box(p - 1.0, p + 0.5),
        Simplex(n, 2.0, False),
        ResidualBall(A, A @ p + 0.1, 1.0),
        Polyhedron(A, A @ p + 1.0, np.ones((1, n)), np.array([p.sum()])),
    ]
    objectives = [
        Linear(rng.standard_normal(n)),
        L1(rng.uniform(0.5, 2.0, n)),
        LeastSquares(A, rng.standard_normal(5)),
        SquaredDistance(rng.standard_normal(n) * 3),
    ]
    for objective in objectives:
        for member in sets:
            inside = (
                p if not isinstance(member, ResidualBall) else np.linalg.lstsq(A, A @ p + 0.1)[0]
            )
            model = Model(
                objective, (member, Box(-np.full(n, 9.0), np.full(n, 9.0))), (n,), inside=inside
            )
            found, point, factor = model.reference()
            assert found.solved and model.safe is not None
            best = min(float(objective.value(z)) for z in model.feasible_points([point]))
            assert best == pytest.approx(found.lower * factor, rel=1e-6, abs=1e-7)


def test_matrices_in_conic_form_and_in_long_double_agree(rng):
    Z = rng.standard_normal((4, 4))
    Z = Z + Z.T
    for member in (PSDCone(4), Spectrahedron(4, 2.0, True), Spectrahedron(4, 2.0, False)):
        model = Model(SquaredDistance(Z), (member,), (4, 4), inside=0.5 * np.eye(4))
        found, point, factor = model.reference()
        inside = (
            model.changed(inside=0.4 * np.eye(4))
            if getattr(member, "equality", True) is False
            else model
        )
        best = min(float(model.objective.value(z)) for z in inside.feasible_points([point]))
        assert best == pytest.approx(found.lower * factor, rel=1e-6)
