"""Basis pursuit denoising with many right-hand sides: one list of results, the work on ``A`` shared."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from lopro._util.arrays import Array
from lopro.basis_pursuit.lockstep import Lockstep, Proposed
from lopro.basis_pursuit.problem import residual_ball_of
from lopro.basis_pursuit.result import BPDNResult
from lopro.basis_pursuit.working_set import WorkingSet
from lopro.linear import LinearMap
from lopro.problem import Problem
from lopro.protocol.budget import Budget
from lopro.solving import solve

__all__ = ["solve_columns"]

_BUDGETS = ("max_iter", "max_projections", "time_limit")


def solve_columns(
    A: LinearMap,
    Y: Array,
    sigma: Any,
    pose: Callable[[Array, float], Problem],
    solve_one: Callable[[Problem, Any], BPDNResult],
    *,
    shareable: bool,
    starts: Any,
    **options: Any,
) -> list[BPDNResult]:
    """Solve one problem per column of ``Y``.

    ``pose`` makes a problem of a column and a radius, ``solve_one`` solves one from a start. Where
    ``shareable`` (the default method, no starts) searches in lockstep come first; whatever they do not
    finish is solved alone.
    """
    k = Y.shape[1]
    radii = np.broadcast_to(np.asarray(sigma, dtype=float), (k,))
    problems = [pose(Y[:, j], float(radii[j])) for j in range(k)]
    results: list[BPDNResult | None] = [None] * k
    limited = any(options.get(name) is not None for name in _BUDGETS)
    if shareable and starts is None and not limited and Lockstep.pays(A, k):
        results = _in_lockstep(A, problems, **options)
    for j, problem in enumerate(problems):
        if results[j] is None:
            _share(A, problem)
            results[j] = solve_one(problem, None if starts is None else starts[:, j])
            _keep(A, problem)
    return [result for result in results if result is not None]


def _in_lockstep(
    A: LinearMap, problems: list[Problem], tol: float, **options: Any
) -> list[BPDNResult | None]:
    """Return certified results for what the searches finish, None for the rest."""
    Budget(tol)  # a tolerance that makes no sense is refused before the work
    started = time.perf_counter()
    proposals = Lockstep(A, tol).search(problems)
    share = (time.perf_counter() - started) / len(problems)
    results: list[BPDNResult | None] = []
    for problem, proposal in zip(problems, proposals, strict=True):
        if proposal is None:
            results.append(None)
            continue
        method = Proposed(proposal, WorkingSet())
        result = BPDNResult.of(solve(problem, proposal.x, method, tol=tol, **options), problem)
        results.append(dataclasses.replace(result, seconds=result.seconds + share))
    return results


def _share(A: LinearMap, problem: Problem) -> None:
    """Tell the map of a problem what has been computed about the matrix since it was posed."""
    ball, _ = residual_ball_of(problem.constraint)
    assert ball is not None
    ball.A = LinearMap(A, "A")


def _keep(A: LinearMap, problem: Problem) -> None:
    """Keep what a run has computed about the matrix (its spectrum) for the runs to come."""
    ball, _ = residual_ball_of(problem.constraint)
    assert ball is not None
    for name, value in ball.A.__dict__.items():
        A.__dict__.setdefault(name, value)
