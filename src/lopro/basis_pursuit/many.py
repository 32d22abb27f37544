"""Basis pursuit denoising with many right-hand sides: one list of results, the work on ``A`` shared."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from lopro.basis_pursuit.block_lockstep import BlockLockstep
from lopro.basis_pursuit.lockstep import Lockstep, Proposed
from lopro.basis_pursuit.pose import Pose, solve_one
from lopro.basis_pursuit.result import BPDNResult
from lopro.basis_pursuit.together import found_together, shares_passes
from lopro.basis_pursuit.working_set import WorkingSet
from lopro.core.arrays import Array, is_complex, to_numpy
from lopro.core.deadline import OutOfTime
from lopro.core.validation import check_array
from lopro.driver.options import Options
from lopro.maps import LinearMap
from lopro.problem import Problem
from lopro.protocol import Method

__all__ = ["radii_for", "solve_columns", "solve_sharing"]


def solve_columns(
    pose: Pose, Y: Array, sigma: Any, starts: Any, method: Method | None, options: Options
) -> list[BPDNResult]:
    """Solve one problem per column of ``Y``.

    With the default method and no starts, searches in lockstep come first; whatever they do not finish
    is solved alone.
    """
    k = Y.shape[1]
    radii = radii_for(sigma, k)
    if starts is not None:
        starts, shape = check_array("x0", starts), (pose.A.shape[1], k)
        if tuple(starts.shape) != shape:
            raise ValueError(
                f"x0 must have shape {shape}, a start for each column of y, "
                f"got {tuple(starts.shape)}"
            )
    problems = [pose.problem(Y[:, j], float(radii[j])) for j in range(k)]
    results: list[BPDNResult | None] = [None] * k
    free = method is None and starts is None and not options.limited and pose.groups is None
    kinds = [kind for kind in (Lockstep, BlockLockstep) if kind.pays(pose.A, k)]
    if free and kinds and is_complex(problems[0].constraint.like) == (kinds[0] is BlockLockstep):
        results = _in_lockstep(partial(kinds[0], pose.A, options.tol), problems, options)
    elif free:
        return solve_sharing(pose.A, problems, options)
    return [
        solve_one(problem, None if starts is None else starts[:, j], method, options)
        if found is None
        else found
        for j, (problem, found) in enumerate(zip(problems, results, strict=True))
    ]


def solve_sharing(A: LinearMap, problems: list[Problem], options: Options) -> list[BPDNResult]:
    """Solve problems on one matrix; where it is dear to read, searches that share passes come first."""
    found: list[Any] = [None] * len(problems)
    if shares_passes(A, problems):
        found = found_together(A, problems, options)
    return [
        solve_one(problem, None, None, options)
        if each is None
        else dataclasses.replace(
            result := solve_one(problem, each.candidate.x, each, options),
            seconds=result.seconds + each.seconds,
        )
        for problem, each in zip(problems, found, strict=True)
    ]


def radii_for(sigma: Any, k: int) -> Any:
    """Return a radius for each of ``k`` right-hand sides, from one number or as many."""
    radii = check_array("sigma", sigma, allow_complex=False)
    if radii.ndim > 1 or math.prod(radii.shape) not in (1, k):
        raise ValueError(
            f"sigma must be a number or {k} of them, one for each column of y, got {sigma!r}"
        )
    return np.broadcast_to(to_numpy(radii).astype(np.float64), (k,))


def _in_lockstep(
    lockstep: Callable[[], Lockstep | BlockLockstep], problems: list[Problem], options: Options
) -> list[BPDNResult | None]:
    """Return certified results for what the searches finish, None for the rest."""
    started = time.perf_counter()
    try:
        proposals = lockstep().search(problems)
    except OutOfTime:
        return [None] * len(problems)
    share = (time.perf_counter() - started) / len(problems)
    results: list[BPDNResult | None] = []
    for problem, proposal in zip(problems, proposals, strict=True):
        if proposal is None:
            results.append(None)
            continue
        method = Proposed(proposal, WorkingSet())
        result = solve_one(problem, proposal.x, method, options)
        results.append(dataclasses.replace(result, seconds=result.seconds + share))
    return results
