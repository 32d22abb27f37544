"""Sparse logistic regression: kinds of data, recognition by `lopro.solve`, and its parts."""

import itertools
import math

import numpy as np
import pytest
import scipy.sparse
from support.logistic_data import entropy_bound, instance

import lopro
from lopro.basis_pursuit.losses.newton import minimise_on_signs
from lopro.basis_pursuit.recognition import sparse_loss
from lopro.functions import atoms
from lopro.maps import linear_map
from lopro.maps.with_ones import WithOnes


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


def test_a_column_with_weight_zero_is_an_intercept():
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
def test_other_problems_are_not_recognised(kind):
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
