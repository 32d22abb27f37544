"""Certificates of given points: exact for exact multipliers, valid for wrong ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from support.random_models import cases

import lopro
from lopro import Problem
from lopro.constraints import Affine, Intersection, Polyhedron, PSDCone, ResidualBall, Simplex
from lopro.objectives import L1Norm, LeastSquares, Linear, SquaredDistance


def test_the_multipliers_of_a_result_certify_it_again(rng: np.random.Generator) -> None:
    A, b = rng.standard_normal((12, 5)), rng.standard_normal(12)
    rows = Affine(rng.standard_normal((4, 5)), -np.ones(4), 0.1 * np.ones(4))
    problem = Problem(
        LeastSquares(A, b), Intersection(rows, Polyhedron.box(-np.ones(5), np.ones(5)))
    )
    result = lopro.solve(problem)
    again = lopro.certify(problem, result.x, result.multipliers)
    assert again.lower_bound == pytest.approx(result.certificate.lower_bound, rel=1e-8)
    assert again.violation == result.certificate.violation
    # Without them: least squares on the active rows find them.
    assert lopro.certify(problem, result.x).relative_gap <= 1e-6


def test_numbers_by_hand() -> None:
    """Min (x - 3)^2 / 2 over x <= 1: the multiplier v gives 2 - (2 - v)^2 / 2, the right one is 2."""
    problem = Problem(SquaredDistance(np.array([3.0])), Polyhedron([[1.0]], [1.0]))
    for v in (0.0, 1.0, 2.0, 2.5, 7.0):
        c = lopro.certify(problem, np.array([1.0]), [np.array([v])])
        assert c.lower_bound == pytest.approx(2.0 - (2.0 - v) ** 2 / 2.0, rel=1e-12, abs=1e-12)
    # A multiplier of the wrong sign for an upper side counts as 0.
    assert lopro.certify(problem, np.array([1.0]), [np.array([-5.0])]).lower_bound <= 0.0
    outside = lopro.certify(problem, np.array([2.0]), [np.array([2.0])])
    assert math.isinf(outside.gap) and outside.violation == pytest.approx(1.0 / 3.0)
    assert outside.absolute_violation == 1.0 and outside.lower_bound == pytest.approx(
        2.0, rel=1e-12
    )


def test_norms_balls_and_simplices() -> None:
    A, y = np.array([[2.0, 1.0]]), np.array([2.0])
    ball = Problem(L1Norm(), ResidualBall(A, y, 1.0))
    c = lopro.certify(ball, np.array([0.5, 0.0]), [np.array([-0.5])])
    assert c.lower_bound == pytest.approx(0.5, rel=1e-8) and c.relative_gap <= 1e-8
    total = Problem(Linear(np.array([-1.0, -2.0])), Simplex(2, equality=False))
    c = lopro.certify(total, np.array([0.0, 1.0]))
    assert c.lower_bound == pytest.approx(-2.0, rel=1e-9)


def test_without_a_bound_the_violation_is_reported() -> None:
    problem = Problem(Linear(np.eye(2)), PSDCone(2))
    c = lopro.certify(problem, np.diag([1.0, -0.5]))
    assert math.isinf(c.gap) and c.violation == pytest.approx(1.0)


def test_bad_arguments() -> None:
    problem = Problem(Linear(np.ones(2)), Polyhedron(np.eye(2), np.ones(2)))
    with pytest.raises(ValueError, match="x must have shape"):
        lopro.certify(problem, np.zeros(3))
    with pytest.raises(ValueError, match="multipliers0"):
        lopro.certify(problem, np.zeros(2), [np.zeros(3)])


@pytest.mark.parametrize("seed", range(3))
def test_wrong_multipliers_never_prove_too_much(seed: int) -> None:
    """Random points and multipliers of all sizes, on problems whose optimum is known."""
    rng = np.random.default_rng(seed)
    tried = 0
    for k, case in enumerate(cases(0)):
        shape = case.problem.shape
        if k % 30 != seed or case.at_optimum or shape is None or len(shape) != 1:
            continue
        result = lopro.solve(case.problem, max_iter=20_000)
        if not result.success:
            continue
        best, slack = result.fun, 1e-9 * (1.0 + abs(result.fun))
        for size in (0.0, 1e-9, 1e-3, 1.0, 1e6):
            x = result.x + size * rng.standard_normal(shape)
            for v in _perturbed(rng, result.multipliers, size):
                c = lopro.certify(case.problem, x, v)
                inside = math.isinf(c.radius) or np.linalg.norm(x - result.x) <= c.radius
                assert not inside or c.lower_bound <= best + slack, (case.name, size)
                tried += 1
    assert tried >= 15


def _perturbed(rng: np.random.Generator, v: Any, size: float) -> list[Any]:
    """Return None, and, if there are multipliers: these, perturbed, of the wrong sign, and large."""
    if v is None:
        return [None]
    moved = [u + size * rng.standard_normal(u.shape) for u in v]
    return [None, moved, [-u for u in v], [1e6 * u for u in v]]
