"""Stored matrices: what is read and in which order, the accuracy of sums, and memory."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.map_kinds import Sliced, memmap, npy

from lopro.core.counting import Counts, counting
from lopro.core.deadline import Deadline, OutOfTime, using_clock
from lopro.maps import (
    Adjoint,
    Columns,
    Forward,
    MemmapMap,
    NumPyMap,
    Rows,
    StoredMap,
    called_between_blocks,
    linear_map,
)
from lopro.maps.grid import Grid
from lopro.maps.spectrum import Settings
from lopro.maps.stored import chunks_of

RNG = np.random.default_rng(0)
M = RNG.standard_normal((11, 14))


class Watched(Sliced):
    """A matrix that records the blocks that are read."""

    def __init__(self, matrix: Any) -> None:
        super().__init__(matrix)
        self.seen: list[tuple[int, int, int, int]] = []

    def __getitem__(self, place: Any) -> Any:
        rows, columns = place
        self.seen.append((rows.start, rows.stop, columns.start, columns.stop))
        return super().__getitem__(place)


SHAPES = [(1, 14), (11, 1), (1, 1), (2, 3), (4, 14), (11, 5), (7, 9), (100, 100), (3, 100)]


@pytest.mark.parametrize("chunks", SHAPES, ids=str)
@pytest.mark.parametrize("block", [1, 40, 300, 10**6])
def test_any_chunks_give_the_same_numbers(chunks: tuple[int, int], block: int) -> None:
    source = Watched(M)
    A = StoredMap(source, chunks=chunks, block_bytes=block)
    y, x, at = RNG.standard_normal((11, 2)), RNG.standard_normal(14), np.array([13, 0, 6])
    requests = (Adjoint(y), Forward(x), Columns(at), Rows([10, 0]))
    with counting(Counts()) as counts:
        found, image, columns, rows = A.read(*requests)
    assert (counts.passes, counts.bytes_read) == (1, M.nbytes)
    np.testing.assert_allclose(found, M.T @ y, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(image, M @ x, rtol=1e-12)
    np.testing.assert_array_equal(columns, M[:, at])
    np.testing.assert_array_equal(rows, M[[10, 0]])
    # Every entry was read once, in whole chunks: a block ends where a chunk does, or the matrix.
    touched = np.zeros(M.shape, dtype=int)
    for top, bottom, left, right in source.seen:
        touched[top:bottom, left:right] += 1
        assert top % chunks[0] == left % chunks[1] == 0
        assert bottom % chunks[0] == 0 or bottom == 11
        assert right % chunks[1] == 0 or right == 14
    assert (touched == 1).all()


def in_order(seen: list[Any], order: list[Any]) -> None:
    """Two threads read: the next block may be there before the present one."""
    places = [order.index(block) for block in seen]
    assert sorted(places) == list(range(len(order)))
    assert all(abs(place - i) <= 1 for i, place in enumerate(places))


def test_blocks_are_as_large_as_allowed_and_in_the_order_of_storage() -> None:
    rows = StoredMap(Watched(M), block_bytes=3 * M[0].nbytes)
    rows.adjoint(np.ones(11))
    in_order(rows.source.seen, [(0, 3, 0, 14), (3, 6, 0, 14), (6, 9, 0, 14), (9, 11, 0, 14)])
    columns = StoredMap(Watched(M), chunks=(11, 1), block_bytes=5 * M[:, 0].nbytes)
    columns.adjoint(np.ones(11))
    in_order(columns.source.seen, [(0, 11, 0, 5), (0, 11, 5, 10), (0, 11, 10, 14)])
    # Bands of columns from top to bottom: the correlations of one band after the other are complete.
    tiles = StoredMap(Watched(M), chunks=(4, 7), block_bytes=1)
    tiles.adjoint(np.ones(11))
    order = [(top, min(top + 4, 11), left, left + 7) for left in (0, 7) for top in (0, 4, 8)]
    in_order(tiles.source.seen, order)


def test_only_what_is_needed_is_read() -> None:
    itemsize = M.itemsize
    A = StoredMap(Watched(M), chunks=(11, 2), block_bytes=1)
    for ask, bands in (
        (lambda: A.columns([3, 2, 13]), 2),
        (lambda: A.forward(np.eye(14)[5]), 1),
        (lambda: A.forward(np.eye(14)[:, [0, 13]]), 2),
        (lambda: A.read(Columns([0]), Columns([1]), Forward(np.eye(14)[3])), 2),
    ):
        A.source.seen.clear()
        with counting(Counts()) as counts:
            ask()
        assert len(A.source.seen) == bands
        assert (counts.passes, counts.bytes_read) == (0, bands * 11 * 2 * itemsize)
    B = StoredMap(Watched(M), chunks=(2, 14), block_bytes=1)
    with counting(Counts()) as counts:
        np.testing.assert_array_equal(B.rows([10, 1, 0]), M[[10, 1, 0]])
    assert B.source.seen == [(0, 2, 0, 14), (10, 11, 0, 14)]
    assert (counts.passes, counts.bytes_read, counts.rows) == (0, 3 * 14 * itemsize, 3)
    # Row by row, all columns need all of it: that is a pass, and it can be shared.
    with counting(Counts()) as counts:
        B.columns([3])
        B.read(Columns([3]), Adjoint(np.ones(11)))
    assert (counts.passes, counts.bytes_read) == (2, 2 * M.nbytes)


def test_only_the_required_chunks_of_a_block_are_read() -> None:
    """A full pass reads large blocks; a few columns are read by chunks, with adjacent chunks together."""
    A = StoredMap(Watched(M), chunks=(11, 2))
    assert np.array_equal(A.columns([3, 13, 5, 4]), M[:, [3, 13, 5, 4]])
    assert A.source.seen == [(0, 11, 2, 6), (0, 11, 12, 14)]
    with counting(Counts()) as counts:
        np.testing.assert_allclose(A.forward(np.eye(14)[7]), M[:, 7])
    assert A.source.seen[2:] == [(0, 11, 6, 8)]
    assert (counts.passes, counts.bytes_read) == (0, 11 * 2 * 8)
    with counting(Counts()) as counts:
        A.columns(np.arange(0, 14, 2))
    assert A.source.seen[3:] == [(0, 11, 0, 14)]
    assert (counts.passes, counts.bytes_read) == (1, M.nbytes), "reading all entries is a pass"
    B = StoredMap(Watched(M), chunks=(2, 14))
    B.rows([10, 1, 2])
    assert B.source.seen == [(0, 4, 0, 14), (10, 11, 0, 14)]
    # A request for all entries reads whole blocks.
    A.source.seen.clear()
    A.read(Columns([3]), Adjoint(np.ones(11)))
    assert A.source.seen == [(0, 11, 0, 14)]


def test_single_columns_of_a_file_stored_by_columns(tmp_path: Path) -> None:
    A = linear_map(memmap("F")(M, tmp_path))
    with counting(Counts()) as counts:
        np.testing.assert_array_equal(A.columns([9, 2]), M[:, [9, 2]])
        A.forward(np.eye(14)[5])
    assert (counts.passes, counts.bytes_read) == (0, 3 * M[:, 0].nbytes)


def test_columns_with_factor_zero_are_not_read() -> None:
    A = StoredMap(Watched(M), chunks=(2, 2), block_bytes=1)
    np.testing.assert_array_equal(A.forward(np.zeros(14)), np.zeros(11))
    assert A.source.seen == []


def test_a_part_that_was_read_does_not_make_the_rest_finite() -> None:
    broken = M.copy()
    broken[5, 13] = np.nan
    A = StoredMap(broken, chunks=(11, 2), block_bytes=1)
    A.columns([0, 1])
    with pytest.raises(ValueError, match=r"A must be finite.*rows 0 to 10, columns 12 to 13"):
        A.adjoint(np.zeros(11))
    A = StoredMap(M, "Phi")
    A.adjoint(np.ones(11))
    with counting(Counts()) as counts:
        A.adjoint(np.ones(11))
    assert (counts.passes, counts.bytes_read) == (1, M.nbytes)


def test_finite_numbers_whose_sum_overflows_are_accepted() -> None:
    huge = np.full((300, 300), 1e308)
    with np.errstate(over="ignore"):
        image = StoredMap(huge).forward(np.eye(300)[0])
    np.testing.assert_array_equal(image, huge[:, 0])


@pytest.mark.parametrize(
    "dtype", ["<f4", ">f4", "<f8", ">f8", "f2", "i1", "u2", "i8", "?", "<c8", ">c16"]
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_sums_are_in_double_precision_for_all_data(dtype: str, order: Any) -> None:
    """Blocks larger than the part converted at a time, in both directions."""
    rng = np.random.default_rng(1)
    shape = (1100, 1200)
    raw = (
        rng.integers(-9, 9, shape) if np.dtype(dtype).kind in "iub" else rng.standard_normal(shape)
    )
    raw = raw + 1j * rng.standard_normal(shape) if "c" in dtype else raw
    data = np.asarray(raw.astype(dtype), order=order)
    exact = data.astype(np.complex128 if "c" in dtype else np.float64)
    A = StoredMap(data)
    assert A.like.dtype == exact.dtype
    for vectors in ((), (3,)):
        for wide in (np.float64, np.complex128):
            x, y = (rng.standard_normal((n, *vectors)).astype(wide) for n in shape[::-1])
            if wide is np.complex128:
                x, y = x * (1 + 2j), y * (1 - 3j)
            for found, expected in (
                (A.forward(x), exact @ x),
                (A.adjoint(y), exact.conj().T @ y),
            ):
                assert found.dtype == expected.dtype
                size = np.abs(expected).max()
                np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14 * 60 * size)
    np.testing.assert_allclose(A.column_norms, np.linalg.norm(exact, axis=0), rtol=1e-13)
    np.testing.assert_allclose(A.row_norms, np.linalg.norm(exact, axis=1), rtol=1e-13)


def test_single_precision_would_be_detected() -> None:
    """The bound above is tight enough: sums in single precision miss it by far."""
    data = np.random.default_rng(1).standard_normal((1100, 1200)).astype(np.float32)
    y = np.ones(1100)
    exact = data.astype(np.float64).T @ y
    single = data.T @ y.astype(np.float32)
    limit = 1e-14 * 60 * np.abs(exact).max()
    assert np.abs(single - exact).max() > 1e3 * limit
    # In memory, too, correlations with a dual point in double precision are in double precision.
    np.testing.assert_allclose(NumPyMap(data).adjoint_exactly(y), exact, rtol=0, atol=limit)
    assert NumPyMap(data).adjoint_exactly(y.astype(np.float32)).dtype == np.float32


def test_no_two_blocks_are_read_at_the_same_time() -> None:
    """A user-defined class may seek and then read."""

    class OneReader(Sliced):
        inside = 0

        def __getitem__(self, place: Any) -> Any:
            assert self.inside == 0
            self.inside += 1
            block = super().__getitem__(place)
            threading.Event().wait(0.001)
            self.inside -= 1
            return block

    A = StoredMap(OneReader(M), chunks=(1, 14), block_bytes=1, workers=4)
    np.testing.assert_allclose(A.adjoint(np.ones(11)), M.sum(axis=0), rtol=1e-13)


def test_products_with_points_of_other_libraries_are_in_these_libraries() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    A = StoredMap(M)
    image = A.forward(torch.ones(14, dtype=torch.float64))
    assert isinstance(image, torch.Tensor)
    np.testing.assert_allclose(image.numpy(), M.sum(axis=1), rtol=1e-13)


def test_large_data_are_not_explicit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lopro.maps.streamed.SETTINGS", Settings(exact_entries=100))
    A = StoredMap(M, "Phi")
    assert not A.explicit and A.has_columns and A.has_rows
    with pytest.raises(Exception, match="Phi is too large to be loaded: the matrix"):
        A.matrix  # noqa: B018


def test_a_function_is_called_between_blocks_and_may_stop_a_pass() -> None:
    A = StoredMap(Watched(M), chunks=(11, 2), block_bytes=1, workers=1)
    seen: list[int] = []

    def late() -> None:
        seen.append(len(A.source.seen))
        if len(seen) == 3:
            raise TimeoutError

    with counting(Counts()) as counts, pytest.raises(TimeoutError), called_between_blocks(late):
        A.adjoint(np.ones(11))
    assert seen == [1, 2, 3]
    assert (counts.passes, counts.bytes_read) == (0, 3 * 11 * 2 * 8), (
        "an incomplete pass is not counted"
    )
    A.adjoint(np.ones(11))
    assert len(seen) == 3


def test_the_time_limit_holds_between_blocks() -> None:
    A = StoredMap(Watched(M), chunks=(11, 2), block_bytes=1, workers=1)
    with (
        using_clock(lambda: float(len(A.source.seen))),
        Deadline(2.5).active(),
        pytest.raises(OutOfTime),
    ):
        A.adjoint(np.ones(11))
    assert len(A.source.seen) == 3


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_slice_of_a_memmap_is_a_memmap(order: str, tmp_path: Path) -> None:
    whole = memmap(order)(M, tmp_path)
    part = whole[1::2, 2:9]
    A = linear_map(part)
    assert isinstance(A, MemmapMap)
    np.testing.assert_allclose(A.adjoint(np.ones(5)), M[1::2, 2:9].sum(axis=0), rtol=1e-13)
    # Arrays computed from it are in memory.
    assert type(linear_map(whole + 1.0)) is NumPyMap


def test_a_memmap_that_is_not_aligned(tmp_path: Path) -> None:
    path = tmp_path / "odd"
    path.write_bytes(b"abc" + M.tobytes())
    odd = np.memmap(path, dtype=np.float64, offset=3, shape=M.shape, mode="r")
    assert not odd.flags.aligned
    np.testing.assert_allclose(linear_map(odd).adjoint(np.ones(11)), M.sum(axis=0), rtol=1e-13)


def test_bad_input_is_named(tmp_path: Path) -> None:
    for source, error, message in (
        (Sliced(np.ones(3)), ValueError, r"A must have 2 dimensions, got shape \(3,\)"),
        (Sliced(np.ones((2, 0))), ValueError, "A must not be empty"),
        (Sliced(np.array([["a"]])), TypeError, "A must hold real or complex numbers"),
        (Sliced(np.ones((2, 2), np.longdouble)), TypeError, "A must hold .*double precision"),
    ):
        with pytest.raises(error, match=message):
            linear_map(source)
    A = linear_map(npy(M, tmp_path))
    with pytest.raises(ValueError, match=r"points must have 14 rows, got shape \(11,\)"):
        A.forward(np.ones(11))
    with pytest.raises(ValueError, match="duals must have 11 rows"):
        A.adjoint(np.ones((14, 2)))


def test_chunks_are_detected() -> None:
    assert chunks_of(Sliced(M), 1000) == (1, 14)
    assert chunks_of(np.asfortranarray(M), 1000) == (11, 1)
    wide = Sliced(M)
    wide.chunks = (4, 5)  # type: ignore[attr-defined]
    assert chunks_of(wide, 1000) == (4, 5)
    # A row longer than a block is cut.
    assert chunks_of(Sliced(M), 5) == (1, 5)
    assert len(Grid.along((11, 14), (1, 5), 8, 40).columns.all()) == 3
