"""Engines: answers of one form with documented signs, and exact units."""

import numpy as np
import pytest
import scipy.sparse
from support.engine_samples import assert_optimal, program

from lopro.core.real_vectors import power_of_two, powers_of_two
from lopro.engines import (
    AnswerStatus,
    ConeProgram,
    QuadraticProgram,
    engines_for,
    normalised,
    solve_by_clarabel,
    solve_by_highs,
    solve_by_piqp,
    solve_cones,
)
from lopro.engines.cones import (
    Nonnegative,
    PSDTriangle,
    SecondOrder,
    Zero,
)
from lopro.engines.exponentials import Exponentials

QUADRATIC = [solve_by_piqp, solve_by_clarabel]


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
    """The normalised form of a program and of the same in other units are the same, bit by bit."""
    p = program(rng)
    unit_x, unit_f, units = 2.0**13, 2.0**-21, 2.0 ** rng.integers(-9, 9, len(p.lower))
    other = QuadraticProgram.of(
        p.P * (unit_f / unit_x**2), p.q * (unit_f / unit_x), p.A * (units / unit_x)[:, None],
        p.lower * units, p.upper * units, p.least * unit_x, p.most * unit_x, p.constant * unit_f,
    )  # fmt: skip
    one, two = normalised(p)[0], normalised(other)[0]
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


def test_the_rule(rng):
    assert engines_for(program(rng))[0] is solve_by_piqp
    assert engines_for(program(rng, quadratic=False))[0] is solve_by_highs
    with pytest.raises(ValueError, match="linear"):
        solve_by_highs(program(rng))


def test_powers_of_rows_are_those_of_single_numbers():
    sizes = np.array([0.0, 5.0, 0.3, 1e-300, 1e300, np.inf, 6.0, 2.0**-0.5, 3.0])
    assert powers_of_two(sizes).tolist() == [power_of_two(size) for size in sizes.tolist()]


@pytest.mark.parametrize("engine", [solve_by_highs, solve_by_piqp, solve_by_clarabel])
def test_rows_without_sides_change_nothing_and_have_no_multiplier(rng, engine):
    p = program(rng, quadratic=False)
    A = np.vstack([rng.standard_normal((2, 8)), p.A])
    lower, upper = np.append([-np.inf] * 2, p.lower), np.append([np.inf] * 2, p.upper)
    more = QuadraticProgram.of(None, p.q, A, lower, upper, p.least, p.most)
    one, two = engine(p), engine(more)
    np.testing.assert_allclose(two.x, one.x, atol=1e-7)
    assert two.rows[:2].tolist() == [0.0, 0.0]
    assert_optimal(more, two)


def test_parts_of_other_sizes_are_refused():
    with pytest.raises(ValueError, match="matching sizes"):
        QuadraticProgram.of(np.eye(3), np.zeros(2))
    with pytest.raises(ValueError, match="matching sizes"):
        QuadraticProgram.of(None, np.zeros(2), np.ones((1, 3)), upper=[1.0])


CONES = [
    Zero(3),
    Nonnegative(3),
    SecondOrder(3),
    SecondOrder(3, 2),
    PSDTriangle(2),
    Exponentials(2),
]


@pytest.mark.parametrize("cone", CONES)
def test_cones_order_their_rows_as_clarabel_does(cone):
    n = cone.rows
    eye = scipy.sparse.eye_array(n, format="csc")
    # The nearest point of the cone to b: its slack is ``b - x``.
    b = np.linspace(-1.0, 2.0, n)
    answer = solve_cones(ConeProgram(eye, np.zeros(n), eye, b, [cone]), 1e-10, scaled=False)
    assert answer.status is AnswerStatus.SOLVED
    np.testing.assert_allclose(answer.slacks, b - answer.x, atol=1e-7)
    np.testing.assert_allclose(answer.x + answer.rows, 0.0, atol=1e-7)  # stationarity
    assert abs(answer.slacks @ answer.rows) <= 1e-6
    assert answer.seconds > 0.0 and answer.box.size == 0


def test_units_of_a_cone_program_change_nothing_exactly(rng):
    n = 4
    A = scipy.sparse.csc_array(
        np.vstack([np.zeros((1, n)), -np.eye(n), rng.standard_normal((2, n))])
    )
    P = scipy.sparse.csc_array(np.diag([1.0, 0.0, 2.0, 0.0]))
    q, b = rng.standard_normal(n), np.append([1.0], np.zeros(n + 2))
    cones = [SecondOrder(n + 1), Nonnegative(2)]
    x, f = 2.0**17, 2.0**-9
    one = solve_cones(ConeProgram(P, q, A, b, cones), 1e-9)
    two = solve_cones(ConeProgram(P * (f / x**2), q * (f / x), A, b * x, cones), 1e-9)
    assert np.array_equal(one.x * x, two.x)
    assert np.array_equal(one.rows * (f / x), two.rows)
    assert np.array_equal(one.slacks * x, two.slacks)
    other = solve_cones(
        ConeProgram(P * (f / x**2), q * (f / x), A, b * x, cones), 1e-9, scaled=False
    )
    assert not np.array_equal(two.x, other.x)  # they would be equal if units were not applied


def test_statuses_of_cone_programs():
    nothing, A = scipy.sparse.csc_array((1, 1)), scipy.sparse.csc_array([[1.0], [-1.0]])
    cones = [Nonnegative(2)]
    empty = ConeProgram(nothing, np.zeros(1), A, np.array([-1.0, -1.0]), cones)
    answer = solve_cones(empty, 1e-9)
    assert answer.status is AnswerStatus.EMPTY and answer.status.empty
    assert answer.message == "PrimalInfeasible"
    falling = ConeProgram(nothing, -np.ones(1), A[1:], np.zeros(1), [Nonnegative(1)])
    answer = solve_cones(falling, 1e-9)
    assert answer.status is AnswerStatus.UNBOUNDED and answer.status.unbounded
    assert not (AnswerStatus.SOLVED.empty or AnswerStatus.TIME.unbounded)
    assert AnswerStatus.NEARLY_EMPTY.empty and AnswerStatus.NEARLY_UNBOUNDED.unbounded


def test_highs_ends_at_a_vertex_or_after_its_iterations(rng):
    """Every point of the edge is a solution: the simplex method ends at one of its ends."""
    edge = QuadraticProgram.of(None, -np.ones(2), [[1.0, 1.0]], upper=[1.0], least=0.0)
    x = solve_by_highs(edge, simplex=True).x
    assert sorted(x.tolist()) == [0.0, 1.0]
    A = rng.standard_normal((30, 20))
    hard = QuadraticProgram.of(None, A.sum(axis=0), A, lower=A @ rng.uniform(size=20), least=0.0)
    assert solve_by_highs(hard).status is AnswerStatus.SOLVED
    stopped = solve_by_highs(hard, iterations=1)
    assert stopped.status is AnswerStatus.TIME


@pytest.mark.parametrize("unit", [1.0, 2.0**40])
def test_highs_gives_multipliers_that_contradict_the_rows_of_an_empty_program(rng, unit):
    """``A' y + box = 0`` with a negative support: also where presolve alone finds the contradiction."""
    A = np.array([[1.0, 1.0, 0.0], [1.0, 0.0, -1.0], [0.0, 1.0, 1.0]]) * [[1.0], [unit], [1.0]]
    lower, upper = np.array([4.0, 2.0 * unit, -np.inf]), np.array([np.inf, np.inf, 1.0])
    most, least = np.array([2.5, 9.0, 9.0]), np.array([-np.inf, -np.inf, 0.0])
    p = QuadraticProgram.of(None, np.ones(3), A, lower, upper, least, most)
    answer = solve_by_highs(p)
    assert answer.status is AnswerStatus.EMPTY and answer.finite
    np.testing.assert_allclose(A.T @ answer.rows + answer.box, 0.0, atol=1e-12)
    support = np.where(answer.rows > 0.0, np.where(np.isfinite(upper), upper, 0.0), lower)
    bound = np.where(answer.box > 0.0, p.most, 0.0)
    assert answer.rows @ np.where(answer.rows == 0.0, 0.0, support) + answer.box @ bound < -0.1
    assert not (answer.rows[:2] > 0.0).any() and answer.rows[2] >= 0.0
    assert (answer.box[:2] >= 0.0).all()
