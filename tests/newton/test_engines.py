"""Engines: one form of answer for all, exact units, and programs proved or refused."""

import numpy as np
import pytest
import scipy.sparse

from lopro.core.units import power_of_two
from lopro.newton import Status
from lopro.newton.engines import (
    AnswerStatus,
    NotConvex,
    QuadraticProgram,
    engines_for,
    in_handy_units,
    solve_by_clarabel,
    solve_by_highs,
    solve_by_piqp,
    solve_program,
)
from lopro.newton.engines.program import _powers

QUADRATIC = [solve_by_piqp, solve_by_clarabel]


def program(rng, quadratic=True, sparse=False, n=8, m=12):
    """Equalities, one- and two-sided rows, a fixed variable, variables with and without bounds."""
    M = rng.standard_normal((n, n))
    P = M @ M.T + 0.1 * np.eye(n) if quadratic else None
    A = rng.standard_normal((m, n))
    x = rng.uniform(0.2, 0.8, n)
    lower, upper = A @ x - rng.uniform(0.1, 1, m), A @ x + rng.uniform(0.1, 1, m)
    lower[:4], upper[4:6] = -np.inf, np.inf
    lower[6] = upper[6] = A[6] @ x
    least, most = np.zeros(n), np.ones(n)
    least[0], most[1] = -np.inf, np.inf
    least[2] = most[2] = x[2]
    if not quadratic:
        least[0] = -5.0
        most[1] = 5.0
    if sparse:
        A, P = scipy.sparse.csr_array(A), None if P is None else scipy.sparse.csc_array(P)
    return QuadraticProgram.of(P, 5.0 * rng.standard_normal(n), A, lower, upper, least, most)


def assert_optimal(p, answer, atol=1e-6):
    """Stationarity, feasibility and complementarity, with the signs that `Answer` promises."""
    Px = np.zeros(len(p.q)) if p.P is None else p.P @ answer.x
    np.testing.assert_allclose(Px + p.q + p.A.T @ answer.rows + answer.box, 0.0, atol=atol)
    for y, lower, upper, v in (
        (p.A @ answer.x, p.lower, p.upper, answer.rows),
        (answer.x, p.least, p.most, answer.box),
    ):
        assert np.all(y >= lower - atol) and np.all(y <= upper + atol)
        up, down = v > atol, v < -atol
        np.testing.assert_allclose(y[up], upper[up], atol=atol)
        np.testing.assert_allclose(y[down], lower[down], atol=atol)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("engine", QUADRATIC)
def test_quadratic_programs(rng, engine, sparse):
    for _ in range(3):
        p = program(rng, sparse=sparse)
        answer = engine(p)
        assert answer.status is AnswerStatus.SOLVED
        assert_optimal(p, answer)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("engine", [solve_by_highs, solve_by_piqp, solve_by_clarabel])
def test_linear_programs(rng, engine, sparse):
    p = program(rng, quadratic=False, sparse=sparse)
    answer = engine(p)
    assert answer.status is AnswerStatus.SOLVED
    assert_optimal(p, answer)


@pytest.mark.parametrize("engine", [*QUADRATIC, solve_by_highs])
def test_programs_without_rows_or_without_bounds(rng, engine):
    linear = engine is solve_by_highs
    P = None if linear else np.eye(3)
    boxed = QuadraticProgram.of(P, [2.0, -2.0, 3.0], least=-1.0, most=1.0)
    np.testing.assert_allclose(engine(boxed).x, [-1.0, 1.0, -1.0], atol=1e-7)
    A = np.vstack([np.eye(3), -np.eye(3)])
    rows = QuadraticProgram.of(P, [2.0, -2.0, 3.0], A, upper=np.ones(6))
    np.testing.assert_allclose(engine(rows).x, [-1.0, 1.0, -1.0], atol=1e-7)


def test_units_change_nothing_exactly(rng):
    """The handy form of a program and of the same in other units are the same, bit by bit."""
    p = program(rng)
    unit_x, unit_f, units = 2.0**13, 2.0**-21, 2.0 ** rng.integers(-9, 9, len(p.lower))
    other = QuadraticProgram.of(
        p.P * (unit_f / unit_x**2), p.q * (unit_f / unit_x), p.A * (units / unit_x)[:, None],
        p.lower * units, p.upper * units, p.least * unit_x, p.most * unit_x, p.constant * unit_f,
    )  # fmt: skip
    one, two = in_handy_units(p)[0], in_handy_units(other)[0]
    for name in ("P", "q", "A", "lower", "upper", "least", "most"):
        assert np.array_equal(getattr(one, name), getattr(two, name)), name
    a, b = solve_by_piqp(p), solve_by_piqp(other)
    assert np.array_equal(a.x * unit_x, b.x)
    assert np.array_equal(a.rows * unit_f / units, b.rows)
    assert np.array_equal(a.box * unit_f / unit_x, b.box)


def test_statuses(rng):
    empty = QuadraticProgram.of(
        np.eye(2), np.zeros(2), [[1.0, 0.0], [1.0, 0.0]], [1.0, -np.inf], [np.inf, 0.0]
    )
    assert solve_by_clarabel(empty).status is AnswerStatus.EMPTY
    falling = QuadraticProgram.of(None, [-1.0, 0.0], [[0.0, 1.0]], upper=[1.0], least=0.0)
    for engine in (solve_by_highs, solve_by_clarabel):
        assert engine(falling).status is AnswerStatus.UNBOUNDED
    limited = program(rng, n=60, m=200)
    assert solve_by_clarabel(limited, seconds=1e-9).status is AnswerStatus.TIME
    assert solve_by_piqp(limited, seconds=1e-9).status is AnswerStatus.TIME


@pytest.mark.parametrize("sparse", [False, True])
def test_answers_are_proved(rng, sparse):
    for quadratic in (True, False):
        p = program(rng, quadratic, sparse)
        outcome = solve_program(p, tol=1e-7)
        assert outcome.status is Status.CONVERGED
        assert -1e-12 * abs(outcome.fun) <= outcome.gap <= 1e-7 * abs(outcome.fun)


def test_a_program_that_is_not_convex_is_refused(rng):
    P = np.diag([1.0, 2.0, -1e-6])
    with pytest.raises(NotConvex) as refusal:
        solve_program(QuadraticProgram.of(P, np.zeros(3), least=-1.0, most=1.0))
    d = refusal.value.direction
    assert d @ P @ d < 0.0
    sparse = QuadraticProgram.of(scipy.sparse.csc_array(P), np.zeros(3), least=-1.0, most=1.0)
    with pytest.raises(NotConvex):
        solve_program(sparse)


def test_the_rule(rng):
    assert engines_for(program(rng))[0] is solve_by_piqp
    assert engines_for(program(rng, quadratic=False))[0] is solve_by_highs
    with pytest.raises(ValueError, match="linear"):
        solve_by_highs(program(rng))


def test_programs_without_solution_carry_a_certificate(rng):
    """Whatever the engine says: its vectors are checked, and they are what is returned."""
    A = [[1.0, 0.0], [1.0, 0.0]]
    for P in (np.eye(2), None):
        empty = QuadraticProgram.of(
            P, np.ones(2), A, [1.0, -np.inf], [np.inf, 0.0], least=-9.0, most=9.0
        )
        outcome = solve_program(empty)
        assert outcome.status is Status.EMPTY
        assert outcome.certificate.radius > 1e8
    falling = QuadraticProgram.of(
        np.diag([0.0, 1.0]), [-1.0, 0.0], [[0.0, 1.0]], upper=[1.0], least=0.0
    )
    outcome = solve_program(falling)
    assert outcome.status is Status.UNBOUNDED
    assert outcome.certificate.proved and outcome.violation <= 1e-9
    assert outcome.x[1] <= 1.0 + 1e-9 and outcome.x.min() >= 0.0
    assert outcome.ray @ falling.q < 0.0


def test_powers_of_rows_are_those_of_single_numbers():
    sizes = np.array([0.0, 5.0, 0.3, 1e-300, 1e300, np.inf, 6.0, 2.0**-0.5, 3.0])
    assert _powers(sizes).tolist() == [power_of_two(size) for size in sizes.tolist()]
