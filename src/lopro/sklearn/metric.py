"""Sparse metric learning as a transformer, with the interface of metric-learn."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from lopro.core.deadline import EIGH, Deadline, current_deadline
from lopro.core.validation import check_unmasked
from lopro.driver.workbench import Options
from lopro.metric import MetricResult, learn_metric
from lopro.metric.pairs import DIFFERENT, SAME
from lopro.sklearn._components import check_components, components_of, sample_vector
from lopro.sklearn._tuples import looked_up, pairs_from, preprocessor_from
from lopro.sklearn._watching import (
    FLOATS,
    CallbackSupportMixin,
    FitWatcher,
    check_outcome,
    with_callbacks,
)

__all__ = ["SparseMetricLearner"]

_ADVICE = "Increase tol or max_iter, or scale the features."


class SparseMetricLearner(
    CallbackSupportMixin,  # type: ignore[misc]
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """A Mahalanobis metric with few off-diagonal entries, from labels or from pairs.

    ``A`` is positive semidefinite, with squared distances ``(x - x')'A(x - x')`` close to 0 for samples of
    one class and close to 2 for samples of two classes. The objective is convex, and the gap of ``A`` to the
    optimum is proved (`lopro.learn_metric`).

    Parameters
    ----------
    l1 : float or "auto", default=1e-3
        Weight of the sum of ``|A_ij|`` off the diagonal; "auto" as in `lopro.learn_metric`.
    trace : float, default=0.0
        Weight of the trace, which lowers the rank and the number of features.
    features : float, default=0.0
        Weight of the norms of the rows, which lowers the number of features.
    method : Method, optional
        As in `lopro.learn_metric`.
    tol : float, default=1e-3
        Certified relative gap to reach, as in `lopro.solve`.
    max_iter : int, optional
        Limit of iterations; none by default.
    time_limit : float, optional
        Limit of seconds; none by default.
    n_components : int, None or "rank", default="rank"
        Number of rows of `components_`: the number of positive eigenvalues of ``A`` ("rank"); all, as in
        metric-learn (None); or a number of the largest ones, which approximates ``A``.
    preprocessor : array of shape (n, n_features) or callable, optional
        The samples, or a function that returns them, if the data are indices.
    max_pairs : int, optional
        With labels, the largest number of pairs, drawn at random; by default all pairs, at a cost that does
        not depend on their number.
    warm_start : bool, default=False
        Start from the matrix of the previous fit.
    random_state : int, RandomState or None, default=None
        For pairs drawn at random.
    verbose : int, default=0
        Show progress on the terminal.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        ``L`` with ``A = L'L``; `transform` multiplies by it.
    n_iter_ : int
        Number of iterations.
    dual_gap_, relative_gap_ : float
        The objective is at most this much above its optimum, absolutely and relatively. It is proved, not
        estimated.
    objective_, loss_ : float
        The value of the objective and of the loss at ``A``.
    l1_ : float
        The weight that was used.
    n_projections_ : int
        Number of projections on the cone of all features.
    n_features_in_, feature_names_in_
        As in all estimators of scikit-learn.
    preprocessor_ : callable or None
        The function that looks up samples by their indices.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.sklearn import SparseMetricLearner
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 20)
    >>> X = rng.standard_normal((40, 5))
    >>> X[:, 2] += 4 * y
    >>> metric = SparseMetricLearner(l1=0.01).fit(X, y)
    >>> int(metric.get_mahalanobis_matrix().diagonal().argmax())
    2
    >>> metric.transform(X).shape == (40, len(metric.components_))
    True
    """

    def __init__(
        self,
        l1: float | str = 1e-3,
        *,
        trace: float = 0.0,
        features: float = 0.0,
        method: Any = None,
        tol: float = 1e-3,
        max_iter: int | None = None,
        time_limit: float | None = None,
        n_components: Any = "rank",
        preprocessor: Any = None,
        max_pairs: int | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.l1 = l1
        self.trace = trace
        self.features = features
        self.method = method
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.n_components = n_components
        self.preprocessor = preprocessor
        self.max_pairs = max_pairs
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any) -> SparseMetricLearner:
        """Learn the metric.

        Parameters
        ----------
        X : array of shape (n_samples, n_features) or (n_pairs, 2, n_features)
            Samples, or pairs of samples.
        y : array of shape (n_samples,) or (n_pairs,)
            The classes of the samples; for pairs, 1 for similar and -1 for dissimilar ones.

        Returns
        -------
        SparseMetricLearner
            The estimator itself.
        """
        self.preprocessor_ = preprocessor_from(self.preprocessor)
        ndim = X.ndim if hasattr(X, "ndim") else np.asarray(X).ndim
        data = self._of_pairs(X, y) if ndim == 3 else self._of_labels(X, y)
        return self._learn(data, X, y)

    def _learn(self, data: dict[str, Any], X: Any, y: Any) -> SparseMetricLearner:
        check_components(self.n_components, self.n_features_in_)
        start, watcher = self._start(), FitWatcher(self, X, y)
        with Deadline(Options(time_limit=self.time_limit).time_limit).active():
            result = learn_metric(
                **data,
                l1=self.l1,
                trace=self.trace,
                features=self.features,
                method=self.method,
                A0=start if start is not None and len(start) == self.n_features_in_ else None,
                tol=self.tol,
                max_iter=self.max_iter,
                time_limit=self.time_limit,
                callback=watcher.callback(
                    lambda A: {"components_": components_of(A, self.n_components)}
                ),
                progress=bool(self.verbose),
            )
            check_outcome(result, _ADVICE)
            self._store(result)
        watcher.done()
        return self

    @cached_property
    def components_(self) -> np.ndarray:
        """``L`` with ``A = L'L``; computed on first access if `fit` reached its time limit before."""
        check_is_fitted(self)
        return components_of(self._matrix, self.n_components)

    def transform(self, X: Any) -> np.ndarray:
        """Return the samples in coordinates in which Euclidean distances are the learned ones."""
        check_is_fitted(self)
        X = looked_up(X, self.preprocessor_)
        X = validate_data(self, X, dtype=FLOATS, reset=False)
        return np.asarray(X @ self.components_.T)

    def get_support(self, indices: bool = False) -> np.ndarray:
        """Return which features the metric uses: a mask, or their indices."""
        check_is_fitted(self)
        mask = np.diagonal(self._matrix) != 0.0
        return np.flatnonzero(mask) if indices else mask

    def get_mahalanobis_matrix(self) -> np.ndarray:
        """Return ``A``, of shape (n_features, n_features), or its approximation by few `n_components`."""
        check_is_fitted(self)
        if isinstance(self.n_components, Integral):
            return np.asarray(self.components_.T @ self.components_)
        return np.asarray(self._matrix.copy())

    def pair_distance(self, pairs: Any) -> np.ndarray:
        """Return the distances of pairs, given as an array of shape (n_pairs, 2, n_features)."""
        check_is_fitted(self)
        pairs = pairs_from(pairs, self.preprocessor_)
        if pairs.shape[2] != self.n_features_in_:
            raise ValueError(
                f"X has {pairs.shape[2]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )
        z = (pairs[:, 0] - pairs[:, 1]) @ self.components_.T
        return np.asarray(np.sqrt((z**2).sum(axis=1)))

    def pair_score(self, pairs: Any) -> np.ndarray:
        """Return the negative distance of each pair."""
        return -self.pair_distance(pairs)

    def get_metric(self) -> Callable[..., float]:
        """Return the distance as a function of two samples, for algorithms that take one."""
        check_is_fitted(self)
        components = self.components_.T.copy()

        def distance(u: Any, v: Any, squared: bool = False) -> float:
            z = np.dot(sample_vector("u", u) - sample_vector("v", v), components)
            return float(np.dot(z, z)) if squared else float(np.sqrt(np.dot(z, z)))

        return distance

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _start(self) -> np.ndarray | None:
        return getattr(self, "_matrix", None) if self.warm_start else None

    def _of_labels(self, X: Any, y: Any) -> dict[str, Any]:
        X = looked_up(X, self.preprocessor_)
        check_unmasked("y", y)
        X, y = validate_data(self, X, y, dtype=FLOATS, ensure_min_samples=2)
        check_classification_targets(y)
        if len(np.unique(y)) < 2:
            raise ValueError("y has one class only: a metric needs two classes")
        # scikit-learn's generators are RandomStates; a number drawn from one seeds a Generator.
        seed = int(check_random_state(self.random_state).randint(2**31))
        limit = {} if self.max_pairs is None else {"max_pairs": self.max_pairs}
        return {"X": X, "labels": y, "seed": seed, **limit}

    def _of_pairs(self, pairs: Any, y: Any) -> dict[str, Any]:
        pairs = pairs_from(pairs, self.preprocessor_)
        check_unmasked("y", y)
        y = check_array(y, ensure_2d=False, dtype=None, input_name="y")
        y = self._checked_signs(y, len(pairs))
        self.n_features_in_ = pairs.shape[2]
        targets = np.where(y == 1, SAME, DIFFERENT).astype(pairs.dtype)
        return {"pairs": pairs[:, 0] - pairs[:, 1], "targets": targets}

    @staticmethod
    def _checked_signs(y: np.ndarray, pairs: int) -> np.ndarray:
        if y.shape != (pairs,) or not np.isin(y, (-1, 1)).all():
            raise ValueError(
                "y must have one entry for each pair: 1 for similar ones, -1 for others"
            )
        return y

    def _store(self, result: MetricResult) -> None:
        self._matrix = np.asarray(result.x)
        self.__dict__.pop("components_", None)
        used = np.count_nonzero(self._matrix.any(axis=0))
        with current_deadline().wrapping_up():
            if current_deadline().affords(EIGH * float(used) ** 3):
                self.components_ = components_of(self._matrix, self.n_components)
        self.n_iter_ = result.iterations
        self.dual_gap_ = result.certificate.gap
        self.relative_gap_ = result.certificate.relative_gap
        self.objective_, self.loss_, self.l1_ = result.fun, result.loss, result.l1
        self.n_projections_ = result.counts.projections
