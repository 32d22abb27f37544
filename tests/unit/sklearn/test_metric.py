"""SparseMetricLearner: scikit-learn's own checks, and the interface of metric-learn."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

pytest.importorskip("sklearn", reason='needs scikit-learn: pip install "lopro[sklearn]"')

from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import lopro
from lopro.core.deadline import Deadline
from lopro.sklearn import SparseMetricLearner
from lopro.sklearn._components import components_of


@pytest.fixture
def data(rng):
    y = rng.integers(0, 3, 60)
    X = rng.standard_normal((60, 6))
    X[:, 1] += 3 * y
    X[:, 4] -= 2 * y
    return X, y


def pairs_of(X, y):
    i, j = np.triu_indices(len(y), 1)
    return np.stack([X[i], X[j]], axis=1), np.where(y[i] == y[j], 1, -1)


def test_it_is_learn_metric(data):
    model = SparseMetricLearner(l1=0.02, tol=1e-5).fit(*data)
    expected = lopro.learn_metric(*data, l1=0.02, tol=1e-5)
    np.testing.assert_allclose(model.get_mahalanobis_matrix(), expected.x, atol=1e-9)
    assert (model.objective_, model.loss_) == (expected.fun, expected.loss)
    assert model.n_iter_ == expected.iterations
    # An absolute gap: the objective less the bound, which is not near 1 here.
    proved = expected.certificate.lower_bound
    assert model.dual_gap_ == pytest.approx(model.objective_ - proved, rel=1e-9)
    assert 0.0 < model.dual_gap_ <= 1e-5 * model.objective_ < 0.5 * 1e-5
    assert model.n_projections_ == expected.counts.projections


def test_pairs_and_labels_give_the_same_answer(data):
    by_label = SparseMetricLearner(l1=0.02, tol=1e-6).fit(*data)
    by_pair = SparseMetricLearner(l1=0.02, tol=1e-6).fit(*pairs_of(*data))
    assert by_pair.objective_ == pytest.approx(by_label.objective_, rel=1e-5)
    matrices = by_pair.get_mahalanobis_matrix(), by_label.get_mahalanobis_matrix()
    np.testing.assert_allclose(*matrices, atol=2e-3)
    assert by_pair.n_features_in_ == 6


def test_distances_are_those_of_the_matrix(data):
    X, y = data
    model = SparseMetricLearner(l1=0.02).fit(X, y)
    A, (pairs, _) = model.get_mahalanobis_matrix(), pairs_of(X, y)
    z = pairs[:, 0] - pairs[:, 1]
    expected = np.sqrt(np.einsum("ei,ij,ej->e", z, A, z))
    np.testing.assert_allclose(model.pair_distance(pairs), expected, atol=1e-6)
    np.testing.assert_array_equal(model.pair_score(pairs), -model.pair_distance(pairs))
    moved = model.transform(X)
    np.testing.assert_allclose(np.linalg.norm(moved[0] - moved[1]), expected[0], atol=1e-6)
    distance = model.get_metric()
    assert distance(X[0], X[1]) == pytest.approx(expected[0], abs=1e-6)
    assert distance(X[0], X[1], squared=True) == pytest.approx(expected[0] ** 2, abs=1e-6)
    assert np.linalg.eigvalsh(A)[0] >= -1e-12


def test_the_matrix_is_a_copy(data):
    model = SparseMetricLearner(l1=0.02).fit(*data)
    model.get_mahalanobis_matrix()[:] = 0.0
    assert model.get_mahalanobis_matrix().any()


def test_l1_makes_it_sparse(data):
    models = [SparseMetricLearner(l1=l1, tol=1e-6).fit(*data) for l1 in (1e-4, 0.05, 1.0)]
    matrices = [model.get_mahalanobis_matrix() for model in models]
    # The last step of a solver may leave tiny entries where the solution is zero.
    counts = [np.count_nonzero(np.abs(A) > 1e-4 * A.max()) for A in matrices]
    assert counts[0] == 36 > counts[1] > counts[2] == 6


def test_nearest_neighbours_predict_better_with_a_learned_metric():
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    noisy = np.hstack([X, 3.0 * np.random.default_rng(0).standard_normal((len(X), 30))])
    neighbours = KNeighborsClassifier(5)
    plain = cross_val_score(neighbours, noisy, y).mean()
    learned = cross_val_score(make_pipeline(SparseMetricLearner(l1=0.01), neighbours), noisy, y)
    assert learned.mean() > plain + 0.1


def test_in_a_search(data):
    pipeline = make_pipeline(StandardScaler(), SparseMetricLearner(), KNeighborsClassifier(3))
    search = GridSearchCV(pipeline, {"sparsemetriclearner__l1": [1e-3, 1e-1]}, cv=3).fit(*data)
    assert search.best_score_ > 0.8


def test_set_output_names_the_columns(data):
    pd = pytest.importorskip("pandas", reason="set_output('pandas') needs pandas")
    X, y = data
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = SparseMetricLearner(l1=0.02).set_output(transform="pandas").fit(frame, y)
    moved = model.transform(frame)
    assert list(moved.columns) == [f"sparsemetriclearner{k}" for k in range(moved.shape[1])]
    assert list(model.feature_names_in_) == list("abcdef")


def test_clone_and_pickle(data):
    model = SparseMetricLearner(l1=0.02, random_state=0, max_pairs=100).fit(*data)
    assert clone(model).get_params() == model.get_params()
    back = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(back.transform(data[0]), model.transform(data[0]))


def test_random_pairs_follow_the_seed(data):
    one, two, other = (
        SparseMetricLearner(l1=0.02, max_pairs=200, random_state=seed).fit(*data).objective_
        for seed in (0, 0, 1)
    )
    assert one == two != other


def test_warm_start_begins_at_the_last_matrix(data, monkeypatch):
    seen = []

    def spy(*args, A0, **options):
        seen.append(A0)
        return lopro.learn_metric(*args, A0=A0, **options)

    monkeypatch.setattr("lopro.sklearn.metric.learn_metric", spy)
    X, y = data
    model = SparseMetricLearner(l1=0.02, warm_start=True).fit(X, y)
    first = model.get_mahalanobis_matrix()
    model.fit(X, y)
    model.fit(X[:, :4], y)  # another number of features: the last matrix is not used
    assert seen[0] is None and seen[2] is None
    np.testing.assert_array_equal(seen[1], first)
    assert len(model.get_mahalanobis_matrix()) == 4


def test_a_missing_certificate_is_a_warning(data):
    model = SparseMetricLearner(l1=0.02, method=lopro.LoPGD(), max_iter=5)
    with pytest.warns(ConvergenceWarning, match="not certified"):
        model.fit(*data)
    assert np.isfinite(model.transform(data[0])).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda X, y: (X, 0 * y), "one class"),
        (lambda X, y: (X, y[:-1]), "inconsistent"),
        (lambda X, y: (X, y + 0.5 * X[:, 0]), "continuous"),
        (lambda X, y: (X * 1j, y), "Complex data not supported"),
        (lambda X, y: (np.stack([X, X, X], axis=1), y), "n_pairs, 2, n_features"),
        (lambda X, y: (np.stack([X, X + 1], axis=1), y), "1 for similar"),
    ],
)
def test_bad_data_are_named(data, change, words):
    with pytest.raises(ValueError, match=words):
        SparseMetricLearner().fit(*change(*data))


def test_pairs_of_another_size_are_refused(data):
    model = SparseMetricLearner(l1=0.02).fit(*data)
    with pytest.raises(ValueError, match="expecting 6 features"):
        model.pair_distance(np.zeros((3, 2, 5)))


@parametrize_with_checks(
    [
        SparseMetricLearner(),  # Fitted again from its own solution, it ends within tol of it.
        SparseMetricLearner(l1=0.1, warm_start=True, tol=1e-9),
    ]
)
@pytest.mark.filterwarnings("default")
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


def test_components_beyond_the_time_limit_are_computed_at_their_first_use(data, monkeypatch):
    X, y = data
    learner = SparseMetricLearner(0.05, tol=1e-6, time_limit=60.0).fit(X, y)
    monkeypatch.setattr("lopro.sklearn.metric.current_deadline", lambda: Deadline(0.0))
    late = SparseMetricLearner(0.05, tol=1e-6, time_limit=60.0).fit(X, y)
    assert "components_" in vars(learner) and "components_" not in vars(late)
    np.testing.assert_array_equal(late.transform(X), learner.transform(X))
    assert "components_" in vars(late)
    assert len(pickle.loads(pickle.dumps(late)).components_) == len(learner.components_)
    late.fit(X[:, :4], y)  # nothing of the previous fit remains
    assert late.components_.shape[1] == 4


def test_there_are_no_components_before_a_fit():
    assert not hasattr(SparseMetricLearner(), "components_")


@pytest.mark.parametrize("count", ["rank", None, 1, 4])
def test_components_are_those_of_the_features_in_use(rng, count):
    L = rng.standard_normal((2, 3))
    A = np.zeros((5, 5))
    used = np.array([0, 2, 3])
    A[np.ix_(used, used)] = L.T @ L
    rows = {"rank": 2, None: 5}.get(count, count)
    found = components_of(A, count)
    values, vectors = np.linalg.eigh(A)
    best = vectors[:, ::-1][:, :rows] * np.sqrt(np.maximum(values[::-1][:rows], 0.0))
    assert found.shape == (rows, 5)
    assert not found[:, [1, 4]].any()
    np.testing.assert_allclose(found.T @ found, best @ best.T, atol=1e-12)


def test_decompositions_are_as_large_as_the_metric_is_wide(rng, monkeypatch):
    """Of 60 features six are used: nothing of full size is decomposed for the components."""
    A = np.zeros((60, 60))
    A[:6, :6] = np.eye(6)
    sizes = []
    original = np.linalg.eigh
    monkeypatch.setattr(np.linalg, "eigh", lambda M: sizes.append(len(M)) or original(M))
    components_of(A)
    assert sizes == [6]
