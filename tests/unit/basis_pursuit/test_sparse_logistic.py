"""Sparse logistic regression: optima of scikit-learn, bounds at arbitrary points, exact signs and factors."""

import itertools
import math

import numpy as np
import pytest
import scipy.sparse

import lopro
from lopro.basis_pursuit.logistic_regression import LogisticData
from lopro.basis_pursuit.loss_newton import minimise_on_signs
from lopro.basis_pursuit.loss_search import LossSearch
from lopro.basis_pursuit.sparse_loss import Radius, sparse_loss
from lopro.functions import atoms
from lopro.maps import StoredMap, linear_map
from lopro.maps.with_ones import WithOnes
from lopro.protocol import Target


def instance(m=80, d=120, seed=0, shift=0.8):
    rng = np.random.default_rng([m, d, seed])
    A = rng.standard_normal((m, d))
    truth = np.zeros(d)
    truth[:5] = [3.0, -2.0, 1.0, 1.0, -1.0]
    labels = np.where(A @ truth + shift + rng.standard_normal(m) > 0.0, 1.0, -1.0)
    return A, labels, rng.integers(0, 4, m).astype(float)


def value(A, labels, x, c=0.0, lam=1.0, s=1.0, w=1.0, ridge=0.0):
    losses = np.logaddexp(0.0, -labels * (A @ x + c))
    return float(np.sum(s * losses) + lam * np.sum(w * np.abs(x)) + 0.5 * ridge * (x @ x))


def entropy_bound(labels, s, u):
    """Minus the conjugate at ``-u``, in the formula of books, with more digits."""
    a = (labels * u / np.where(s > 0.0, s, 1.0)).astype(np.longdouble)
    assert (a >= 0.0).all() and (a <= 1.0).all()

    def entropy(q):
        return np.where(q > 0.0, q * np.log(np.where(q > 0.0, q, 1.0)), 0.0)

    return -float(np.sum(s * (entropy(a) + entropy(1.0 - a))))


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
    """Columns that are near to a violation are read with those that violate."""
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
    pulled = A.T @ result.dual / w
    assert abs(pulled).max() <= 1.0 + 1e-12
    # On the support the correlation is the sign of the coefficient, exactly.
    assert np.abs(pulled[result.support] - np.sign(result.x[result.support])).max() < 1e-9
    assert abs(u.sum()) < 1e-12 * np.abs(u).sum()
    assert result.certificate.lower_bound <= bound + 1e-15 * bound
    assert result.certificate.lower_bound == pytest.approx(bound, rel=1e-12)
    # The slope of the loss at the solution is minus the dual point.
    p = 1.0 / (1.0 + np.exp(labels * (A @ result.x + result.intercept)))
    assert u == pytest.approx(s * labels * p, abs=1e-9)


def test_the_ridge_is_paid_for():
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
    search = LossSearch(form, Target(1e-9, 0.0))
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
        search._price_start()
        assert search.bound <= best.fun
        nearest = min(nearest, best.fun - search.bound)
    # At the optimum it is sharp.
    assert nearest <= 1e-6 * best.fun


def test_a_bound_that_does_not_pay_for_the_intercept_is_false():
    """Negative control: slopes that do not cancel prove something only with the radius."""
    A, labels, _ = instance(40, 30, shift=3.0)
    problem = LogisticData(A, labels, True).problem(2.0)
    best = lopro.solve(problem, tol=1e-11)
    form = sparse_loss(problem)
    without = lopro.sparse_logistic(A, labels, 2.0, tol=1e-11)
    r = (1.0 - 1e-12) * 2.0 * without.dual
    pulled = np.append(A.T @ r, r.sum())
    free, factor = form.lower_bound(r, pulled, np.zeros(31), 0.0)
    assert factor == pytest.approx(1.0)
    assert free == pytest.approx(without.fun) and free > 1.01 * best.fun
    sides = [np.where(r > 0.0, r, 0.0), np.where(r < 0.0, r, 0.0)]
    gauges = tuple(float(np.abs(A.T @ u).max()) / 2.0 for u in sides)
    radius = Radius.of(tuple(abs(float(u.sum())) for u in sides), gauges).at(best.fun)
    assert radius >= abs(best.x[-1])
    off = form.left_free(np.ones(40), r) * radius
    assert form.lower_bound(r, pulled, np.zeros(31), off)[0] <= best.fun


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
    # Weights count samples: two of a kind are one of weight 2.
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
        assert correlations.min() < -2.0  # they would be missing without signs
        if not intercept:  # one multiplier for each coefficient cancels the slope of the objective
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


# Kinds of data.


def test_kinds_of_data(tmp_path):
    A, labels, _ = instance()
    sparse = scipy.sparse.csr_array(np.where(np.abs(A) > 2.0, A, 0.0))
    stored = np.memmap(tmp_path / "A", dtype=np.float64, shape=A.shape, mode="w+")
    stored[:] = A
    operator = scipy.sparse.linalg.aslinearoperator(A)
    expected = lopro.sparse_logistic(A, labels, 2.0, intercept=True, tol=1e-10)
    for kind in (np.asfortranarray(A), stored, operator, scipy.sparse.csc_array(A)):
        found = lopro.sparse_logistic(kind, labels, 2.0, intercept=True, tol=1e-10)
        assert found.success and found.fun == pytest.approx(expected.fun, rel=1e-10)
    found = lopro.sparse_logistic(sparse, labels, 0.5, intercept=True, tol=1e-10)
    same = lopro.sparse_logistic(sparse.toarray(), labels, 0.5, intercept=True, tol=1e-10)
    assert found.success and found.fun == pytest.approx(same.fun, rel=1e-10)


def test_single_precision():
    A, labels, s = instance()
    narrow = A.astype(np.float32)
    result = lopro.sparse_logistic(narrow, labels, 2.0, intercept=True, sample_weight=s, tol=1e-5)
    wide = lopro.sparse_logistic(
        narrow.astype(float), labels, 2.0, intercept=True, sample_weight=s, tol=1e-10
    )
    assert result.success and result.x.dtype == np.float32
    assert result.fun == pytest.approx(wide.fun, rel=1e-5)
    assert result.certificate.lower_bound <= wide.fun


def test_tensors():
    torch = pytest.importorskip("torch")
    A, labels, _ = instance()
    expected = lopro.sparse_logistic(A, labels, 2.0, intercept=True, tol=1e-10)
    found = lopro.sparse_logistic(
        torch.tensor(A), torch.tensor(labels), 2.0, intercept=True, tol=1e-10
    )
    assert found.success and isinstance(found.x, torch.Tensor)
    assert found.fun == pytest.approx(expected.fun, rel=1e-10)


# Recognition.


def test_solve_recognises_it():
    A, labels, _ = instance()
    loss, l1 = lopro.objectives.Logistic(A, labels), lopro.objectives.L1Norm()
    result = lopro.solve(lopro.Problem(80 * loss + 2.0 * l1), tol=1e-9)
    expected = lopro.sparse_logistic(A, labels, 2.0, tol=1e-9)
    assert result.method.endswith("WorkingSetNewton()")
    assert result.fun == pytest.approx(expected.fun, rel=1e-9)
    # The ridge of the loss itself.
    own = lopro.solve(
        lopro.Problem(80 * lopro.objectives.Logistic(A, labels, l2=0.01) + 2.0 * l1), tol=1e-9
    )
    expected = lopro.sparse_logistic(A, labels, 2.0, ridge=0.8, tol=1e-9)
    assert own.method.endswith("WorkingSetNewton()") and own.success
    assert own.fun == pytest.approx(expected.fun, rel=1e-9)


def test_a_column_that_costs_nothing_is_an_intercept_of_its_own():
    A, labels, _ = instance()
    f = np.linspace(-1.0, 3.0, 80)
    wide = np.column_stack([f, A])
    weights = np.append(0.0, np.ones(120))
    loss = 80 * lopro.objectives.Logistic(wide, labels)
    problem = lopro.Problem(loss + 3.0 * lopro.objectives.L1Norm(weights))
    result = lopro.solve(problem, tol=1e-10)
    assert result.method.endswith("WorkingSetNewton()") and result.success
    cheap = lopro.sparse_logistic(
        wide, labels, 3.0, weights=np.append(1e-9, np.ones(120)), tol=1e-10
    )
    assert result.fun == pytest.approx(cheap.fun, rel=1e-8)
    assert result.fun <= cheap.fun


@pytest.mark.parametrize("kind", ["two free", "rows", "free with ridge", "offset", "least squares"])
def test_other_problems_are_not_taken(kind):
    A, labels, _ = instance()
    logistic, l1 = lopro.objectives.Logistic(A, labels), lopro.objectives.L1Norm()
    weights = np.ones(120)
    weights[0] = 0.0
    free = lopro.objectives.L1Norm(weights)
    problem = {
        "two free": lambda: lopro.Problem(
            logistic + lopro.objectives.L1Norm(np.append(weights[:-1], 0.0))
        ),
        "rows": lambda: lopro.Problem(
            logistic + l1, lopro.constraints.Polyhedron(np.ones((1, 120)), np.ones(1))
        ),
        "free with ridge": lambda: lopro.Problem(
            logistic + free + lopro.objectives.SquaredDistance(np.zeros(120))
        ),
        "offset": lambda: lopro.Problem(
            logistic + l1 + lopro.objectives.SquaredDistance(np.ones(120))
        ),
        "least squares": lambda: lopro.Problem(lopro.objectives.LeastSquares(A, labels) + l1),
    }[kind]()
    assert sparse_loss(problem) is None
    with pytest.raises(lopro.MissingCapabilityError, match="Logistic plus"):
        lopro.WorkingSetNewton().check(problem)


# The parts.


@pytest.mark.parametrize("nonneg", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_quadratics_with_a_norm_against_all_signs(seed, nonneg):
    rng = np.random.default_rng(seed)
    rows, d = (3, 5) if seed % 2 else (8, 5)
    B = rng.standard_normal((rows, d))
    G, q, prices = B.T @ B, B.T @ rng.standard_normal(rows) * 3.0, rng.uniform(0.1, 1.0, d)

    def fun(x):
        return 0.5 * x @ G @ x - q @ x + prices @ np.abs(x)

    best = 0.0
    for signs in itertools.product((0.0, 1.0) if nonneg else (-1.0, 0.0, 1.0), repeat=d):
        s = np.array(signs)
        S = np.flatnonzero(s)
        x = np.zeros(d)
        x[S] = np.linalg.lstsq(G[np.ix_(S, S)], q[S] - prices[S] * s[S], rcond=None)[0]
        if (x * s >= 0.0).all():
            best = min(best, fun(x))
    start = rng.standard_normal(d) * rng.integers(0, 2, d)
    found = minimise_on_signs(G, q, prices, np.abs(start) if nonneg else start, nonneg)
    assert fun(found) == pytest.approx(best, abs=1e-9)
    assert not nonneg or found.min() >= 0.0


def test_the_conjugate_with_weights():
    labels, s = np.array([1.0, -1.0, 1.0, -1.0]), np.array([2.0, 0.5, 0.0, 3.0])
    g = atoms.Logistic(labels, s)
    z = np.array([0.3, -1.0, 5.0, 40.0])
    v = g.slope(z)
    assert g.value(z) + g.conjugate(v) == pytest.approx(float(v @ z), rel=1e-14)
    found = g.enclose_conjugate(v)
    assert abs(found.value + entropy_bound(labels, s, -v)) <= found.error < 1e-12
    for wrong in (np.array([0.1, 0, 0, 0]), np.array([-2.1, 0, 0, 0]), np.array([0, 0, -0.1, 0])):
        assert g.conjugate(wrong) == math.inf
        assert g.enclose_conjugate(wrong).value == math.inf
        assert math.isfinite(g.conjugate(g.into_domain(wrong)))
    step = 1e-6
    ahead, behind = g.slope(z + step), g.slope(z - step)
    assert (ahead - behind) / (2.0 * step) == pytest.approx(g.curvature(z), abs=1e-8)


def test_a_mean_is_a_weighted_sum():
    rng = np.random.default_rng(0)
    labels, z = np.sign(rng.standard_normal(50)), 3.0 * rng.standard_normal(50)
    mean, summed = atoms.Logistic(labels), atoms.Logistic(labels, np.full(50, 0.02))
    assert mean.value(z) == pytest.approx(summed.value(z), rel=1e-14)
    v = mean.slope(z)
    assert v == pytest.approx(summed.slope(z), rel=1e-14)
    assert mean.enclose_conjugate(v).value == pytest.approx(summed.conjugate(v), rel=1e-13)
    one, other = (g.enclose_conjugate(v) for g in (mean, summed))
    assert one.value == pytest.approx(other.value, rel=1e-14)
    assert one.error == pytest.approx(other.error, rel=1e-2)


def test_a_column_of_ones():
    A = np.random.default_rng(0).standard_normal((6, 4))
    for base in (A, scipy.sparse.csr_array(A)):
        wide, full = WithOnes(linear_map(base)), np.column_stack([A, np.ones(6)])
        X, Y = np.arange(10.0).reshape(5, 2), np.arange(12.0).reshape(6, 2)
        assert wide.shape == (6, 5)
        assert wide.forward(X[:, 0]) == pytest.approx(full @ X[:, 0])
        assert wide.adjoint(Y[:, 1]) == pytest.approx(full.T @ Y[:, 1])
        assert wide.adjoint_exactly(Y) == pytest.approx(full.T @ Y)
        assert wide.multiply(X) == pytest.approx(full @ X)
        assert wide.multiply_adjoint(Y) == pytest.approx(full.T @ Y)
        assert wide.columns([4, 1]) == pytest.approx(full[:, [4, 1]])
        assert wide.rows([0, 3]) == pytest.approx(full[[0, 3]])
        assert wide.column_norms == pytest.approx(np.linalg.norm(full, axis=0))
