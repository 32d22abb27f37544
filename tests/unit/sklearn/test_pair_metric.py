"""SparsePairMetricLearner: decisions about pairs, thresholds by hand, indices instead of samples."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn", reason='needs scikit-learn: pip install "lopro[sklearn]"')

from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, fbeta_score, roc_auc_score
from sklearn.model_selection import cross_val_score

from lopro.sklearn import SparseMetricLearner, SparsePairMetricLearner
from lopro.sklearn._threshold import best_threshold


@pytest.fixture
def data(rng):
    """Samples, indices of pairs, and signs: one feature of five separates them."""
    X = rng.standard_normal((40, 5))
    group = rng.integers(0, 2, 40)
    X[:, 3] += 5.0 * group
    pairs = rng.integers(0, 40, (90, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    return X, pairs, np.where(group[pairs[:, 0]] == group[pairs[:, 1]], 1, -1)


def test_it_learns_the_metric_of_the_other_learner(data):
    X, pairs, y = data
    one = SparsePairMetricLearner(l1=0.02).fit(X[pairs], y)
    other = SparseMetricLearner(l1=0.02).fit(X[pairs], y)
    np.testing.assert_array_equal(one.get_mahalanobis_matrix(), other.get_mahalanobis_matrix())
    assert one.relative_gap_ <= 1e-3
    assert one.dual_gap_ == pytest.approx(one.relative_gap_ * one.objective_)


def test_decisions_are_those_of_the_threshold(data):
    X, pairs, y = data
    model = SparsePairMetricLearner(l1=0.02).fit(X[pairs], y)
    distances = model.pair_distance(X[pairs])
    np.testing.assert_array_equal(model.decision_function(X[pairs]), -distances)
    np.testing.assert_array_equal(
        model.predict(X[pairs]), np.where(distances <= model.threshold_, 1, -1)
    )
    assert model.score(X[pairs], y) == roc_auc_score(y, -distances) > 0.8
    middle = float(np.median(distances))
    assert model.set_threshold(middle).threshold_ == middle
    assert abs(np.sum(model.predict(X[pairs]))) <= 2


@pytest.mark.parametrize("way", ["array", "function"])
def test_indices_stand_for_samples(data, way):
    X, pairs, y = data
    preprocessor = X if way == "array" else lambda indices: X[indices]
    model = SparsePairMetricLearner(l1=0.02, preprocessor=preprocessor).fit(pairs, y)
    plain = SparsePairMetricLearner(l1=0.02).fit(X[pairs], y)
    np.testing.assert_array_equal(model.predict(pairs), plain.predict(X[pairs]))
    np.testing.assert_array_equal(model.transform(pairs[:, 0]), plain.transform(X[pairs[:, 0]]))
    np.testing.assert_array_equal(model.pair_distance(X[pairs]), plain.pair_distance(X[pairs]))


def test_labelled_indices(data):
    X, _, _ = data
    y = np.arange(40) % 2
    chosen = np.arange(5, 35)
    model = SparseMetricLearner(l1=0.02, preprocessor=X).fit(chosen, y[chosen])
    plain = SparseMetricLearner(l1=0.02).fit(X[chosen], y[chosen])
    np.testing.assert_array_equal(model.get_mahalanobis_matrix(), plain.get_mahalanobis_matrix())
    with pytest.raises(ValueError, match="40 samples"):
        model.transform([40])


@pytest.mark.parametrize(
    ("options", "quality"),
    [
        ({}, accuracy_score),
        ({"strategy": "f_beta", "beta": 0.5}, lambda t, p: fbeta_score(t, p, beta=0.5)),
        ({"strategy": "max_tpr", "min_rate": 0.7}, lambda t, p: rates(t, p, 0.7)),
        ({"strategy": "max_tnr", "min_rate": 0.4}, lambda t, p: rates(-t, -p, 0.4)),
    ],
)
@pytest.mark.parametrize("seed", range(5))
def test_no_threshold_is_better_than_the_calibrated_one(options, quality, seed):
    """All thresholds are tried, including ties and the ends of the range."""
    rng = np.random.default_rng(seed)
    distances = rng.integers(0, 12, 40) / 4.0
    y = np.where(rng.random(40) < 1.0 / (1.0 + distances), 1, -1)
    best = best_threshold(distances, y == 1, **options)
    found = quality(y, np.where(distances <= best, 1, -1))
    cuts = np.concatenate([[-1.0], np.unique(distances), [99.0]])
    tried = [quality(y, np.where(distances <= cut, 1, -1)) for cut in cuts]
    assert found == max(tried) > min(tried)


def rates(y, predicted, least):
    """Return the share of ones that are found, -1 if too few of the others are."""
    if np.mean(predicted[y == -1] == -1) < least:
        return -1.0
    return float(np.mean(predicted[y == 1] == 1))


def test_in_cross_validation(data):
    X, pairs, y = data
    model = SparsePairMetricLearner(l1=0.02, preprocessor=X)
    for scoring in (None, "accuracy", "roc_auc", "f1"):
        assert cross_val_score(clone(model), pairs, y, scoring=scoring, cv=3).mean() > 0.6


def test_before_a_fit(data):
    X, pairs, y = data
    model = SparsePairMetricLearner()
    for call in (
        lambda: model.predict(X[pairs]),
        lambda: model.set_threshold(1.0),
        lambda: model.calibrate_threshold(X[pairs], y),
        lambda: model.score(X[pairs], y),
        lambda: model.get_support(),
    ):
        with pytest.raises(NotFittedError):
            call()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda m, P, y: m.fit(P, y, {"strategy": "best"}), "strategy must be one of"),
        (lambda m, P, y: m.fit(P, y, {"strategy": "max_tpr"}), "min_rate must be"),
        (lambda m, P, y: m.fit(P, y, {"strategy": "f_beta", "beta": "1"}), "beta must be"),
        (lambda m, P, y: m.fit(P[:, 0], y), "indices need a preprocessor"),
        (lambda m, P, y: m.fit(np.concatenate([P, P], axis=1), y), "quadruplets"),
        (lambda m, P, y: m.fit(P, 2 * y), "1 for similar"),
        (lambda m, P, y: m.fit(P, y).set_threshold("far"), "threshold must be"),
        (lambda m, P, y: m.set_params(preprocessor="X").fit(P, y), "preprocessor must be"),
        (lambda m, P, y: m.set_params(n_components=6).fit(P, y), r"integer in \[1, 5\]"),
        (lambda m, P, y: m.set_params(n_components=0).fit(P, y), r"integer in \[1, 5\]"),
    ],
)
def test_bad_calls_are_named(data, call, words):
    X, pairs, y = data
    with pytest.raises(ValueError, match=words):
        call(SparsePairMetricLearner(l1=0.02), X[pairs], y)


def test_components(data):
    """By rank, all of them, or the largest: the matrix is then of that rank."""
    X, pairs, y = data
    rank = SparsePairMetricLearner(l1=0.02).fit(X[pairs], y)
    A = rank.get_mahalanobis_matrix()
    assert len(rank.components_) == np.linalg.matrix_rank(A, tol=1e-10)
    every = clone(rank).set_params(n_components=None).fit(X[pairs], y)
    assert every.components_.shape == (5, 5)
    np.testing.assert_allclose(every.components_.T @ every.components_, A, atol=1e-10)
    one = clone(rank).set_params(n_components=1).fit(X[pairs], y)
    values, vectors = np.linalg.eigh(A)
    largest = values[-1] * np.outer(vectors[:, -1], vectors[:, -1])
    np.testing.assert_allclose(one.get_mahalanobis_matrix(), largest, atol=1e-10)
    assert list(one.get_feature_names_out()) == ["sparsepairmetriclearner0"]


def test_the_features_that_are_used(rng):
    X = rng.standard_normal((12, 80))
    y = np.arange(12) % 2
    X[:, 7] += 6.0 * y
    X[:, 5] = 1.0
    model = SparseMetricLearner(l1=0.1, tol=1e-2).fit(X, y)
    mask, used = model.get_support(), model.get_support(indices=True)
    np.testing.assert_array_equal(np.flatnonzero(mask), used)
    np.testing.assert_array_equal(mask, model.get_mahalanobis_matrix().any(axis=0))
    assert mask[7] and not mask[5]


def test_a_time_limit_is_kept(data):
    X, pairs, y = data
    model = SparsePairMetricLearner(l1=0.02, tol=0.0, time_limit=0.05)
    with pytest.warns(UserWarning, match="not certified"):
        model.fit(X[pairs], y)
    assert np.isfinite(model.predict(X[pairs])).all()


def test_one_sample_at_a_time(data):
    X, pairs, y = data
    distance = SparsePairMetricLearner(l1=0.02).fit(X[pairs], y).get_metric()
    assert distance(X[0], X[1]) == distance(X[0][None], X[1].tolist())
    for u, v in ((X[:2], X[2:4]), (X[0, :4], X[1, :4]), (X[0, :4], X[1])):
        with pytest.raises(ValueError):
            distance(u, v)
