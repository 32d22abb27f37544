"""Programs from multipliers that are nearly right, against PIQP."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lopro.engines import AnswerStatus, QuadraticProgram, solve_by_piqp
from lopro.engines.active_set import solve_by_active_set


def program(rng: Any, shift: float = 0.0) -> QuadraticProgram:
    """Return a program with rows that have both sides, one equation, bounds and a fixed variable."""
    B, A = rng.standard_normal((12, 12)), rng.standard_normal((9, 12))
    lower, upper = np.full(9, -0.4 + shift), np.full(9, 0.3 + shift)
    lower[0] = upper[0] = 0.1
    least, most = np.full(12, -0.5), np.full(12, np.inf)
    least[3] = most[3] = 0.2
    q = rng.standard_normal(12) * (1.0 + shift)
    return QuadraticProgram.of(B @ B.T + np.eye(12), q, A, lower, upper, least, most)


def test_the_answer_after_a_small_change_is_that_of_piqp() -> None:
    before = solve_by_piqp(program(np.random.default_rng(0)), 1e-11)
    for shift in (0.0, 1e-3, 1e-2):
        p = program(np.random.default_rng(0), shift)
        found, expected = solve_by_active_set(p, before.rows, before.box), solve_by_piqp(p, 1e-11)
        assert found.status is AnswerStatus.SOLVED and found.iterations <= 3
        assert found.x == pytest.approx(expected.x, abs=1e-8)
        assert found.rows == pytest.approx(expected.rows, abs=1e-7)
        assert found.box == pytest.approx(expected.box, abs=1e-7)
        slope = p.P @ found.x + p.q + found.rows @ p.A + found.box
        assert slope == pytest.approx(np.zeros(12), abs=1e-12)


def test_rows_change_sides() -> None:
    """1/2 x^2 - q x over -1 <= x <= 1: the row is at its upper side for q = 3 and at its lower one for -3."""
    for q, side in ((3.0, 1.0), (-3.0, -1.0)):
        p = QuadraticProgram.of(np.eye(1), [-q], [[1.0]], [-1.0], [1.0])
        for guess in (-1.0, 0.0, 1.0):
            found = solve_by_active_set(p, np.array([guess]), np.zeros(1))
            assert found.status is AnswerStatus.SOLVED
            assert (found.x[0], found.rows[0]) == (side, q - side)


def test_a_tenth_of_the_active_rows_may_change(rng: Any) -> None:
    """60 x 120 with about as many active rows as variables, slopes and sides moved by 10 %."""
    n, solved = 60, 0
    B, A = rng.standard_normal((n, n)), rng.standard_normal((2 * n, n))
    P, q, h = (
        B @ B.T / n + 0.1 * np.eye(n),
        rng.standard_normal(n),
        0.5 * rng.random(2 * n) + 0.05,
    )
    last = solve_by_piqp(QuadraticProgram.of(P, q, A, upper=h), 1e-11)
    for _ in range(10):
        q = q + 0.1 * rng.standard_normal(n)
        h = np.maximum(h + 0.1 * rng.standard_normal(2 * n), 0.05)
        p = QuadraticProgram.of(P, q, A, upper=h)
        found, expected = solve_by_active_set(p, last.rows, last.box), solve_by_piqp(p, 1e-11)
        if found.status is AnswerStatus.SOLVED:
            solved += 1
            assert found.x == pytest.approx(expected.x, abs=1e-7)
        last = expected
    assert solved >= 8


def test_a_guess_that_does_not_settle_is_no_answer() -> None:
    """More active rows than variables, and an indefinite system: nothing is returned."""
    rng = np.random.default_rng(1)
    p = QuadraticProgram.of(np.eye(2), np.ones(2), rng.standard_normal((5, 2)), upper=np.ones(5))
    found = solve_by_active_set(p, np.ones(5), np.zeros(2))
    assert found.status is AnswerStatus.FAILED and not found.finite
    flat = QuadraticProgram.of(np.zeros((2, 2)), np.ones(2), np.eye(2)[:1], upper=np.ones(1))
    assert not solve_by_active_set(flat, np.zeros(1), np.zeros(2)).finite
