"""BasisPursuitDenoising: scikit-learn's own checks, and answers of other solvers."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse

pytest.importorskip("sklearn", reason='needs scikit-learn: pip install "lopro[sklearn]"')

from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso, LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import lopro
from lopro.sklearn import BasisPursuitDenoising

# scikit-learn's checks try inputs that cause warnings of both libraries; only their assertions matter.
CHECKED = [
    BasisPursuitDenoising(),
    BasisPursuitDenoising(fit_intercept=False, warm_start=True),
    BasisPursuitDenoising(positive=True, relative_sigma=0.3),
]


@parametrize_with_checks(CHECKED)
@pytest.mark.filterwarnings("default")
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


@pytest.fixture
def wide(rng):
    X = rng.standard_normal((30, 80))
    return X, X[:, 3] - 2 * X[:, 70] + 5.0 + 0.01 * rng.standard_normal(30)


@pytest.fixture
def tall(rng):
    X = rng.standard_normal((100, 8))
    return X, X @ np.array([3.0, 0, 0, -2, 0, 0, 0.5, 0]) + 1.0 + 0.3 * rng.standard_normal(100)


def residual(model, X, y):
    return np.linalg.norm(model.predict(X) - y)


def test_it_is_lopro_bpdn_on_centred_data(wide):
    X, y = wide
    model = BasisPursuitDenoising(sigma=0.1, tol=1e-9).fit(X, y)
    expected = lopro.bpdn(X - X.mean(0), y - y.mean(), 0.1, tol=1e-9)
    np.testing.assert_allclose(model.coef_, expected.x, atol=1e-7)
    assert residual(model, X, y) == pytest.approx(0.1, rel=1e-6)
    assert model.n_iter_ == expected.iterations and model.n_projections_ == 0
    assert 0.0 <= model.dual_gap_ <= 1e-9 * np.abs(model.coef_).sum()
    assert model.sigma_ == 0.1


@pytest.mark.parametrize("data", ["wide", "tall"])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_the_lasso_of_the_same_residual_agrees(data, positive, intercept, request):
    """``alpha = |X'r|_inf / n`` makes the Lasso's optimality conditions equal to those of the estimator."""
    X, y = request.getfixturevalue(data)
    options = {"positive": positive, "fit_intercept": intercept}
    model = BasisPursuitDenoising(relative_sigma=0.3, tol=1e-10, **options).fit(X, y)
    r = y - model.predict(X)
    centred = X - X.mean(0) if intercept else X
    pull = centred.T @ r
    alpha = (pull if positive else np.abs(pull)).max() / len(y)
    lasso = Lasso(alpha, tol=1e-12, max_iter=100_000, **options).fit(X, y)
    np.testing.assert_allclose(model.coef_, lasso.coef_, atol=1e-4)
    assert model.intercept_ == pytest.approx(lasso.intercept_, abs=1e-4)


def test_the_relative_radius_is_measured_from_least_squares(tall, wide):
    X, y = tall
    best = LinearRegression().fit(X, y)
    unexplained = residual(best, X, y)
    explained = np.linalg.norm(best.predict(X) - y.mean())
    model = BasisPursuitDenoising(relative_sigma=0.2).fit(X, y)
    assert model.sigma_ == pytest.approx(np.hypot(unexplained, 0.2 * explained), rel=1e-9)
    assert residual(model, X, y) == pytest.approx(model.sigma_, rel=1e-6)
    X, y = wide
    model = BasisPursuitDenoising(relative_sigma=0.2).fit(X, y)
    assert model.score(X, y) == pytest.approx(1 - 0.2**2, abs=1e-6)


def test_the_largest_relative_radius_gives_zero_coefficients(tall):
    X, y = tall
    model = BasisPursuitDenoising(relative_sigma=1.0).fit(X, y)
    assert not model.coef_.any() and model.intercept_ == y.mean() and model.dual_gap_ == 0.0


def test_dependent_features(tall):
    X, y = tall
    doubled = np.hstack([X, X, np.ones((len(y), 1))])
    one, two = (BasisPursuitDenoising(sigma=4.0).fit(Z, y) for Z in (X, doubled))
    assert np.abs(two.coef_).sum() == pytest.approx(np.abs(one.coef_).sum(), rel=1e-5)


@pytest.mark.parametrize("data", ["wide", "tall"])
@pytest.mark.parametrize("make", [scipy.sparse.csr_array, scipy.sparse.csc_matrix])
def test_sparse_data_give_the_same_model(data, make, request):
    X, y = request.getfixturevalue(data)
    X = np.where(np.abs(X) > 0.7, X, 0.0)
    dense, sparse = (
        BasisPursuitDenoising(relative_sigma=0.3, tol=1e-9).fit(Z, y) for Z in (X, make(X))
    )
    np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-6)
    np.testing.assert_allclose(sparse.predict(make(X)), dense.predict(X), atol=1e-6)


def test_several_targets_are_several_fits(wide):
    X, y = wide
    Y = np.column_stack([y, -3 * y, np.ones_like(y)])
    model = BasisPursuitDenoising().fit(X, Y)
    assert model.coef_.shape == (3, 80) and model.predict(X).shape == Y.shape
    for k in range(3):
        alone = BasisPursuitDenoising().fit(X, Y[:, k])
        np.testing.assert_allclose(model.coef_[k], alone.coef_, atol=1e-6)
        assert model.intercept_[k] == pytest.approx(alone.intercept_, abs=1e-6)
        assert model.sigma_[k] == alone.sigma_


def test_float32_stays(wide):
    X, y = (part.astype(np.float32) for part in wide)
    model = BasisPursuitDenoising(tol=1e-4).fit(X, y)
    assert model.coef_.dtype == np.float32 and model.predict(X).dtype == np.float32


def test_in_a_pipeline_and_a_search(wide):
    pd = pytest.importorskip("pandas", reason="set_output('pandas') needs pandas")
    X, y = wide
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])])
    pipeline = make_pipeline(
        StandardScaler().set_output(transform="pandas"), BasisPursuitDenoising()
    )
    grid = {"basispursuitdenoising__relative_sigma": [0.02, 0.1, 0.9]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(frame, y)
    best = search.best_estimator_[-1]
    assert search.best_params_["basispursuitdenoising__relative_sigma"] < 0.9
    assert search.best_score_ > 0.9
    assert best.feature_names_in_[3] == "f3" and best.coef_[3] != 0.0


def test_clone_and_pickle(wide):
    X, y = wide
    model = BasisPursuitDenoising(sigma=0.2, method=lopro.MultiplierMethod()).fit(X, y)
    copy = clone(model)
    assert copy.get_params() == model.get_params() and not hasattr(copy, "coef_")
    back = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(back.predict(X), model.predict(X))


def test_warm_start_uses_the_last_coefficients(wide):
    X, y = wide
    cold = BasisPursuitDenoising(method=lopro.LoPNAG(), tol=1e-5).fit(X, y)
    first = cold.n_iter_
    assert cold.fit(X, y).n_iter_ == first
    warm = BasisPursuitDenoising(method=lopro.LoPNAG(), tol=1e-5, warm_start=True).fit(X, y)
    assert warm.n_iter_ == first
    assert warm.fit(X, y).n_iter_ < first
    warm.fit(X[:, :40], y)  # another number of features: the last coefficients are not used


def test_a_missing_certificate_is_a_warning(wide):
    X, y = wide
    model = BasisPursuitDenoising(method=lopro.LoPGD(), max_iter=5)
    with pytest.warns(ConvergenceWarning, match=r"not certified.*iteration limit"):
        model.fit(X, y)
    assert np.isfinite(model.predict(X)).all() and model.dual_gap_ > 0.0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sigma": -1.0}, "sigma must be in"),
        ({"sigma": np.nan}, "sigma must be finite"),
        ({"relative_sigma": 0.0}, "relative_sigma must be positive"),
        ({"relative_sigma": 1.5}, "relative_sigma must be in"),
        ({"sigma": 1e-3}, "the residual of least squares"),
        ({"sigma": 3.5, "positive": True}, "so small a residual"),
    ],
)
def test_bad_parameters_are_named(tall, options, words):
    with pytest.raises(ValueError, match=words):
        BasisPursuitDenoising(**options).fit(*tall)


def test_complex_data_are_refused_with_advice(wide):
    X, y = wide
    for data in ((X * 1j, y), (X, y * 1j)):
        with pytest.raises(ValueError, match=r"Complex data not supported.*lopro\.bpdn"):
            BasisPursuitDenoising().fit(*data)
    with pytest.raises(ValueError, match="Complex data not supported"):
        BasisPursuitDenoising().fit(X.tolist(), (y * 1j).tolist())


def test_inputs_are_not_changed(wide):
    X, y = wide
    before = X.copy(), y.copy()
    BasisPursuitDenoising().fit(X, y)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(y, before[1])


def test_lopro_sklearn_is_available_without_an_import():
    assert lopro.sklearn.BasisPursuitDenoising is BasisPursuitDenoising
