"""The plan: which methods fit, their estimated cost, and that each prepared form is made only once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
import scipy.sparse

import lopro
from lopro import NewtonMultipliers, Problem, ProgramEngines
from lopro.constraints import Affine, Box, Intersection, Polyhedron, ResidualBall
from lopro.engines import QuadraticProgram
from lopro.methods.baselines import InteriorPoint
from lopro.methods.costs import engine_cost, newton_cost
from lopro.methods.second_order.forms import Forms
from lopro.newton import Composite
from lopro.objectives import (
    HingeLoss,
    LeastSquares,
    Linear,
    Logistic,
    PinballLoss,
    Poisson,
    Quadratic,
    SquaredDistance,
    Sum,
)
from lopro.protocol import Candidate, Card, Cost, Fit, fit_of, required_fit


@dataclass(frozen=True)
class Mine:
    """A method of a user: `check` and `run`, no `fit`."""

    card: ClassVar[Card] = Card("none", "none", "none", "none")
    refuses: bool = False

    def check(self, problem: Problem) -> None:
        if self.refuses:
            raise lopro.MissingCapabilityError("Mine needs something else")

    def run(self, bench: Any, x0: Any) -> Any:
        yield Candidate(bench.project(x0))


def small(rng: Any) -> Problem:
    A, b, G = rng.standard_normal((30, 10)), rng.standard_normal(30), rng.standard_normal((15, 10))
    return Problem(LeastSquares(A, b), Polyhedron(G, np.full(15, 0.1)))


def test_methods_without_fit_are_checked(rng: Any) -> None:
    problem = small(rng)
    fit = fit_of(Mine(), problem, "mine")
    assert fit is not None and fit.method == Mine() and fit.reason == "mine" and fit.cost is None
    assert fit_of(Mine(refuses=True), problem) is None
    with pytest.raises(lopro.MissingCapabilityError, match="something else"):
        required_fit(Mine(refuses=True), problem)
    assert lopro.solve(problem, method=Mine()).status is lopro.Status.SCHEDULE_DONE


def test_methods_that_do_not_fit_give_a_reason_without_an_exception(rng: Any) -> None:
    problem = Problem(Logistic(np.eye(2), np.ones(2)), ResidualBall(np.eye(2), np.zeros(2), 1.0))
    forms = Forms(problem)
    assert forms.program_obstacle == "the objective is not given by a matrix P"
    assert forms.composite_obstacle is None
    assert ProgramEngines().fit(problem) is None
    with pytest.raises(lopro.MissingCapabilityError, match="matrix P"):
        lopro.solve(problem, method=ProgramEngines())
    ball = Problem(SquaredDistance(np.ones(2)), ResidualBall(np.eye(2), np.zeros(2), 1.0))
    assert Forms(ball).program_obstacle == (
        "the constraint is not given by rows of an explicit matrix"
    )
    matrix = Problem(SquaredDistance(np.ones((2, 2))))
    assert Forms(matrix).composite_obstacle == "second-order methods take vectors of a known size"


def test_highs_is_not_used_for_quadratic_programs(rng: Any) -> None:
    problem, highs = small(rng), ProgramEngines(engines=("highs",))
    assert highs.fit(problem) is None
    with pytest.raises(lopro.MissingCapabilityError, match="HiGHS solves linear programs only"):
        lopro.solve(problem, method=highs)


@pytest.mark.parametrize("kind", ["least squares", "quadratic", "hand over"])
def test_each_form_is_made_once(kind: str, rng: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a program that PIQP solves, and for one that Newton's method solves after it."""
    made: Counter[str] = Counter()
    of, init = Composite.of, QuadraticProgram.__init__

    def composite(*args: Any) -> Composite:
        made["Composite"] += 1
        return of(*args)

    def program(*args: Any, **named: Any) -> None:
        made["QuadraticProgram"] += 1
        init(*args, **named)

    monkeypatch.setattr(Composite, "of", staticmethod(composite))
    monkeypatch.setattr(QuadraticProgram, "__init__", program)
    problem = small(rng)
    if kind == "quadratic":
        P = rng.standard_normal((10, 10))
        problem = Problem(Quadratic(P @ P.T, np.ones(10)), problem.constraint)
    tol = 1e-30 if kind == "hand over" else 1e-6
    result = lopro.solve(problem, tol=tol)
    assert result.method.startswith("Auto() -> ProgramEngines(engines=('piqp',))")
    assert ("NewtonMultipliers" in result.method) is (kind == "hand over")
    # The program as it is posed, and in the units passed to PIQP. The result of PIQP is proved from the data
    # of the program: only Newton's method uses the composite problem.
    assert made == {"QuadraticProgram": 2} | ({"Composite": 1} if kind == "hand over" else {})


def test_a_sum_of_squares_is_a_program_with_its_normal_matrix(rng: Any) -> None:
    """Scales, a ridge and a linear term: the program has the value, slope and curvature of the sum."""
    A, b, c = rng.standard_normal((9, 4)), rng.standard_normal(9), rng.standard_normal(4)
    f = Sum(2.0 * LeastSquares(A, b), 3.0 * SquaredDistance(c), Linear(c))
    forms = Forms(Problem(f, Polyhedron(rng.standard_normal((5, 4)), np.ones(5))))
    p, x = forms.program, rng.standard_normal(4)
    assert 0.5 * x @ (p.P @ x) + p.q @ x + p.constant == pytest.approx(f.value(x), rel=1e-13)
    assert p.P @ x + p.q == pytest.approx(f.subgradient(x), rel=1e-12)
    assert not forms.exact and not forms.sparse and forms.rows == 5
    assert Forms(Problem(SquaredDistance(c))).exact


def test_no_ray_of_a_rounded_normal_matrix_is_claimed(rng: Any) -> None:
    """Columns that nearly depend on each other: flat, but bounded below by 0."""
    A = np.outer(rng.standard_normal(20), [1.0, 1.0, -1.0]) + 1e-13 * rng.standard_normal((20, 3))
    rows = Polyhedron([[1.0, -1.0, 0.0]], [1e9])
    result = lopro.solve(Problem(LeastSquares(A, rng.standard_normal(20)), rows))
    assert result.status is not lopro.Status.UNBOUNDED


def test_multipliers_of_rows_and_bounds_go_to_their_terms() -> None:
    rows = Affine(np.eye(3)[:2], -1.0, 1.0)
    box, again = Polyhedron.box(np.zeros(3), np.ones(3)), Polyhedron.box(np.zeros(3), np.full(3, 2))
    more = Polyhedron(np.ones((1, 3)), [2.0])
    forms = Forms(Problem(SquaredDistance(np.ones(3)), Intersection(rows, again, more, box)))
    found = forms.split_multipliers(np.array([1.0, 2.0, 3.0]), np.array([4.0, -5.0, 0.0]))
    # Only the second box has the tight upper bound; both have the lower, whose multiplier goes to the first.
    expected = [[1.0, 2.0], [0.0, -5.0, 0.0], [3.0], [4.0, 0.0, 0.0]]
    for v, reference in zip(found, expected, strict=True):
        assert v.tolist() == reference


def test_losses_of_statistics_over_rows_go_to_newton(rng: Any) -> None:
    X, y = rng.standard_normal((2000, 20)), rng.standard_normal(2000)
    rising = Polyhedron(-np.diff(np.eye(20), axis=0), np.zeros(19))
    signs, counts = np.sign(y), rng.poisson(1.0, 2000).astype(float)
    box = Polyhedron.box(-np.ones(20), np.ones(20))
    for f, c in (
        (PinballLoss(X, y, 0.3), rising),
        (HingeLoss(X, signs) + 0.5 * SquaredDistance(np.zeros(20)), Intersection(rising, box)),
        (Poisson(X, counts), rising),
    ):
        problem = Problem(f, c)
        assert lopro.Auto().choose(problem) == NewtonMultipliers()
        assert lopro.solve(problem).success


def test_estimated_costs_grow_with_the_operations() -> None:
    """Factorisations are cubic in the number of variables, the rest of a step linear in that of rows."""
    operations = [engine_cost(0, n, n * n, sparse=False).operations for n in (2000, 4000)]
    assert operations[1] / operations[0] == pytest.approx(8.0, rel=0.01)
    more = [engine_cost(m, 100, 100 * m, sparse=False).operations for m in (10**6, 2 * 10**6)]
    assert more[1] / more[0] == pytest.approx(2.0, rel=0.01)
    (term,) = Logistic(np.ones((50_000, 10)), np.ones(50_000)).terms
    assert newton_cost([term], 10).operations == pytest.approx(10 * (5e6 + 6e6), rel=0.01)
    slow = Cost("nothing", 1e12)
    assert str(slow).startswith("about nothing, ") and slow.seconds > 0.0


def test_warm_starts_are_used_where_the_method_supports_them(rng: Any) -> None:
    problem = small(rng)
    cold = lopro.solve(problem)
    assert cold.method == "Auto() -> ProgramEngines(engines=('piqp',))"
    for warm in (
        lopro.solve(problem, cold.x, multipliers0=cold.multipliers),
        lopro.solve(problem, warm_start=cold),
    ):
        assert warm.success and warm.method == cold.method and not warm.warnings
        assert warm.fun == pytest.approx(cold.fun, rel=1e-9)
    # Not used for linear programs: Newton's method could start from the multipliers, but takes longer.
    box = Polyhedron.box(-np.ones(10), np.ones(10))
    linear = Problem(Linear(np.ones(10)), Intersection(problem.constraint, box))
    first = lopro.solve(linear)
    again = lopro.solve(linear, warm_start=first)
    assert again.success and again.method == first.method
    assert again.warnings == ("the method did not use multipliers0",)
    with pytest.raises(TypeError, match="warm_start must be a result"):
        lopro.solve(problem, warm_start=cold.x)


def test_the_run_uses_the_conic_form_of_the_plan(rng: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from lopro.methods.second_order import interior_point

    made, original = [], interior_point._translated

    def translated(problem: Problem, x: Any) -> Any:
        made.append(x)
        return original(problem, x)

    monkeypatch.setattr(interior_point, "_translated", translated)
    result = lopro.solve(small(rng), method=InteriorPoint())
    assert result.success and len(made) == 1


def test_plans_rank_by_operations() -> None:
    """Few rows and many variables go to Newton's method, many rows to PIQP, sparse ones to the engines."""
    rng = np.random.default_rng(0)
    P = np.eye(600) + 1.0

    def first(rows: Any) -> Fit:
        return lopro.Auto().choices(Problem(Quadratic(P, np.ones(600)), rows))[0]

    few = first(Polyhedron(rng.standard_normal((60, 600)), np.ones(60)))
    many = first(Polyhedron(rng.standard_normal((1200, 600)), np.ones(1200)))
    assert few.method == NewtonMultipliers() and many.method == ProgramEngines(engines=("piqp",))
    assert few.cost is not None and few.cost.work == "12 factorisations of 600 x 600"
    D = scipy.sparse.diags_array([np.ones(600)], offsets=[0], format="csr")
    sparse = Problem(SquaredDistance(np.ones(600)), Polyhedron(D, np.ones(600)))
    assert lopro.Auto().choose(sparse) == ProgramEngines()


def factor_model(rng: Any, n: int) -> tuple[Problem, Problem]:
    """Return a sum of few squares over sparse rows and bounds, and the same by its matrix."""
    F, b, own = rng.standard_normal((4, n)), rng.standard_normal(4), 0.1 + rng.random(n)
    c = rng.standard_normal(n)
    groups = scipy.sparse.csr_array((np.ones(n), (np.arange(n) % 3, np.arange(n))), (3, n))
    D = scipy.sparse.diags_array(np.sqrt(own)).tocsr()
    f = 2.0 * LeastSquares(F, b) + LeastSquares(D, np.zeros(n)) + Linear(c)
    whole = Quadratic(2.0 * F.T @ F + np.diag(own), c - 2.0 * b @ F, float(b @ b))
    lower, upper = np.array([1.0, -np.inf, -1.0]), np.array([1.0, 0.5, 1.0])
    sets = Intersection(Affine(groups, lower, upper), Box(np.zeros(n), np.full(n, 3.0)))
    return Problem(f, sets), Problem(whole, sets)


def test_the_images_of_few_squares_are_variables_of_a_sparse_program(rng: Any) -> None:
    """A factor model of 4 factors: its matrix would be dense; scales and offsets are kept."""
    problem, whole = factor_model(rng, 200)
    forms = Forms(problem)
    p = forms.program
    assert forms.sparse and forms.rows == 7 and forms.variables == 204
    assert p.A.nnz + p.P.nnz == 200 + 4 * 200 + 4 + 204
    x = rng.standard_normal(200)
    y = p.A[3:, :200] @ x - p.lower[3:]
    z = np.concatenate([x, y])
    assert 0.5 * z @ (p.P @ z) + p.q @ z + p.constant == pytest.approx(whole.objective.value(x))
    result, expected = lopro.solve(problem), lopro.solve(whole, tol=1e-9)
    assert result.success and result.method == "Auto() -> ProgramEngines()"
    assert result.fun == pytest.approx(expected.fun, rel=1e-6)
    assert result.x.shape == (200,)
    assert [v.shape for v in result.multipliers] == [(3,), (200,)]
    slope = whole.objective.subgradient(result.x) + problem.constraint.members()[0].M.adjoint(
        result.multipliers[0]
    )
    assert slope + result.multipliers[1] == pytest.approx(np.zeros(200), abs=1e-6)


def test_an_empty_set_under_few_squares_is_reported_with_the_multipliers_of_its_own_rows(
    rng: Any,
) -> None:
    f = factor_model(rng, 60)[0].objective
    total = Affine(scipy.sparse.csr_array(np.ones((1, 60))), -1.0, -1.0)
    problem = Problem(f, Intersection(total, Box(np.zeros(60), np.full(60, np.inf))))
    result = lopro.solve(problem, method=ProgramEngines())
    assert result.status is lopro.Status.INFEASIBLE
    assert [np.shape(v) for v in result.ray] == [(1,), (60,)]


def test_squares_with_a_sparse_normal_matrix_add_no_variables(rng: Any) -> None:
    n = 30
    steps = scipy.sparse.diags_array([-np.ones(n), np.ones(n)], offsets=[0, 1], shape=(n - 1, n))
    f = LeastSquares(steps.tocsr(), np.ones(n - 1))
    rows = scipy.sparse.csr_array(np.ones((1, n)))
    assert Forms(Problem(f, Affine(rows, 1.0, 1.0))).variables == n
    few = LeastSquares(rng.standard_normal((3, n)), np.ones(3))
    dense = Problem(few, Polyhedron(rng.standard_normal((5, n)), np.ones(5)))
    assert Forms(dense).program_obstacle == "the objective is not given by a matrix P"
