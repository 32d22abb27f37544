"""The method of multipliers with Newton steps: known answers, units, counts, deadlines, warm starts."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
import scipy.sparse.linalg
from support.newton_examples import (
    composed,
    differences,
    half_spaces,
    interval,
    isotonic,
    least_squares,
    linear,
    linear_program,
    logistic,
    quadratic,
    squared_distance,
)

from lopro.certificates import Bound
from lopro.core.deadline import OutOfTime
from lopro.functions.atoms import L1
from lopro.functions.term import Term
from lopro.newton import Outcome, Settings, Status, iterate, solve
from lopro.newton.smooth import SmoothSum
from lopro.newton.systems.dense import DenseSystem


def test_projection_on_a_box(rng):
    z = 3.0 * rng.standard_normal(40)
    outcome = solve(
        composed(squared_distance(z), [(interval(-1.0, 1.0, size=40), None)]), tol=1e-12
    )
    np.testing.assert_allclose(outcome.x, np.clip(z, -1, 1), atol=1e-12)
    np.testing.assert_allclose(outcome.multipliers[0], z - np.clip(z, -1, 1), atol=1e-9)


def test_isotonic_regression_agrees_with_pooling(rng):
    for n in (2, 50, 400):
        problem = isotonic(rng, n)
        outcome = solve(problem, tol=1e-10, feasibility=1e-11)
        expected = scipy.optimize.isotonic_regression(problem.smooth.term.offset).x
        assert outcome.status is Status.CONVERGED
        np.testing.assert_allclose(outcome.x, expected, atol=1e-8)


def test_linear_program_agrees_with_highs(rng):
    for d, m in ((3, 12), (8, 40), (30, 200)):
        q, A, upper = linear_program(rng, d, m)
        outcome = solve(composed(linear(q), [(interval(upper=upper), A)]), tol=1e-7)
        expected = scipy.optimize.linprog(q, A_ub=A, b_ub=upper, bounds=(None, None))
        assert outcome.status is Status.CONVERGED
        assert outcome.fun == pytest.approx(expected.fun, rel=1e-8)
        assert outcome.bound.value <= expected.fun + 1e-12 * abs(expected.fun)
        lost = outcome.bound.value - outcome.bound.around(outcome.x)
        assert 0.0 < lost < 1e-6 * abs(outcome.fun)
        np.testing.assert_allclose(outcome.multipliers[0], -expected.ineqlin.marginals, atol=1e-7)


def test_equalities_bounds_and_two_terms(rng):
    """A quadratic with one equality, two-sided rows and a box, against SciPy."""
    M, q = rng.standard_normal((6, 6)), rng.standard_normal(6)
    P = M @ M.T + 0.1 * np.eye(6)
    A = rng.standard_normal((3, 6))
    lower, upper = np.array([1.0, -0.5, -np.inf]), np.array([1.0, 0.5, 0.2])
    terms = [(interval(lower, upper), A), (interval(lower=np.full(6, -0.6)), None)]
    outcome = solve(composed(quadratic(P, q), terms), tol=1e-11, feasibility=1e-11)
    reference = scipy.optimize.minimize(
        lambda x: 0.5 * x @ P @ x + q @ x,
        np.zeros(6),
        jac=lambda x: P @ x + q,
        bounds=[(-0.6, None)] * 6,
        constraints=[
            {"type": "eq", "fun": lambda x: A[0] @ x - 1.0},
            {
                "type": "ineq",
                "fun": lambda x: np.array([0.5 - A[1] @ x, 0.5 + A[1] @ x, 0.2 - A[2] @ x]),
            },
        ],
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 500},
    )
    assert outcome.status is Status.CONVERGED
    np.testing.assert_allclose(outcome.x, reference.x, atol=1e-5)
    assert outcome.fun <= reference.fun + 1e-9


@pytest.mark.parametrize("ridge", [0.0, 0.01])
def test_logistic_regression_between_two_sided_rows(rng, ridge):
    A, C = rng.standard_normal((400, 6)), rng.standard_normal((3, 6))
    labels = np.where(A @ np.ones(6) + rng.standard_normal(400) > 0, 1.0, -1.0)
    f = logistic(A, labels, 1 / 400)
    if ridge:
        f = SmoothSum([f, squared_distance(np.zeros(6), ridge)])
    problem = composed(f, [(interval(-0.05, 0.05, size=3), C)])
    outcome = solve(problem, tol=1e-9)
    assert outcome.status is Status.CONVERGED
    assert outcome.steps <= 20
    assert (outcome.bound.slope == 0.0) == (ridge > 0.0)
    # Optimality, by hand: the gradient is a combination of the rows, with multipliers of the right sign.
    gradient = f.gradient(outcome.x, f.image(outcome.x))
    np.testing.assert_allclose(gradient, -outcome.multipliers[0] @ C, atol=1e-9)
    images = C @ outcome.x
    for v, y in zip(outcome.multipliers[0], images, strict=True):
        assert abs(v) < 1e-12 or y == pytest.approx(0.05 * np.sign(v), abs=1e-8)


def test_every_form_of_the_data_gives_the_same_answer(rng):
    B, b, A, upper = half_spaces(rng)
    part = interval(upper=upper)
    answers = [
        solve(composed(f, [(part, D)]), tol=1e-11, feasibility=1e-11).x
        for f in (
            least_squares(B, b),
            least_squares(scipy.sparse.csr_array(B), b),
            quadratic(B.T @ B, -B.T @ b, 0.5 * b @ b),
        )
        for D in (A, scipy.sparse.csr_array(A), scipy.sparse.linalg.aslinearoperator(A))
    ]
    for x in answers[1:]:
        np.testing.assert_allclose(x, answers[0], atol=1e-8)


def test_few_rows_and_many_variables(rng):
    """Wide least squares over a box: the row space, with a proximal term since it is singular."""
    B, b = rng.standard_normal((15, 300)), rng.standard_normal(15)
    problem = composed(least_squares(B, b), [(interval(0.0, 0.02, size=300), None)])
    outcome = solve(problem, tol=1e-8)
    assert outcome.status is Status.CONVERGED
    reference = scipy.optimize.lsq_linear(B, b, (0.0, 0.02), tol=1e-14)
    assert outcome.fun == pytest.approx(reference.cost, rel=1e-6)
    assert outcome.bound.slope == 0.0  # the box bounds every variable


def scaled(rng, kind):
    """Return a problem, the same in other units, and the units of x, f and of each row."""
    unit_x, unit_f = 2.0**23, 2.0**-34
    if kind == "isotonic":
        y = isotonic(rng, 200).smooth.term.offset
        D = differences(200)
        units = 2.0 ** rng.integers(-30, 30, 199)
        one = composed(squared_distance(y), [(interval(lower=np.zeros(199)), D)])
        rows = scipy.sparse.diags_array(units) @ D / unit_x
        f = squared_distance(y * unit_x, unit_f / unit_x**2)
        return one, composed(f, [(interval(lower=np.zeros(199)), rows)]), unit_x, unit_f, units
    B, b, A, upper = half_spaces(rng)
    units = 2.0 ** rng.integers(-30, 30, len(upper))
    root = np.sqrt(unit_f)
    if kind == "linear":
        q, A, upper = linear_program(rng)
        units = units[: len(upper)]
        f, g = linear(q), linear(q * unit_f / unit_x)
    elif kind == "wide":
        f, g = least_squares(B[:5], b[:5]), least_squares(root * B[:5] / unit_x, root * b[:5])
    else:
        f, g = least_squares(B, b), least_squares(root * B / unit_x, root * b)
    one = composed(f, [(interval(upper=upper), A)])
    other = composed(g, [(interval(upper=units * upper), units[:, None] * A / unit_x)])
    return one, other, unit_x, unit_f, units


@pytest.mark.parametrize("kind", ["least squares", "linear", "wide", "isotonic"])
def test_units_scale_every_iterate_exactly(rng, kind):
    """Powers of two in x, f and each row: the iterates are the same bit by bit, in the new units."""
    one, other, unit_x, unit_f, units = scaled(rng, kind)
    for k, (a, b) in enumerate(zip(iterate(one), iterate(other), strict=False)):
        assert np.array_equal(a.point.x * unit_x, b.point.x), k
        assert np.array_equal(a.multipliers[0] * unit_f / units, b.multipliers[0]), k
        assert (a.violation, a.stationarity, a.steps) == (b.violation, b.stationarity, b.steps), k
        if k == 8:
            break
    assert a.steps > 5


def test_a_constant_with_a_unit_is_detected(rng):
    """Negative control: a starting point of fixed size breaks the equality above."""
    one, other, unit_x, _, _ = scaled(rng, "least squares")
    x0 = np.ones(one.size)
    a, b = next(iterate(one, x0)), next(iterate(other, x0))
    assert not np.array_equal(a.point.x * unit_x, b.point.x)


def test_counts_of_newton_steps(rng):
    """Counts are deterministic, so the test limits them: a change that needs more steps has to justify it."""
    B, b, A, upper = half_spaces(rng, 40, 400)
    assert solve(composed(least_squares(B, b), [(interval(upper=upper), A)])).steps <= 50
    q, A, upper = linear_program(rng, 40, 200)
    assert solve(composed(linear(q), [(interval(upper=upper), A)])).steps <= 110
    assert solve(isotonic(rng, 1000)).steps <= 50


def test_warm_start_is_used(rng):
    B, b, A, upper = half_spaces(rng, 40, 400)
    cold = solve(composed(least_squares(B, b), [(interval(upper=upper), A)]))
    problem = composed(least_squares(B, b * (1.0 + 1e-6)), [(interval(upper=upper), A)])
    warm = solve(
        problem, x0=cold.x, multipliers0=cold.multipliers, settings=Settings(stiffness=1e3)
    )
    assert warm.status is Status.CONVERGED
    assert warm.steps <= cold.steps // 2


def test_time_limit_is_checked_in_every_step(rng):
    B, b, A, upper = half_spaces(rng, 40, 400)
    problem = composed(least_squares(B, b), [(interval(upper=upper), A)])
    calls = []

    def after_five():
        calls.append(None)
        return len(calls) > 5

    outcome = solve(problem, stopped=after_five)
    assert outcome.status is Status.STOPPED
    assert outcome.steps <= 5
    assert np.isfinite(outcome.bound.value) or outcome.bound.value == -np.inf
    with pytest.raises(OutOfTime):
        solve(problem, stopped=lambda: True)


def test_inputs_are_neither_changed_nor_aliased(rng):
    B, b, A, upper = half_spaces(rng)
    x0, u0 = rng.standard_normal(12), [rng.uniform(size=60)]
    arrays = [B, b, A, upper, x0, u0[0]]
    copies = [a.copy() for a in arrays]
    outcome = solve(
        composed(least_squares(B, b), [(interval(upper=upper), A)]), x0=x0, multipliers0=u0
    )
    for mine, copy in zip(arrays, copies, strict=True):
        assert np.array_equal(mine, copy)
        assert not np.shares_memory(outcome.x, mine)


def test_infeasible_problems(rng):
    """A positive combination of the rows contradicts itself."""
    A, y, upper = rng.standard_normal((50, 10)), rng.uniform(0.5, 1.0, 50), rng.standard_normal(50)
    A[-1] = -(y[:-1] @ A[:-1]) / y[-1]
    upper[-1] = (-1.0 - y[:-1] @ upper[:-1]) / y[-1]
    for f in (
        linear(rng.standard_normal(10)),
        squared_distance(np.zeros(10)),
        least_squares(rng.standard_normal((20, 10)), np.ones(20)),
    ):
        outcome = solve(composed(f, [(interval(upper=upper), A)]), settings=Settings(max_steps=500))
        assert outcome.status is Status.INFEASIBLE
        assert outcome.certificate.radius > 1e12


@pytest.mark.parametrize("unit", [1.0, 1e-9, 1e9])
def test_multipliers_that_cancel_where_the_objective_is_flat(unit):
    """Between ``x <= -1`` and ``x >= 1`` the minimiser is 0, and only rounding is left of the gradient."""
    rows = (interval(upper=np.full(2, -unit)), np.array([[1.0, 0.0], [-1.0, 0.0]]))
    problem = composed(squared_distance(np.zeros(2)), [rows])
    outcome = solve(problem, x0=unit * np.ones(2))
    assert outcome.status is Status.INFEASIBLE and outcome.steps <= 5
    (y,) = outcome.ray
    assert y[0] == y[1] > 0.0
    assert outcome.certificate.radius == np.inf


def test_outer_steps_without_newton_steps_are_bounded(monkeypatch):
    """At a feasible minimum no step is made, and the same state would repeat without end."""
    problem = composed(squared_distance(np.zeros(1)), [(interval(upper=np.ones(1)), None)])
    states = list(iterate(problem, settings=Settings(max_steps=40)))
    assert len(states) == 40 and states[-1].steps == 0
    # Where the inner problem is not even solved, nothing changes from one outer step to the next.
    monkeypatch.setattr("lopro.newton.inner._step", lambda *arguments: None)
    assert len(list(iterate(problem, np.array([9.0]), settings=Settings(max_steps=40)))) == 1


def test_unbounded_problems(rng):
    A = np.abs(rng.standard_normal((5, 10)))
    problem = composed(linear(np.ones(10)), [(interval(upper=np.ones(5)), A)])
    outcome = solve(problem, settings=Settings(max_steps=500))
    assert outcome.status is Status.UNBOUNDED
    assert outcome.certificate.slope > 0
    np.testing.assert_allclose(np.linalg.norm(outcome.ray), 1.0)
    flat = composed(
        quadratic(np.diag([1.0, 0.0]), np.array([0.0, -1.0])), [(interval(lower=np.zeros(2)), None)]
    )
    assert solve(flat, settings=Settings(max_steps=500)).status is Status.UNBOUNDED


def test_degenerate_rows(rng):
    """Rows that are zero, repeated, or pin the solution to a single point."""
    A = np.vstack([np.eye(3), np.eye(3), np.zeros((1, 3)), np.ones((1, 3))])
    lower = np.array([1.0, 2.0, 3.0, 1.0, 2.0, 3.0, -1.0, -np.inf])
    upper = np.array([1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 1.0, 6.0])
    for f in (linear(rng.standard_normal(3)), squared_distance(rng.standard_normal(3))):
        outcome = solve(composed(f, [(interval(lower, upper), A)]))
        assert outcome.status is Status.CONVERGED
        np.testing.assert_allclose(outcome.x, [1.0, 2.0, 3.0], atol=1e-8)


def test_wrong_shapes_and_crossed_bounds_raise_errors():
    with pytest.raises(ValueError, match="shape"):
        composed(linear(np.ones(3)), [(interval(upper=np.ones(2)), np.ones((2, 4)))])
    with pytest.raises(ValueError, match="must not exceed"):
        interval(1.0, np.zeros(2))
    with pytest.raises(ValueError, match="NaN"):
        interval(np.nan, np.zeros(2))


def test_a_norm_counts_in_the_value_and_in_the_gap():
    """1/2 |x - (3, 0.5, -2)|^2 + |x|_1 over x_1 <= 1: 4.625 at (1, 0, -1), the gap is that of the sum."""
    f = squared_distance(np.array([3.0, 0.5, -2.0]))
    row = (interval(upper=np.ones(1)), np.array([[1.0, 0.0, 0.0]]))
    outcome = solve(composed(f, [row, (Term(L1(1.0)), None)]), tol=1e-10, feasibility=1e-11)
    assert outcome.status is Status.CONVERGED
    assert outcome.fun == pytest.approx(4.625, rel=1e-9)
    assert outcome.bound.value == pytest.approx(4.625, rel=1e-9) and outcome.gap >= 0.0
    np.testing.assert_allclose(outcome.x, [1.0, 0.0, -1.0], atol=1e-8)
    np.testing.assert_allclose(outcome.multipliers[1], [1.0, 0.5, -1.0], atol=1e-8)


def test_comparisons_of_outcomes_include_the_charge():
    """A point whose violation lowers its value is not better for its smaller gap."""
    bound = Bound.everywhere(1.0)

    def outcome(charge, fun):
        return Outcome(Status.STOPPED, np.ones(1), (), fun, bound, charge, 0.0, 0)

    honest, lucky = outcome(0.0, 1.5), outcome(3.0, -1.9)
    assert lucky.gap < honest.gap
    assert honest.better(lucky, 1e-9) and not lucky.better(honest, 1e-9)


class HiddenSingularity:
    """Solves with dense matrices; without a proximal term, its directions are far too long."""

    def __init__(self, size: int) -> None:
        self.exact = DenseSystem(size)
        self.shifts: list[float] = []

    def solve(self, pieces, shift, rhs, accuracy=0.0):
        self.shifts.append(shift)
        return self.exact.solve(pieces, shift, rhs) if shift > 0.0 else 1e12 * rhs


def test_hidden_singular_systems_get_a_proximal_term(rng):
    """A factorisation may succeed on a singular matrix: the direction is then too long to descend along."""
    q, A, upper = linear_program(rng, 3, 12)
    problem = composed(linear(q), [(interval(upper=upper), A)])
    system = HiddenSingularity(3)
    state = next(s for s in iterate(problem, system=system) if s.violation < 1e-9)
    expected = scipy.optimize.linprog(q, A_ub=A, b_ub=upper, bounds=(None, None))
    assert system.shifts[0] == 0.0 < min(system.shifts[1:])
    np.testing.assert_allclose(state.point.x, expected.x, atol=1e-7)
