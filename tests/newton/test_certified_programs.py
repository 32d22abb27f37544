"""Programs that an engine solves: proved, or refused with a certificate."""

import numpy as np
import pytest
import scipy.sparse
from engines.samples import program

from lopro.engines import QuadraticProgram
from lopro.newton import Status
from lopro.newton.engines import NotConvex, solve_program


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
