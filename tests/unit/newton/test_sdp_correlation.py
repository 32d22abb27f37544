"""The nearest correlation matrix: known answers, independently checked certificates, difficult instances."""

from dataclasses import replace
from fractions import Fraction

import array_api_strict
import numpy as np
import pytest

import lopro
from lopro.linalg.eigenvalues import is_above, semidefinite_shift
from lopro.newton.multipliers import never
from lopro.newton.sdp import Judge
from lopro.newton.sdp.correlation import NoCorrelationMatrix, _CorrelationSearch
from lopro.newton.sdp.correlation import nearest_correlation as search
from lopro.newton.sdp.correlation_target import CorrelationTarget
from lopro.newton.sdp.dual_point import Centre, DualPoint
from lopro.newton.sdp.hessian import Directions
from lopro.newton.spectral import Spectrum


def nearest_correlation(G, w=None, fixed=None, min_eigenvalue=0.0, stopped=never):
    return search(CorrelationTarget.of(G, w, fixed, min_eigenvalue), stopped=stopped)


def noisy(rng, n, rank=4):
    """A correlation matrix of low rank with noise."""
    B = rng.standard_normal((n, rank))
    B /= np.linalg.norm(B, axis=1)[:, None]
    E = rng.uniform(-1, 1, (n, n))
    G = B @ B.T + 0.3 * (E + E.T)
    np.fill_diagonal(G, 1.0)
    return G


def value(X, G, w):
    root = np.sqrt(w)
    return 0.5 * np.linalg.norm(root[:, None] * (X - G) * root) ** 2


def test_published_example():
    """Higham (2002): the nearest correlation matrix to this one, to four digits."""
    G = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 1.0]])
    found = nearest_correlation(G)
    expected = [[1.0, 0.7607, 0.1573], [0.7607, 1.0, 0.7607], [0.1573, 0.7607, 1.0]]
    np.testing.assert_allclose(found.X, expected, atol=5e-5)


def test_against_clarabel(rng):
    cp = pytest.importorskip("cvxpy")
    n = 8
    G, w = noisy(rng, n), rng.uniform(0.2, 3.0, n)
    fixed = np.zeros((n, n), dtype=bool)
    fixed[0, 1] = fixed[1, 0] = fixed[2, 5] = fixed[5, 2] = True
    for kept, least in ((fixed & False, 0.0), (fixed & False, 0.2), (fixed, 0.0), (fixed, 0.05)):
        found = nearest_correlation(G, w, kept, least)
        X = cp.Variable((n, n), symmetric=True)
        root = np.diag(np.sqrt(w))
        rows = [cp.diag(X) == 1, X - least * np.eye(n) >> 0]
        rows += [X[i, j] == G[i, j] for i, j in zip(*np.nonzero(np.tril(kept)), strict=True)]
        objective = 0.5 * cp.sum_squares(root @ (X - G) @ root)
        cp.Problem(cp.Minimize(objective), rows).solve(solver="CLARABEL")
        assert found.fun == pytest.approx(objective.value, rel=1e-6)
        np.testing.assert_allclose(found.X, X.value, atol=2e-4)


@pytest.mark.parametrize("n", [1, 2, 10, 80])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("least", [0.0, 0.1])
def test_feasible_and_certified(rng, n, weighted, least):
    G = noisy(rng, n) if n > 1 else np.ones((1, 1))
    w = rng.uniform(0.1, 10.0, n) if weighted else np.ones(n)
    found = nearest_correlation(G, w, min_eigenvalue=least)
    assert np.array_equal(found.X, found.X.T)
    assert np.array_equal(found.X.diagonal(), np.ones(n))
    assert np.linalg.eigvalsh(found.X)[0] >= least - 1e-15
    assert found.fun == pytest.approx(value(found.X, G, w), rel=1e-12, abs=1e-15)
    assert 0.0 <= found.gap <= 1e-8 * found.fun + 1e-20
    assert found.decompositions <= 12


def test_fixed_entries_are_kept_exactly(rng):
    G = noisy(rng, 40)
    B = rng.standard_normal((40, 40))
    C = B @ B.T
    C /= np.sqrt(np.outer(C.diagonal(), C.diagonal()))
    C = 0.5 * (C + C.T)
    fixed = np.zeros((40, 40), dtype=bool)
    fixed[:6, :6] = True
    G[fixed] = C[fixed]
    found = nearest_correlation(G, fixed=fixed, min_eigenvalue=0.001)
    off = fixed & ~np.eye(40, dtype=bool)
    assert np.array_equal(found.X[off], G[off])
    assert np.linalg.eigvalsh(found.X)[0] >= 0.001 - 1e-15
    assert found.gap <= 1e-8 * found.fun
    free = nearest_correlation(G, min_eigenvalue=0.001)
    assert free.fun < found.fun


def test_entries_that_exclude_each_other(rng):
    G, fixed = np.eye(6), np.zeros((6, 6), dtype=bool)
    for i, j, entry in ((0, 1, 0.9), (1, 2, 0.9), (0, 2, -0.9)):
        G[i, j] = G[j, i] = entry
        fixed[i, j] = fixed[j, i] = True
    with pytest.raises(NoCorrelationMatrix) as refusal:
        nearest_correlation(G, fixed=fixed)
    ray = refusal.value.certificate / np.linalg.norm(refusal.value.certificate)

    def judge():
        return Judge(CorrelationTarget.of(G, None, fixed).nearest_problem()[0].program())

    assert judge().contradiction(ray)[1].proved
    # The same direction proves nothing once the entries are compatible.
    G[0, 2] = G[2, 0] = 0.9
    assert not judge().contradiction(ray)[1].proved


def test_bound_is_below_every_feasible_value_for_any_multipliers(rng):
    """Not only at the solution: weak duality for arbitrary multipliers."""
    n = 12
    G, w = noisy(rng, n), rng.uniform(0.5, 2.0, n)
    best = nearest_correlation(G, w)
    problem, T = CorrelationTarget.of(G, w).nearest_problem()
    found = problem.solve(T)

    def bound(y):
        values, vectors = Spectrum(T + np.diag(y)).negative
        F = vectors * np.sqrt(np.maximum(values, 0.0))
        return problem.bound(T, replace(found, y=y, F=F))

    for scale in (0.1, 1.0, 10.0):
        step = scale * rng.standard_normal(n)
        assert max(bound(best.multipliers + step), bound(best.multipliers - step)) < best.fun
        # Any positive semidefinite multiplier of the cone will do as well.
        F = found.F + scale * rng.standard_normal(found.F.shape)
        assert problem.bound(T, replace(found, F=F)) < best.fun
    assert best.fun * (1 - 1e-9) <= bound(best.multipliers) <= best.fun


def on_second_device(X):
    return array_api_strict.asarray(X, device=array_api_strict.Device("device1"))


def as_tensor(X):
    return pytest.importorskip("torch").asarray(X)


@pytest.mark.parametrize("there", [np.asarray, on_second_device, as_tensor])
def test_nearly_singular_matrices_are_not_proved_definite(rng, there):
    Q, _ = np.linalg.qr(rng.standard_normal((30, 30)))
    values = np.linspace(0.1, 1.0, 30)
    X = (Q * values) @ Q.T
    X = there(0.5 * (X + X.T))
    assert is_above(X, 0.0) and is_above(X, 0.0999) and is_above(X, 0.1 - 1e-12)
    assert not is_above(X, 0.1 + 1e-12) and not is_above(X, 0.11)


def test_a_wrong_factor_from_a_device_proves_nothing(rng, monkeypatch):
    """The proof is the residual of the factor, not the completion of a factorisation."""
    Q, _ = np.linalg.qr(rng.standard_normal((30, 30)))
    X = (Q * np.linspace(-1e-9, 1.0, 30)) @ Q.T
    lifted = np.linalg.cholesky(0.5 * (X + X.T) + 2e-9 * np.eye(30))
    there = on_second_device(0.5 * (X + X.T))
    assert is_above(there + 2e-9 * on_second_device(np.eye(30)), 0.0)
    module = lopro.linalg.eigenvalues
    monkeypatch.setattr(module, "factor_of_definite", lambda A: on_second_device(lifted))
    assert not is_above(there, 0.0)


@pytest.mark.parametrize("there", [on_second_device, as_tensor])
def test_semidefinite_shift_on_a_device(rng, there):
    Q, _ = np.linalg.qr(rng.standard_normal((20, 20)))
    X = (Q * np.linspace(-0.5, 1.0, 20)) @ Q.T
    X = 0.5 * (X + X.T)
    assert 0.5 <= semidefinite_shift(there(X)) <= 0.5 + 1e-12
    assert semidefinite_shift(there(X + 0.6 * np.eye(20)), 0.05) == 0.0


@pytest.mark.parametrize("there", [on_second_device, as_tensor])
@pytest.mark.parametrize("few", [True, False])
def test_hessians_of_blocks_on_a_device(rng, there, few):
    """The Hessian, from products with unit vectors, is the Gram matrix that is formed on the host."""
    n, fixed = 8, np.eye(8, dtype=bool)
    fixed[2, 5] = fixed[5, 2] = True
    fixed = fixed if few else np.ones((n, n), dtype=bool)
    G = 0.3 * noisy(rng, n)
    problem, T = CorrelationTarget.of(G, None, fixed).nearest_problem()
    found = []
    for M in (T, there(T)):
        program = problem.program(1.0, 1.0, M)
        y = np.linspace(-1.0, 1.0, len(program.b))
        point = DualPoint.of(program, Centre((M, np.zeros(0)), 1.0), y)
        directions = Directions(program)
        found.append((directions._diagonal(point.spectra), directions._matrix(point)))
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-11)


def test_a_correlation_matrix_is_its_own_nearest(rng):
    G = noisy(rng, 30)
    X = nearest_correlation(G, min_eigenvalue=0.01).X
    again = nearest_correlation(X)
    np.testing.assert_allclose(again.X, X, atol=1e-10)
    assert again.fun <= 1e-18
    assert again.decompositions <= 3
    assert again.gap <= 1e-8 * again.scale


def test_units_of_the_weights(rng):
    """Powers of four scale everything exactly but the answer."""
    G, w = noisy(rng, 20), rng.uniform(0.5, 2.0, 20)
    one, other = nearest_correlation(G, w), nearest_correlation(G, 2.0**20 * w)
    assert np.array_equal(one.X, other.X)
    assert other.fun == 2.0**40 * one.fun
    assert np.array_equal(other.multipliers, 2.0**20 * one.multipliers)


def test_counts(rng):
    """Six or seven eigendecompositions, whatever the size."""
    for n in (20, 60, 150):
        found = nearest_correlation(noisy(rng, n))
        assert found.decompositions <= 8
        assert found.products <= 40


def test_time_limit(rng):
    calls = []

    def after_two():
        calls.append(None)
        return len(calls) > 2

    found = nearest_correlation(noisy(rng, 60), stopped=after_two)
    assert not found.solved
    assert found.decompositions <= 4
    assert np.linalg.eigvalsh(found.X)[0] >= -1e-15
    assert found.gap > 0.0


def test_input_is_not_changed(rng):
    G, w = noisy(rng, 10), rng.uniform(1, 2, 10)
    copies = G.copy(), w.copy()
    found = nearest_correlation(G, w)
    assert np.array_equal(G, copies[0]) and np.array_equal(w, copies[1])
    assert not np.shares_memory(found.X, G)


def test_the_charge_for_a_violation_is_subtracted_in_full(rng):
    """Against exact arithmetic: the trace of the multiplier times the least eigenvalue that is missing."""
    G, w = noisy(rng, 6), rng.uniform(0.5, 2.0, 6)
    search = _CorrelationSearch(CorrelationTarget.of(G, w), 1e-8, never)
    found = search.problem.solve(search.T)
    result = search._violating(replace(found, X=search.T))
    price = sum(
        Fraction(weight) * sum(Fraction(entry) ** 2 for entry in row)
        for weight, row in zip(w.tolist(), found.F.tolist(), strict=True)
    )
    bound = Fraction(search.problem.bound(search.T, found)) - Fraction(result.violation) * price
    assert result.violation > 1e-3
    assert Fraction(result.lower_bound) <= bound
    assert result.lower_bound == pytest.approx(float(bound), rel=1e-8)
