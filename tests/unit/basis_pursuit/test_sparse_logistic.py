"""Sparse logistic regression: optima of scikit-learn, bounds at arbitrary points, exact signs and factors."""

import math

import numpy as np
import pytest
from support.logistic_data import entropy_bound, instance

import lopro
from lopro.basis_pursuit.logistic_regression import LogisticData
from lopro.basis_pursuit.losses.search import LossSearch
from lopro.basis_pursuit.losses.sparse_loss import FreeRadius
from lopro.basis_pursuit.recognition import sparse_loss
from lopro.maps import StoredMap
from lopro.protocol import Target


def value(A, labels, x, c=0.0, lam=1.0, s=1.0, w=1.0, ridge=0.0):
    losses = np.logaddexp(0.0, -labels * (A @ x + c))
    return float(np.sum(s * losses) + lam * np.sum(w * np.abs(x)) + 0.5 * ridge * (x @ x))


# The optimum.


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("ridge", [0.0, 0.7])
@pytest.mark.parametrize("lam", [20.0, 4.0, 0.8])
def test_the_optimum_is_that_of_scikit_learn(lam, ridge, intercept):
    linear_model = pytest.importorskip("sklearn.linear_model")
    A, labels, s = instance()
    model = linear_model.LogisticRegression(
        C=1.0 / (lam * (1.0 + ridge)),
        l1_ratio=1.0 / (1.0 + ridge),
        solver="saga",
        tol=1e-10,
        max_iter=100_000,
        fit_intercept=intercept,
    ).fit(A, labels, s)
    other = value(A, labels, model.coef_[0], float(model.intercept_[0]), lam, s, 1.0, lam * ridge)
    result = lopro.sparse_logistic(
        A, labels, lam, intercept=intercept, sample_weight=s, ridge=lam * ridge, tol=1e-11
    )
    own = value(A, labels, result.x, result.intercept, lam, s, 1.0, lam * ridge)
    assert result.success
    assert abs(own - result.fun) <= 1e-13 * own
    assert abs(own - other) <= 1e-9 * other
    assert result.certificate.lower_bound <= other


def test_few_products_with_all_columns():
    A, labels, _ = instance(200, 4000)
    result = lopro.sparse_logistic(A, labels, lam=4.0, intercept=True, tol=1e-9)
    assert result.success
    assert result.counts.rmatvecs <= 10
    assert len(result.support) > 20


def test_few_passes_over_stored_data():
    """Columns that nearly violate the optimality conditions are read together with those that do."""
    A, labels, _ = instance(100, 2000, shift=0.0)
    stored = StoredMap(A)
    result = lopro.sparse_logistic(stored, labels, lam=0.5, tol=1e-9)
    near = lopro.sparse_logistic(A, labels, lam=0.5, tol=1e-9)
    assert result.success and result.fun == pytest.approx(near.fun, rel=1e-8)
    assert result.counts.passes <= 14
    assert result.counts.rmatvecs < near.counts.rmatvecs


def test_the_dual_point_proves_the_bound():
    A, labels, s = instance()
    lam, w = 3.0, np.linspace(0.5, 2.0, A.shape[1])
    result = lopro.sparse_logistic(
        A, labels, lam, intercept=True, sample_weight=s, weights=w, tol=1e-12
    )
    u = lam * result.dual
    bound = entropy_bound(labels, s, u)
    correlations = A.T @ result.dual / w
    assert abs(correlations).max() <= 1.0 + 1e-12
    # On the support the correlation is the sign of the coefficient, exactly.
    assert np.abs(correlations[result.support] - np.sign(result.x[result.support])).max() < 1e-9
    assert abs(u.sum()) < 1e-12 * np.abs(u).sum()
    assert result.certificate.lower_bound <= bound + 1e-15 * bound
    assert result.certificate.lower_bound == pytest.approx(bound, rel=1e-12)
    # The slope of the loss at the solution is minus the dual point.
    p = 1.0 / (1.0 + np.exp(labels * (A @ result.x + result.intercept)))
    assert u == pytest.approx(s * labels * p, abs=1e-9)


def test_the_bound_includes_the_conjugate_of_the_ridge():
    A, labels, _ = instance()
    lam, ridge = 3.0, 0.7
    result = lopro.sparse_logistic(A, labels, lam, ridge=ridge, tol=1e-12)
    u = lam * result.dual
    beyond = np.maximum(np.abs(A.T @ u) - lam, 0.0)
    bound = entropy_bound(labels, np.ones(len(labels)), u) - float(beyond @ beyond) / (2.0 * ridge)
    assert result.certificate.lower_bound == pytest.approx(bound, rel=1e-12)
    assert beyond == pytest.approx(ridge * np.abs(result.x), abs=1e-8)


# Bounds at arbitrary points.


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("nonneg", [False, True])
@pytest.mark.parametrize("ridge", [0.0, 2.0])
def test_no_bound_is_above_the_optimum(seed, nonneg, ridge):
    rng = np.random.default_rng(seed)
    A, labels, s = instance(40, 30, seed)
    units = 10.0 ** rng.uniform(-3.0, 3.0, 30)
    intercept = seed % 2
    data = LogisticData(A * units, labels, intercept, units, s, nonneg, 0.0)
    # A ridge in the units of the columns.
    problem = data.problem(1.5)
    if ridge:
        squares = lopro.objectives.SquaredDistance(
            np.zeros(30 + intercept), np.append(ridge * units**2, np.zeros(intercept))
        )
        problem = lopro.Problem(problem.objective + squares, problem.constraint, gap_scale=0.0)
    best = lopro.solve(problem, tol=1e-11)
    assert best.success
    form = sparse_loss(problem)
    search = LossSearch(problem, form, Target(1e-9, 0.0))
    nearest = math.inf
    for spread in (0.0, 0.01, 0.3, 3.0, 30.0):
        at = (
            best.x
            + spread * rng.standard_normal(len(best.x)) / np.append(units, 1.0)[: len(best.x)]
        )
        at[:30] = np.maximum(at[:30], 0.0) if nonneg else at[:30]
        search.bound = -math.inf
        search.newton.keep(np.zeros(len(search.newton.indices), dtype=bool))
        search.newton.extend(np.arange(30), A * units)
        search.newton.move(at[:30], float(at[30]) if intercept else 0.0)
        search._radius = None
        search.price()
        assert search.bound <= best.fun
        nearest = min(nearest, best.fun - search.bound)
    # At the optimum the bound is attained.
    assert nearest <= 1e-6 * best.fun


def test_a_bound_that_ignores_the_slope_of_the_intercept_is_false():
    """Negative control: a slope of the intercept that is not zero gives a bound only within a radius."""
    A, labels, _ = instance(40, 30, shift=3.0)
    problem = LogisticData(A, labels, True).problem(2.0)
    best = lopro.solve(problem, tol=1e-11)
    form = sparse_loss(problem)
    without = lopro.sparse_logistic(A, labels, 2.0, tol=1e-11)
    r = (1.0 - 1e-12) * 2.0 * without.dual
    correlations = np.append(A.T @ r, r.sum())
    free, factor = form.lower_bound(r, correlations, np.zeros(31), 0.0)
    assert factor == pytest.approx(1.0)
    assert free == pytest.approx(without.fun) and free > 1.01 * best.fun
    sides = [np.where(r > 0.0, r, 0.0), np.where(r < 0.0, r, 0.0)]
    gauges = tuple(float(np.abs(A.T @ u).max()) / 2.0 for u in sides)
    radius = FreeRadius.of(tuple(abs(float(u.sum())) for u in sides), gauges).at(best.fun)
    assert radius >= abs(best.x[-1])
    off = form.left_free(np.ones(40), r) * radius
    assert form.lower_bound(r, correlations, np.zeros(31), off)[0] <= best.fun


# Zero, one kind of label, weights of zero.


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("nonneg", [False, True])
def test_from_the_largest_weight_on_the_solution_is_zero(intercept, nonneg):
    A, labels, s = instance()
    data = LogisticData(A, labels, intercept, None, s, nonneg)
    most = data.largest()
    options = {"intercept": intercept, "sample_weight": s, "nonneg": nonneg, "tol": 1e-10}
    for share in (1.0 + 1e-9, 1.5, 100.0):
        result = lopro.sparse_logistic(A, labels, share * most, **options)
        assert result.success and not result.x.any()
    up, down = float(s[labels > 0].sum()), float(s[labels < 0].sum())
    exact = math.log(up / down) if intercept else 0.0
    assert result.intercept == pytest.approx(exact, abs=1e-12)
    below = lopro.sparse_logistic(A, labels, 0.999 * most, **options)
    assert len(below.support) == 1


def test_samples_of_weight_zero_do_not_count():
    A, labels, s = instance()
    kept = s > 0.0
    all_samples = lopro.sparse_logistic(A, labels, 2.0, sample_weight=s, tol=1e-11)
    some = lopro.sparse_logistic(A[kept], labels[kept], 2.0, sample_weight=s[kept], tol=1e-11)
    assert all_samples.fun == pytest.approx(some.fun, rel=1e-12)
    assert all_samples.x == pytest.approx(some.x, abs=1e-7)
    assert not all_samples.dual[~kept].any()
    # A weight is a number of samples: two equal samples are one of weight 2.
    repeated = np.repeat(np.arange(len(s)), s.astype(int))
    again = lopro.sparse_logistic(A[repeated], labels[repeated], 2.0, tol=1e-11)
    assert again.fun == pytest.approx(some.fun, rel=1e-12)


def test_what_is_refused():
    A, labels, s = instance()
    with pytest.raises(ValueError, match="labels of both kinds"):
        lopro.sparse_logistic(A, np.ones(80), 1.0, intercept=True)
    with pytest.raises(ValueError, match="labels of both kinds"):
        lopro.sparse_logistic(A, labels, 1.0, intercept=True, sample_weight=1.0 * (labels > 0))
    with pytest.raises(ValueError, match="labels must be"):
        lopro.sparse_logistic(A, 3.0 * labels, 1.0)
    with pytest.raises(ValueError, match="lam must be"):
        lopro.sparse_logistic(A, labels, 0.0)
    with pytest.raises(ValueError, match="weights must be positive"):
        lopro.sparse_logistic(A, labels, 1.0, weights=np.zeros(120))
    with pytest.raises(ValueError, match="sample_weight must be"):
        lopro.sparse_logistic(A, labels, 1.0, sample_weight=-s)
    with pytest.raises(ValueError, match="sample_weight must have shape"):
        lopro.sparse_logistic(A, labels, 1.0, sample_weight=s[:-1])
    with pytest.raises(TypeError, match="real"):
        lopro.sparse_logistic(A + 0j, labels, 1.0)
    with pytest.raises(ValueError, match="x0 must have shape"):
        lopro.sparse_logistic(A, labels, 1.0, x0=np.zeros(7))


def test_one_kind_of_label_without_an_intercept():
    A, _, _ = instance()
    result = lopro.sparse_logistic(A, np.ones(80), 5.0, tol=1e-10)
    assert result.success and len(result.support) > 0


# Signs, units, starts, limits.


def test_signs_and_their_multipliers():
    A, labels, _ = instance()
    for intercept in (False, True):
        result = lopro.sparse_logistic(A, labels, 2.0, nonneg=True, intercept=intercept, tol=1e-11)
        assert result.success and result.x.min() == 0.0
        correlations = 2.0 * A.T @ result.dual
        assert correlations.max() <= 2.0 * (1.0 + 1e-12)
        assert np.abs(correlations[result.support] - 2.0).max() < 1e-7
        assert correlations.min() < -2.0  # optimal only because of the sign constraints
        if not intercept:  # the multipliers of the signs cancel the slope of the objective
            (of_signs,) = result.multipliers
            assert of_signs == pytest.approx(np.minimum(correlations - 2.0, 0.0), abs=1e-6)
    free = lopro.sparse_logistic(A, labels, 2.0, tol=1e-11)
    assert free.fun < result.fun


def test_units_of_columns():
    A, labels, _ = instance()
    units = 10.0 ** np.random.default_rng(3).uniform(-6.0, 6.0, 120)
    one = lopro.sparse_logistic(A, labels, 2.0, intercept=True, tol=1e-9)
    other = lopro.sparse_logistic(A * units, labels, 2.0, weights=units, intercept=True, tol=1e-9)
    assert one.success and other.success
    assert other.fun == pytest.approx(one.fun, rel=1e-9)
    assert other.x * units == pytest.approx(one.x, abs=1e-5)


def test_separable_data_and_a_tiny_weight():
    A, _, _ = instance(40, 200)
    labels = np.sign(A[:, 0])
    result = lopro.sparse_logistic(A, labels, 1e-6, intercept=True, tol=1e-9)
    assert result.success and 0.0 < result.fun < 1e-3


def test_dependent_columns():
    A, labels, _ = instance(60, 20)
    twice = np.concatenate([A, A, -A], axis=1)
    one = lopro.sparse_logistic(A, labels, 1.0, tol=1e-11)
    other = lopro.sparse_logistic(twice, labels, 1.0, tol=1e-11)
    assert other.success and other.fun == pytest.approx(one.fun, rel=1e-12)


def test_a_start_saves_work():
    A, labels, _ = instance(100, 1000)
    cold = lopro.sparse_logistic(A, labels, 2.0, intercept=True, tol=1e-9)
    warm = lopro.sparse_logistic(A, labels, 2.0, intercept=True, tol=1e-9, x0=cold.x_and_intercept)
    assert warm.success and warm.counts.rmatvecs < cold.counts.rmatvecs
    short = lopro.sparse_logistic(A, labels, 2.0, intercept=True, tol=1e-9, x0=cold.x)
    assert short.success


def test_a_limit_leaves_a_bound():
    A, labels, _ = instance(100, 1000)
    result = lopro.sparse_logistic(A, labels, 0.5, intercept=True, tol=1e-9, max_iter=2)
    assert not result.success
    best = lopro.sparse_logistic(A, labels, 0.5, intercept=True, tol=1e-9)
    assert 0.0 < result.certificate.lower_bound <= best.fun <= result.fun
    late = lopro.sparse_logistic(A, labels, 0.5, time_limit=1e-9)
    assert late.status is lopro.Status.TIME_LIMIT


# The path.


def test_a_path_is_its_points():
    A, labels, s = instance(80, 300)
    path = lopro.sparse_logistic_path(
        A, labels, count=8, ratio=0.05, intercept=True, sample_weight=s, tol=1e-9
    )
    assert not path[0].x.any() and len(path[1].support) > 0
    assert path.lams[0] == pytest.approx(LogisticData(A, labels, True, None, s).largest())
    assert path.coefficients.shape == (8, 300)
    for lam, result in zip(path.lams, path, strict=True):
        alone = lopro.sparse_logistic(A, labels, lam, intercept=True, sample_weight=s, tol=1e-9)
        assert result.success and result.fun == pytest.approx(alone.fun, rel=2e-9)


def test_a_path_with_ridges_in_any_order():
    A, labels, _ = instance()
    path = lopro.sparse_logistic_path(A, labels, [1.0, 5.0], ridge=[2.0, 0.0], tol=1e-10)
    assert path[0].fun == pytest.approx(lopro.sparse_logistic(A, labels, 1.0, ridge=2.0).fun, 1e-6)
    assert path[1].fun == pytest.approx(lopro.sparse_logistic(A, labels, 5.0).fun, 1e-6)
    with pytest.raises(ValueError, match="ridge must be"):
        lopro.sparse_logistic_path(A, labels, [1.0, 5.0], ridge=[2.0])
