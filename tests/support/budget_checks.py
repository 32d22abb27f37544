"""Checks of library and budgets that several baselines pass alike."""

from __future__ import annotations

import math
from typing import Any

import array_api_strict
import numpy as np
from support.theory_problems import t3

import lopro
from lopro.constraints import ResidualBall
from lopro.objectives import Linear


def check_library_and_iterations(method: Any, iterations: int, tol: float = 0.0) -> None:
    """Assert that the point keeps its array library and that the limit of iterations holds."""
    strict = array_api_strict.asarray
    ball = ResidualBall(strict(np.diag([1.0, 3.0])), strict(np.zeros(2)), 1.0)
    problem = lopro.Problem(Linear(strict(np.array([1.0, 2.0]))), ball)
    result = lopro.solve(problem, method=method, tol=tol, max_iter=iterations)
    assert isinstance(result.x, type(strict(np.zeros(1))))
    assert (result.status, result.iterations) == (lopro.Status.MAX_ITER, iterations)
    assert math.isfinite(result.fun) and result.certificate.violation <= 1e-9


def check_one_projection(method: Any) -> None:
    """Assert that a run with ``max_projections=1`` ends with a feasible point."""
    known = t3()
    result = lopro.solve(known.problem, -known.x0, method, tol=0.0, max_projections=1)
    assert (result.status, result.counts.projections) == (lopro.Status.MAX_PROJECTIONS, 1)
    assert result.certificate.violation <= 1e-9
