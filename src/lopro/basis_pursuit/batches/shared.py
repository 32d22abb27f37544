"""Several problems on one matrix, many right-hand sides or many radii: the choice of what they share.

For dense matrices in memory there is a Newton method for all right-hand sides at once (`batch_dense`); where
a pass over the matrix is expensive (a file, a cluster, a wide matrix on a device), searches share the passes
(`shared_passes`).
"""

from __future__ import annotations

import dataclasses
import math
from contextlib import suppress
from typing import Any

import numpy as np

from lopro.basis_pursuit.application import ProblemData, solve_one
from lopro.basis_pursuit.batches.dense import solve_dense
from lopro.basis_pursuit.columns.shared_passes import Proposed, SharedPasses, shares_passes
from lopro.basis_pursuit.results import BPDNResult
from lopro.core.arrays import Array, to_numpy
from lopro.core.deadline import OutOfTime
from lopro.core.validation import check_array
from lopro.driver.workbench import Options
from lopro.problem import Problem

__all__ = ["radii_for", "solve_columns"]


def solve_columns(
    data: ProblemData, Y: Array, sigma: Any, starts: Any, method: Any, options: Options
) -> list[BPDNResult]:
    """Solve one problem for each column of ``Y``; the default method without starts shares the work."""
    k = Y.shape[1]
    radii = radii_for(sigma, k)
    if starts is not None:
        starts, shape = check_array("x0", starts), (data.A.shape[1], k)
        if tuple(starts.shape) != shape:
            raise ValueError(
                f"x0 must have shape {shape}, a start for each column of y, "
                f"got {tuple(starts.shape)}"
            )
    shared = method is None and starts is None and not options.limited
    found: list[BPDNResult | None] = [None] * k
    if shared and k > 1 and options.callback is None and not options.progress:
        found = solve_dense(data, Y, radii, options)
    rest = [j for j in range(k) if found[j] is None]
    problems = [data.problem(Y[:, j], float(radii[j])) for j in rest]
    if shared:
        results = solve_all(data, problems, options)
    else:
        results = [
            solve_one(problem, None if starts is None else starts[:, j], method, options)
            for j, problem in zip(rest, problems, strict=True)
        ]
    alone = dict(zip(rest, results, strict=True))
    return [alone[j] if each is None else each for j, each in enumerate(found)]


def radii_for(sigma: Any, k: int) -> Any:
    """Return the radii of ``k`` right-hand sides, given by one number or ``k``."""
    radii = check_array("sigma", sigma, allow_complex=False)
    if radii.ndim > 1 or math.prod(radii.shape) not in (1, k):
        raise ValueError(
            f"sigma must be a number or {k} of them, one for each column of y, got {sigma!r}"
        )
    return np.broadcast_to(to_numpy(radii).astype(np.float64), (k,))


def solve_all(data: ProblemData, problems: list[Problem], options: Options) -> list[BPDNResult]:
    """Solve problems on one matrix; those that no shared search solves are solved alone."""
    proposed: list[Proposed | None] = [None] * len(problems)
    with suppress(OutOfTime):
        if shares_passes(data.A, problems):
            proposed = SharedPasses(data.A, options).search(problems)
    return [
        solve_one(problem, None, None, options)
        if each is None
        else dataclasses.replace(
            result := solve_one(problem, each.candidate.x, each, options),
            seconds=result.seconds + each.seconds,
        )
        for problem, each in zip(problems, proposed, strict=True)
    ]
