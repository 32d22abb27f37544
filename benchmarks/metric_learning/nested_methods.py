"""Learners of the nested cross-validation: each returns a linear map for a choice of its weight."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lopro.metric import diagonal_from
from lopro.metric.pairs import pair_loss
from lopro.sklearn import SparseMetricLearner

__all__ = ["METHODS", "Method"]

#: The largest number of features for the norms of rows, which are expensive.
MANY = 500


@dataclass(frozen=True)
class Method:
    """A learner with the weights that the inner folds choose from."""

    name: str
    fit: Callable[[np.ndarray, np.ndarray, float], np.ndarray]
    choices: tuple[float, ...] = (0.0,)
    standardise: bool = True


def _euclidean(X: np.ndarray, y: np.ndarray, choice: float) -> np.ndarray:
    return np.eye(X.shape[1])


def _nca(X: np.ndarray, y: np.ndarray, choice: float) -> np.ndarray:
    from sklearn.neighbors import NeighborhoodComponentsAnalysis

    return np.asarray(NeighborhoodComponentsAnalysis(random_state=0).fit(X, y).components_)


@functools.cache
def _keep_up() -> None:
    """Make metric-learn 0.7 run with newer scikit-learn, where an argument of the checks was renamed."""
    import metric_learn._util as util

    def renamed(check: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, force_all_finite: Any = True, **others: Any) -> Any:
            return check(*arguments, ensure_all_finite=force_all_finite, **others)

        return call

    util.check_array, util.check_X_y = renamed(util.check_array), renamed(util.check_X_y)


def _lmnn(X: np.ndarray, y: np.ndarray, choice: float) -> np.ndarray:
    _keep_up()
    from metric_learn import LMNN

    return np.asarray(LMNN(n_neighbors=3).fit(X, y).components_)


def _itml(X: np.ndarray, y: np.ndarray, choice: float) -> np.ndarray:
    _keep_up()
    from metric_learn import ITML_Supervised

    return np.asarray(ITML_Supervised(random_state=0).fit(X, y).components_)


def _by_l1(X: np.ndarray, y: np.ndarray, choice: float) -> np.ndarray:
    """The norm off the diagonal, in units of the weight from which on the metric is diagonal."""
    weight = choice * diagonal_from(pair_loss(X, y, None, None, None, None))
    return np.asarray(SparseMetricLearner(l1=weight, tol=0.01).fit(X, y).components_)


def _automatic(X: np.ndarray, y: np.ndarray, choice: float) -> np.ndarray:
    """``l1="auto"``: a tenth of the weight from which on the metric is diagonal."""
    return np.asarray(SparseMetricLearner(l1="auto", tol=0.05).fit(X, y).components_)


def _papers(X: np.ndarray, y: np.ndarray, choice: float) -> np.ndarray:
    """The weight of the paper's second experiment."""
    return np.asarray(SparseMetricLearner(l1=1e-3, tol=0.05).fit(X, y).components_)


def _by_features(X: np.ndarray, y: np.ndarray, choice: float) -> np.ndarray:
    """The norms of the rows as well, in the same units."""
    if X.shape[1] > MANY:
        raise ValueError(f"more than {MANY} features")
    unit = diagonal_from(pair_loss(X, y, None, None, None, None))
    learner = SparseMetricLearner(l1=0.03 * unit, features=choice * unit, tol=0.01)
    return np.asarray(learner.fit(X, y).components_)


METHODS = {
    method.name: method
    for method in (
        Method("raw", _euclidean, standardise=False),
        Method("standardised", _euclidean),
        Method("NCA", _nca),
        Method("LMNN", _lmnn),
        Method("ITML", _itml),
        Method("lopro, auto", _automatic),
        Method("lopro, l1=1e-3", _papers),
        Method("lopro, l1", _by_l1, (0.03, 0.1, 0.3)),
        Method("lopro, features", _by_features, (1.0, 3.0, 10.0)),
    )
}
