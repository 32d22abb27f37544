"""Basis pursuit denoising with many right-hand sides: one list of results, the work on ``A`` shared."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from lopro._arrays import Array
from lopro.applications.bpdn_result import BPDNResult, solve_with_dual
from lopro.budget import Budget
from lopro.maps import LinearMap
from lopro.problem import Problem
from lopro.schemes import WorkingSet
from lopro.schemes.lockstep import KnownProduct, Lockstep, Proposed

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
            results[j] = solve_one(problem, None if starts is None else starts[:, j])
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
        KnownProduct.teach(problem, proposal)
        method = Proposed(proposal, WorkingSet())
        result = solve_with_dual(problem, proposal.x, method, tol=tol, **options)
        results.append(dataclasses.replace(result, seconds=result.seconds + share))
    return results
