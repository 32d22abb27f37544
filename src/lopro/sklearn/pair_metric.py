"""Sparse metric learning from similar and dissimilar pairs, and classification of pairs by distance."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import roc_auc_score
from sklearn.utils.validation import check_array, check_is_fitted

from lopro.core.validation import check_unmasked
from lopro.sklearn._threshold import best_threshold, check_calibration
from lopro.sklearn._tuples import pairs_from, preprocessor_from
from lopro.sklearn._watching import with_callbacks
from lopro.sklearn.metric import SparseMetricLearner

__all__ = ["SparsePairMetricLearner"]


class SparsePairMetricLearner(ClassifierMixin, SparseMetricLearner):  # type: ignore[misc]
    """A sparse Mahalanobis metric from pairs, which classifies pairs as similar or dissimilar.

    The metric is that of `SparseMetricLearner` for pairs. A pair is classified as similar (1) up to the
    distance `threshold_`, and as dissimilar (-1) above; the interface is that of metric-learn's learners of
    pairs.

    Parameters
    ----------
    l1, trace, features, method, tol, max_iter, time_limit, n_components, preprocessor, max_pairs, warm_start
        As in `SparseMetricLearner`; no pairs are drawn at random.
    random_state, verbose
        As in `SparseMetricLearner`.

    Attributes
    ----------
    threshold_ : float
        The distance up to which pairs are similar.
    classes_ : ndarray
        -1 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.sklearn import SparsePairMetricLearner
    >>> rng = np.random.default_rng(0)
    >>> pairs = rng.standard_normal((60, 2, 4))
    >>> pairs[:, 1, 2] += np.tile([0.0, 9.0], 30)  # half of the pairs differ in one feature
    >>> y = np.tile([1, -1], 30)
    >>> metric = SparsePairMetricLearner(l1=0.01).fit(pairs, y)
    >>> metric.score(pairs, y) > 0.99, metric.predict(pairs[:4])
    (True, array([ 1, -1,  1, -1]))
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        return tags

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, pairs: Any, y: Any, calibration_params: Any = None) -> SparsePairMetricLearner:
        """Learn the metric, and calibrate the threshold on the same pairs.

        Parameters
        ----------
        pairs : array of shape (n_pairs, 2, n_features), or (n_pairs, 2) with a preprocessor
            Pairs of samples, or of their indices.
        y : array of shape (n_pairs,)
            1 for similar and -1 for dissimilar pairs.
        calibration_params : dict, optional
            Arguments of `calibrate_threshold`.
        """
        options = dict(calibration_params or {})
        check_calibration(**options)
        self.preprocessor_ = preprocessor_from(self.preprocessor)
        self._learn(self._of_pairs(pairs, y), pairs, y)
        self.classes_ = np.array([-1, 1])
        return self.calibrate_threshold(pairs, y, **options)

    def decision_function(self, pairs: Any) -> np.ndarray:
        """Return the negative distance of each pair."""
        return self.pair_score(pairs)

    def predict(self, pairs: Any) -> np.ndarray:
        """Return 1 for pairs up to the threshold, and -1 for others."""
        check_is_fitted(self)
        return np.where(self.pair_distance(pairs) <= self.threshold_, 1, -1)

    def score(self, pairs: Any, y: Any) -> float:
        """Return the area under the ROC curve: it does not depend on the threshold."""
        return float(roc_auc_score(y, self.decision_function(pairs)))

    def set_threshold(self, threshold: float) -> SparsePairMetricLearner:
        """Set the distance up to which pairs are similar."""
        check_is_fitted(self)
        try:
            self.threshold_ = float(threshold)
        except (TypeError, ValueError):
            raise ValueError(f"threshold must be a real number, got {threshold!r}") from None
        return self

    def calibrate_threshold(
        self,
        pairs_valid: Any,
        y_valid: Any,
        strategy: str = "accuracy",
        min_rate: float | None = None,
        beta: float = 1.0,
    ) -> SparsePairMetricLearner:
        """Choose the best threshold for these pairs.

        Parameters
        ----------
        pairs_valid, y_valid
            Pairs and their labels, as in `fit`.
        strategy : {"accuracy", "f_beta", "max_tpr", "max_tnr"}
            The quantity to maximise: the accuracy; the F score with ``beta``; the true positive rate subject
            to a true negative rate of at least ``min_rate``; or the true negative rate subject to a true
            positive rate of at least ``min_rate``.
        """
        check_is_fitted(self)
        check_calibration(strategy, min_rate, beta)
        pairs = pairs_from(pairs_valid, self.preprocessor_)
        check_unmasked("y_valid", y_valid)
        y = check_array(y_valid, ensure_2d=False, dtype=None, input_name="y_valid")
        similar = self._checked_signs(y, len(pairs)) == 1
        distances = self.pair_distance(pairs)
        self.threshold_ = best_threshold(distances, similar, strategy, min_rate, beta)
        return self

    # Tests of metric-learn call it.
    _validate_calibration_params = staticmethod(check_calibration)
