"""Proofs of emptiness by multipliers: contradictions are proved, and rounding is not taken for one."""

from __future__ import annotations

import numpy as np
import pytest

import lopro
from lopro.certificates import TOUCHING, check_empty, exclude
from lopro.functions.atoms import Ball, Interval
from lopro.functions.term import Term
from lopro.maps import Identity

INF = np.inf


def test_bounds_of_variables_absorb_the_residual_of_rows() -> None:
    """With x + y >= 3 over the unit square: the residual of multipliers is charged times bounds."""
    rows = [(np.ones((1, 2)), [3.0], [INF]), (None, np.zeros(2), np.ones(2))]
    found = check_empty(rows, [np.array([-1.0]), np.array([1.0, 1.0 - 1e-3])], 2)
    assert found.residual == 0.0 and found.proved
    assert found.margin == pytest.approx(1.0, rel=1e-9)  # 3 - 1 - (1 - 1e-3) - 1e-3


def test_a_bound_absorbs_one_sign_only() -> None:
    rows = [(np.ones((1, 1)), [-INF], [-1.0]), (None, np.zeros(1), np.full(1, INF))]
    assert check_empty(rows, [np.array([1.0]), np.array([-0.5])], 1).proved
    rows[1] = (None, np.full(1, -INF), np.zeros(1))
    assert check_empty(rows, [np.array([1.0]), np.array([0.5])], 1).radius < 1.0


def test_cancellation_between_blocks_keeps_the_residual() -> None:
    """The sum of rows and bounds is formed once: rounding each part separately would hide the residual."""
    tiny = 2.0**-60
    A = np.array([[1.0], [tiny]])
    rows = [(A, [-INF, -INF], [-1.0, 0.0]), (np.ones((1, 1)), [0.0], [INF])]
    found = check_empty(rows, [np.ones(2), np.array([-1.0])], 1)
    assert found.residual == pytest.approx(tiny, rel=1e-12)


@pytest.mark.parametrize("k", [3.0, 7.0, 11.0])
def test_equations_that_agree_up_to_rounding_are_no_contradiction(k: float) -> None:
    """0.1 x + 0.2 y = 0.3 and k times it: (1, 1) satisfies both to the last digit but one."""
    a, b = np.array([0.1, 0.2]), 0.3
    A, sides = np.stack([a, k * a]), np.array([b, k * b])
    for side in (sides, sides * (1.0 + np.array([0.0, 4e-16])), sides - np.array([0.0, 2e-16])):
        for y in ([k, -1.0], [-k, 1.0]):
            assert not check_empty([(A, side, side)], [np.array(y)], 2).proved
        result = lopro.solve(
            lopro.Problem(
                lopro.objectives.Linear(np.zeros(2)), lopro.constraints.Affine(A, side, side)
            )
        )
        assert result.status is not lopro.Status.INFEASIBLE


def test_balls_are_excluded_with_an_allowance_for_rounding() -> None:
    ball = Term(Ball(1.0), Identity(2), np.array([3.0, 0.0]))
    half = Term(Interval(np.array([-INF, -INF]), np.array([1.9, INF])), Identity(2))
    y = [np.array([-1.0, 0.0]), np.array([1.0, 0.0])]
    found = exclude([ball, half], y, 2)
    touching = TOUCHING * (2.0 + 1.9)
    assert found.proved and found.margin == pytest.approx(0.1 - touching, rel=1e-12)
    half = Term(Interval(np.array([-INF, -INF]), np.array([2.0, INF])), Identity(2))
    assert not exclude([ball, half], y, 2).proved


def test_sides_that_are_rounding_relative_to_others_are_no_contradiction() -> None:
    """X <= -1e-15 and x >= 0 beside a side of 100: as they come, and in other units of the rows."""
    A = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    y, most = np.array([1.0, -1.0, 0.0]), np.array([-1e-15, INF, 100.0])
    least = np.array([-INF, 0.0, -INF])
    for units in (1.0, np.array([1e6, 1.0, 1e-6])):
        scaled = [(A * np.reshape(units, (-1, 1)), least * units, most * units)]
        assert not check_empty(scaled, [y / units], 2).proved
    assert check_empty([(A, least, np.array([-1e-15, INF, 1.0]))], [y], 2).margin <= 0.0
    assert check_empty([(A, least, np.array([-1e-9, INF, 100.0]))], [y], 2).proved
    assert check_empty([(A[:2], least[:2], most[:2])], [y[:2]], 2).proved


def test_the_sum_of_three_sides_is_zero_up_to_rounding() -> None:
    """0.1 + 0.2 - 0.3 is not 0 in floating point: the sums of slopes are charged with their rounding."""
    balls = [Term(Ball(1.0), Identity(1), np.array([center])) for center in (-10.0, -10.0, 10.0)]
    found = exclude(balls, [np.array([0.1]), np.array([0.2]), np.array([-0.3])], 1)
    assert found.residual > 0.0 and found.proved
    assert found.margin == pytest.approx(6.0 - 0.6, rel=1e-9)
    off = exclude(balls, [np.array([0.1]), np.array([0.2]), np.array([-0.3 + 4e-15])], 1)
    assert not off.proved


@pytest.mark.parametrize(("residual", "proved"), [(5e-13, True), (1e-10, False)])
def test_the_rounding_of_a_column_grows_with_its_entries(residual: float, proved: bool) -> None:
    """``x <= -1`` and ``-x <= -1``, 25 rows of each: sums of 50 entries are known up to 50 roundings."""
    A = np.repeat([1.0, -1.0], 25)[:, None]
    A[0] += residual
    rows = [(A, np.full(50, -np.inf), np.full(50, -1.0))]
    assert check_empty(rows, [np.ones(50)], 1).proved is proved
