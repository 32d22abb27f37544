"""Runs of NESTA for several tests."""

from __future__ import annotations

import numpy as np

import lopro
from lopro import Problem, Status
from lopro.constraints import ResidualBall
from lopro.methods.baselines import NESTA
from lopro.objectives import L1Norm


def bpdn_problem(A, y, sigma) -> Problem:
    return Problem(L1Norm(), ResidualBall(A, y, float(sigma)))


def iterates(problem: Problem, mu: float, count: int) -> np.ndarray:
    seen = []
    method = NESTA(mu, stages=1, variation=None, max_iter=count, report=1)
    lopro.solve(problem, method=method, tol=0.0, callback=lambda it: seen.append(it.x))
    assert len(seen) == count
    return np.array(seen)


def huber(x: np.ndarray, mu: float) -> float:
    modulus = np.abs(x)
    return float(np.where(modulus < mu, modulus**2 / (2 * mu), modulus - mu / 2).sum())


def run_to_the_end(problem: Problem, method: NESTA):
    """Return the result and the last point, which need not be the best one."""
    seen = []
    result = lopro.solve(problem, method=method, tol=0.0, callback=lambda it: seen.append(it.x))
    assert result.status is Status.SCHEDULE_DONE
    return result, seen[-1]
