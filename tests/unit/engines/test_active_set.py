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


@pytest.mark.parametrize("move", [0.1, 0.4])
def test_a_tenth_and_half_of_the_active_rows_may_change(move: float, rng: Any) -> None:
    """60 x 120 with about as many active rows as variables, with slopes and sides perturbed by `move`."""
    n = 60
    B, A = rng.standard_normal((n, n)), rng.standard_normal((2 * n, n))
    P, q, h = (
        B @ B.T / n + 0.1 * np.eye(n),
        rng.standard_normal(n),
        0.5 * rng.random(2 * n) + 0.05,
    )
    last = solve_by_piqp(QuadraticProgram.of(P, q, A, upper=h), 1e-11)
    exchanged = 0
    for _ in range(10):
        q = q + move * rng.standard_normal(n)
        h = np.maximum(h + move * rng.standard_normal(2 * n), 0.05)
        p = QuadraticProgram.of(P, q, A, upper=h)
        found, expected = solve_by_active_set(p, last.rows, last.box), solve_by_piqp(p, 1e-11)
        assert found.status is AnswerStatus.SOLVED
        assert found.x == pytest.approx(expected.x, abs=1e-7)
        assert found.rows == pytest.approx(expected.rows, abs=1e-6)
        exchanged = max(exchanged, found.iterations)
        last = expected
    assert exchanged >= 4  # the guess was not right from the start


def test_a_guess_with_dependent_rows_and_remnants_of_multipliers(rng: Any) -> None:
    """More active rows than variables, twice the same row, and multipliers of 1e-9 where none is active."""
    normal = rng.standard_normal((5, 2))
    p = QuadraticProgram.of(np.eye(2), np.ones(2), normal, upper=np.ones(5))
    for guess in (np.ones(5), np.full(5, 1e-9)):
        found = solve_by_active_set(p, guess, np.zeros(2))
        assert (found.x, found.iterations) == (pytest.approx([-1.0, -1.0]), 1)
        assert not found.rows.any()
    twice = QuadraticProgram.of(np.eye(2), [-3.0, 0.0], [[1.0, 1.0]] * 2, upper=[1.0, 1.0])
    for guess in (np.zeros(2), np.ones(2)):
        found = solve_by_active_set(twice, guess, np.zeros(2))
        assert found.x == pytest.approx([2.0, -1.0]) and found.rows.sum() == pytest.approx(1.0)


def test_equations_have_multipliers_of_both_signs(rng: Any) -> None:
    """Ten equations, two of them implied by others, from multipliers of the wrong sign or none."""
    B, M, x = rng.standard_normal((12, 12)), rng.standard_normal((8, 12)), rng.standard_normal(12)
    A = np.vstack([M, M[0] + M[1], M[2] - M[3]])
    p = QuadraticProgram.of(B @ B.T + np.eye(12), rng.standard_normal(12), A, A @ x, A @ x)
    for guess in (np.zeros(10), -np.ones(10)):
        found = solve_by_active_set(p, guess, np.zeros(12))
        assert found.status is AnswerStatus.SOLVED
        assert p.A @ found.x == pytest.approx(p.lower, abs=1e-9)
        assert p.P @ found.x + p.q + found.rows @ p.A == pytest.approx(np.zeros(12), abs=1e-9)


def test_no_answer_to_programs_without_one_or_without_curvature() -> None:
    """Rows that contradict each other, a matrix of zeros, and more exchanges than the limit."""
    empty = QuadraticProgram.of(np.eye(1), [0.0], [[1.0], [1.0]], [2.0, -np.inf], [np.inf, 1.0])
    flat = QuadraticProgram.of(np.zeros((2, 2)), np.ones(2), np.eye(2)[:1], upper=np.ones(1))
    many = QuadraticProgram.of(np.eye(40), -np.ones(40), np.eye(40), upper=np.zeros(40))
    for p in (empty, flat, many):
        found = solve_by_active_set(p, np.zeros(len(p.upper)), np.zeros(len(p.q)))
        assert found.status is AnswerStatus.FAILED and not found.finite
    assert solve_by_active_set(many, np.ones(40), np.zeros(40)).iterations == 1
