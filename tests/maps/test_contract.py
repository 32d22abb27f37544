"""Every kind of linear map gives NumPy's numbers, says what it can do, and counts what it reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from map_kinds import KINDS, Kind

from lopro.core.arrays import to_numpy
from lopro.core.counting import Counts, counting
from lopro.errors import MissingCapabilityError
from lopro.maps import (
    Adjoint,
    ColumnNorms,
    Columns,
    Correlate,
    Correlations,
    Forward,
    Gram,
    LinearMap,
    RowNorms,
    Rows,
    Selection,
)

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
    """The largest relative error that sums of a dozen terms may have."""
    single = matrix.dtype.itemsize <= (8 if matrix.dtype.kind == "c" else 4)
    return 2e-5 if single and not kind.wide else 1e-13


def host(block: Any) -> Any:
    return block.toarray() if scipy.sparse.issparse(block) else to_numpy(block)


def close(found: Any, wanted: Any, tolerance: float) -> None:
    found = host(found)
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


def wide(matrix: Any) -> Any:
    return matrix.astype(np.complex128 if matrix.dtype.kind == "c" else np.float64)


def like(A: LinearMap) -> Any:
    """The NumPy dtype of the points of a map."""
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


def naive(M: Any, Y: Any, at: Any, largest: int, weights: Any, signed: bool, above: float) -> Any:
    """What is kept of the correlations, in the plainest way."""
    g = M.conj().T @ Y
    sizes = (g if signed else np.abs(g)) / weights[:, None]
    maximum = sizes.max(axis=0)
    others = np.setdiff1d(np.arange(len(g)), at)
    indices = np.stack(
        [others[np.argsort(-sizes[others, k], kind="stable")][:largest] for k in range(Y.shape[1])],
        axis=1,
    )
    count = (sizes[others] > above).sum(axis=0)
    return g[at], indices, np.take_along_axis(g, indices, axis=0), maximum, count


@pytest.mark.parametrize("signed", [False, True], ids=["modulus", "signed"])
def test_correlations(kind: Kind, A: LinearMap, matrix: Any, signed: bool) -> None:
    if signed and matrix.dtype.kind == "c":
        with pytest.raises(TypeError, match="signed"):
            A.correlations(kind.of(random(like(A), ROWS)), signed=True)
        return
    Y, at = random(like(A), ROWS, 3, seed=1), np.array([7, 2, 12, 2])
    for largest, weights in ((4, None), (4, np.linspace(0.5, 2.0, COLUMNS)), (0, None), (99, None)):
        options: dict[str, Any] = {"at": at, "largest": largest, "signed": signed, "above": 2.5}
        with counting(Counts()) as counts:
            found = A.correlations(kind.of(Y), weights=weights, **options)
        assert (counts.rmatvecs, counts.passes) == (3, kind.passes(3))
        assert counts.bytes_read == kind.nbytes(matrix, A)
        units = np.ones(COLUMNS) if weights is None else weights
        wanted = naive(wide(matrix), Y, at, largest, units, signed, 2.5)
        same_correlations(found, wanted, rounding(kind, matrix))


def same_correlations(found: Correlations, wanted: Any, tolerance: float) -> None:
    close(found.at, wanted[0], tolerance)
    np.testing.assert_array_equal(host(found.indices), wanted[1])
    close(found.values, wanted[2], tolerance)
    close(found.maximum, wanted[3], tolerance)
    np.testing.assert_array_equal(host(found.above), wanted[4])
    here = found.on_host()
    for part in ("at", "indices", "values", "maximum", "above"):
        assert isinstance(getattr(here, part), np.ndarray)
        np.testing.assert_array_equal(getattr(here, part), host(getattr(found, part)))


def test_one_dual_point_is_a_column_of_several(kind: Kind, A: LinearMap) -> None:
    Y = random(like(A), ROWS, 3, seed=1)
    several = A.correlations(kind.of(Y), at=[5], largest=2, above=1.0).on_host()
    single = A.correlations(kind.of(Y[:, 1]), at=[5], largest=2, above=1.0).on_host()
    np.testing.assert_array_equal(single.indices, several.indices[:, 1])
    np.testing.assert_allclose(single.values, several.values[:, 1], rtol=1e-5)
    np.testing.assert_allclose(single.at, several.at[:, 1], rtol=1e-5)
    assert single.maximum == pytest.approx(several.maximum[1], rel=1e-5)
    assert (np.ndim(single.maximum), single.above) == (0, several.above[1])


def test_ties_are_in_the_order_of_the_columns(kind: Kind, tmp_path: Path) -> None:
    M = np.zeros((ROWS, COLUMNS))
    M[0, [1, 4, 8, 9, 12]] = [-2.0, 2.0, -2.0, 5.0, 2.0]
    M[1, :] = 1.0
    A = kind.map(M, tmp_path)
    first = np.zeros(ROWS)
    first[0] = 1.0
    found = A.correlations(kind.of(first), largest=4).on_host()
    assert found.indices.tolist() == [9, 1, 4, 8]
    flat = A.correlations(kind.of(np.ones(ROWS) - first), largest=3).on_host()
    assert flat.indices.tolist() == [0, 1, 2]


def test_entries(kind: Kind, A: LinearMap, matrix: Any) -> None:
    assert A.has_columns == A.has_rows == kind.entries
    if not kind.entries:
        for ask in (lambda: A.columns([0]), lambda: A.rows([0]), lambda: A.gram([0])):
            with pytest.raises(MissingCapabilityError, match="A is an operator"):
                ask()
        return
    M, tolerance = wide(matrix), rounding(kind, matrix)
    some, others = np.array([5, 0, 12, 5]), [1, 2]
    np.testing.assert_array_equal(host(A.columns(some)), M[:, some])
    np.testing.assert_array_equal(host(A.rows([8, 0, 8])), M[[8, 0, 8]])
    # Gram matrices are in double precision whatever the columns are.
    close(A.gram(some), M[:, some].conj().T @ M[:, some], 1e-13)
    close(A.gram(some, others), M[:, some].conj().T @ M[:, others], 1e-13)
    assert host(A.gram(some)).dtype == M.dtype
    close(A.column_norms, np.linalg.norm(M, axis=0), tolerance)
    close(A.row_norms, np.linalg.norm(M, axis=1), tolerance)


def test_entries_are_counted(kind: Kind, A: LinearMap, matrix: Any) -> None:
    if not kind.entries:
        return
    for ask, counter, count in (
        (lambda: A.columns([3, 1]), "columns", 2),
        (lambda: A.rows([4]), "rows", 1),
        (lambda: A.gram([3], [1, 2]), "columns", 3),
        (lambda: A.gram([3, 1]), "columns", 2),
    ):
        with counting(Counts()) as counts:
            ask()
        assert getattr(counts, counter) == count
        assert 0 < counts.bytes_read <= A.nbytes
        assert counts.passes == int(counts.bytes_read == A.nbytes and kind.shares)


def test_requests_share_a_pass(kind: Kind, A: LinearMap, matrix: Any) -> None:
    M, tolerance = wide(matrix), rounding(kind, matrix)
    X, Y = random(like(A), COLUMNS, 2), random(like(A), ROWS)
    requests: list[Any] = [
        Forward(kind.of(X)),
        Adjoint(kind.of(Y)),
        Correlate(kind.of(Y), Selection(largest=2)),
    ]
    if kind.entries:
        requests += [Columns([7, 0]), Rows([3]), Gram([1]), ColumnNorms(), RowNorms()]
    with counting(Counts()) as counts:
        image, pulled, few, *entries = A.read(*requests)
    if kind.shares:
        assert (counts.passes, counts.bytes_read) == (1, matrix.nbytes)
    assert (counts.matvecs, counts.rmatvecs) == (2, 2)
    close(image, M @ X, tolerance)
    close(pulled, M.conj().T @ Y, tolerance)
    assert few.on_host().maximum == pytest.approx(np.abs(M.conj().T @ Y).max(), rel=tolerance)
    if kind.entries:
        columns, rows, gram, lengths, heights = entries
        np.testing.assert_array_equal(host(columns), M[:, [7, 0]])
        np.testing.assert_array_equal(host(rows), M[[3]])
        close(gram, M[:, [1]].conj().T @ M[:, [1]], 1e-13)
        close(lengths, np.linalg.norm(M, axis=0), tolerance)
        close(heights, np.linalg.norm(M, axis=1), tolerance)
        with counting(Counts()) as counts:
            close(A.column_norms, np.linalg.norm(M, axis=0), tolerance)
            close(A.row_norms, np.linalg.norm(M, axis=1), tolerance)
        if kind.shares:
            assert counts == Counts(), "norms are kept"


def test_nothing_is_asked_for(kind: Kind, A: LinearMap) -> None:
    assert A.read() == ()
    if not kind.entries:
        return
    with counting(Counts()) as counts:
        assert host(A.columns([])).shape == (ROWS, 0)
        assert host(A.rows([])).shape == (0, COLUMNS)
        assert host(A.gram([])).shape == (0, 0)
        assert host(A.gram([], [1])).shape == (0, 1)
    assert counts.passes == 0
    found = A.correlations(kind.of(random(like(A), ROWS)))
    assert host(found.at).shape == host(found.indices).shape == host(found.values).shape == (0,)


def test_indices_are_checked(kind: Kind, A: LinearMap) -> None:
    if not kind.entries:
        return
    for ask, error in (
        (lambda: A.columns([0, COLUMNS]), IndexError),
        (lambda: A.columns([-1]), IndexError),
        (lambda: A.rows([ROWS]), IndexError),
        (lambda: A.columns([0.5]), TypeError),
        (lambda: A.columns([[1]]), ValueError),
        (lambda: A.correlations(kind.of(random(like(A), ROWS)), at=[COLUMNS]), IndexError),
        (lambda: A.correlations(kind.of(random(like(A), ROWS)), weights=np.ones(2)), ValueError),
        (lambda: A.correlations(kind.of(random(like(A), ROWS)), largest=-1), ValueError),
    ):
        with pytest.raises(error):
            ask()


def test_nothing_is_changed(kind: Kind, A: LinearMap, matrix: Any) -> None:
    kept, X, Y = matrix.copy(), random(like(A), COLUMNS), random(like(A), ROWS, 2)
    x, y, at = kind.of(X), kind.of(Y), np.array([3, 1])
    weights = np.linspace(1.0, 2.0, COLUMNS)
    A.forward(x)
    A.adjoint(y)
    A.correlations(y, at=at, largest=3, weights=weights)
    if kind.entries:
        # What comes back belongs to the caller.
        for block in (A.columns([0, 1]), A.rows([0, 1])):
            if isinstance(block, np.ndarray) and block.flags.writeable:
                block[:] = 7.0
        np.testing.assert_array_equal(host(A.columns([0, 1])), kept[:, [0, 1]])
    np.testing.assert_array_equal(matrix, kept)
    np.testing.assert_array_equal(to_numpy(x), X)
    np.testing.assert_array_equal(to_numpy(y), Y)
    assert at.tolist() == [3, 1]
    np.testing.assert_array_equal(weights, np.linspace(1.0, 2.0, COLUMNS))


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
    assert A.explicit == (kind.entries and kind.name != "dictionary")
    assert A.largest_singular_value.value == pytest.approx(singular[0], rel=max(tolerance, 1e-5))
    if A.explicit:
        assert A.singular_range == pytest.approx((singular[0], singular[-1]), rel=tolerance)
        assert A.full_row_rank and not A.full_column_rank
        close(A.toarray(), wide(matrix), 0.0)
