"""Answers of engines: proved, or rejected with a certificate."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from support.engine_samples import program

from lopro.certificates import VariableBounds
from lopro.certificates.programs import ProgramProof
from lopro.engines import AnswerStatus, QuadraticProgram, solve_by_piqp
from lopro.newton import Status, programs
from lopro.newton.bounds import made_feasible, relative_violation
from lopro.newton.programs import NotConvex, program_composite, solve_program


@pytest.mark.parametrize("sparse", [False, True])
def test_answers_are_proved(rng, sparse):
    for quadratic in (True, False):
        p = program(rng, quadratic, sparse)
        outcome = solve_program(p, tol=1e-7)
        assert outcome.status is Status.CONVERGED
        assert -1e-12 * abs(outcome.fun) <= outcome.gap <= 1e-7 * abs(outcome.fun)


def test_nonconvex_programs_raise_an_error(rng):
    P = np.diag([1.0, 2.0, -1e-6])
    with pytest.raises(NotConvex) as refusal:
        solve_program(QuadraticProgram.of(P, np.zeros(3), least=-1.0, most=1.0))
    d = refusal.value.direction
    assert d @ P @ d < 0.0
    sparse = QuadraticProgram.of(scipy.sparse.csc_array(P), np.zeros(3), least=-1.0, most=1.0)
    with pytest.raises(NotConvex):
        solve_program(sparse)


def test_programs_without_a_solution_have_a_certificate(rng):
    """Whatever status the engine returns, its vectors are checked, and they are the ones returned."""
    A = [[1.0, 0.0], [1.0, 0.0]]
    for P in (np.eye(2), None):
        empty = QuadraticProgram.of(
            P, np.ones(2), A, [1.0, -np.inf], [np.inf, 0.0], least=-9.0, most=9.0
        )
        outcome = solve_program(empty)
        assert outcome.status is Status.INFEASIBLE
        assert outcome.certificate.radius > 1e8
    falling = QuadraticProgram.of(
        np.diag([0.0, 1.0]), [-1.0, 0.0], [[0.0, 1.0]], upper=[1.0], least=0.0
    )
    outcome = solve_program(falling)
    assert outcome.status is Status.UNBOUNDED
    assert outcome.certificate.proved and outcome.violation <= 1e-9
    assert outcome.x[1] <= 1.0 + 1e-9 and outcome.x.min() >= 0.0
    assert outcome.ray @ falling.q < 0.0


def test_variables_leave_their_bounds_where_rows_require_it():
    """``2 a - 2 b - c = 0`` at a = b + 1e-7 / 2, both fixed: only c, at its bound 0, can satisfy the row."""
    A, x = np.array([[2.0, -2.0, -1.0]]), np.array([0.5 + 0.5e-7, 0.5, 0.0])
    box = x.copy(), np.array([x[0], x[1], np.inf])
    program = QuadraticProgram.of(None, [-1.0, -1.0, 1.0], A, [0.0], [0.0], *box)
    found = made_feasible(program_composite(program), x, 1e-12)
    np.testing.assert_allclose(found, x + np.array([0.0, 0.0, 1e-7]), atol=1e-12)


def test_rounding_in_columns_without_a_side_is_removed():
    """``a <= 0`` and ``a >= 0`` at a = 3e-14: only 0 itself satisfies them, and the value does not change."""
    A, x = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([3e-14, 7.0])
    rows = [-np.inf, 7.0], [0.0, 7.0]
    program = QuadraticProgram.of(None, [1.0, 1.0], A, *rows, [0.0, 0.0])
    np.testing.assert_array_equal(
        made_feasible(program_composite(program), x, 1e-9), np.array([0.0, 7.0])
    )
    # A violation whose removal changes the value is not rounding: no point is moved to the apex of a cone.
    steep = QuadraticProgram.of(None, [1e14, 1.0], A, *rows, [0.0, 0.0])
    assert made_feasible(program_composite(steep), x, 1e-9)[0] != 0.0


def test_variables_on_bounds_move_inwards_only():
    """``2 b - 2 a - c = 0``: c would have to become negative, so a leaves its upper bound."""
    A, x = np.array([[-2.0, 2.0, -1.0]]), np.array([0.5 + 0.5e-7, 0.5, 0.0])
    box = np.zeros(3), np.array([x[0], x[1], np.inf])
    program = QuadraticProgram.of(None, [-1.0, -1.0, 1.0], A, [0.0], [0.0], *box)
    found = made_feasible(program_composite(program), x, 1e-12)
    assert relative_violation(program_composite(program), found) <= 1e-12
    np.testing.assert_allclose(found, [0.5, 0.5, 0.0], atol=1e-12)


def test_an_answer_that_is_proved_is_not_examined_for_emptiness(monkeypatch):
    """PIQP may fail at a solution, within rounding of the accuracy that was required."""
    p = QuadraticProgram.of(np.eye(2), [-3.0, 0.0], [[1.0, 1.0]], upper=[1.0])

    def failing(program, tol, seconds):
        return replace(solve_by_piqp(program), status=AnswerStatus.FAILED)

    def refused(*_):
        raise AssertionError("the answer was examined for emptiness")

    monkeypatch.setattr(programs, "without_solution", refused)
    proof = ProgramProof(p.P, p.q, 0.0, (), p.A, p.lower, p.upper, VariableBounds(p.least, p.most))
    assert solve_program(p, engines=[failing], proof=proof).status is Status.CONVERGED
