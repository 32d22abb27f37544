"""SparseMetricLearnerCV: its choice is that of a search by hand."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn", reason='needs scikit-learn: pip install "lopro[sklearn]"')

from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import lopro
from lopro.metric import diagonal_from
from lopro.sklearn import SparseMetricLearner, SparseMetricLearnerCV


@pytest.fixture
def data(rng):
    y = np.arange(60) % 3
    X = rng.standard_normal((60, 6))
    X[:, 1] += 2 * y
    X[:, 4] -= y
    return X, y


@pytest.mark.parametrize("judge", [None, LogisticRegression()])
def test_it_chooses_as_a_search_by_hand(data, judge):
    X, y = data
    model = SparseMetricLearnerCV([0.001, 1.0, 0.03], cv=3, tol=1e-7, estimator=judge).fit(X, y)
    np.testing.assert_array_equal(model.l1s_, [1.0, 0.03, 0.001])
    for l1, scores in zip(model.l1s_, model.scores_, strict=True):
        pipeline = make_pipeline(
            SparseMetricLearner(l1, tol=1e-7), clone(judge or KNeighborsClassifier(3))
        )
        expected = cross_val_score(pipeline, X, y, cv=StratifiedKFold(3))
        np.testing.assert_allclose(scores, expected, atol=0.051)  # one sample of twenty
    assert model.l1_ == model.l1s_[np.argmax(model.scores_.mean(axis=1))]
    alone = SparseMetricLearner(model.l1_, tol=1e-7).fit(X, y)
    np.testing.assert_array_equal(model.get_mahalanobis_matrix(), alone.get_mahalanobis_matrix())
    assert model.relative_gap_ <= 1e-7 and model.n_features_in_ == 6


def test_the_path_begins_where_the_metric_is_diagonal(data):
    X, y = data
    model = SparseMetricLearnerCV(3, eps=0.01, cv=2, tol=1e-2).fit(X, y)
    i, j = np.triu_indices(60, 1)
    loss = lopro.metric.PairLoss(X, (i, j), np.where(y[i] == y[j], 0.0, 2.0))
    np.testing.assert_allclose(
        model.l1s_, diagonal_from(loss) * np.array([1.0, 0.1, 0.01]), rtol=1e-4
    )


def test_every_fit_starts_from_the_previous_one(data, monkeypatch):
    starts = []

    def spy(*args, A0, **options):
        starts.append(A0 is not None)
        return lopro.learn_metric(*args, A0=A0, **options)

    monkeypatch.setattr("lopro.sklearn.metric.learn_metric", spy)
    SparseMetricLearnerCV(3, cv=2, tol=1e-2).fit(*data)
    assert starts == [False, True, True] * 2 + [False]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"l1s": 0}, "l1s must be at least 1"),
        ({"eps": 0.0}, "eps in"),
        ({"l1s": [-1.0, 1.0]}, "l1s must not be negative"),
    ],
)
def test_bad_paths_are_named(data, options, words):
    with pytest.raises(ValueError, match=words):
        SparseMetricLearnerCV(**options).fit(*data)


@parametrize_with_checks([SparseMetricLearnerCV(2, cv=2, tol=1e-2)])
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)
