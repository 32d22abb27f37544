"""Basis pursuit denoising: ``min sum w_i |x_i|  s.t.  |A x - y|_2 <= sigma``, certified."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lopro.basis_pursuit.application import ProblemData, solve_one
from lopro.basis_pursuit.batch import radii_for, shares_passes, solve_columns, solve_together
from lopro.basis_pursuit.free_columns import FreeColumns
from lopro.basis_pursuit.joint import solve_joint
from lopro.basis_pursuit.result import BPDNResult, ParetoCurve
from lopro.core.arrays import Array
from lopro.core.deadline import Deadline
from lopro.core.validation import check_array, check_number, check_shape
from lopro.driver.options import Callback, Options
from lopro.driver.result import Iterate
from lopro.driver.stopping import Rule
from lopro.protocol import Method

__all__ = ["bpdn", "bpdn_path"]


def bpdn(
    A: Any,
    y: Any,
    sigma: Any,
    *,
    x0: Array | None = None,
    method: Method | None = None,
    weights: Any = None,
    nonneg: bool = False,
    joint: bool = False,
    groups: Any = None,
    tol: float = 1e-6,
    max_iter: int | None = None,
    max_projections: int | None = None,
    time_limit: float | None = None,
    stop: Rule | Callable[[Iterate], bool] | None = None,
    callback: Callback | None = None,
    progress: bool = False,
    seed: Any = None,
) -> Any:
    """Find the vector of least (weighted) l1 norm whose residual is at most ``sigma``.

    Parameters
    ----------
    A : array, scipy.sparse matrix, LinearOperator, stored or distributed array of shape (m, d)
        Real or complex; never copied. See `lopro.maps.linear_map`.
    y : array of shape (m,) or (m, k)
        Measurements; k columns are k problems that share the work on ``A``. With many columns the Gram
        matrix is formed once, in single precision: at most five times the memory of ``A``.
    sigma : float, or k of them
        Radius of the residual ball, a norm; 0 is basis pursuit.
    x0 : array, optional
        A start; a good one saves most of the work.
    method : Method, optional
        By default `WorkingSet` for matrices with columns, and a matrix-free method otherwise; or
        `lopro.LoPNAG`, `lopro.OneProjection`, `lopro.MultiplierMethod`, `lopro.baselines.NESTA`, ...
    weights : array or float, optional
        Weights ``w``, one for each coefficient, row or group. Where some are 0, the coefficients there cost
        nothing (not with ``nonneg``, ``joint`` or ``groups``).
    nonneg : bool
        Ask for ``x >= 0`` (real problems).
    joint : bool
        Take the columns of ``y`` together: one matrix ``X`` whose rows are zero together,
        ``min sum_i w_i |X_i|_2  s.t. |A X - y|_F <= sigma``. Data that NumPy can read.
    groups : array of length d, optional
        Which group a coefficient belongs to, a number: the sum of ``w_g |x_g|_2`` over groups is least.
        Weights are in the order of these numbers. Data that NumPy can read.
    tol : float
        Certified relative gap to reach, as in `lopro.solve`.
    max_iter, max_projections : int, optional
        As in `lopro.solve`, for each right-hand side.
    time_limit : float, optional
        Seconds of wall time for the whole call; columns that are not done by then say so.
    stop, callback, progress, seed
        As in `lopro.solve`.

    Returns
    -------
    BPDNResult, or a list of them for ``y`` with columns (one with ``joint``)
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

    Two signals that are zero in the same places:

    >>> Y = A[:, [3, 70]] @ np.array([[1.0, 2.0], [-2.0, 1.0]])
    >>> lopro.bpdn(A, Y, sigma=0.01, joint=True).support
    array([ 3, 70])
    """
    options = Options(tol, max_iter, max_projections, time_limit, stop, callback, progress, seed)
    with Deadline(time_limit).active():
        data = ProblemData(A, weights, nonneg, groups)
        if joint:
            return solve_joint(data, y, sigma, x0, method, options.within_call())
        return _bpdn(data, y, sigma, x0, method, options.within_call())


def _bpdn(
    data: ProblemData, y: Any, sigma: Any, x0: Any, method: Method | None, options: Options
) -> Any:
    y = check_array("y", y, ndim=(1, 2))
    free = data.free_columns()
    if free is not None:
        return _with_free_columns(free, data, y, sigma, x0, method, options)
    if y.ndim == 1:
        return solve_one(data.problem(y, sigma), x0, method, options)
    return solve_columns(data, y, sigma, x0, method, options)


def _with_free_columns(
    free: FreeColumns,
    data: ProblemData,
    y: Array,
    sigma: Any,
    x0: Any,
    method: Method | None,
    options: Options,
) -> Any:
    """Solve without the columns that cost nothing, one right-hand side after the other."""
    if y.ndim == 2:
        radii = radii_for(sigma, y.shape[1])
        starts = [None] * y.shape[1] if x0 is None else list(check_array("x0", x0, ndim=2).T)
        return [
            _with_free_columns(free, data, y[:, j], float(radii[j]), starts[j], method, options)
            for j in range(y.shape[1])
        ]
    check_shape("y", y, (data.A.shape[0],))
    sigma = check_number("sigma", sigma, minimum=0.0)
    if x0 is not None:
        check_shape("x0", check_array("x0", x0), (data.A.shape[1],))
    rest = ProblemData(free.map, free.weights)

    def solver(right: Array, start: Array | None) -> BPDNResult:
        found: BPDNResult = solve_one(rest.problem(right, sigma), start, method, options)
        return found

    return free.solve(y, sigma, x0, solver, options.tol)


def bpdn_path(
    A: Any,
    y: Any,
    sigmas: Sequence[float],
    *,
    x0: Array | None = None,
    method: Method | None = None,
    weights: Any = None,
    nonneg: bool = False,
    tol: float = 1e-6,
    max_iter: int | None = None,
    max_projections: int | None = None,
    time_limit: float | None = None,
    stop: Rule | Callable[[Iterate], bool] | None = None,
    callback: Callback | None = None,
    progress: bool = False,
    seed: Any = None,
) -> ParetoCurve:
    """Solve for a list of radii, each from the solution before it; results in the order given.

    Where ``A`` is on a device, in a file or on a cluster, all radii are searched together and share passes.

    Parameters
    ----------
    A, y
        As in `bpdn`, one right-hand side.
    sigmas : sequence of float
        The radii; they are solved from the largest down, which costs least.
    x0, method, weights, nonneg, tol, max_iter, max_projections
        As in `bpdn`, for each radius.
    time_limit : float, optional
        Seconds of wall time for the whole path; radii that are not done by then say so.
    stop, callback, progress, seed
        As in `bpdn`.

    Returns
    -------
    ParetoCurve
        A list of results, with ``radii``, ``norms``, ``slopes`` and ``plot``.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> A = np.random.default_rng(0).standard_normal((20, 50))
    >>> path = lopro.bpdn_path(A, A[:, 0], [2.0, 0.5, 0.1])
    >>> [bool(r.success) for r in path]
    [True, True, True]
    """
    radii = _radii(sigmas)
    options = Options(
        tol, max_iter, max_projections, time_limit, stop, callback, progress, seed
    ).within_call()
    with Deadline(time_limit).active():
        data, y = ProblemData(A, weights, nonneg), check_array("y", y, ndim=1)
        problems = [data.problem(y, radius) for radius in radii]
        free = method is None and x0 is None and not options.limited
        if free and shares_passes(data.A, problems):
            return ParetoCurve(solve_together(data, problems, options), radii)
        results: dict[int, BPDNResult] = {}
        for i in sorted(range(len(radii)), key=lambda i: -radii[i]):
            results[i] = solve_one(problems[i], x0, method, options)
            if results[i].success:
                x0 = results[i].x
        return ParetoCurve([results[i] for i in range(len(radii))], radii)


def _radii(sigmas: Any) -> list[float]:
    if not hasattr(sigmas, "__iter__") or isinstance(sigmas, (str, bytes)):
        raise TypeError(f"sigmas must be a sequence of numbers, got {sigmas!r}")
    radii = [check_number(f"sigmas[{i}]", s, minimum=0.0) for i, s in enumerate(sigmas)]
    if not radii:
        raise ValueError("sigmas must not be empty")
    return radii
