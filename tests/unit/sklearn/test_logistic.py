"""SparseLogisticRegression and its cross-validated form: checks of scikit-learn, its answers, valid gaps."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse

pytest.importorskip("sklearn", reason='needs scikit-learn: pip install "lopro[sklearn]"')

from sklearn import linear_model
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from lopro.sklearn import SparseLogisticRegression, SparseLogisticRegressionCV

CHECKED = [
    SparseLogisticRegression(),
    SparseLogisticRegression(C=0.5, l1_ratio=0.7, warm_start=True),
    SparseLogisticRegression(fit_intercept=False),
    SparseLogisticRegressionCV(Cs=4, cv=3),
    SparseLogisticRegressionCV(Cs=3, l1_ratio=[0.5, 0.9], cv=3),
]


# scikit-learn's checks try inputs that cause warnings of both libraries; only their assertions matter.
@parametrize_with_checks(CHECKED)
@pytest.mark.filterwarnings("default")
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


@pytest.fixture
def data(rng):
    X = rng.standard_normal((90, 60)) + 0.5
    score = X[:, 3] - 2.0 * X[:, 20] + 0.5 * X[:, 50] + 1.0 + 0.5 * rng.standard_normal(90)
    return X, np.where(score > 0.0, "yes", "no"), rng.uniform(0.2, 3.0, 90)


def objective(model, X, y, s, C, share):
    """Return the objective of scikit-learn."""
    b = np.where(y == model.classes_[1], 1.0, -1.0)
    z = X @ model.coef_[0] + model.intercept_[0]
    l1, l2 = np.abs(model.coef_).sum(), float(model.coef_[0] @ model.coef_[0])
    return C * (s @ np.logaddexp(0.0, -b * z)) + share * l1 + 0.5 * (1.0 - share) * l2


@pytest.mark.parametrize("share", [1.0, 0.6])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("sparse", [False, True])
def test_it_is_scikit_learns_model(data, share, weighted, intercept, sparse):
    X, y, s = data
    X = np.where(np.abs(X) > 1.0, X, 0.0) if sparse else X
    mine = SparseLogisticRegression(0.3, l1_ratio=share, tol=1e-10, fit_intercept=intercept)
    theirs = linear_model.LogisticRegression(
        C=0.3,
        l1_ratio=share,
        solver="saga",
        tol=1e-8,
        max_iter=100_000,
        fit_intercept=intercept,
    )
    weights = s if weighted else None
    mine.fit(scipy.sparse.csr_array(X) if sparse else X, y, sample_weight=weights)
    theirs.fit(X, y, sample_weight=weights)
    used = s if weighted else np.ones(90)
    fun, best = (objective(m, X, y, used, 0.3, share) for m in (mine, theirs))
    assert fun <= best * (1.0 + 1e-12)
    # The gap bounds the distance from the optimum, in the units of scikit-learn's objective.
    assert 0.0 <= mine.dual_gap_ <= 1e-10 * fun
    np.testing.assert_allclose(mine.coef_, theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(mine.intercept_, theirs.intercept_, atol=1e-4)
    np.testing.assert_allclose(mine.predict_proba(X), theirs.predict_proba(X), atol=1e-4)
    assert (mine.predict(X) == theirs.predict(X)).all()
    assert mine.classes_.tolist() == ["no", "yes"]


def test_probabilities_of_scores_of_any_size(data):
    X, y, _ = data
    model = SparseLogisticRegression(0.3).fit(X, y)
    proba, logs = model.predict_proba(1e4 * X), model.predict_log_proba(1e4 * X)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert np.isfinite(logs).all()
    np.testing.assert_allclose(np.exp(logs), proba, atol=1e-12)


def test_the_gap_of_a_fit_that_was_cut_short_is_a_bound(data):
    X, y, _ = data
    with pytest.warns(ConvergenceWarning, match="not certified"):
        short = SparseLogisticRegression(5.0, tol=1e-12, max_iter=1).fit(X, y)
    best = SparseLogisticRegression(5.0, tol=1e-10).fit(X, y)
    ones = np.ones(90)
    excess = objective(short, X, y, ones, 5.0, 1.0) - objective(best, X, y, ones, 5.0, 1.0)
    assert 0.0 < excess <= short.dual_gap_


def test_positive_coefficients_warm_starts_and_precision(data):
    X, y, _ = data
    positive = SparseLogisticRegression(0.3, positive=True).fit(X, y)
    assert positive.coef_.min() == 0.0 and positive.coef_.any()
    warm = SparseLogisticRegression(0.3, warm_start=True, tol=1e-9).fit(X, y)
    first, coef = warm.n_iter_, warm.coef_
    assert warm.fit(X, y).n_iter_ <= first
    np.testing.assert_allclose(warm.coef_, coef, atol=1e-4)
    single = SparseLogisticRegression(0.3, tol=1e-5).fit(X.astype(np.float32), y)
    assert single.coef_.dtype == single.intercept_.dtype == np.float32


def test_several_classes_require_a_wrapper(data, rng):
    X, _, _ = data
    y = np.argmax(X[:, :3], axis=1)
    with pytest.raises(ValueError, match="OneVsRestClassifier"):
        SparseLogisticRegression().fit(X, y)
    model = OneVsRestClassifier(SparseLogisticRegression()).fit(X, y)
    assert (model.predict(X) == y).mean() > 0.8


@pytest.mark.parametrize("name", ["C", "l1_ratio"])
def test_what_is_refused(data, name):
    X, y, _ = data
    with pytest.raises(ValueError, match=f"{name} must be"):
        SparseLogisticRegression(**{name: 0.0}).fit(X, y)
    with pytest.raises(ValueError, match="one class only"):
        SparseLogisticRegression().fit(X, np.full(90, "no"))


@pytest.mark.parametrize("weighted", [False, True])
def test_cross_validation_has_the_least_loss_of_its_folds(data, weighted):
    X, y, s = data
    weights = s if weighted else None
    shares, Cs = [0.5, 1.0], np.geomspace(0.05, 5.0, 6)
    folds = [(np.arange(90)[np.arange(90) % 3 != k], np.arange(90)[k::3]) for k in range(3)]
    model = SparseLogisticRegressionCV(Cs, l1_ratio=shares, cv=folds, tol=1e-9)
    model.fit(X, y, sample_weight=weights)
    losses = np.empty((2, 6, 3))
    every = itertools.product(enumerate(shares), enumerate(Cs), enumerate(folds))
    for (i, share), (j, C), (k, (train, test)) in every:
        one = SparseLogisticRegression(C, l1_ratio=share, tol=1e-9)
        one.fit(X[train], y[train], s[train] if weighted else None)
        used = s[test] if weighted else None
        losses[i, j, k] = log_loss(y[test], one.predict_proba(X[test]), sample_weight=used)
    np.testing.assert_allclose(model.log_loss_path_, losses, rtol=1e-4)
    of_folds = [s[test].sum() if weighted else 1.0 for _, test in folds]
    mean = np.average(losses, axis=2, weights=of_folds)
    i, j = np.unravel_index(mean.argmin(), mean.shape)
    assert (model.l1_ratio_, model.C_) == (shares[i], Cs[j])
    again = SparseLogisticRegression(model.C_, l1_ratio=model.l1_ratio_, tol=1e-9).fit(
        X, y, weights
    )
    np.testing.assert_allclose(model.coef_, again.coef_)
    assert model.dual_gap_ == again.dual_gap_


def test_the_grid_starts_where_the_solution_is_zero(data):
    X, y, _ = data
    model = SparseLogisticRegressionCV(5, cv=3).fit(X, y)
    assert model.log_loss_path_.shape == (5, 3)
    least = model.Cs_[0]
    assert model.Cs_[-1] == pytest.approx(100.0 * least)
    assert not SparseLogisticRegression(0.999 * least).fit(X, y).coef_.any()
    assert SparseLogisticRegression(1.01 * least).fit(X, y).coef_.any()
