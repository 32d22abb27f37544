"""Linear maps of every kind give the products, norms and counts of the matrix they stand for."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg
from support.catalogue_objectives import LIBRARIES, Library

from lopro.core.arrays import inner, namespace, norm, to_numpy
from lopro.core.counting import Counts, counting
from lopro.errors import MissingCapabilityError
from lopro.functions import Source
from lopro.maps import LinearMap, arrays, linear_map, settings, spectrum
from lopro.maps.spectrum import estimate_norm

REAL = np.random.default_rng(0).standard_normal((5, 3))
COMPLEX = REAL + 1j * np.random.default_rng(1).standard_normal((5, 3))


class BareOperator:
    """An operator with the interface of pylops: shape, dtype, matvec and rmatvec, without a base class."""

    def __init__(self, A: np.ndarray) -> None:
        self.A, self.shape, self.dtype = A, A.shape, A.dtype

    def matvec(self, x: np.ndarray) -> np.ndarray:
        return self.A @ x

    def rmatvec(self, y: np.ndarray) -> np.ndarray:
        return self.A.conj().T @ y


class UntypedOperator(BareOperator):
    """An operator without a dtype."""

    def __init__(self, A: np.ndarray) -> None:
        self.A, self.shape = A, A.shape


def _nested(A: np.ndarray) -> LinearMap:
    inside = linear_map(A)
    assert inside.full_column_rank
    return linear_map(inside, "B")


EXPLICIT = {
    "dense": np.array,
    "fortran": np.asfortranarray,
    "list": lambda A: A.tolist(),
    "strided": lambda A: np.repeat(A, 2, axis=0)[::2],
    "reversed": lambda A: np.ascontiguousarray(A[::-1])[::-1],
    "matrix-class": lambda A: np.asarray(A).view(np.matrix),
    "csr": scipy.sparse.csr_array,
    "csc": scipy.sparse.csc_array,
    "coo": scipy.sparse.coo_array,
    "csr-matrix": scipy.sparse.csr_matrix,
    "map": linear_map,
    "nested": _nested,
}
OPERATORS = {
    "LinearOperator": scipy.sparse.linalg.aslinearoperator,
    "bare": BareOperator,
    "untyped": UntypedOperator,
}


@pytest.fixture(params=[REAL, REAL.T, COMPLEX, COMPLEX.T], ids=["tall", "wide", "ctall", "cwide"])
def matrix(request: pytest.FixtureRequest) -> np.ndarray:
    return np.array(request.param)


def _kinds(kinds: dict) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("make", kinds.values(), ids=kinds.keys())


def _vector(size: int, like: np.ndarray, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(size)
    return x + 1j * rng.standard_normal(size) if np.iscomplexobj(like) else x


@_kinds(EXPLICIT | OPERATORS)
def test_products(matrix, make):
    if make is _nested and matrix.shape[0] < matrix.shape[1]:
        matrix = matrix.T
    A = linear_map(make(matrix))
    m, n = matrix.shape
    x, y = _vector(n, matrix, 2), _vector(m, matrix, 3)
    assert A.shape == (m, n)
    np.testing.assert_allclose(A.forward(x), matrix @ x, rtol=1e-14)
    np.testing.assert_allclose(A.adjoint(y), matrix.conj().T @ y, rtol=1e-14)
    assert type(A.forward(x)) is np.ndarray
    assert inner(A.forward(x), y) == pytest.approx(inner(x, A.adjoint(y)), rel=1e-12)
    np.testing.assert_allclose(A.toarray(), matrix, rtol=1e-14)
    assert str(A.shape) in repr(A)


@_kinds(EXPLICIT | OPERATORS)
def test_points_are_of_the_dtype_of_the_map(make):
    for dtype in (np.float32, np.float64, np.complex64, np.complex128):
        A = linear_map(make(REAL.astype(dtype)))
        if make not in (EXPLICIT["list"], UntypedOperator):
            assert A.like.dtype == dtype
            assert A.forward(np.ones(3, dtype)).dtype == dtype
            assert A.adjoint(np.ones(5, dtype)).dtype == dtype


@pytest.mark.parametrize("library", LIBRARIES, ids=str)
@pytest.mark.parametrize("wrap", [None, scipy.sparse.csr_array, BareOperator])
@pytest.mark.parametrize("data", [REAL, COMPLEX], ids=["real", "complex"])
def test_points_of_every_library(library: Library, wrap, data):
    # Sparse matrices and operators use NumPy; for points of another library products are in that library.
    A = linear_map(library.of(data) if wrap is None else wrap(to_numpy(library.of(data))))
    x, y = (library.of(_vector(size, data, 4)) for size in (3, 5))
    for product, expected, like in (
        (A.forward(x), data @ to_numpy(x), x),
        (A.adjoint(y), data.conj().T @ to_numpy(y), y),
    ):
        assert namespace(product) is namespace(like)
        assert product.dtype == like.dtype
        np.testing.assert_allclose(to_numpy(product), expected, rtol=10 * library.tolerance)


@pytest.mark.parametrize("library", LIBRARIES, ids=str)
@pytest.mark.parametrize("data", [REAL, REAL.T, COMPLEX.T], ids=["tall", "wide", "cwide"])
def test_spectrum_in_every_library(library: Library, data):
    A = linear_map(library.of(data))
    singular = np.linalg.svd(data, compute_uv=False)
    values, vectors = A.left_spectrum
    tolerance = 1e-4 if library.single else 1e-12
    np.testing.assert_allclose(to_numpy(values), np.sort(singular**2), rtol=tolerance)
    U = to_numpy(vectors)
    np.testing.assert_allclose(U.conj().T @ U, np.eye(3), atol=tolerance)
    np.testing.assert_allclose((U * to_numpy(values)) @ U.conj().T, data @ data.conj().T, atol=1e-3)
    assert A.singular_range == pytest.approx((singular[0], singular[-1]), rel=tolerance)
    np.testing.assert_allclose(
        to_numpy(A.row_norms), np.linalg.norm(data, axis=1), rtol=10 * library.tolerance
    )


def test_products_are_counted():
    A = linear_map(REAL)
    with counting(Counts()) as counts:
        A.forward(np.ones(3))
        A.forward(np.ones(3))
        A.adjoint(np.ones(5))
        A.pull_through_rows(np.array([0]), np.ones(3), lambda z: z)
    assert (counts.matvecs, counts.rmatvecs, counts.factorizations) == (2, 1, 0)
    with counting(counts):
        assert A.full_column_rank
        assert A.full_column_rank
    assert counts.factorizations == 1, "the spectrum is computed once"


def test_the_matrix_of_an_operator_takes_one_product_for_each_column():
    with counting(Counts()) as counts:
        linear_map(BareOperator(REAL)).toarray()
    assert counts.matvecs == 3


@_kinds(EXPLICIT)
def test_rows(make):
    A = linear_map(make(COMPLEX))
    rows, x = np.array([3, 0, 3]), _vector(3, COMPLEX, 5)
    R = COMPLEX[rows]
    pulled = A.pull_through_rows(rows, x, lambda z: 2.0 * z)
    np.testing.assert_allclose(pulled, 2.0 * R.conj().T @ (R @ x), rtol=1e-13)
    np.testing.assert_allclose(A.row_norms, np.linalg.norm(COMPLEX, axis=1), rtol=1e-14)


def test_duplicate_entries_are_summed_and_the_original_is_unchanged():
    pieces = scipy.sparse.csr_array(
        (np.array([1.0, 2.0, 5.0]), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2)
    )
    A = linear_map(pieces)
    np.testing.assert_array_equal(A.row_norms, [3.0, 5.0])
    assert pieces.nnz == 3


def test_data_are_neither_copied_nor_overwritten():
    for data in (REAL.copy(), scipy.sparse.csr_array(REAL)):
        A = linear_map(data)
        assert A.source is data
        A.forward(np.ones(3))
        A.adjoint(np.ones(5))
        assert A.singular_range[0] > 0.0
        np.testing.assert_array_equal(A.toarray(), REAL)


def test_ranks():
    assert linear_map(REAL).full_column_rank
    assert not linear_map(REAL).full_row_rank
    assert linear_map(REAL.T).full_row_rank
    deficient = np.vstack([REAL.T, REAL.T[0] + REAL.T[1]])
    A = linear_map(deficient)
    assert not A.full_row_rank
    assert not A.full_column_rank
    assert A.left_spectrum[0].shape == (3,)
    singular = np.linalg.svd(deficient, compute_uv=False)
    assert A.singular_range == pytest.approx((singular[0], singular[2]))
    zero = linear_map(np.zeros((2, 3)))
    assert zero.singular_range == (0.0, 0.0)
    assert zero.smallest_singular_value is None


def test_small_singular_values_keep_their_digits():
    # Through A A' the smallest one would be lost: its square is below rounding.
    rng = np.random.default_rng(6)
    U, V = (np.linalg.qr(rng.standard_normal((n, 4)))[0] for n in (4, 7))
    A = linear_map(U @ np.diag([1.0, 1e-3, 1e-6, 1e-9]) @ V.T)
    assert A.full_row_rank
    assert A.singular_range[1] == pytest.approx(1e-9, rel=1e-5)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_extreme_singular_values_bound_the_map(scale):
    A = linear_map(scale * REAL)
    largest, smallest = A.largest_singular_value, A.smallest_singular_value
    assert largest.source is smallest.source is Source.DERIVED
    _, _, V = np.linalg.svd(A.matrix)
    for x in V:
        product = norm(A.forward(x))
        assert smallest.value * norm(x) <= product * (1 + 1e-15)
        assert product <= largest.value * norm(x) * (1 + 1e-15)
    assert linear_map(REAL.T).smallest_singular_value is None


@pytest.mark.parametrize("data", [REAL, COMPLEX, np.zeros((2, 2)), np.ones((1, 1)), np.eye(6)])
def test_norm_of_an_operator_is_an_estimate(data):
    estimate = linear_map(BareOperator(data)).largest_singular_value
    assert estimate.source is Source.ESTIMATED
    assert estimate.value == pytest.approx(np.linalg.norm(data, 2), rel=1e-5, abs=1e-12)


def test_norm_estimate_of_a_clustered_spectrum():
    values = np.linspace(0.9, 1.0, 400) ** 2
    found = estimate_norm(lambda x: values * x, lambda y: values * y, np.ones(400))
    assert found == pytest.approx(1.0, rel=1e-3)
    assert found >= 1.0 - 1e-6


@pytest.mark.parametrize("seed", range(4))
def test_the_norm_estimate_errs_upwards(seed):
    """The Ritz value is never above the norm; with its residual added, it is not below either."""
    A = np.random.default_rng(seed).standard_normal((40, 60))
    found = estimate_norm(lambda x: A @ x, lambda y: A.T @ y, np.ones(60))
    assert 0.0 <= found / np.linalg.norm(A, 2) - 1.0 <= 1e-6
    # For a spectrum without a gap at the top the estimate has not converged, which the residual shows.
    values = np.linspace(0.0, 1.0, 2000)
    start = np.random.default_rng(seed).standard_normal(2000)
    found = estimate_norm(lambda x: values * x, lambda y: values * y, start)
    assert 1.0 <= found <= 1.01


def test_the_spectrum_of_a_very_large_matrix_is_not_computed(monkeypatch):
    monkeypatch.setattr(spectrum, "SETTINGS", spectrum.Settings(exact_work=10.0))
    A = linear_map(REAL)
    with counting(Counts()) as counts:
        assert A.largest_singular_value.source is Source.ESTIMATED
        assert A.smallest_singular_value is None
    assert counts.factorizations == 0
    assert counts.matvecs > 0


def test_gram():
    for make in (np.array, scipy.sparse.csr_array):
        np.testing.assert_allclose(linear_map(make(COMPLEX)).left_gram, COMPLEX @ COMPLEX.conj().T)


def test_an_operator_has_no_entries():
    A = linear_map(BareOperator(REAL), "Phi")
    assert not A.explicit
    for ask in (
        lambda: A.left_gram,
        lambda: A.left_spectrum,
        lambda: A.row_norms,
        lambda: A.pull_through_rows(np.array([0]), np.ones(3), lambda z: z),
    ):
        with pytest.raises(MissingCapabilityError, match="Phi is an operator"):
            ask()


def test_an_operator_without_adjoint_is_refused():
    one_way = scipy.sparse.linalg.LinearOperator((2, 2), matvec=lambda x: x, dtype=np.float64)
    with pytest.raises(MissingCapabilityError, match=r"Phi.*rmatvec"):
        linear_map(one_way, "Phi").adjoint(np.ones(2))


def test_known_properties_are_kept():
    A = linear_map(REAL)
    assert math.isfinite(A.singular_range[0])
    with counting(Counts()) as counts:
        assert linear_map(A, "B").singular_range == A.singular_range
    assert counts.factorizations == 0
    assert A.name == "A"


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_large_matrices_are_processed_in_slabs_of_rows(
    dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((11, 7)).astype(dtype)
    if np.iscomplexobj(matrix):
        matrix += 1j * rng.standard_normal((11, 7))
    monkeypatch.setattr(arrays, "SETTINGS", settings.Settings(slab_bytes=0))
    monkeypatch.setattr(arrays, "_SLAB", 3 * 7)  # three rows
    A = linear_map(matrix)
    x, y = rng.standard_normal(7).astype(dtype), rng.standard_normal(11).astype(dtype)
    np.testing.assert_allclose(A.forward(x), matrix @ x, rtol=1e-13)
    np.testing.assert_allclose(A.adjoint(y), matrix.conj().T @ y, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("of", ["forward", "adjoint", "zeros", "matrix"])
def test_entries_of_a_large_matrix_are_checked_in_its_first_product(
    of: str, bad: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    matrix = np.ones((5, 4))
    matrix[3, 2] = bad
    with pytest.raises(ValueError, match="A must be finite"):
        linear_map(matrix)
    monkeypatch.setattr(arrays, "SETTINGS", settings.Settings(many_entries=1))
    A = linear_map(matrix)
    ask: dict[str, Callable[[], Any]] = {
        "forward": lambda: A.forward(np.ones(4)),
        "adjoint": lambda: A.adjoint(np.ones(5)),
        # The entry need not affect this product.
        "zeros": lambda: A.adjoint(np.array([1.0, 1.0, 1.0, 0.0, 1.0])),
        "matrix": lambda: A.matrix,
    }
    with pytest.raises(ValueError, match="A must be finite"):
        ask[of]()


def test_a_large_product_that_overflows_is_no_error_of_the_matrix(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(arrays, "SETTINGS", settings.Settings(many_entries=1))
    with np.errstate(over="ignore"):
        assert np.isinf(linear_map(np.full((2, 2), 1e200)).adjoint(np.full(2, 1e200))).all()
