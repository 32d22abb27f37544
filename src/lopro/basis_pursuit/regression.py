"""The LASSO and related regressions: a sparsity-inducing norm as a penalty or as a bound.

The LASSO in its constrained form: ``min |A x - y|_2  s.t.  sum w_i |x_i| <= tau``, certified.

The problem is the inverse of basis pursuit denoising: with ``v(sigma)`` the least norm for a radius, the
optimal residual is the ``sigma`` with ``v(sigma) = tau``, a point of the Pareto curve, found by Newton's
method. A dual point ``nu`` of `bpdn` proves ``|A x - y| >= (Re <y, nu> - tau) / |nu|`` for every allowed
``x``, and that number is also the next iterate of Newton's method: the radii are proved lower bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from lopro.basis_pursuit.application import ProblemData, solve_one
from lopro.basis_pursuit.batches.shared import solve_all
from lopro.basis_pursuit.columns.search import ColumnSearch
from lopro.basis_pursuit.columns.shared_passes import shares_passes
from lopro.basis_pursuit.pareto_search import solve_constrained
from lopro.basis_pursuit.recognition import in_blocks, passes_are_expensive, sparse_form
from lopro.basis_pursuit.results import LassoPath, LassoResult, from_largest
from lopro.basis_pursuit.working_set import WorkingSet
from lopro.core.arrays import Array, asarray_like, to_numpy
from lopro.core.deadline import Deadline
from lopro.core.validation import check_array, check_count, check_number, check_numbers
from lopro.driver.workbench import Callback, Options
from lopro.problem import Problem
from lopro.protocol import Method, Workbench

__all__ = ["lasso", "lasso_path", "weights_of_path"]


def lasso(
    A: Any,
    y: Any,
    tau: float | None = None,
    *,
    lam: float | None = None,
    x0: Array | None = None,
    weights: Any = None,
    nonneg: bool = False,
    groups: Any = None,
    ridge: float = 0.0,
    square_root: bool = False,
    method: Method | None = None,
    tol: float = 1e-6,
    max_iter: int | None = None,
    time_limit: float | None = None,
    callback: Callback | None = None,
    progress: bool = False,
) -> LassoResult:
    """Minimise ``|A x - y|^2 / 2 + lam sum w_i |x_i|``, or ``|A x - y|`` with ``sum w_i |x_i| <= tau``.

    Parameters
    ----------
    A : array, scipy.sparse matrix, LinearOperator, stored or distributed array of shape (m, d)
        Real or complex; never copied. See `lopro.maps.linear_map`.
    y : array of shape (m,)
        Measurements.
    tau : float, optional
        Bound of the norm.
    lam : float, optional
        Weight of the norm, positive; the solution is zero from ``max |A^H y|_i / w_i`` on. scikit-learn's
        ``alpha`` is ``lam / m``. Exactly one of ``tau`` and ``lam`` is given.
    x0 : array, optional
        A start; one close to the solution saves most of the work.
    weights : array or float, optional
        Positive weights ``w`` of the norm; one for each group where there are groups.
    nonneg : bool
        Require ``x >= 0`` (real problems).
    groups : array of length d, optional
        The group of each coefficient: the norm is the sum of ``w_g |x_g|_2``. With ``lam``.
    ridge : float
        Add ``ridge |x|^2 / 2``: the elastic net. With ``lam``, real data, no groups.
    square_root : bool
        Minimise ``|A x - y| + lam sum w_i |x_i|``: the square-root LASSO, whose ``lam`` does not depend on
        the size of the noise. Real data.
    method : Method, optional
        With ``lam``: `WorkingSet` for matrices with columns by default.
    tol : float
        Certified relative gap to reach, as in `lopro.solve`; with ``tau`` as with ``gap_scale=1e-3 * |y|``
        there.
    max_iter : int, optional
        With ``lam``, as in `lopro.solve`.
    time_limit : float, optional
        Seconds of wall time for the whole call.
    callback, progress
        With ``lam``, as in `lopro.solve`.

    Returns
    -------
    LassoResult
        With gap, lower bound, dual solution, support and counts.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((30, 100))
    >>> y = A[:, 3] - 2 * A[:, 70]
    >>> result = lopro.lasso(A, y, lam=1.0)
    >>> result.success, result.support, result.x[result.support].round(3)
    (True, array([ 3, 70]), array([ 0.982, -1.974]))

    The same point, by the norm that it has:

    >>> result = lopro.lasso(A, y, tau=float(abs(result.x).sum()))
    >>> result.support, result.x[result.support].round(3)
    (array([ 3, 70]), array([ 0.982, -1.974]))
    """
    if (tau is None) == (lam is None):
        raise TypeError("lasso needs exactly one of tau, a bound of the norm, and lam, its weight")
    options = Options(tol, max_iter, time_limit=time_limit, callback=callback, progress=progress)
    if tau is not None:
        if groups is not None or ridge != 0.0 or square_root or method is not None:
            raise TypeError("groups, ridge, square_root and method go with lam, not with tau")
        return solve_constrained(ProblemData(A, weights, nonneg), y, tau, x0, options)
    data = ProblemData(A, weights, nonneg, groups, ridge, square_root)
    with Deadline(time_limit).active():
        assert lam is not None
        problem = data.penalised(check_array("y", y, ndim=1), lam)
        found: LassoResult = solve_one(problem, x0, method, options.within_call())
    return found


def lasso_path(
    A: Any,
    y: Any,
    lams: Sequence[float] | None = None,
    *,
    count: int = 50,
    ratio: float = 1e-2,
    weights: Any = None,
    nonneg: bool = False,
    groups: Any = None,
    ridge: float | Sequence[float] = 0.0,
    square_root: bool = False,
    tol: float = 1e-6,
    time_limit: float | None = None,
) -> LassoPath[LassoResult]:
    """Solve the LASSO for several weights of the penalty, each from the previous solution.

    Columns, their products with each other and with ``y`` are computed once for all weights. If ``A`` is
    in a file or on a cluster, the searches for all weights share passes.

    Parameters
    ----------
    A, y
        As in `lasso`.
    lams : sequence of float, optional
        The weights; problems are solved from the largest weight down. By default ``count`` weights, evenly
        spaced on a logarithmic scale from the least one for which the solution is zero down to ``ratio`` of
        it.
    count : int
        Number of weights.
    ratio : float
        The smallest weight over the largest.
    weights, nonneg, groups
        As in `lasso`.
    ridge : float or sequence of float
        As in `lasso`; one for all weights, or one for each of ``lams``.
    square_root, tol
        As in `lasso`.
    time_limit : float, optional
        Seconds of wall time for the whole path; results that are not finished have the status TIME_LIMIT.

    Returns
    -------
    LassoPath
        A list of results in the order of the weights, with ``lams`` and ``coefficients``.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> A = np.random.default_rng(0).standard_normal((20, 50))
    >>> path = lopro.lasso_path(A, A[:, 0], count=5, ratio=0.1)
    >>> [len(result.support) for result in path]
    [0, 1, 1, 1, 1]
    """
    options = Options(tol, time_limit=time_limit).within_call()
    with Deadline(time_limit).active():
        data = ProblemData(A, weights, nonneg, groups, 0.0, square_root)
        y = check_array("y", y, ndim=1)
        chosen, ridges = weights_of_path(lams, ridge, lambda: _largest(data, y), count, ratio)
        each = [
            replace(data, ridge=rho).penalised(y, lam)
            for lam, rho in zip(chosen, ridges, strict=True)
        ]
        return LassoPath(_solve_path(data, each, chosen, options), chosen)


def weights_of_path(
    lams: Sequence[float] | None,
    ridge: float | Sequence[float],
    largest: Callable[[], float],
    count: int,
    ratio: float,
) -> tuple[list[float], list[float]]:
    """Return the weights of a path and its ridges: those given, or a grid from the largest weight down."""
    given = None if lams is None else check_numbers("lams", lams, exclusive=True)
    chosen = given or _grid(largest(), count, ratio)
    ridges = [float(rho) for rho in np.atleast_1d(np.asarray(ridge))]
    ridges = ridges * len(chosen) if np.ndim(ridge) == 0 else ridges
    if len(ridges) != len(chosen):
        raise ValueError(f"ridge must be a number or {len(chosen)} of them, got {len(ridges)}")
    return chosen, ridges


def _grid(most: float, count: int, ratio: float) -> list[float]:
    """Return weights from the least one with the solution zero down to a share of it."""
    count = check_count("count", count)
    ratio = check_number("ratio", ratio, minimum=0.0, maximum=1.0, exclusive=True)
    if not most > 0.0:
        raise ValueError("y is orthogonal to every column: the solution is zero for every lam")
    return [float(lam) for lam in most * np.geomspace(1.0, ratio, count)]


def _largest(data: ProblemData, y: Array) -> float:
    """Return the least weight for which the solution is zero."""
    form = sparse_form(data.penalised(y, 1.0))
    assert form is not None
    right = asarray_like(form.y, form.of_duals)
    most = form.gauge(form.A.adjoint(right))
    return most / (float(np.linalg.norm(to_numpy(y))) or 1.0) if data.square_root else most


def _solve_path(
    data: ProblemData, problems: list[Problem], lams: list[float], options: Options
) -> list[LassoResult]:
    """Solve for all penalties, in the order given."""
    if shares_passes(data.A, problems):
        found: list[Any] = solve_all(data, problems, options)
        return found
    form = sparse_form(problems[0])
    assert form is not None
    held = data.A.has_columns and not in_blocks(form) and not passes_are_expensive(data.A)
    method: Method | None = AlongPath() if held else None
    return from_largest(lams, lambda i, start: solve_one(problems[i], start, method, options))


@dataclass(frozen=True, eq=False)
class AlongPath(WorkingSet):
    """`WorkingSet` that starts with the columns of the previous search."""

    _before: list[ColumnSearch] = field(default_factory=list, repr=False)

    def _column_search(self, bench: Workbench, problem: Problem) -> ColumnSearch:
        search = ColumnSearch(problem, bench.target, bench.tick, *self._before)
        self._before[:] = [search]
        return search
