"""Lasso, ElasticNet and their cross-validated forms: scikit-learn's checks, its answers, and valid gaps."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

pytest.importorskip("sklearn", reason='needs scikit-learn: pip install "lopro[sklearn]"')

from sklearn import linear_model
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from lopro.sklearn import ElasticNet, ElasticNetCV, Lasso, LassoCV

CHECKED = [
    Lasso(alpha=0.1),
    ElasticNet(alpha=0.1, warm_start=True),
    ElasticNet(alpha=0.1, positive=True, fit_intercept=False),
    LassoCV(alphas=4, cv=3),
    ElasticNetCV(alphas=3, l1_ratio=[0.5, 0.9], cv=3),
]


# scikit-learn's checks try inputs that cause warnings of both libraries; only their assertions matter.
@parametrize_with_checks(CHECKED)
@pytest.mark.filterwarnings("default")
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


@pytest.fixture
def data(rng):
    X = rng.standard_normal((60, 90)) + 0.5
    coef = np.zeros(90)
    coef[[3, 20, 70]] = [1.0, -2.0, 0.5]
    return X, X @ coef + 4.0 + 0.2 * rng.standard_normal(60), rng.uniform(0.2, 3.0, 60)


def objective(model, X, y, s, alpha, share):
    """Return scikit-learn's objective with weights that are scaled to the number of samples."""
    r = y - X @ model.coef_ - model.intercept_
    l1, l2 = np.abs(model.coef_).sum(), model.coef_ @ model.coef_
    return s @ r**2 / (2.0 * s.sum()) + alpha * (share * l1 + 0.5 * (1.0 - share) * l2)


@pytest.mark.parametrize("share", [1.0, 0.9, 0.3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("sparse", [False, True])
def test_it_is_scikit_learns_model(data, share, weighted, positive, intercept, sparse):
    X, y, s = data
    X = np.where(np.abs(X) > 1.0, X, 0.0) if sparse else X
    options = {"fit_intercept": intercept, "positive": positive}
    mine = ElasticNet(0.05, l1_ratio=share, tol=1e-10, **options)
    theirs = linear_model.ElasticNet(0.05, l1_ratio=share, tol=1e-12, max_iter=100_000, **options)
    weights = s if weighted else None
    mine.fit(scipy.sparse.csr_array(X) if sparse else X, y, sample_weight=weights)
    theirs.fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(mine.coef_, theirs.coef_, atol=2e-6)
    assert mine.intercept_ == pytest.approx(theirs.intercept_, abs=2e-6)
    used = s if weighted else np.ones(60)
    fun, best = (objective(m, X, y, used, 0.05, share) for m in (mine, theirs))
    # The gap is a bound, in the units of scikit-learn's objective, and a close one.
    assert fun - best <= mine.dual_gap_ <= 1e-10 * fun
    if not weighted:
        assert theirs.dual_gap_ >= 0.0
    predicted = mine.predict(scipy.sparse.csr_array(X) if sparse else X)
    np.testing.assert_allclose(predicted, theirs.predict(X), atol=1e-5)


def test_lasso_is_the_elastic_net_without_a_ridge(data):
    X, y, _ = data
    lasso, net = Lasso(0.1, tol=1e-9).fit(X, y), ElasticNet(0.1, l1_ratio=1.0, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(lasso.coef_, net.coef_, atol=1e-12)
    assert "l1_ratio" not in lasso.get_params() and clone(lasso).alpha == 0.1


def test_the_gap_of_a_fit_that_was_cut_short_is_a_bound(data):
    X, y, _ = data
    with pytest.warns(ConvergenceWarning, match="not certified"):
        short = Lasso(1e-3, tol=1e-12, max_iter=1).fit(X, y)
    best = Lasso(1e-3, tol=1e-10).fit(X, y)
    ones = np.ones(60)
    excess = objective(short, X, y, ones, 1e-3, 1.0) - objective(best, X, y, ones, 1e-3, 1.0)
    assert 0.0 < excess <= short.dual_gap_


def test_several_targets_and_warm_start(data):
    X, y, _ = data
    both = Lasso(0.1).fit(X, np.stack([y, -y], axis=1))
    alone = Lasso(0.1, warm_start=True).fit(X, y)
    np.testing.assert_allclose(both.coef_, [alone.coef_, -alone.coef_], atol=1e-8)
    assert both.dual_gap_.shape == both.intercept_.shape == (2,)
    first = alone.n_iter_
    assert alone.fit(X, y).n_iter_ <= first


@pytest.mark.parametrize("weighted", [False, True])
def test_cross_validation_chooses_as_scikit_learn(data, weighted):
    X, y, s = data
    weights = s if weighted else None
    alphas = np.geomspace(1.0, 1e-2, 12)
    mine = LassoCV(alphas=alphas, cv=4, tol=1e-9).fit(X, y, sample_weight=weights)
    theirs = linear_model.LassoCV(alphas=alphas, cv=4, tol=1e-9, max_iter=100_000)
    theirs.fit(X, y, sample_weight=weights)
    assert mine.alpha_ == theirs.alpha_
    np.testing.assert_allclose(mine.mse_path_, theirs.mse_path_, rtol=1e-4)
    np.testing.assert_allclose(mine.coef_, theirs.coef_, atol=1e-5)
    shares = [0.4, 0.95]
    mine = ElasticNetCV(l1_ratio=shares, alphas=alphas, cv=4, tol=1e-9).fit(X, y)
    theirs = linear_model.ElasticNetCV(l1_ratio=shares, alphas=alphas, cv=4, tol=1e-9).fit(X, y)
    assert (mine.alpha_, mine.l1_ratio_) == (theirs.alpha_, theirs.l1_ratio_)
    np.testing.assert_allclose(mine.mse_path_, theirs.mse_path_, rtol=1e-4)


def test_the_grid_starts_where_the_solution_is_zero(data):
    X, y, _ = data
    model = LassoCV(alphas=5, eps=0.1).fit(X, y)
    most = np.abs((X - X.mean(0)).T @ (y - y.mean())).max() / 60
    np.testing.assert_allclose(model.alphas_, most * np.geomspace(1.0, 0.1, 5))


@pytest.mark.parametrize("bad", [{"alpha": 0.0}, {"alpha": -1.0}, {"l1_ratio": 0.0}])
def test_bad_parameters_are_refused(data, bad):
    X, y, _ = data
    with pytest.raises(ValueError, match=next(iter(bad))):
        ElasticNet(**bad).fit(X, y)
