"""Basis pursuit denoising: ``min sum w_i |x_i|  s.t.  |A x - y|_2 <= sigma``, certified."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lopro.basis_pursuit.application import ProblemData, solve_one
from lopro.basis_pursuit.batches.shared import radii_for, solve_all, solve_columns
from lopro.basis_pursuit.block_norm import Repeated
from lopro.basis_pursuit.columns.shared_passes import shares_passes
from lopro.basis_pursuit.free_columns import FreeColumns
from lopro.basis_pursuit.results import BPDNResult, ParetoCurve, from_largest
from lopro.core.arrays import Array, to_numpy
from lopro.core.deadline import Deadline
from lopro.core.validation import check_array, check_number, check_numbers, check_shape
from lopro.driver.result import Iterate
from lopro.driver.stopping import Rule
from lopro.driver.workbench import Callback, Options
from lopro.errors import MissingCapabilityError
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
    """Minimise the (weighted) l1 norm over vectors whose residual is at most ``sigma`` long.

    Parameters
    ----------
    A : array, scipy.sparse matrix, LinearOperator, stored or distributed array of shape (m, d)
        Real or complex; never copied. See `lopro.maps.linear_map`.
    y : array of shape (m,) or (m, k)
        Measurements; k columns are k problems that share the work on ``A``. On the host a dense ``A`` is
        copied for them, with up to one and a half times its memory; on a device its Gram matrix is formed in
        single precision, with up to five times the memory of ``A``.
    sigma : float, or k of them
        Radius of the residual ball, a Euclidean norm; 0 is basis pursuit.
    x0 : array, optional
        A start; one close to the solution saves most of the work.
    method : Method, optional
        By default `WorkingSet` for matrices with columns, and a matrix-free method otherwise; or
        `lopro.LoPNAG`, `lopro.OneProjection`, `lopro.MultiplierMethod`, `lopro.baselines.NESTA`, ...
    weights : array or float, optional
        Weights ``w``, one for each coefficient, row or group. Coefficients of weight 0 are not penalised (not
        with ``nonneg``, ``joint`` or ``groups``).
    nonneg : bool
        Require ``x >= 0`` (real problems).
    joint : bool
        Solve for the columns of ``y`` jointly: one matrix ``X`` whose rows are zero as a whole,
        ``min sum_i w_i |X_i|_2  s.t. |A X - y|_F <= sigma``. Data that NumPy can read.
    groups : array of length d, optional
        The group of each coefficient, a number: the norm is the sum of ``w_g |x_g|_2`` over groups, with
        weights in the order of these numbers. Data that NumPy can read.
    tol : float
        Required certified relative gap, as in `lopro.solve`.
    max_iter, max_projections : int, optional
        As in `lopro.solve`, for each right-hand side.
    time_limit : float, optional
        Seconds of wall time for the whole call; columns not solved by then have the status TIME_LIMIT.
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

    Two signals with the same support:

    >>> Y = A[:, [3, 70]] @ np.array([[1.0, 2.0], [-2.0, 1.0]])
    >>> lopro.bpdn(A, Y, sigma=0.01, joint=True).support
    array([ 3, 70])
    """
    options = Options(tol, max_iter, max_projections, time_limit, stop, callback, progress, seed)
    with Deadline(time_limit).active():
        data = ProblemData(A, weights, nonneg, groups)
        if joint:
            return _solve_joint(data, y, sigma, x0, method, options.within_call())
        return _bpdn(data, y, sigma, x0, method, options.within_call())


def _bpdn(
    data: ProblemData, y: Any, sigma: Any, x0: Any, method: Method | None, options: Options
) -> Any:
    y = check_array("y", y, ndim=(1, 2))
    free = None if data.weights is None else FreeColumns.of(data)
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
    """Solve without the columns of weight 0, one right-hand side after the other."""
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
    """Solve for a list of radii, each from the previous solution; results are in the order given.

    Where ``A`` is wide on a device, in a file or on a cluster, the searches for all radii share passes.

    Parameters
    ----------
    A, y
        As in `bpdn`, one right-hand side.
    sigmas : sequence of float
        The radii; problems are solved from the largest radius down, which costs least.
    x0, method, weights, nonneg, tol, max_iter, max_projections
        As in `bpdn`, for each radius.
    time_limit : float, optional
        Seconds of wall time for the whole path; radii not solved by then have the status TIME_LIMIT.
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
    radii = check_numbers("sigmas", sigmas)
    options = Options(
        tol, max_iter, max_projections, time_limit, stop, callback, progress, seed
    ).within_call()
    with Deadline(time_limit).active():
        data, y = ProblemData(A, weights, nonneg), check_array("y", y, ndim=1)
        problems = [data.problem(y, radius) for radius in radii]
        free = method is None and x0 is None and not options.limited
        if free and shares_passes(data.A, problems):
            return ParetoCurve(solve_all(data, problems, options), radii)
        results: list[BPDNResult] = from_largest(
            radii, lambda i, start: solve_one(problems[i], start, method, options), x0
        )
        return ParetoCurve(results, radii)


def _solve_joint(
    data: ProblemData, y: Any, sigma: Any, x0: Any, method: Method | None, options: Options
) -> BPDNResult:
    """Solve ``min sum_i w_i |X_i|  s.t. |A X - Y| <= sigma`` as a problem on vectors.

    The vectors have the entries of ``X`` and ``Y`` row by row; blocks are rows, or the rows of a group.
    """
    Y = check_array("y", y, ndim=(1, 2))
    if not isinstance(data.A.like, np.ndarray):
        raise MissingCapabilityError(
            "joint=True needs data on the host: pass NumPy arrays, or solve one column at a time"
        )
    rows, d = data.A.shape
    check_shape("y", Y, (rows, *Y.shape[1:]))
    k = 1 if Y.ndim == 1 else int(Y.shape[1])
    sigma = check_number("sigma", sigma, minimum=0.0)
    groups = np.arange(d) if data.groups is None else to_numpy(check_array("groups", data.groups))
    check_shape("groups", groups, (d,))
    shape = (d,) if Y.ndim == 1 else (d, k)
    if x0 is not None:
        x0 = check_array("x0", x0)
        check_shape("x0", x0, shape)
        x0 = x0.reshape(-1)
    A = data.A if k == 1 else Repeated(data.A, k)
    long = ProblemData(A, data.weights, data.nonneg, np.repeat(groups, k))
    problem = long.problem(to_numpy(Y).reshape(-1), sigma)
    found: BPDNResult = solve_one(problem, x0, method, _with_shape(options, shape))
    dual = None if found.dual is None else found.dual.reshape(Y.shape)
    return dataclasses.replace(found, x=found.x.reshape(shape), dual=dual)


def _with_shape(options: Options, shape: tuple[int, ...]) -> Options:
    """Return options whose callback and stopping function get points of the given shape."""

    def seen(iterate: Iterate) -> Iterate:
        x: Array = iterate.x.reshape(shape)
        return dataclasses.replace(iterate, x=x)

    callback, rule = options.callback, options.rule
    if callback is not None:
        options = dataclasses.replace(options, callback=lambda iterate: callback(seen(iterate)))
    if rule is not None:
        options = dataclasses.replace(options, stop=lambda iterate: rule.met(seen(iterate)))
    return options
