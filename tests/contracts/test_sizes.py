"""Typical lengths of x and magnitudes of values, to which steps and gaps are relative, as exact numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import lopro
from lopro import Problem
from lopro.constraints import (
    Affine,
    FunctionConstraint,
    Intersection,
    L1Ball,
    Polyhedron,
    PSDCone,
    ResidualBall,
    Simplex,
    Spectrahedron,
)
from lopro.objectives import L1Norm, LeastSquares, Linear, Logistic, Quadratic, SquaredDistance

ROWS = np.array([[3.0, 4.0], [0.0, 2.0]])
#: Rows 2 e, e and -e' for e the last and e' the last but one of twenty unit vectors.
LAST = np.zeros((3, 20))
LAST[[0, 1, 2], [19, 19, 18]] = 2.0, 1.0, -1.0
WITH_ZEROS = scipy.sparse.csr_array(
    ([2.0, 0.0, 1.0, 0.0, -1.0], ([0, 0, 1, 1, 2], [19, 3, 19, 4, 18])), (3, 20)
)
UNKNOWN = FunctionConstraint(lambda x: -1.0, np.zeros_like)


@pytest.mark.parametrize(
    ("part", "size"),
    [
        (Polyhedron(ROWS, [10.0, -3.0]), 2.0),  # rows at the distances 2 and 3/2
        (Polyhedron(ROWS, [0.0, 0.0]), None),  # a cone has no size
        (Polyhedron.box([-1.0, 0.0], [3.0, math.inf]), 3.0),
        # Looser bounds of the same side of an entry do not count, those of the other side do.
        (Polyhedron([[2.0, 0.0], [1.0, 0.0], [0.0, -1.0]], [2.0, 9.0, 3.0]), 3.0),
        (Polyhedron([[2.0, 0.0], [-1.0, 0.0]], [2.0, 9.0]), 9.0),
        # The same in the last of many columns; a row whose other entry is the last one is no bound.
        (Polyhedron(LAST, [2.0, 9.0, 3.0]), 3.0),
        (Polyhedron(LAST + np.eye(3, 20), [2.0, 9.0, 3.0]), 9.0 / math.sqrt(2.0)),
        # Zeros that are stored do not count as entries.
        (Polyhedron(WITH_ZEROS, [2.0, 9.0, 3.0]), 3.0),
        (Affine(ROWS, [-20.0, -math.inf], [10.0, 3.0]), 4.0),
        (ResidualBall(np.diag([2.0, 1.0]), np.array([3.0, 4.0]), 0.1), 25.0 / math.hypot(6.0, 4.0)),
        (ResidualBall(np.eye(2), np.zeros(2), 1.0), None),
        # Its square underflows.
        (ResidualBall(np.array([[2e-121]]), np.array([8e-166]), 0.0), 4e-45),
        (L1Ball(3, 2.5), 2.5),
        (Simplex(3, 2.5), 2.5),
        (Spectrahedron(3, 2.5), 2.5),
        (PSDCone(2), None),
        (UNKNOWN, None),
        (FunctionConstraint(lambda x: -1.0, np.zeros_like, x_scale=7.0), 7.0),
        (Intersection(L1Ball(2, 2.5), Polyhedron(ROWS, [10.0, -3.0]), UNKNOWN), 2.0),
        (Linear(np.ones(2)), None),
        (L1Norm(), None),
        (SquaredDistance(np.array([3.0, 4.0])), 5.0),
        (SquaredDistance(np.zeros(2)), None),
        # The best step from 0 along A'b = (6, 4), which A takes to (12, 4).
        (LeastSquares(np.diag([2.0, 1.0]), np.array([3.0, 4.0])), 52.0**1.5 / 160.0),
        # The best step from 0 along -q: |q|^3 / q'Pq.
        (Quadratic(np.diag([2.0, 1.0]), np.array([3.0, 4.0])), 125.0 / 34.0),
        (Logistic(np.array([[3.0, 4.0], [0.0, 5.0]]), np.array([1.0, -1.0])), 0.2),
        (Logistic(np.array([[3.0, 4.0]]), np.array([1.0])), 0.2),
        (2.0 * SquaredDistance(np.array([3.0, 4.0])), 5.0),
        (SquaredDistance(np.array([3.0, 4.0])) + SquaredDistance(np.array([0.0, 2.0])), 2.0),
    ],
    ids=lambda value: type(value).__name__,
)
def test_typical_sizes(part: Any, size: float | None) -> None:
    found = part.typical_size()
    assert found is None if size is None else found == pytest.approx(size, rel=1e-14)


def test_sizes_come_from_the_scale_the_set_the_objective_and_the_start_in_this_order() -> None:
    f, x0 = SquaredDistance(np.array([3.0, 4.0])), np.array([0.0, 6.0])
    rows = Polyhedron(ROWS, [10.0, -3.0])
    assert Problem(f, rows, x_scale=0.5).typical_size(x0) == 0.5
    assert Problem(f, rows).typical_size(x0) == 2.0
    assert Problem(f, UNKNOWN).typical_size(x0) == 5.0
    assert Problem(L1Norm(), UNKNOWN).typical_size(x0) == 6.0
    assert Problem(L1Norm(), UNKNOWN).typical_size(np.zeros(2)) == 1.0


@pytest.mark.parametrize(
    ("f", "magnitude"),
    [
        (Linear(np.array([1.0, -1.0])), 6.5),
        (2.0 * Linear(np.array([1.0, -1.0])), 13.0),
        (0.0 * Linear(np.array([1.0, -1.0])), 0.0),
        # x'Px / 2 = 9 + 6.125, the linear terms 3 and 3.5, the constant 20.
        (Quadratic(np.diag([2.0, 1.0]), np.array([-1.0, -1.0]), -20.0), 41.625),
        (L1Norm(), 6.5),
        (SquaredDistance(np.array([3.0, 3.5])), 0.0),
        (Linear(np.array([1.0, -1.0])) + L1Norm(), 13.0),
    ],
    ids=["linear", "scaled", "zero", "quadratic", "l1", "distance", "sum"],
)
def test_magnitudes_at_a_point(f: Any, magnitude: float) -> None:
    x = np.array([3.0, 3.5])
    assert f.magnitude(x, f.value(x)) == pytest.approx(magnitude, rel=1e-15)
    assert f.magnitude(x, f.value(x)) >= abs(f.value(x))


def test_a_factor_of_zero_can_be_solved() -> None:
    box = Polyhedron.box(-np.ones(2), np.ones(2))
    result = lopro.solve(Problem(0.0 * Linear(np.ones(2)), box), np.full(2, 3.0))
    assert result.success and result.fun == 0.0
