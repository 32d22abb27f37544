"""Sparse metric learning with a weight of the norm chosen by cross-validation, with warm starts."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_X_y

from lopro.core.validation import check_unmasked
from lopro.metric.diagonal import diagonal_from
from lopro.metric.pairs import pair_loss
from lopro.sklearn._tuples import looked_up, preprocessor_from
from lopro.sklearn._watching import FLOATS, with_callbacks
from lopro.sklearn.metric import SparseMetricLearner

__all__ = ["SparseMetricLearnerCV"]


class SparseMetricLearnerCV(SparseMetricLearner):
    """A `SparseMetricLearner` that chooses `l1` by cross-validation.

    In every fold the weights are tried in descending order, each fit starting from the matrix of the previous
    one. The criterion is the score of a classifier in the learned coordinates.

    Parameters
    ----------
    l1s : int or array, default=5
        The weights to try, or their number: weights are then spaced logarithmically between the one above
        which the metric is diagonal and ``eps`` times it.
    eps : float, default=1e-3
        The ratio of the smallest weight to the largest.
    cv : int, splitter or iterable, default=5
        As in scikit-learn; folds are stratified.
    estimator : classifier, optional
        The classifier in the learned coordinates; three nearest neighbours by default.
    trace, features, method, tol, max_iter, time_limit, n_components, preprocessor, max_pairs
        As in `SparseMetricLearner`, for each of the fits.
    random_state, verbose
        As in `SparseMetricLearner`.

    Attributes
    ----------
    l1_ : float
        The chosen weight: the largest one of those with the best score.
    l1s_ : ndarray of shape (n_l1s,)
        The weights in descending order.
    scores_ : ndarray of shape (n_l1s, n_folds)
        The scores of the classifier on the test samples of each fold.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.sklearn import SparseMetricLearnerCV
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(60) % 2
    >>> X = rng.standard_normal((60, 8))
    >>> X[:, 3] += 4 * y
    >>> metric = SparseMetricLearnerCV(l1s=3, cv=3, tol=1e-2).fit(X, y)
    >>> metric.scores_.shape, bool(metric.scores_.max() > 0.9), metric.l1_ in metric.l1s_
    ((3, 3), True, True)
    """

    def __init__(
        self,
        l1s: Any = 5,
        *,
        eps: float = 1e-3,
        cv: Any = None,
        estimator: Any = None,
        trace: float = 0.0,
        features: float = 0.0,
        method: Any = None,
        tol: float = 1e-3,
        max_iter: int | None = None,
        time_limit: float | None = None,
        n_components: Any = "rank",
        preprocessor: Any = None,
        max_pairs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            trace=trace,
            features=features,
            method=method,
            tol=tol,
            max_iter=max_iter,
            time_limit=time_limit,
            n_components=n_components,
            preprocessor=preprocessor,
            max_pairs=max_pairs,
            random_state=random_state,
            verbose=verbose,
        )
        del self.l1, self.warm_start  # replaced by a path of weights with warm starts
        self.l1s = l1s
        self.eps = eps
        self.cv = cv
        self.estimator = estimator

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any) -> SparseMetricLearnerCV:
        """Choose the weight, and learn the metric from all samples with it.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Samples.
        y : array of shape (n_samples,)
            The classes of the samples.

        Returns
        -------
        SparseMetricLearnerCV
            The estimator itself.
        """
        self.preprocessor_ = preprocessor_from(self.preprocessor)
        # Checked here for the path; each fit checks its data again and stores the names of the features.
        samples = looked_up(X, self.preprocessor_)
        check_unmasked("y", y)
        samples, y = check_X_y(samples, y, dtype=FLOATS, ensure_min_samples=2, estimator=self)
        check_classification_targets(y)
        self.l1s_ = self._path(samples, y)
        folds = list(
            check_cv(5 if self.cv is None else self.cv, y, classifier=True).split(samples, y)
        )
        scores = [self._scores(samples, y, *fold) for fold in folds]
        self.scores_ = np.array(scores).T
        best = int(np.argmax(self.scores_.mean(axis=1)))
        chosen = self._learner(float(self.l1s_[best]))
        # Fitted to the data as given, which have the names of the features.
        chosen.fit(X, y)
        for name, value in vars(chosen).items():
            if name.endswith("_") or name == "_matrix":
                setattr(self, name, value)
        return self

    def _learner(self, l1: float) -> SparseMetricLearner:
        names = [name for name in SparseMetricLearner._get_param_names() if hasattr(self, name)]
        options = {name: getattr(self, name) for name in names}
        return SparseMetricLearner(**(options | {"l1": l1, "warm_start": True}))

    def _path(self, X: Any, y: Any) -> np.ndarray:
        if not isinstance(self.l1s, int):
            path = np.sort(check_array(self.l1s, ensure_2d=False, dtype=float, input_name="l1s"))
            if path[0] < 0.0:
                raise ValueError(f"l1s must not be negative, got {path[0]:g}")
            return np.asarray(path[::-1])
        if self.l1s < 1 or not 0.0 < self.eps <= 1.0:
            raise ValueError(
                f"l1s must be at least 1 and eps in (0, 1], got {self.l1s!r} and {self.eps!r}"
            )
        most = diagonal_from(pair_loss(X, y, None, None, self.max_pairs, 0), self.trace)
        # With one feature every metric is diagonal, and any weight is valid.
        return most * np.geomspace(1.0, self.eps, self.l1s)

    def _scores(self, X: Any, y: Any, train: Any, test: Any) -> list[float]:
        """Return the score of every weight in one fold."""
        learner, found = self._learner(1.0).set_params(preprocessor=None), []
        judge = KNeighborsClassifier(3) if self.estimator is None else self.estimator
        for l1 in self.l1s_:
            learner.set_params(l1=float(l1)).fit(X[train], y[train])
            fitted = clone(judge).fit(learner.transform(X[train]), y[train])
            found.append(float(fitted.score(learner.transform(X[test]), y[test])))
        return found
