"""Newton's method and the engines on problems whose solutions and multipliers are known by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import lopro
from lopro import NewtonMultipliers, Problem, ProgramEngines, Status
from lopro.constraints import (
    Affine,
    FunctionConstraint,
    Intersection,
    Polyhedron,
    PSDCone,
    ResidualBall,
    Simplex,
)
from lopro.errors import MissingCapabilityError
from lopro.objectives import (
    FunctionObjective,
    L1Norm,
    LeastSquares,
    Linear,
    Logistic,
    Quadratic,
    SquaredDistance,
)

METHODS = [NewtonMultipliers(), ProgramEngines()]
HALF = np.array([[1.0, 1.0]])
UNITS = [(1.0, 1.0), (1e-9, 1.0), (1e9, 1.0), (1.0, 1e-9), (1.0, 1e9), (1e-9, 1e9)]


def names(method: Any) -> str:
    return type(method).__name__


def is_right(result: lopro.Result, x: Any, fun: float, tol: float = 1e-6) -> None:
    """Converged to the known solution without a projection, with a bound that is below and near."""
    assert result.status is Status.CONVERGED and result.success
    size = float(np.linalg.norm(x))
    assert result.x == pytest.approx(np.asarray(x), abs=1e-6 * size)
    assert result.fun == pytest.approx(fun, rel=1e-6)
    assert result.counts.projections == 0
    c = result.certificate
    assert c.lower_bound <= fun + 1e-9 * abs(fun)
    assert c.lower_bound >= fun - 2.0 * tol * abs(fun)


@pytest.mark.parametrize(("s", "t"), UNITS)
@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("method", METHODS, ids=names)
def test_a_quadratic_program_in_any_units(method: Any, kind: Any, s: float, t: float) -> None:
    """Minimise t (x1^2 + 2 x2^2 - 4 x1 - 8 x2) / 2, x1 + x2 <= 2: at (2/3, 4/3), the multiplier is 4/3."""
    P = kind(t / s**2 * np.diag([1.0, 2.0]))
    f = Quadratic(P, t / s * np.array([-2.0, -4.0]))
    result = lopro.solve(Problem(f, Polyhedron(kind(HALF), np.array([2.0 * s]))), method=method)
    is_right(result, [2 / 3 * s, 4 / 3 * s], t * (2 / 9 + 16 / 9 - 4 / 3 - 16 / 3))
    assert result.multiplier is not None and result.multiplier.dual is not None
    assert result.multiplier.dual[0] == pytest.approx([4 / 3 * t / s], rel=1e-5)
    assert result.multiplier.direction == pytest.approx(np.full(2, 4 / 3 * t / s), rel=1e-5)
    assert result.multiplier.support == pytest.approx(8 / 3 * t, rel=1e-5)


@pytest.mark.parametrize(("s", "t"), UNITS)
@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("method", METHODS, ids=names)
def test_a_linear_program_in_any_units(method: Any, kind: Any, s: float, t: float) -> None:
    """Maximise 3 x + 2 y, x + y <= 4, x + 3 y <= 6, 0 <= x <= 3: (3, 1), multipliers 2, 0, 1 of x <= 3."""
    A = np.array([[1.0, 1.0], [1.0, 3.0]])
    box = Polyhedron.box([0.0, 0.0], [3.0 * s, math.inf])
    both = Intersection(Polyhedron(kind(A), s * np.array([4.0, 6.0])), box)
    result = lopro.solve(Problem(Linear(t / s * np.array([-3.0, -2.0])), both), method=method)
    is_right(result, [3.0 * s, 1.0 * s], -11.0 * t)


@pytest.mark.parametrize("method", METHODS, ids=names)
def test_the_multiplier_is_a_valid_inequality_that_proves_the_optimum(method: Any) -> None:
    """For every x: f(x) + <direction, x> - support >= the bound; with a wrong sign it would not be."""
    rng = np.random.default_rng(3)
    M = rng.standard_normal((6, 4))
    f = Quadratic(np.diag([1.0, 2.0, 3.0, 4.0]), rng.standard_normal(4) * 5.0)
    c = Affine(M, -np.ones(6), np.full(6, 0.5))
    result = lopro.solve(Problem(f, c), method=method)
    assert result.success
    v = result.multiplier
    assert v is not None
    worst = math.inf
    for scale in (0.01, 0.1, 1.0, 10.0):
        for x in result.x + scale * rng.standard_normal((200, 4)):
            inside = c.project(x)
            assert v.direction @ inside <= v.support + 1e-9 * (1.0 + abs(v.support))
            worst = min(worst, f.value(x) + v.direction @ x - v.support)
    assert worst >= result.certificate.lower_bound - 1e-9
    at_x = f.value(result.x) + v.direction @ result.x - v.support
    assert at_x == pytest.approx(result.fun, rel=1e-6)


@pytest.mark.parametrize("method", METHODS, ids=names)
def test_single_precision_in_single_precision_out(method: Any) -> None:
    f = SquaredDistance(np.array([3.0, 1.0], dtype=np.float32))
    half = Polyhedron(HALF.astype(np.float32), np.array([2.0], dtype=np.float32))
    result = lopro.solve(Problem(f, half), method=method, tol=1e-4)
    assert result.success and result.x.dtype == np.float32
    assert result.x == pytest.approx([2.0, 0.0], abs=1e-5)
    assert result.certificate.violation <= 64.0 * 2.0**-23


@pytest.mark.parametrize("method", METHODS, ids=names)
def test_every_form_of_the_set_gives_the_same_answer(method: Any) -> None:
    """The nearest point of the triangle x, y >= 0, x + y <= 1 to (3, 1) is (1, 0)."""
    f = SquaredDistance(np.array([3.0, 1.0]))
    corner = np.array([[-1.0, 0.0], [0.0, -1.0], [1.0, 1.0]])
    orthant = Polyhedron.box([0.0, 0.0], [math.inf, math.inf])
    for c in (
        Simplex(2, 1.0, equality=False),
        Simplex(2, 1.0),
        Polyhedron(corner, [0.0, 0.0, 1.0]),
        Affine(corner, -math.inf, [0.0, 0.0, 1.0]),
        Affine(-corner, [0.0, 0.0, -1.0], None),
        Intersection(orthant, Affine(HALF, 1.0, 1.0)),
        Intersection(orthant, ResidualBall(HALF, np.ones(1), 0.0)),
    ):
        is_right(lopro.solve(Problem(f, c), method=method), [1.0, 0.0], 2.5)


def test_newton_where_f_is_not_quadratic() -> None:
    """log(1 + exp(-x)) is decreasing: least over x <= 2 at 2, and the multiplier is minus its slope."""
    f = Logistic(np.array([[1.0]]), np.array([1.0]))
    result = lopro.solve(Problem(f, Polyhedron([[1.0]], [2.0])), method=NewtonMultipliers())
    is_right(result, [2.0], math.log1p(math.exp(-2.0)))
    assert result.multiplier is not None
    assert result.multiplier.direction == pytest.approx([1.0 / (1.0 + math.exp(2.0))], rel=1e-5)


@pytest.mark.parametrize(
    ("f", "c"),
    [
        (SquaredDistance(np.eye(2)), PSDCone(2)),
        (SquaredDistance(np.ones(2)), FunctionConstraint(lambda x: -1.0, np.zeros_like)),
        (FunctionObjective(np.sum, subgradient=np.ones_like, shape=(2,)), Polyhedron(HALF, [1.0])),
    ],
    ids=["cone", "function", "subgradient"],
)
@pytest.mark.parametrize("method", METHODS, ids=names)
def test_unsupported_problems_are_refused_before_any_work(method: Any, f: Any, c: Any) -> None:
    with pytest.raises(MissingCapabilityError):
        lopro.solve(Problem(f, c), method=method)


def test_engines_require_a_matrix_of_second_derivatives() -> None:
    half = Polyhedron(HALF, [1.0])
    for f in (
        Logistic(np.eye(2), np.ones(2)),
        LeastSquares(scipy.sparse.eye_array(2, format="csr"), np.ones(2)),
        LeastSquares(np.ones((1, 2)), np.ones(1)),  # no more rows than columns: a singular matrix
        L1Norm(),
    ):
        NewtonMultipliers().check(Problem(f, half))
        assert ProgramEngines().fit(Problem(f, half)) is None
        with pytest.raises(MissingCapabilityError, match="matrix P"):
            ProgramEngines().check(Problem(f, half))
    ProgramEngines().check(Problem(LeastSquares(np.eye(2), np.ones(2)), half))
    ball = ResidualBall(np.eye(2), np.zeros(2), 1.0)
    with pytest.raises(MissingCapabilityError):
        ProgramEngines().check(Problem(SquaredDistance(np.ones(2)), ball))


# Problems without solution.


@pytest.mark.parametrize("unit", [1.0, 1e-9, 1e9])
@pytest.mark.parametrize("objective", ["distance", "linear"])
@pytest.mark.parametrize("method", [lopro.Auto(), *METHODS], ids=names)
def test_an_empty_set_comes_with_multipliers_that_add_up_to_a_contradiction(
    method: Any, objective: str, unit: float
) -> None:
    """The rows x + y <= 1, x >= 1, y >= 1, taken once each, imply 0 <= -1."""
    C, b = np.array([[1.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]), unit * np.array([1.0, -1.0, -1.0])
    f = SquaredDistance(np.zeros(2)) if objective == "distance" else Linear(np.array([1.0, 2.0]))
    result = lopro.solve(Problem(f, Polyhedron(C, b)), method=method)
    assert result.status is Status.INFEASIBLE and not result.success
    y = np.asarray(result.ray[0])
    assert y.shape == (3,) and y.min() > 0.0
    assert y / y[0] == pytest.approx([1.0, 1.0, 1.0], rel=1e-9)
    assert C.T @ y == pytest.approx(np.zeros(2), abs=1e-12 * y[0])
    assert b @ y == pytest.approx(-unit * y[0], rel=1e-9)
    assert math.isnan(result.fun) and result.certificate.gap == math.inf


@pytest.mark.parametrize("unit", [1.0, 1e-9, 1e9])
@pytest.mark.parametrize("method", [lopro.Auto(), *METHODS], ids=names)
def test_an_unbounded_objective_comes_with_a_direction(method: Any, unit: float) -> None:
    """Over y <= 1 and x - y <= 1, x + y decreases along every ray with d2 <= 0 and d1 <= d2."""
    C, b = np.array([[0.0, 1.0], [1.0, -1.0]]), unit * np.array([1.0, 1.0])
    result = lopro.solve(Problem(Linear(np.array([1.0, 1.0])), Polyhedron(C, b)), method=method)
    assert result.status is Status.UNBOUNDED and not result.success
    d = np.asarray(result.ray)
    assert d.shape == (2,)
    assert d.sum() < 0.0
    assert (C @ d).max() <= 1e-9 * np.linalg.norm(d)
    assert "unbounded below" in result.message


def test_a_quadratic_that_is_flat_in_one_direction_may_be_unbounded() -> None:
    """x^2 / 2 - y over x >= -1 is unbounded along (0, 1); with y <= 5 it is bounded."""
    P, q = np.diag([1.0, 0.0]), np.array([0.0, -1.0])
    result = lopro.solve(Problem(Quadratic(P, q), Polyhedron([[-1.0, 0.0]], [1.0])))
    assert result.status is Status.UNBOUNDED
    d = np.asarray(result.ray) / np.linalg.norm(result.ray)
    assert d == pytest.approx([0.0, 1.0], abs=1e-6)
    bounded = Polyhedron([[-1.0, 0.0], [0.0, 1.0]], [1.0, 5.0])
    is_right(lopro.solve(Problem(Quadratic(P, q), bounded)), [0.0, 5.0], -5.0)


# The choices of Auto.


def test_explain_gives_the_order_in_which_methods_are_tried() -> None:
    f, half = SquaredDistance(np.array([3.0, 0.0])), Polyhedron(HALF, [1.0])
    lines = lopro.explain(Problem(f, half)).splitlines()
    assert (
        lines[0] == "minimise SquaredDistance over Polyhedron(1 rows, form=MaxForm()), 2 unknowns"
    )
    assert [line.split(":")[0] for line in lines[1:]] == [
        "1. ProgramEngines(engines=('piqp',))",
        "2. NewtonMultipliers()",
        "3. ProgramEngines()",
        "4. MultiplierMethod(steps=25, patience=60)",
    ]
    chosen = [repr(choice.method) for choice in lopro.Auto().choices(Problem(f, half))]
    assert [line.split(":")[0][3:] for line in lines[1:]] == chosen


def test_dense_programs_go_to_piqp_first_unless_they_are_large_quadratics_over_few_rows() -> None:
    rng = np.random.default_rng(0)
    C, b, P = rng.standard_normal((30, 10)), rng.random(30), np.eye(10) + 1.0
    linear, quadratic = Linear(rng.standard_normal(10)), Quadratic(P, np.ones(10))
    rows, few = Polyhedron(C, b), Polyhedron(C[:9], b[:9])
    large = Quadratic(np.eye(600) + 1.0, np.ones(600))
    few_of_large = Polyhedron(rng.standard_normal((60, 600)), np.ones(60))
    signs = Polyhedron.box(np.zeros(10), np.full(10, np.inf))
    quick = ["ProgramEngines(engines=('piqp',))", "NewtonMultipliers()", "ProgramEngines()"]
    for f, set_, expected in [
        (linear, rows, quick),
        (linear, few, quick),
        (quadratic, rows, quick),
        (quadratic, few, quick),
        (large, few_of_large, [quick[1], quick[0], quick[2]]),
        (quadratic, Intersection(few, signs), quick),
    ]:
        chosen = [repr(choice.method) for choice in lopro.Auto().choices(Problem(f, set_))]
        assert chosen[: len(expected)] == expected
    for f, kind in ((linear, "linear"), (quadratic, "quadratic")):
        line = lopro.explain(Problem(f, rows)).splitlines()[1]
        work = "about 12 iterations of piqp, 10 variables and 30 rows, "
        assert line.startswith(f"1. {quick[0]}: it is a dense {kind} program; {work}")
        assert line.endswith(" s")


def test_small_conic_forms_follow_where_newton_proves_nothing() -> None:
    rng = np.random.default_rng(0)
    for samples, asked in ((100, True), (20_000, False)):
        X, labels = (
            rng.standard_normal((samples, 10)),
            np.where(rng.random(samples) < 0.5, 1.0, -1.0),
        )
        rows = Polyhedron(rng.standard_normal((5, 10)), np.ones(5))
        chosen = [names(c.method) for c in lopro.Auto().choices(Problem(Logistic(X, labels), rows))]
        middle = ["InteriorPoint"] if asked else []
        assert chosen == ["NewtonMultipliers", *middle, "MultiplierMethod"]


def test_a_violation_too_large_for_the_gap_is_removed_by_a_projection(rng: Any) -> None:
    """Feasible up to rounding, but multipliers are large: the violation is charged 1.3e-9 of the value."""
    A, b, C = rng.standard_normal((9, 4)), rng.standard_normal(9), rng.standard_normal((3, 4))
    set_ = Intersection(Polyhedron(C, np.full(3, -0.5)), Affine(np.ones((1, 4)), 0.3, 0.3))
    problem = Problem(LeastSquares(A, b), set_)
    loose, tight = (lopro.solve(problem, tol=t, method=NewtonMultipliers()) for t in (1e-8, 1e-10))
    assert loose.success and loose.counts.projections == 0
    assert loose.certificate.relative_gap > 1e-9
    assert tight.success and tight.counts.projections == 1 and tight.multipliers is not None


def test_engines_are_requested_by_name() -> None:
    problem = Problem(Linear(np.array([-1.0, -2.0])), Polyhedron.box(np.zeros(2), np.ones(2)))
    for name in ("piqp", "highs", "clarabel"):
        result = lopro.solve(problem, method=ProgramEngines(engines=(name,)))
        is_right(result, [1.0, 1.0], -3.0)
        assert result.method == f"ProgramEngines(engines=('{name}',))"
    with pytest.raises(ValueError, match="'clarabel', 'highs', 'piqp'"):
        ProgramEngines(engines=("gurobi",))


@pytest.mark.parametrize("method", METHODS)
def test_rays_of_empty_sets_have_one_array_for_each_member(method: Any) -> None:
    """X >= 2 in each of two entries, and a sum of at most 1: the row and both bounds have multipliers."""
    row = Polyhedron(np.ones((1, 2)), [1.0])
    box = Polyhedron.box(np.full(2, 2.0), np.full(2, 5.0))
    problem = Problem(Quadratic(np.eye(2), np.ones(2)), Intersection(row, box))
    result = lopro.solve(problem, method=method)
    assert result.status is Status.INFEASIBLE
    of_row, of_box = (np.asarray(y) for y in result.ray)
    assert of_row.shape == (1,) and of_box.shape == (2,)
    assert of_row[0] > 0.0 and of_box == pytest.approx(-of_row[0] * np.ones(2), rel=1e-6)


def test_explain_evaluates_nothing_and_requires_a_problem() -> None:
    def never(x: Any) -> Any:
        raise AssertionError("nothing is to be evaluated")

    ball = FunctionConstraint(never, never, shape=(2,))
    text = lopro.explain(Problem(L1Norm(), ball))
    assert "1. LoPGD(" in text and "2." not in text
    with pytest.raises(TypeError, match="problem"):
        lopro.explain(ball)


def test_sparse_programs_go_to_the_engines_first() -> None:
    n = 400
    D = scipy.sparse.diags_array(
        [np.ones(n - 1), -np.ones(n - 1)], offsets=[0, 1], shape=(n - 1, n)
    )
    problem = Problem(SquaredDistance(np.sin(np.arange(n))), Polyhedron(D.tocsr(), np.zeros(n - 1)))
    first, second = lopro.Auto().choices(problem)[:2]
    assert {names(first.method), names(second.method)} == {"NewtonMultipliers", "ProgramEngines"}
    result = lopro.solve(problem)
    assert result.success
    assert result.method == f"Auto() -> {first.method!r}"
    assert np.diff(result.x).min() >= -1e-9
