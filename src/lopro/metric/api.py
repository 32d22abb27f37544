"""`learn_metric`: a sparse positive semidefinite matrix from classes or pairs, with a certificate."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from lopro.constraints import PSDCone
from lopro.core.arrays import Array, asarray_like, from_numpy, namespace, to_numpy
from lopro.core.deadline import EIGH, Deadline, OutOfTime, current_deadline
from lopro.core.validation import check_array, check_number, check_shape
from lopro.driver.result import Iterate, Result
from lopro.driver.run import Run
from lopro.driver.stopping import Rule
from lopro.driver.workbench import Callback, Options
from lopro.metric.diagonal import diagonal_from
from lopro.metric.feature_working_set import FeatureWorkingSet
from lopro.metric.loss import PairLoss
from lopro.metric.objective import SparseMetric
from lopro.metric.pairs import pair_loss
from lopro.problem import Problem
from lopro.projections.psd import symmetric_part
from lopro.protocol import Method
from lopro.solving import run_to_the_end

__all__ = ["MetricResult", "learn_metric", "metric_problem"]

#: The definition of ``l1="auto"``: this share of the smallest weight at which the metric is diagonal. The
#: answer depends on it, and no speed.
AUTO = 0.1


@dataclass(frozen=True, repr=False)
class MetricResult(Result):
    """A `Result` whose ``x`` is the matrix ``A``, with its loss and a factor."""

    loss: float = float("nan")
    #: ``L`` of shape (rank, d) with ``A = L'L``: ``X @ L.T`` are the samples in the new metric. None if the
    #: time limit was reached before it was computed.
    factor: Array | None = None

    #: The weight of the l1 norm that was used; of interest with "auto".
    l1: float = float("nan")

    @property
    def features(self) -> Array:
        """Indices of the features that the metric uses."""
        diagonal = namespace(self.x).linalg.diagonal(self.x)
        return namespace(self.x).nonzero(diagonal)[0]


def learn_metric(
    X: Any = None,
    labels: Any = None,
    *,
    l1: float | str = 1e-3,
    trace: float = 0.0,
    features: float = 0.0,
    pairs: Any = None,
    targets: Any = None,
    method: Method | None = None,
    A0: Array | None = None,
    tol: float = 1e-3,
    max_pairs: int | None = None,
    max_iter: int | None = None,
    max_projections: int | None = None,
    time_limit: float | None = None,
    stop: Rule | Callable[[Iterate], bool] | None = None,
    callback: Callback | None = None,
    progress: bool = False,
    seed: Any = None,
) -> MetricResult:
    """Learn ``A`` psd: ``min 1/(2n) sum_e (t_e - z_e'A z_e)^2 + l1 * sum_(i != j) |A_ij| + trace * tr(A)``.

    The targets of the squared distances ``z_e'A z_e`` of pairs of samples are 0 within a class and 2 between
    classes, or those given.

    Parameters
    ----------
    X : array of shape (N, d), optional
        Samples; NumPy, or any array library (on a GPU too).
    labels : array of shape (N,), optional
        Classes of the samples, numbers or strings.
    l1 : float or "auto"
        Weight of the norm off the diagonal; with 0 the metric need not be sparse. "auto" is a tenth of
        the smallest weight at which the metric is diagonal (`lopro.metric.diagonal_from`), whatever the units
        of the data.
    trace : float
        Weight of the trace. The norm off the diagonal makes entries vanish and does not penalise the
        diagonal, so that a larger `l1` may use more features. The trace lowers the rank, and together with
        an `l1` that is not much smaller, the number of features.
    features : float
        Weight of ``sum_i |A_i|``, the Euclidean norms of the rows with their diagonal: it removes features,
        in addition to `l1` or instead of it (``l1=0``). All features stay in the working set, which limits
        it to some hundreds of features.
    pairs : optional
        Index pairs of samples: two index arrays or an array with two columns. Without ``X``: an array
        whose rows are the differences ``z_e`` themselves.
    targets : array, optional
        The target of the squared distance of each pair, at least one of them positive; by default derived
        from the labels. Negative targets are allowed: such pairs cannot be too close.
    method : Method, optional
        By default `lopro.FeatureWorkingSet`; or `lopro.ConsensusADMM`, `lopro.LoPGD`,
        `lopro.baselines.ProjectedSubgradient`, ...
    A0 : array of shape (d, d), optional
        A symmetric starting point; ignored if its value exceeds that of the zero matrix.
    tol : float
        Certified relative gap to reach, as in `lopro.solve`.
    max_pairs : int, optional
        With labels, the largest number of pairs, sampled with ``seed``. By default all pairs are used, at a
        cost that does not depend on their number (`lopro.metric.all_pairs`); with libraries other than NumPy,
        which need a list of pairs, those of more than 2000 samples are sampled.
    max_iter, max_projections, time_limit, stop, callback, progress
        As in `lopro.solve`; the time limit is for the whole call.
    seed : int or Generator, optional
        For sampled pairs, and for randomised methods.

    Returns
    -------
    MetricResult
        ``x`` is positive semidefinite up to rounding, ``factor.T @ factor`` by construction; with objective,
        loss, gap and counts.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> rng = np.random.default_rng(0)
    >>> labels = np.repeat([0, 1], 10)
    >>> X = rng.standard_normal((20, 5))
    >>> X[:, 2] += 3 * labels
    >>> result = lopro.learn_metric(X, labels, l1=0.01)
    >>> result.success, result.fun < 0.2, result.certificate.relative_gap <= 1e-3
    (True, True, True)
    """
    if l1 != "auto":
        check_number("l1", l1, minimum=0.0)
    check_number("trace", trace, minimum=0.0)
    check_number("features", features, minimum=0.0)
    options = Options(tol, max_iter, max_projections, time_limit, stop, callback, progress, seed)
    with Deadline(time_limit).active():
        loss = pair_loss(X, labels, pairs, targets, max_pairs, seed)
        A0 = None if A0 is None else _checked_start(A0, loss)
        weight = math.nan if isinstance(l1, str) else float(l1)
        try:
            if isinstance(l1, str):
                weight = AUTO * diagonal_from(loss, trace)
            return _learn(loss, (weight, trace, features), A0, method, options.within_call())
        except OutOfTime:
            return _too_late(loss, weight, A0, options.within_call())


def _learn(
    loss: PairLoss,
    weights: tuple[float, float, float],
    A0: Any,
    method: Method | None,
    options: Options,
) -> MetricResult:
    rotation = None
    if not any(weights) and loss.X.shape[0] < loss.X.shape[1]:
        loss, rotation = _in_row_space(loss)
        A0 = None if A0 is None else _within(rotation, A0)
    method = FeatureWorkingSet() if method is None else method
    result = run_to_the_end(metric_problem(loss, *weights), A0, method, options)
    return _with_factor(result, loss, rotation, weights[0])


def _too_late(loss: PairLoss, l1: float, A0: Any, options: Options) -> MetricResult:
    """Return the starting point: the time limit was reached before the weight was computed."""
    run = Run(metric_problem(loss, 0.0), FeatureWorkingSet(), A0, options)
    run.give_up()
    return _with_factor(run.result(), loss, None, l1)


def metric_problem(loss: PairLoss, l1: float, trace: float = 0.0, features: float = 0.0) -> Problem:
    """Return the problem that `learn_metric` solves, for use with `lopro.solve` and `lopro.iterate`.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.metric.api import metric_problem
    >>> from lopro.metric.loss import PairLoss
    >>> metric_problem(PairLoss(np.eye(3), ([0, 1], [1, 2]), [0.0, 2.0]), 0.1).shape
    (3, 3)
    """
    objective = SparseMetric(loss, l1, trace, features)
    return Problem(objective, PSDCone(loss.X.shape[1]), gap_scale=objective.negligible)


def _checked_start(A0: Any, loss: PairLoss) -> Array:
    A0 = check_array("A0", A0, ndim=2, allow_complex=False)
    check_shape("A0", A0, (loss.X.shape[1],) * 2)
    values = to_numpy(A0)
    if np.abs(values - values.T).max() > 1e-8 * np.abs(values).max():
        raise ValueError("A0 must be symmetric")
    return A0


def _in_row_space(loss: PairLoss) -> tuple[PairLoss, Array]:
    """Return the loss in coordinates of the span of the samples, and ``T`` of shape (d, r): ``x -> T'x``.

    Without the l1 norm the loss depends on the span of the samples alone. Features are scaled to similar size
    first: otherwise small ones would be lost to rounding next to large ones.
    """
    X = to_numpy(loss.X).astype(np.float64)
    largest = np.abs(X).max(axis=0)
    # Constant features are dropped: their variance is rounding error.
    sizes = np.exp2(-np.round(np.log2(np.where(largest > 0.0, largest, 1.0)))) * (largest > 0.0)
    current_deadline().need(EIGH * X.shape[1] * X.shape[0] ** 2)
    _, lengths, V = np.linalg.svd(X * sizes, full_matrices=False)
    # The samples are centred: at least one singular value is rounding error.
    V = V[lengths > max(X.shape) * np.finfo(float).eps * lengths[0]]
    T = asarray_like(sizes[:, None] * V.T, loss.X)
    return loss.with_samples(loss.X @ T), T


def _within(T: Array, A0: Array) -> Array:
    """Return the starting point in the coordinates of the span: ``T A T'`` approximates it."""
    inverse = np.linalg.pinv(to_numpy(T).astype(np.float64))
    return asarray_like(inverse @ to_numpy(A0) @ inverse.T, A0)


def _with_factor(result: Result, loss: PairLoss, rotation: Array | None, l1: float) -> MetricResult:
    """Return the result with the loss and a factor, both computed on the features that the metric uses."""
    fields = {f.name: getattr(result, f.name) for f in dataclasses.fields(result)}
    factor, value = None, math.nan
    with suppress(OutOfTime), current_deadline().wrapping_up():
        value = float(loss.value(result.x))
        factor = _factor(result.x)
    if rotation is not None:
        factor = None if factor is None else factor @ rotation.T
        fields["x"] = symmetric_part(rotation @ result.x @ rotation.T)
    return MetricResult(**fields, loss=value, factor=factor, l1=l1)


def _factor(x: Array) -> Array:
    """Return ``L`` with ``x = L'L``, without rows for eigenvalues that are rounding error."""
    A = to_numpy(x)
    used = np.flatnonzero(np.diagonal(A))
    current_deadline().need(EIGH * float(len(used)) ** 3)
    values, vectors = np.linalg.eigh(A[np.ix_(used, used)])
    kept = values > 1e-12 * max(float(values[-1]), 0.0) if used.size else values > 0.0
    L = np.zeros((int(kept.sum()), len(A)), dtype=A.dtype)
    L[:, used] = (vectors[:, kept] * np.sqrt(values[kept])).T
    return from_numpy(L, x)
