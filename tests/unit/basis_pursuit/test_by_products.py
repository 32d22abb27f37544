"""Forming the matrix of an operator: when this is done, and the number of products it takes."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import numpy as np
import pytest
from scipy.sparse.linalg import LinearOperator

import lopro
from lopro.basis_pursuit.application import BasisPursuit, bpdn_problem
from lopro.basis_pursuit.operators import by_products, matrix_free
from lopro.basis_pursuit.operators.by_products import ByProducts
from lopro.errors import MissingCapabilityError
from lopro.maps import linear_map


class Watched:
    """An operator that counts its products with a matrix."""

    def __init__(self, A: Any, pause: float = 0.0) -> None:
        self.forward, self.adjoint = 0, 0

        def matvec(x: Any) -> Any:
            time.sleep(pause)
            self.forward += 1
            return A @ x.ravel()

        def rmatvec(y: Any) -> Any:
            time.sleep(pause)
            self.adjoint += 1
            return A.conj().T @ y.ravel()

        self.A = LinearOperator(A.shape, matvec=matvec, rmatvec=rmatvec, dtype=A.dtype)

    @property
    def products(self) -> int:
        return self.forward + self.adjoint


def planted(m: int, d: int, k: int, noise: float, *, dtype: Any = float) -> tuple[Any, Any, float]:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((m, d)).astype(dtype)
    if np.iscomplexobj(A):
        A += 1j * rng.standard_normal((m, d))
    e = noise * rng.standard_normal(m)
    return A, A[:, :k] @ rng.choice([-1.0, 1.0], k) + e, float(np.linalg.norm(e))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
@pytest.mark.parametrize(("m", "d"), [(7, 30), (30, 7), (5, 5)])
def test_an_operator_is_read_by_its_short_side(m: int, d: int, dtype: Any) -> None:
    A = planted(m, d, 2, 0.0, dtype=dtype)[0]
    watched = Watched(A)
    found = linear_map(watched.A).toarray()
    np.testing.assert_array_equal(found, A)
    assert found.dtype == dtype and not found.flags.writeable
    assert (watched.forward, watched.adjoint) == ((0, m) if m < d else (d, 0))


@pytest.mark.parametrize(("m", "d"), [(70, 150), (150, 70)])
def test_blocks_are_read_in_few_passes(m: int, d: int) -> None:
    A = planted(m, d, 2, 0.0)[0] + 1j

    class Blocks:
        shape, dtype, products_made = A.shape, A.dtype, 0

        def matmat(self, X: Any) -> Any:
            self.products_made += 1
            return A @ X

        def rmatmat(self, Y: Any) -> Any:
            self.products_made += 1
            return A.conj().T @ Y

        matvec, rmatvec = matmat, rmatmat

    blocks = Blocks()
    known = linear_map(blocks)
    np.testing.assert_allclose(known.toarray(), A, rtol=1e-15)
    assert blocks.products_made == 2
    known.toarray()
    assert blocks.products_made == 2  # the matrix is kept: no further products


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize(("m", "d"), [(40, 120), (120, 40)])
def test_few_rows_or_columns_are_read_at_once(m: int, d: int, dtype: Any) -> None:
    A, y, sigma = planted(m, d, 3, 0.1, dtype=dtype)
    watched, expected = Watched(A), lopro.bpdn(A, y, sigma, tol=1e-9)
    result = lopro.bpdn(watched.A, y, sigma, tol=1e-9)
    assert result.success and "ByProducts" in result.method
    assert result.fun == pytest.approx(expected.fun, rel=2e-9)
    # One for each row or column, and one to check the answer; products with the copy are not counted.
    assert watched.products <= min(m, d) + 2
    counts = (result.counts, result.certificate_counts)
    assert sum(c.matvecs for c in counts) == watched.forward
    assert sum(c.rmatvecs for c in counts) == watched.adjoint


def test_easy_problems_are_solved_without_forming_the_matrix() -> None:
    A, y, sigma = planted(400, 1000, 10, 0.3)
    watched = Watched(A)
    assert lopro.bpdn(watched.A, y, sigma).success
    assert watched.products < 100


def test_at_most_twice_the_products_that_forming_the_matrix_takes() -> None:
    """Nearly as many nonzeros as rows: a matrix-free method takes thousands of products."""
    A, y, sigma = planted(100, 400, 25, 0.05)
    watched = Watched(A)
    result = lopro.bpdn(watched.A, y, 0.1 * sigma, tol=1e-8)
    assert result.success
    assert 100 < watched.products <= 205
    expected = lopro.bpdn(A, y, 0.1 * sigma, tol=1e-8)
    assert result.fun == pytest.approx(expected.fun, rel=2e-8)


def test_a_slow_matrix_free_run_ends_before_it_costs_as_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    A, y, sigma = planted(400, 900, 100, 0.05)
    watched = Watched(A)
    assert lopro.bpdn(watched.A, y, 0.1 * sigma).success
    assert 400 + 2 * 64 <= watched.products <= 400 + 2 * 84 + 5


def test_several_right_hand_sides_form_the_matrix_once() -> None:
    A, y, sigma = planted(30, 90, 3, 0.1)
    watched = Watched(A)
    results = lopro.bpdn(watched.A, np.stack([y, -y, 2.0 * y], axis=1), [sigma, sigma, sigma])
    assert all(r.success for r in results)
    assert watched.products <= 30 + 3 * 2


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_equations_through_operators(dtype: Any) -> None:
    A, y, _ = planted(80, 240, 30, 0.0, dtype=dtype)
    watched = Watched(A)
    result = lopro.bpdn(watched.A, y, 0.0)
    assert result.success
    np.testing.assert_allclose(A @ result.x, y, atol=1e-9)


def test_signs_and_weights_are_respected() -> None:
    A, y, sigma = planted(30, 80, 4, 0.3)
    y = A[:, :4] @ np.ones(4) + 0.01 * y
    w = np.linspace(0.5, 2.0, 80)
    expected = lopro.bpdn(A, y, sigma, weights=w, nonneg=True, tol=1e-8)
    result = lopro.bpdn(Watched(A).A, y, sigma, weights=w, nonneg=True, tol=1e-8)
    assert result.success and result.x.min() >= 0.0
    assert result.fun == pytest.approx(expected.fun, rel=2e-8)


def test_points_are_checked_with_the_operator_itself() -> None:
    """A wrong adjoint gives the rows of another matrix, whose solutions are not accepted as feasible."""
    A, y, sigma = planted(20, 60, 2, 0.1)
    other = 1.5 * A
    mismatched = LinearOperator(
        A.shape, matvec=lambda x: A @ x, rmatvec=lambda r: other.T @ r, dtype=float
    )
    result = lopro.bpdn(mismatched, y, sigma, time_limit=5.0)
    assert not result.success or np.linalg.norm(A @ result.x - y) <= sigma * (1.0 + 1e-6)


def test_forming_the_matrix_respects_the_time_limit() -> None:
    A, y, sigma = planted(60, 200, 5, 0.1)
    start = time.perf_counter()
    result = lopro.bpdn(Watched(A, pause=0.02).A, y, sigma, time_limit=0.3)
    assert time.perf_counter() - start < 0.3 * 1.2 + 0.5
    assert not result.success and result.status.name == "TIME_LIMIT"


def test_solutions_with_at_most_one_nonzero_do_not_form_the_matrix() -> None:
    A, y, _ = planted(40, 120, 3, 0.1)
    length = float(np.linalg.norm(y))
    for sigma, most in ((1.1 * length, 3), (0.999 * length, 6)):
        watched = Watched(A)
        assert lopro.bpdn(watched.A, y, sigma).success
        assert watched.products <= most


def test_large_matrices_are_not_formed(monkeypatch: pytest.MonkeyPatch) -> None:
    A, y, sigma = planted(20, 60, 2, 0.1)
    problem = bpdn_problem(Watched(A).A, y, sigma)
    assert repr(BasisPursuit().choose(problem)) == "ByProducts()"

    def limit(read: int = 2000, **limits: int) -> None:
        settings = dataclasses.replace(by_products.Settings(entries=1200), **limits)
        monkeypatch.setattr(by_products, "SETTINGS", settings)
        monkeypatch.setattr(matrix_free, "SETTINGS", matrix_free.Settings(columns=read))

    limit(entries=1199)
    with pytest.raises(
        MissingCapabilityError, match="at most 2000 rows or columns and 1e\\+03 entries"
    ):
        ByProducts().check(problem)
    assert repr(BasisPursuit().choose(problem)).startswith("MatrixFree")
    limit(read=19)
    assert repr(BasisPursuit().choose(problem)).startswith("MatrixFree")
    limit(read=20)
    assert repr(BasisPursuit().choose(problem)) == "ByProducts()"
    limit(read_turning=19)
    turning = bpdn_problem(Watched(A + 0j).A, y, sigma)
    assert repr(BasisPursuit().choose(turning)).startswith("MatrixFree")


def test_equations_start_from_the_most_correlated_columns() -> None:
    """Solving a relaxed problem first took 53 products here."""
    rng = np.random.default_rng(3)
    A, x = rng.standard_normal((100, 300)) / 10.0, np.zeros(300)
    x[rng.choice(300, 10, replace=False)] = rng.standard_normal(10)
    watched = Watched(A)
    assert lopro.bpdn(watched.A, A @ x, 0.0).success
    assert watched.products <= 35
