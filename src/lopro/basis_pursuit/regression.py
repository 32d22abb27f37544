"""The LASSO and related regressions: a sparsity-inducing norm as a penalty or as a bound.

The LASSO in its constrained form: ``min |A x - y|_2  s.t.  sum w_i |x_i| <= tau``, certified.

The problem is the inverse of basis pursuit denoising: with ``v(sigma)`` the least norm for a radius, the
optimal residual is the ``sigma`` with ``v(sigma) = tau``, a point of the Pareto curve, found by Newton's
method. A dual point ``nu`` of `bpdn` proves ``|A x - y| >= (Re <y, nu> - tau) / |nu|`` for every allowed
``x``, and that number is also the next iterate of Newton's method: the radii are proved lower bounds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.basis_pursuit.application import (
    BPDNResult,
    LassoPath,
    LassoResult,
    ProblemData,
    from_largest,
    solve_one,
)
from lopro.basis_pursuit.batch import shares_passes, solve_all
from lopro.basis_pursuit.column_search import ColumnSearch
from lopro.basis_pursuit.penalised import sparse_form
from lopro.basis_pursuit.problem import SparseProblem
from lopro.basis_pursuit.working_set import WorkingSet, in_blocks, passes_are_expensive
from lopro.constraints.pulled_back import stretch_at
from lopro.core.arrays import Array, asarray_like, eps, norm, to_numpy, widest
from lopro.core.counting import Counts, counting
from lopro.core.deadline import Deadline, OutOfTime, current_deadline
from lopro.core.validation import check_array, check_count, check_number, check_numbers
from lopro.driver.result import History, Status
from lopro.driver.workbench import Callback, Options
from lopro.maps.double import wide_dtype
from lopro.problem import Problem
from lopro.protocol import Certificate, Method, Target, Workbench

__all__ = ["lasso", "lasso_path", "solve_constrained", "weights_of_path"]

_MOST_RADII = 60
_FLOOR = 1e-3  # in units of |y|: the gap scale
_SOURCE = "dual point of basis pursuit denoising"


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
        Weight of the norm, positive; from ``max |A^H y|_i / w_i`` on the solution is zero. scikit-learn's
        ``alpha`` is ``lam / m``. Exactly one of ``tau`` and ``lam``.
    x0 : array, optional
        A start; one close to the solution saves most of the work.
    weights : array or float, optional
        Positive weights ``w`` of the norm; one for each group where there are groups.
    nonneg : bool
        Ask for ``x >= 0`` (real problems).
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
    """Solve the LASSO for several weights of the penalty, each from the solution before it.

    Columns, their products with each other and with ``y`` are computed once for all weights. If ``A`` is
    in a file or on a cluster, the searches for all weights share passes.

    Parameters
    ----------
    A, y
        As in `lasso`.
    lams : sequence of float, optional
        The weights; they are worked through from the largest down. By default ``count`` of them, evenly
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
        search = ColumnSearch(problem, bench.target, bench.tick, None, *self._before)
        self._before[:] = [search]
        return search


def solve_constrained(
    data: ProblemData, y: Any, tau: float, x0: Array | None, options: Options
) -> LassoResult:
    """Find the vector of least residual whose norm is at most ``tau``; see `lopro.lasso`."""
    tau, tol = check_number("tau", tau, minimum=0.0), options.tol
    with Deadline(options.time_limit).active() as deadline:
        y = check_array("y", y, ndim=1)
        # The gap of bpdn is an error of the bound here; most of the tolerance is for the root search.
        finer = dataclasses.replace(options.within_call(), tol=max(0.02 * tol, 1e-12))
        search = _ParetoSearch(data, y, tau, Target(tol, _FLOOR * norm(y)))
        try:
            with counting(search.own):
                search.run(x0, finer)
        except OutOfTime:
            search.late()
        return search.result(deadline.elapsed)


class _ParetoSearch:
    """The root search: the best point, the best bound, and the radii between them."""

    def __init__(self, data: ProblemData, y: Array, tau: float, target: Target) -> None:
        self.data, self.y, self.tau, self.target = data, y, tau, target
        problem = data.problem(y, 0.0)
        self.like = problem.start(None)
        self.sparse = SparseProblem.of(
            problem, to_numpy(self.like)
        )  # bounds are computed on the host
        self.lower, self.upper = 0.0, norm(y)
        self.x: Array = self.like
        self.dual: Array | None = None
        self._stretch = 0.0  # about the norm of A
        self.own, self.runs = Counts(), list[BPDNResult]()
        self.curve: list[tuple[float, float]] = []
        self.empty = -1.0  # the largest radius with an empty ball
        self.status: Status | None = None

    @property
    def _dual_like(self) -> Array:
        """An array of the type of dual points: complex if A or y is."""
        return widest((self.sparse.ball.y, self.sparse.ball.like))

    @property
    def done(self) -> bool:
        """Whether the gap is small enough."""
        return self.target.reached(self.upper - self.lower, self.upper)

    def run(self, x0: Array | None, options: Options) -> None:
        """Try radii until the gap is closed, or there is no more progress."""
        self._keep_if_better(self.like if x0 is None else self.data.problem(self.y, 0.0).start(x0))
        start, tried_least_squares = x0, False
        sigma = self._next()
        for _ in range(_MOST_RADII):
            if self.done or self.status is not None or not sigma < self.upper:
                return
            found = solve_one(self.data.problem(self.y, sigma), start, None, options)
            self.runs.append(found)
            if found.status is Status.INFEASIBLE:
                self.empty = max(self.empty, sigma)
                if not tried_least_squares:
                    tried_least_squares = True
                    self._try_least_squares()
                sigma = self._next()
                continue
            if not found.success:
                self.status = found.status
                return
            start = found.x
            self.curve.append((sigma, float(found.fun)))
            self._learn(found, sigma)
            self._keep_if_better(found.x)
            sigma = self._next()

    def _next(self) -> float:
        """Return the next radius: Newton's, the lower bound.

        Below the least residual the radius is bisected. Without a bound a share of the residual is taken,
        as equations cost more.
        """
        if self.lower <= self.empty:
            return 0.5 * (self.empty + self.upper)
        if self.lower > 0.0 or self.upper <= _FLOOR * norm(self.y):
            return self.lower
        return 0.05 * self.upper

    def _try_least_squares(self) -> None:
        """Evaluate the least-squares solution, the answer where the bound tau is not active."""
        A = self.data.A
        operator = scipy.sparse.linalg.LinearOperator(
            A.shape,
            matvec=lambda v: to_numpy(A.forward(asarray_like(v.ravel(), self.like))),
            rmatvec=lambda v: to_numpy(A.adjoint(asarray_like(v.ravel(), self.like))),
            dtype=wide_dtype(to_numpy(self.like).dtype),
        )
        close = 10.0 * eps(self.like)
        steps = 2 * min(A.shape)
        x = scipy.sparse.linalg.lsmr(
            operator,
            to_numpy(self.y).astype(operator.dtype),
            atol=close,
            btol=close,
            conlim=0.0,
            maxiter=steps,
        )[0]
        current_deadline().check()
        self._keep_if_better(asarray_like(np.maximum(x, 0.0) if self.data.nonneg else x, self.like))

    def _learn(self, found: BPDNResult, sigma: float) -> None:
        """Derive a bound from the dual point of basis pursuit denoising."""
        if found.dual is None:
            return
        ball = self.data.problem(self.y, sigma)
        length = norm(found.dual)
        support = SparseProblem.of(ball, self.like).ball.support_image((-found.dual,))
        if length > 0.0:
            self._raise_lower(sigma - (support + self.tau) / length, found.dual)

    def _keep_if_better(self, x: Array) -> None:
        """Scale a point into the ball, keep it if it is better, and use its residual as a dual point."""
        size = float(self.sparse.objective.value(x))
        x = x * (self.tau / size) if size > self.tau else x
        ball = self.sparse.ball
        image = ball.image(x)[0]
        r = asarray_like(ball.y, self._dual_like) - image
        if norm(r) <= self.upper:
            self.upper, self.x = norm(r), x
        g = ball.pullback((r,))
        self._stretch = self._stretch or stretch_at(g, ball.image(asarray_like(g, x))[0])
        self._stretch = max(self._stretch, stretch_at(x, image))
        found = self.sparse.proved(to_numpy(r), to_numpy(g), self._stretch)
        if found is not None and found.dual is not None:
            of_ball = found.dual[0 if self.sparse.ball_first else 1]
            self._raise_lower((-found.support - self.tau) / norm(of_ball), -of_ball)

    def _raise_lower(self, bound: float, dual: Array | None) -> None:
        bound -= 8.0 * eps(self.like) * abs(bound)
        if bound > self.lower:
            self.lower, self.dual = bound, dual

    def late(self) -> None:
        """Set the status of a run whose deadline has passed."""
        stopped = current_deadline().stopped_by_user
        self.status = Status.INTERRUPTED if stopped else Status.TIME_LIMIT

    def result(self, seconds: float) -> LassoResult:
        """Return the best point with its certificate."""
        size = float(self.sparse.objective.value(self.x))
        violation = max(0.0, size / self.tau - 1.0) if self.tau > 0.0 else 0.0
        certificate = Certificate.of(
            self.upper, self.lower, violation, _SOURCE, self.target,
            absolute=max(0.0, size - self.tau),
        )  # fmt: skip
        # A bound above the residual by more than rounding is false and proves nothing.
        contradiction = self.lower - self.upper > 1e-9 * norm(self.y)
        done = self.done and not contradiction
        status = Status.CONVERGED if done else self.status or Status.STALLED
        return LassoResult(
            x=asarray_like(self.x, self.like),
            fun=self.upper,
            status=status,
            message=status.value,
            certificate=certificate,
            counts=_total([self.own, *(r.counts for r in self.runs)]),
            certificate_counts=_total([r.certificate_counts for r in self.runs]),
            iterations=sum(r.iterations for r in self.runs),
            seconds=seconds,
            method="root search on the Pareto curve",
            history=self.runs[-1].history if self.runs else History(),
            warnings=tuple(
                w for r in self.runs if r.status is not Status.INFEASIBLE for w in r.warnings
            ),
            dual=None if self.dual is None else asarray_like(self.dual, self._dual_like),
            curve=tuple(sorted(self.curve)),
        )


def _total(parts: list[Counts]) -> Counts:
    """Return the sum of counts."""
    names = [field.name for field in dataclasses.fields(Counts)]
    return Counts(**{name: sum(getattr(part, name) for part in parts) for name in names})
