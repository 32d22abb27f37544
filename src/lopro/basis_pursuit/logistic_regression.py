"""Sparse logistic regression: the logistic loss of labelled rows with an l1 penalty, certified."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from lopro.basis_pursuit.application import checked_norm
from lopro.basis_pursuit.losses.search import WorkingSetNewton
from lopro.basis_pursuit.penalised import FitMultiplier
from lopro.basis_pursuit.regression import weights_of_path
from lopro.basis_pursuit.results import BPDNResult, LassoPath, fields_of, from_largest
from lopro.constraints import Box, WholeSpace
from lopro.core.arrays import Array, asarray_like, from_numpy, is_complex, to_numpy
from lopro.core.deadline import Deadline
from lopro.core.validation import check_array, check_number, check_shape
from lopro.driver.result import Result
from lopro.driver.workbench import Callback, Options
from lopro.functions import atoms
from lopro.maps import LinearMap, linear_map
from lopro.maps.with_ones import WithOnes
from lopro.objectives import L1Norm, Objective, OfAtom, SquaredDistance, Sum
from lopro.objectives.classification import checked_signs
from lopro.problem import Problem
from lopro.protocol import Method
from lopro.solving import run_to_the_end

__all__ = ["LogisticResult", "sparse_logistic", "sparse_logistic_path"]


@dataclass(frozen=True, repr=False)
class LogisticResult(BPDNResult):
    """A `Result` of `lopro.sparse_logistic`.

    ``x`` are the coefficients, ``intercept`` is the constant, 0 without one. ``dual`` is minus the slope of
    the loss of each sample over ``lam``: ``|A' nu|_j <= w_j`` (without a ridge).
    """

    intercept: float = 0.0

    @property
    def x_and_intercept(self) -> np.ndarray[Any, Any]:
        """Coefficients and intercept in one array, on the host: a start for other weights."""
        return np.append(to_numpy(self.x), to_numpy(self.x)[:0].dtype.type(self.intercept))

    @staticmethod
    def of_loss(result: Result, lam: float, intercept: bool) -> LogisticResult:
        """Separate the intercept from the coefficients, and add the dual point."""
        fields, found = fields_of(result), result.multiplier
        dual = found.fit / lam if isinstance(found, FitMultiplier) else None
        if not intercept:
            return LogisticResult(**fields, dual=dual)
        constant = float(to_numpy(result.x)[-1])
        # Multipliers are those of all coefficients.
        fields.update(x=result.x[:-1], multiplier=None, multipliers=None)
        return LogisticResult(**fields, dual=dual, intercept=constant)


def sparse_logistic(
    A: Any,
    labels: Any,
    lam: float,
    *,
    intercept: bool = False,
    x0: Array | None = None,
    weights: Any = None,
    sample_weight: Any = None,
    nonneg: bool = False,
    ridge: float = 0.0,
    method: Method | None = None,
    tol: float = 1e-6,
    max_iter: int | None = None,
    time_limit: float | None = None,
    callback: Callback | None = None,
    progress: bool = False,
) -> LogisticResult:
    """Minimise ``sum_i s_i log(1 + exp(-b_i (a_i x + c))) + lam sum_j w_j |x_j| + ridge |x|^2 / 2``.

    Parameters
    ----------
    A : array, scipy.sparse matrix, LinearOperator, stored or distributed array of shape (m, d)
        One sample per row, ``a_i``; real, never copied. See `lopro.maps.linear_map`.
    labels : array of shape (m,)
        ``b``: -1 and 1, or 0 and 1.
    lam : float
        Weight of the norm, positive: ``1 / C`` of scikit-learn and others. Without an intercept the solution
        is zero from ``max_j |A'r|_j / w_j`` on, ``r_i = s_i b_i / 2``.
    intercept : bool
        Whether there is a constant ``c``, which is not penalised.
    x0 : array of length d, or d + 1 with an intercept, optional
        A start; a good one saves most of the work.
    weights : array or float, optional
        Positive weights ``w`` of the norm.
    sample_weight : array of shape (m,), optional
        Nonnegative weights ``s`` of the samples; ones by default.
    nonneg : bool
        Require ``x >= 0``.
    ridge : float
        Add ``ridge |x|^2 / 2``.
    method : Method, optional
        `WorkingSetNewton` by default.
    tol : float
        Certified relative gap to reach, as in `lopro.solve`.
    max_iter : int, optional
        As in `lopro.solve`.
    time_limit : float, optional
        Seconds of wall time for the whole call.
    callback, progress
        As in `lopro.solve`; with an intercept, it is the last entry of points.

    Returns
    -------
    LogisticResult
        With coefficients ``x``, ``intercept``, gap, lower bound, dual solution, support and counts.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((80, 200))
    >>> labels = A[:, 3] - A[:, 70] + 0.5 > 0
    >>> result = lopro.sparse_logistic(A, labels.astype(int), lam=8.0, intercept=True)
    >>> result.success, result.support, result.intercept > 0
    (True, array([ 3, 70]), True)
    """
    options = Options(tol, max_iter, time_limit=time_limit, callback=callback, progress=progress)
    data = LogisticData(A, labels, intercept, weights, sample_weight, nonneg, ridge)
    with Deadline(time_limit).active():
        return data.solve(lam, x0, method, options.within_call())


def sparse_logistic_path(
    A: Any,
    labels: Any,
    lams: Sequence[float] | None = None,
    *,
    count: int = 50,
    ratio: float = 1e-2,
    intercept: bool = False,
    weights: Any = None,
    sample_weight: Any = None,
    nonneg: bool = False,
    ridge: float | Sequence[float] = 0.0,
    tol: float = 1e-6,
    time_limit: float | None = None,
) -> LassoPath[LogisticResult]:
    """Solve sparse logistic regression for several weights of the penalty, each from the previous solution.

    Parameters
    ----------
    A, labels
        As in `sparse_logistic`.
    lams, count, ratio
        As in `lasso_path`.
    intercept, weights, sample_weight, nonneg
        As in `sparse_logistic`.
    ridge, tol, time_limit
        As in `lasso_path`.

    Returns
    -------
    LassoPath
        A list of results in the order of the weights, with ``lams`` and ``coefficients``.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> A = np.random.default_rng(0).standard_normal((40, 50))
    >>> path = lopro.sparse_logistic_path(A, np.sign(A[:, 0]), count=4, ratio=0.2)
    >>> [len(result.support) for result in path]
    [0, 1, 1, 4]
    """
    options = Options(tol, time_limit=time_limit).within_call()
    with Deadline(time_limit).active():
        data = LogisticData(A, labels, intercept, weights, sample_weight, nonneg)
        chosen, ridges = weights_of_path(lams, ridge, data.largest, count, ratio)

        def solve(i: int, start: Array | None) -> LogisticResult:
            some = dataclasses.replace(data, ridge=ridges[i])
            return some.solve(chosen[i], start, None, options)

        def point(found: LogisticResult) -> Array:
            return found.x_and_intercept if intercept else found.x

        return LassoPath(from_largest(chosen, solve, point=point), chosen)


@dataclass(frozen=True, eq=False)
class LogisticData:
    """The data that the problems of one call share."""

    A: Any
    labels: Any
    intercept: bool = False
    weights: Any = None
    sample_weight: Any = None
    nonneg: bool = False
    ridge: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.A, LinearMap):
            object.__setattr__(self, "A", linear_map(self.A, "A"))
        if is_complex(self.A.like):
            raise TypeError("A must be real")
        labels = to_numpy(checked_signs(self.labels, self.A.shape[0], self.A.like))
        object.__setattr__(self, "labels", labels.astype(np.float64))
        check_number("ridge", self.ridge, minimum=0.0)
        given = np.ones(len(self.labels)) if self.sample_weight is None else self._sample_weights()
        object.__setattr__(self, "sample_weight", given)
        if self.intercept and min(self._totals) <= 0.0:
            raise ValueError(
                "an intercept needs labels of both kinds (with positive sample weights): with one kind "
                "the loss falls without end"
            )

    def _sample_weights(self) -> np.ndarray[Any, Any]:
        found = to_numpy(check_array("sample_weight", self.sample_weight, allow_complex=False))
        check_shape("sample_weight", found, (self.A.shape[0],))
        if found.min() < 0.0 or found.max() == 0.0:
            raise ValueError("sample_weight must be nonnegative, and not all of them zero")
        return found.astype(np.float64)

    @property
    def _totals(self) -> tuple[float, float]:
        """The weights of the samples of each label."""
        s, up = self.sample_weight, self.labels > 0.0
        return float(s[up].sum()), float(s[~up].sum())

    @cached_property
    def _map(self) -> LinearMap:
        return WithOnes(self.A) if self.intercept else self.A

    def problem(self, lam: float) -> Problem:
        """Return the problem, with the intercept as the last coefficient."""
        lam = check_number("lam", lam, minimum=0.0, exclusive=True)
        A, d, free = self._map, self.A.shape[1], int(self.intercept)
        w = np.append(self._weights, np.zeros(free))
        loss = OfAtom(atoms.Logistic(from_numpy(self.labels, A.like), self._samples), A)
        parts: list[Objective] = [loss, lam * L1Norm(w.astype(to_numpy(A.like[:1]).dtype))]
        if self.ridge > 0.0:
            of_ridge = np.append(np.full(d, self.ridge), np.zeros(free))
            parts.append(SquaredDistance(np.zeros(d + free, dtype=w.dtype), of_ridge))
        constraint: Any = WholeSpace((d + free,))
        if self.nonneg:
            low = np.append(np.zeros(d), np.full(free, -np.inf))
            constraint = Box(low.astype(to_numpy(A.like[:1]).dtype), np.full(d + free, np.inf))
        return Problem(Sum(*parts), constraint, gap_scale=0.0)

    @property
    def _samples(self) -> Array:
        return from_numpy(self.sample_weight, self.A.like)

    @cached_property
    def _weights(self) -> np.ndarray[Any, Any]:
        """One weight of the norm for each coefficient."""
        norm = checked_norm(self.A.like, self.A.shape[1], self.weights)
        return to_numpy(norm.weights_like(np.zeros(self.A.shape[1]))).astype(np.float64)

    def largest(self) -> float:
        """Return the least weight of the norm for which the solution is zero."""
        up, down = self._totals
        share = down / (up + down) if self.intercept else 0.5  # of the slope, at the labels of 1
        slopes = np.where(self.labels > 0.0, share, share - 1.0) * self.sample_weight
        pulled = to_numpy(self.A.adjoint_exactly(from_numpy(slopes, self.A.like)))
        return float(((pulled if self.nonneg else np.abs(pulled)) / self._weights).max())

    def solve(
        self, lam: float, x0: Array | None, method: Method | None, options: Options
    ) -> LogisticResult:
        """Solve for one weight of the norm."""
        problem = self.problem(lam)
        start = None if x0 is None else self._start(x0)
        found = run_to_the_end(problem, start, method or WorkingSetNewton(), options)
        return LogisticResult.of_loss(found, lam, self.intercept)

    def _start(self, x0: Array) -> Array:
        x, d = to_numpy(check_array("x0", x0, ndim=1)), self.A.shape[1]
        if self.intercept and len(x) == d:
            x = np.append(x, 0.0)
        check_shape("x0", x, (d + int(self.intercept),))
        return asarray_like(x, self.A.like)
