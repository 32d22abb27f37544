"""Basis pursuit denoising: ``min sum w_i |x_i|  s.t.  |A x - y|_2 <= sigma``, certified."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from lopro._arrays import Array, is_complex
from lopro._validation import check_array, check_number
from lopro.applications.bpdn_result import BPDNResult, solve_with_dual
from lopro.applications.many import solve_columns
from lopro.constraints import Box, Intersection, ResidualBall
from lopro.epochs import Scheme
from lopro.errors import MissingCapabilityError
from lopro.maps import linear_map
from lopro.objectives import L1Norm
from lopro.problem import Problem
from lopro.schemes import MatrixFree, MultiplierMethod, WorkingSet

__all__ = ["BPDNResult", "bpdn", "bpdn_path", "bpdn_problem", "default_method"]


def bpdn(
    A: Any,
    y: Any,
    sigma: Any,
    *,
    x0: Array | None = None,
    method: Scheme | None = None,
    weights: Any = None,
    nonneg: bool = False,
    tol: float = 1e-6,
    **options: Any,
) -> Any:
    """Find the vector of least (weighted) l1 norm whose residual is at most ``sigma``.

    Parameters
    ----------
    A : array, scipy.sparse matrix or LinearOperator of shape (m, d)
        Real or complex; never copied.
    y : array of shape (m,) or (m, k)
        Measurements; k columns are k problems that share the work on ``A``. With many columns the Gram
        matrix is formed once, in single precision: at most five times the memory of ``A``.
    sigma : float, or k of them
        Radius of the residual ball, a norm; 0 is basis pursuit.
    x0 : array, optional
        A start; a good one saves most of the work.
    method : Scheme, optional
        By default `WorkingSet` for explicit real matrices, and a matrix-free method otherwise; or
        `lopro.LoPNAG`, `lopro.OneProjection`, `lopro.MultiplierMethod`, `lopro.baselines.NESTA`, ...
    weights : array or float, optional
        Positive weights ``w``.
    nonneg : bool
        Ask for ``x >= 0`` (real problems).
    tol : float
        Certified relative gap ``gap / fun`` to reach.
    **options
        ``max_iter``, ``max_projections``, ``time_limit``, ``callback``, ``progress``, ``seed``: see `solve`.

    Returns
    -------
    BPDNResult, or a list of them for ``y`` with columns
        Feasible, with gap, lower bound, dual solution, support and counts.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((30, 100))
    >>> y = A[:, 3] - 2 * A[:, 70]
    >>> result = lopro.bpdn(A, y, sigma=0.01)
    >>> result.success, result.support
    (True, array([ 3, 70]))
    """
    A = linear_map(A, "A")
    y = check_array("y", y, ndim=(1, 2))

    def pose(column: Array, radius: float) -> Problem:
        return bpdn_problem(A, column, radius, weights=weights, nonneg=nonneg)

    def solve_one(problem: Problem, start: Array | None) -> BPDNResult:
        chosen = default_method(problem) if method is None else method
        return solve_with_dual(problem, start, chosen, tol=tol, **options)

    if y.ndim == 1:
        return solve_one(pose(y, sigma), x0)
    return solve_columns(
        A, y, sigma, pose, solve_one, shareable=method is None, starts=x0, tol=tol, **options
    )


def bpdn_problem(
    A: Any, y: Any, sigma: float, *, weights: Any = None, nonneg: bool = False
) -> Problem:
    """Return the problem that `bpdn` solves, for use with `lopro.solve` and `lopro.iterate`.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.applications.compressive_sensing import bpdn_problem
    >>> bpdn_problem(np.eye(2), np.ones(2), 0.5).shape
    (2,)
    """
    ball = ResidualBall(A, y, sigma)
    d = ball.A.shape[1]
    objective = L1Norm(weights, shape=(d,))
    if objective.least_weight <= 0.0:
        raise ValueError("weights must be positive: a coefficient that costs nothing has no bound")
    if not nonneg:
        return Problem(objective, ball, gap_scale=0.0)
    if is_complex(ball.like):
        raise TypeError("nonneg asks for real data, got complex A or y")
    orthant = Box(np.zeros(d, dtype=np.asarray(ball.y).dtype), np.full(d, np.inf))
    return Problem(objective, Intersection(ball, orthant), gap_scale=0.0)


def default_method(problem: Problem) -> Scheme:
    """Return the method `bpdn` uses: by columns where ``A`` has real ones, matrix-free otherwise."""
    for method in (WorkingSet(), MatrixFree()):
        with suppress(MissingCapabilityError):
            method.check(problem)
            return method
    return MultiplierMethod()


def bpdn_path(A: Any, y: Any, sigmas: Sequence[float], **options: Any) -> list[BPDNResult]:
    """Solve for a list of radii, each from the solution before it; results in the order given.

    Parameters
    ----------
    A, y
        As in `bpdn`, one right-hand side.
    sigmas : sequence of float
        The radii; they are worked through from the largest down, which is the cheap direction.
    **options
        As in `bpdn`.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> A = np.random.default_rng(0).standard_normal((20, 50))
    >>> path = lopro.bpdn_path(A, A[:, 0], [2.0, 0.5, 0.1])
    >>> [bool(r.success) for r in path]
    [True, True, True]
    """
    radii = [check_number(f"sigmas[{i}]", s, minimum=0.0) for i, s in enumerate(sigmas)]
    if not radii:
        raise ValueError("sigmas must not be empty")
    A = linear_map(A, "A")
    results: dict[int, BPDNResult] = {}
    x0 = options.pop("x0", None)
    for i in sorted(range(len(radii)), key=lambda i: -radii[i]):
        results[i] = bpdn(A, y, radii[i], x0=x0, **options)
        if results[i].success:
            x0 = results[i].x
    return [results[i] for i in range(len(radii))]
