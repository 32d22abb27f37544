"""Basis pursuit denoising: ``min sum w_i |x_i|  s.t.  |A x - y|_2 <= sigma``, certified."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.basis_pursuit.application import (
    BPDNResult,
    ParetoCurve,
    ProblemData,
    from_largest,
    solve_one,
)
from lopro.basis_pursuit.batch import radii_for, shares_passes, solve_all, solve_columns
from lopro.basis_pursuit.problem import Repeated
from lopro.basis_pursuit.search import columns_of
from lopro.certificates import feasibility_tolerance
from lopro.core.arrays import Array, eps, norm, to_numpy
from lopro.core.deadline import Deadline
from lopro.core.validation import check_array, check_number, check_numbers, check_shape
from lopro.driver.result import Iterate, Status
from lopro.driver.stopping import Rule
from lopro.driver.workbench import Callback, Options
from lopro.errors import MissingCapabilityError
from lopro.maps import LinearMap, linear_map
from lopro.maps.algebra import dense
from lopro.protocol import Certificate, Method, Target

__all__ = ["FreeColumns", "bpdn", "bpdn_path"]


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
        Measurements; k columns are k problems that share the work on ``A``. On the host a dense ``A`` is
        copied for them, at most one and a half times; on a device its Gram matrix is formed once, in single
        precision: at most five times the memory of ``A``.
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
            return _solve_joint(data, y, sigma, x0, method, options.within_call())
        return _bpdn(data, y, sigma, x0, method, options.within_call())


def _bpdn(
    data: ProblemData, y: Any, sigma: Any, x0: Any, method: Method | None, options: Options
) -> Any:
    y = check_array("y", y, ndim=(1, 2))
    free = FreeColumns.of(data)
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
    """Solve ``min sum_i w_i |X_i|  s.t. |A X - Y| <= sigma`` as a problem on long vectors.

    ``X`` and ``Y`` are their entries row by row; the blocks are rows, or the rows of a group.
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
    """Return options whose callback and stopping function see points as users know them."""

    def seen(iterate: Iterate) -> Iterate:
        x: Array = iterate.x.reshape(shape)
        return dataclasses.replace(iterate, x=x)

    callback, rule = options.callback, options.rule
    if callback is not None:
        options = dataclasses.replace(options, callback=lambda iterate: callback(seen(iterate)))
    if rule is not None:
        options = dataclasses.replace(options, stop=lambda iterate: rule.met(seen(iterate)))
    return options


#: Roundings per entry of the longest side that two projections on the free columns may leave of ``y``.
_REACHED = 8.0


class FreeColumns:
    """The problem without its columns of weight 0, which are free, and the way back.

    Free coefficients take what they can of ``y``. Where ``A = (N F)`` and the columns ``F`` are free, the
    best free coefficients for any others leave the part of ``y - N x`` outside of the range of ``F``. So the
    problem is one in ``(I - Q Q^H) N`` and ``(I - Q Q^H) y`` with an orthonormal basis ``Q`` of that range.
    Values, bounds and dual points are the same: a dual point that counts is orthogonal to the free columns.

    Parameters
    ----------
    A : LinearMap
        All columns; on the host.
    weights : array of length d
        Nonnegative, not all of them 0.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.basis_pursuit.api import FreeColumns
    >>> from lopro.maps import linear_map
    >>> free = FreeColumns(linear_map(np.array([[1.0, 2.0], [0.0, 3.0]])), np.array([0.0, 1.0]))
    >>> free.map.toarray().ravel(), free.shorten(np.array([5.0, 6.0]))
    (array([0., 3.]), array([0., 6.]))
    """

    def __init__(self, A: LinearMap, weights: Array) -> None:
        if not isinstance(A.like, np.ndarray):
            raise MissingCapabilityError(
                "weights of 0 need data on the host: pass NumPy arrays, or small positive weights"
            )
        w = to_numpy(weights)
        self.A, self.free, self.costly = A, np.flatnonzero(w == 0.0), np.flatnonzero(w != 0.0)
        self.weights = w[self.costly]
        self._columns = np.asarray(dense(columns_of(A, self.free)))
        U, s, _ = np.linalg.svd(self._columns, full_matrices=False)
        cut = max(A.shape) * eps(A.like) * (float(s[0]) if s.size else 0.0)
        self._basis = U[:, s > cut]
        self.map = self._shortened_map()

    @staticmethod
    def of(data: ProblemData) -> FreeColumns | None:
        """Return how to do without the columns of weight 0; None where there are none, or only these."""
        if data.weights is None or data.nonneg or data.groups is not None:
            return None
        w = to_numpy(check_array("weights", data.weights, allow_complex=False))
        fits = w.shape == (data.A.shape[1],)
        return FreeColumns(data.A, w) if fits and w.min() == 0.0 < w.max() else None

    def shorten(self, v: Any) -> Any:
        """Return the part of vectors outside of the range of the free columns."""
        for _ in range(2):  # what is left of a first pass is rounding of what was taken away
            v = v - self._basis @ (self._basis.conj().T @ v)
        return v

    def _shortened_map(self) -> LinearMap:
        rows, d = self.A.shape[0], self.A.shape[1]
        if self.A.explicit and not scipy.sparse.issparse(self.A.matrix):
            return linear_map(self.shorten(np.asarray(dense(columns_of(self.A, self.costly)))), "A")
        dtype = np.result_type(self.A.like.dtype, self._basis.dtype)

        def matvec(x: Any) -> Any:
            full = np.zeros(d, dtype=np.result_type(x.dtype, dtype))
            full[self.costly] = x.ravel()
            return self.shorten(np.asarray(self.A.forward(full)))

        def rmatvec(r: Any) -> Any:
            return np.asarray(self.A.adjoint(self.shorten(r.ravel())))[self.costly]

        operator = scipy.sparse.linalg.LinearOperator(
            (rows, len(self.costly)), matvec=matvec, rmatvec=rmatvec, dtype=dtype
        )
        return linear_map(operator, "A")

    def solve(
        self,
        y: Array,
        sigma: float,
        x0: Array | None,
        solver: Callable[..., BPDNResult],
        tol: float,
    ) -> BPDNResult:
        """Solve without the free columns by ``solver(y, start)``, and put them back."""
        right = to_numpy(y)
        rest = self.shorten(right)
        # Where the free columns reach y, what is left of it is rounding, and zero is as feasible as that.
        reached = norm(rest) <= _REACHED * max(self.A.shape) * eps(rest) * norm(right)
        start = None if x0 is None else to_numpy(x0)[self.costly]
        found = solver(0.0 * rest if reached else rest, start)
        x = np.zeros(self.A.shape[1], dtype=np.result_type(found.x.dtype, self._basis.dtype))
        x[self.costly] = to_numpy(found.x)
        rest = right - np.asarray(self.A.forward(x))
        x[self.free] = np.linalg.lstsq(self._columns, rest, rcond=None)[0].astype(x.dtype)
        if math.isnan(found.fun) or found.dual is None:  # nothing was proved
            status = Status.STALLED if found.success else found.status
            return dataclasses.replace(found, x=x, status=status, multiplier=None)
        dual = self.shorten(to_numpy(found.dual))
        certificate = self._certificate(found, right, sigma, x, dual, tol)
        kept = certificate.relative_gap <= tol and certificate.violation <= feasibility_tolerance(x)
        status = Status.STALLED if found.success and not kept else found.status
        return dataclasses.replace(
            found,
            x=x,
            certificate=certificate,
            status=status,
            message=status.value,
            multiplier=None,
            dual=dual,
        )

    def _certificate(
        self, found: BPDNResult, y: Any, sigma: float, x: Any, dual: Any, tol: float
    ) -> Certificate:
        """Return the certificate with all columns; the bound pays for the rounding of the short vectors."""
        old = found.certificate
        moved = norm(y) + norm(self._columns) * norm(x[self.free])
        lower = old.lower_bound - 8.0 * eps(x) * moved * norm(dual)
        excess = norm(np.asarray(self.A.forward(x)) - y) - sigma
        scale = max(sigma, 1e-6 * norm(y)) if sigma > 0.0 else norm(y)
        violation = max(0.0, excess) / scale if scale > 0.0 else 0.0
        gained = max(0.0, old.gap - (found.fun - old.lower_bound))
        return Certificate.of(
            found.fun,
            lower,
            violation,
            old.source,
            Target(tol, 0.0),
            gained + norm(dual) * max(0.0, excess),
            absolute=max(0.0, excess),
        )
