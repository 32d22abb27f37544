"""Every kind of linear map: NumPy's numbers, its capabilities, and its counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from support.map_kinds import KINDS, Kind

from lopro.core.arrays import to_numpy
from lopro.core.counting import Counts, counting
from lopro.errors import MissingCapabilityError
from lopro.maps import (
    Adjoint,
    Columns,
    Forward,
    LinearMap,
    Rows,
)
from lopro.maps.requests import Norms

ROWS, COLUMNS = 9, 13
DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


def random(dtype: Any, *shape: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.standard_normal(shape)
    return values.astype(dtype)


@pytest.fixture(params=DTYPES, ids=lambda dtype: np.dtype(dtype).name)
def matrix(request: pytest.FixtureRequest) -> Any:
    return random(request.param, ROWS, COLUMNS)


@pytest.fixture(params=KINDS, ids=str)
def kind(request: pytest.FixtureRequest) -> Kind:
    return request.param


@pytest.fixture
def A(kind: Kind, matrix: Any, tmp_path: Path) -> LinearMap:
    return kind.map(matrix, tmp_path)


def rounding(kind: Kind, matrix: Any) -> float:
    """Return the largest relative error of sums of a dozen terms."""
    single = matrix.dtype.itemsize <= (8 if matrix.dtype.kind == "c" else 4)
    return 2e-5 if single and not kind.wide else 1e-13


def host(block: Any) -> Any:
    return block.toarray() if scipy.sparse.issparse(block) else to_numpy(block)


def close(found: Any, reference: Any, tolerance: float) -> None:
    found = host(found)
    assert found.shape == reference.shape
    np.testing.assert_allclose(found, reference, rtol=tolerance, atol=tolerance)


def wide(matrix: Any) -> Any:
    return matrix.astype(np.complex128 if matrix.dtype.kind == "c" else np.float64)


def like(A: LinearMap) -> Any:
    """Return the NumPy dtype of the points of a map."""
    return to_numpy(A.like).dtype


@pytest.mark.parametrize("shape", [(), (1,), (3,)], ids=["vector", "one", "three"])
def test_products_and_their_counts(kind: Kind, A: LinearMap, matrix: Any, shape: Any) -> None:
    X, Y = (random(like(A), n, *shape, seed=n) for n in (COLUMNS, ROWS))
    M, tolerance, k = wide(matrix), rounding(kind, matrix), shape[0] if shape else 1
    with counting(Counts()) as counts:
        close(A.forward(kind.of(X)), M @ X, tolerance)
    expected = Counts(matvecs=k, passes=kind.passes(k), bytes_read=kind.nbytes(matrix, A))
    assert counts == expected
    with counting(Counts()) as counts:
        close(A.adjoint(kind.of(Y)), M.conj().T @ Y, tolerance)
    assert (counts.rmatvecs, counts.passes) == (k, kind.passes(k))
    assert counts.bytes_read == kind.nbytes(matrix, A)
    assert A.shape == (ROWS, COLUMNS)


def test_entries(kind: Kind, A: LinearMap, matrix: Any) -> None:
    assert A.has_columns == A.has_rows == kind.entries
    if not kind.entries:
        for ask in (lambda: A.columns([0]), lambda: A.rows([0])):
            with pytest.raises(MissingCapabilityError, match="A is an operator"):
                ask()
        return
    M, tolerance = wide(matrix), rounding(kind, matrix)
    some = np.array([5, 0, 12, 5])
    np.testing.assert_array_equal(host(A.columns(some)), M[:, some])
    np.testing.assert_array_equal(host(A.rows([8, 0, 8])), M[[8, 0, 8]])
    close(A.column_norms, np.linalg.norm(M, axis=0), tolerance)
    close(A.row_norms, np.linalg.norm(M, axis=1), tolerance)


def test_entries_are_counted(kind: Kind, A: LinearMap, matrix: Any) -> None:
    if not kind.entries:
        return
    for ask, counter, count in (
        (lambda: A.columns([3, 1]), "columns", 2),
        (lambda: A.rows([4]), "rows", 1),
    ):
        with counting(Counts()) as counts:
            ask()
        assert getattr(counts, counter) == count
        assert 0 < counts.bytes_read <= A.nbytes
        assert counts.passes == int(counts.bytes_read == A.nbytes and kind.shares)


def test_requests_share_a_pass(kind: Kind, A: LinearMap, matrix: Any) -> None:
    M, tolerance = wide(matrix), rounding(kind, matrix)
    X, Y = random(like(A), COLUMNS, 2), random(like(A), ROWS)
    requests: list[Any] = [Forward(kind.of(X)), Adjoint(kind.of(Y))]
    if kind.entries:
        requests += [Columns([7, 0]), Rows([3]), Norms(0), Norms(1)]
    with counting(Counts()) as counts:
        image, products_with_adjoint, *entries = A.read(*requests)
    if kind.shares:
        assert (counts.passes, counts.bytes_read) == (1, matrix.nbytes)
    assert (counts.matvecs, counts.rmatvecs) == (2, 1)
    close(image, M @ X, tolerance)
    close(products_with_adjoint, M.conj().T @ Y, tolerance)
    if kind.entries:
        columns, rows, lengths, heights = entries
        np.testing.assert_array_equal(host(columns), M[:, [7, 0]])
        np.testing.assert_array_equal(host(rows), M[[3]])
        close(lengths, np.linalg.norm(M, axis=0), tolerance)
        close(heights, np.linalg.norm(M, axis=1), tolerance)


def test_norms_are_computed_once(kind: Kind, A: LinearMap, matrix: Any) -> None:
    if not kind.shares:
        return
    for norms, axis in ((lambda: A.column_norms, 0), (lambda: A.row_norms, 1)):
        with counting(Counts()) as counts:
            first = norms()
        assert counts == Counts(passes=1, bytes_read=matrix.nbytes)
        close(first, np.linalg.norm(wide(matrix), axis=axis), rounding(kind, matrix))
        assert not first.flags.writeable
        with counting(Counts()) as counts:
            assert norms() is first
        assert counts == Counts()


def test_empty_requests(kind: Kind, A: LinearMap) -> None:
    assert A.read() == ()
    if not kind.entries:
        return
    with counting(Counts()) as counts:
        assert host(A.columns([])).shape == (ROWS, 0)
        assert host(A.rows([])).shape == (0, COLUMNS)
    assert counts.passes == 0


def test_indices_are_checked(kind: Kind, A: LinearMap) -> None:
    if not kind.entries:
        return
    for ask, error in (
        (lambda: A.columns([0, COLUMNS]), IndexError),
        (lambda: A.columns([-1]), IndexError),
        (lambda: A.rows([ROWS]), IndexError),
        (lambda: A.columns([0.5]), TypeError),
        (lambda: A.columns([[1]]), ValueError),
    ):
        with pytest.raises(error):
            ask()


def test_inputs_are_not_changed(kind: Kind, A: LinearMap, matrix: Any) -> None:
    kept, X, Y = matrix.copy(), random(like(A), COLUMNS), random(like(A), ROWS, 2)
    x, y, at = kind.of(X), kind.of(Y), np.array([3, 1])
    A.forward(x)
    A.adjoint(y)
    A.read(Forward(x), Adjoint(y))
    if kind.entries:
        A.read(Columns(at), Rows(at))
        # The returned arrays are the caller's: they may be overwritten.
        for block in (A.columns([0, 1]), A.rows([0, 1])):
            if isinstance(block, np.ndarray) and block.flags.writeable:
                block[:] = 7.0
        np.testing.assert_array_equal(host(A.columns([0, 1])), kept[:, [0, 1]])
    np.testing.assert_array_equal(matrix, kept)
    np.testing.assert_array_equal(to_numpy(x), X)
    np.testing.assert_array_equal(to_numpy(y), Y)
    assert at.tolist() == [3, 1]


def test_entries_that_are_not_finite_are_found(kind: Kind, matrix: Any, tmp_path: Path) -> None:
    """At once, or in the first pass; also where the vector has a zero."""
    if not kind.entries or kind.name == "dictionary":
        return
    for bad in (np.nan, np.inf):
        broken = matrix.copy()
        broken[4, 11] = bad
        y = np.ones(ROWS, dtype=matrix.dtype)
        y[4] = 0.0
        with np.errstate(all="ignore"), pytest.raises(ValueError, match="A must be finite"):
            kind.map(broken, tmp_path).adjoint(kind.of(y))


def test_the_spectrum(kind: Kind, A: LinearMap, matrix: Any) -> None:
    singular = np.linalg.svd(wide(matrix), compute_uv=False)
    tolerance = 1e-4 if rounding(kind, matrix) > 1e-6 else 1e-12
    assert A.explicit == (kind.entries and kind.name not in ("dictionary", "csr-torch"))
    assert A.largest_singular_value.value == pytest.approx(singular[0], rel=max(tolerance, 1e-5))
    if A.explicit:
        assert A.singular_range == pytest.approx((singular[0], singular[-1]), rel=tolerance)
        assert A.full_row_rank and not A.full_column_rank
        close(A.toarray(), wide(matrix), 0.0)
