"""Five checks of projections of 1000 symmetric and Hermitian matrices, and partial eigendecompositions."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse.linalg
from support.projection_judges import (
    assert_agrees_with_outside,
    assert_optimal,
    assert_stands_still,
)

import lopro
from lopro.core.counting import Counts, counting
from lopro.projections import psd
from lopro.projections.psd import project_psd, smallest_eigenpairs

CASES = 1000


def make(seed: int) -> Any:
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 31)) if seed % 4 else int(rng.integers(1, 4))
    kind = seed % 6
    X = _gaussian(rng, d, d, seed % 3 == 2)
    X = X + X.conj().T
    if kind == 1:  # few distinct eigenvalues
        Q = np.linalg.qr(X)[0]
        X = (Q * rng.integers(-1, 2, d)) @ Q.conj().T
    if kind == 2:  # low rank
        V = _gaussian(rng, d, 2, seed % 3 == 2)
        X = V[:, :1] @ V[:, :1].conj().T - V[:, 1:] @ V[:, 1:].conj().T
    if kind == 3:
        X = (X / 10.0) + np.eye(d) * rng.choice([-3.0, 0.0, 3.0])
    if seed % 97 == 0:
        X = np.zeros((d, d))
    X = 0.5 * (X + X.conj().T)
    return X * 10.0 ** rng.uniform(-3, 3)


def _gaussian(rng: np.random.Generator, rows: int, columns: int, is_complex: bool) -> Any:
    X = rng.standard_normal((rows, columns))
    return X + 1j * rng.standard_normal((rows, columns)) if is_complex else X


def members(rng: np.random.Generator, X: Any) -> list[Any]:
    """Psd matrices by construction: full rank, rank one, and zero."""
    d, scale = len(X), float(np.linalg.norm(X)) + 1e-3
    full = _gaussian(rng, d, d, np.iscomplexobj(X))
    thin = _gaussian(rng, d, 1, np.iscomplexobj(X))
    return [scale * (B @ B.conj().T) / d for B in (full, thin)] + [0.0 * X]


def reference(X: Any) -> Any:
    """(X + |X|) / 2 with the modulus from a singular value decomposition."""
    _, S, Vh = np.linalg.svd(X)
    return 0.5 * (X + (Vh.conj().T * S) @ Vh)


@pytest.mark.parametrize("block", range(4))
def test_feasibility_optimality_and_a_reference(block: int) -> None:
    for seed in range(block, CASES, 4):
        X, rng = make(seed), np.random.default_rng(20_000 + seed)
        P = project_psd(X)
        scale = float(np.linalg.norm(X)) + 1e-300
        assert np.linalg.norm(P - P.conj().T) == 0.0
        assert np.linalg.eigvalsh(P)[0] >= -1e-14 * scale, seed
        assert_optimal(X, P, members(rng, X), tol=1e-13)
        for Z in members(rng, X):
            assert_stands_still(project_psd, 0.5 * (Z + Z.conj().T), 1e-14)
        assert np.linalg.norm(P - reference(X)) <= 1e-13 * scale, seed


@pytest.mark.parametrize("seed", range(30))
def test_another_solver(seed: int) -> None:
    X = make(seed)[:8, :8]
    X = X / max(1e-3, float(np.linalg.norm(X)))
    d = len(X)
    Z = cp.Variable((d, d), hermitian=True) if np.iscomplexobj(X) else cp.Variable((d, d), PSD=True)
    limits = [Z >> 0] if np.iscomplexobj(X) else []
    assert_agrees_with_outside(X, project_psd(X), Z, limits)


def test_interior_points_come_back_unchanged() -> None:
    X = np.array([[2.0, 1.0], [1.0, 2.0]])
    assert (project_psd(X) == X).all()


@pytest.mark.parametrize("unit", [1e-12, 1e-9, 1.0, 1e9])
@pytest.mark.parametrize("dim", [5, 220])
def test_small_negative_eigenvalues_are_negative(dim: int, unit: float, rng: Any) -> None:
    """No eigenvalue is too small to be clipped: the cone is the same in every unit."""
    Q = np.linalg.qr(rng.standard_normal((dim, dim)))[0]
    values = np.linspace(-1.0, 3.0, dim)
    values[0] = -1e-10
    X = (Q * (unit * values)) @ Q.T
    X = 0.5 * (X + X.T)
    expected = (Q * (unit * np.maximum(values, 0.0))) @ Q.T
    np.testing.assert_allclose(project_psd(X), expected, rtol=0.0, atol=1e-14 * unit * dim)


def test_an_almost_feasible_matrix_is_projected_too() -> None:
    X = np.diag([1.0, -1e-9, 2.0])
    np.testing.assert_array_equal(project_psd(X), np.diag([1.0, 0.0, 2.0]))


def test_keeping_the_negative_side_is_rejected() -> None:
    X = make(7)
    with pytest.raises(AssertionError):
        assert_optimal(X, X - project_psd(X), members(np.random.default_rng(0), X))


@pytest.mark.parametrize("share", [0.1, 0.9])
def test_both_sums_of_eigenpairs_agree(share: float, rng: Any) -> None:
    """A few negative eigenpairs are subtracted, a few positive ones are added."""
    Q = np.linalg.qr(rng.standard_normal((20, 20)))[0]
    values = np.where(np.arange(20) < share * 20, -1.0, 1.0) * (1.0 + rng.random(20))
    P = project_psd((Q * values) @ Q.T)
    assert np.linalg.norm(P - (Q * np.maximum(values, 0.0)) @ Q.T) <= 1e-13


@pytest.mark.parametrize("is_complex", [False, True])
@pytest.mark.parametrize("k", [1, 8])
def test_lanczos_agrees_with_the_dense_solver(k: int, is_complex: bool, rng: Any) -> None:
    X = _gaussian(rng, 260, 260, is_complex)
    X = X + X.conj().T
    dense = np.linalg.eigvalsh(X)[:k]
    with counting(Counts()) as counts:
        values, vectors = smallest_eigenpairs(X, k)
    assert (counts.eigenpairs, counts.eigendecompositions) == (k, 0)
    assert np.abs(values - dense).max() <= 1e-10
    assert np.linalg.norm(X @ vectors - vectors * values) <= 1e-7
    assert np.linalg.norm(vectors.conj().T @ vectors - np.eye(k)) <= 1e-10


def test_a_warm_start_only_changes_the_time(rng: Any) -> None:
    X = rng.standard_normal((300, 300))
    X = X + X.T
    cold, vectors = smallest_eigenpairs(X, 2)
    for start in (vectors.sum(axis=1), rng.standard_normal(300), np.eye(300)[0]):
        assert np.abs(smallest_eigenpairs(X, 2, start)[0] - cold).max() <= 1e-10


def test_a_start_orthogonal_to_the_answer_still_finds_it() -> None:
    X = np.diag(np.concatenate([[-5.0], np.linspace(0.0, 1.0, 299)]))
    values, _ = smallest_eigenpairs(X, 1, np.eye(300)[7])
    assert values[0] == pytest.approx(-5.0, abs=1e-10)


def _wrong(X: Any, k: int, **_: Any) -> Any:
    return np.zeros(k), np.eye(len(X))[:, :k]


def _failing(X: Any, k: int, **_: Any) -> Any:
    raise scipy.sparse.linalg.ArpackNoConvergence("no", np.zeros(0), np.zeros((len(X), 0)))


@pytest.mark.parametrize("broken", [_wrong, _failing])
def test_dense_fallback(broken: Any, monkeypatch: Any, rng: Any) -> None:
    """A partial solver that is wrong or fails is detected by the residual check."""
    X = rng.standard_normal((220, 220))
    X = X + X.T
    monkeypatch.setattr(psd.scipy.sparse.linalg, "eigsh", broken)
    with counting(Counts()) as counts:
        values, _ = smallest_eigenpairs(X, 1)
    assert counts.eigendecompositions == 1
    assert values[0] == pytest.approx(np.linalg.eigvalsh(X)[0], abs=1e-10)


def test_clustered_spectrum_falls_back_or_agrees(rng: Any) -> None:
    """A large cluster at the lower end, where Lanczos steps converge slowly."""
    Z = rng.standard_normal((240, 3))
    X = Z @ Z.T - 0.01 * np.eye(240)
    values, vectors = smallest_eigenpairs(X, 1)
    assert values[0] == pytest.approx(-0.01, abs=1e-10)
    assert np.linalg.norm(X @ vectors - vectors * values) <= 1e-7


def test_images_smaller_than_the_rounding_of_their_terms_are_projected():
    """Multiplier methods shift the image; at a solution of zero only the rounding of its terms remains."""
    cone = lopro.constraints.PSDCone(2)
    image = np.array([[1e-9, 1e-16], [-1e-16, -1e-9]])
    with pytest.raises(ValueError, match="symmetric"):
        cone.project(image)
    (projected,) = cone.project_image((image,))
    np.testing.assert_allclose(projected, np.diag([1e-9, 0.0]), rtol=0, atol=1e-24)
