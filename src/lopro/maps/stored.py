"""Maps of stored matrices: zarr and HDF5 arrays, memory-mapped files, objects with slicing."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from threading import Lock
from typing import Any

import numpy as np

from lopro.core.arrays import Matrix, isfinite
from lopro.core.counting import count
from lopro.core.validation import check_count
from lopro.maps.grid import BLOCK_BYTES, Grid, Place, entries
from lopro.maps.in_order import in_order
from lopro.maps.requests import Request
from lopro.maps.streamed import StreamedMap, after_block

__all__ = ["MemmapMap", "StoredMap", "is_stored"]

#: Bytes of a block of a memory-mapped file, 128 MB. Blocks are views and need no memory; larger blocks mean
#: fewer calls of BLAS.
VIEWED_BYTES = 2**27


def is_stored(A: Any) -> bool:
    """Whether an object has a shape, a dtype and slices ``A[rows, columns]``.

    Examples
    --------
    >>> from lopro.maps.stored import is_stored
    >>> is_stored([[1.0, 2.0]])
    False
    """
    return all(hasattr(A, part) for part in ("shape", "dtype", "__getitem__"))


class StoredMap(StreamedMap):
    """A matrix that is read in blocks of whole chunks, in the order of storage.

    Only the current blocks and the answers are in memory. Sums are in double precision for data of any
    dtype. The first pass checks for NaN and inf.

    Parameters
    ----------
    source : object with shape, dtype and slicing
        A zarr array, an h5py Dataset, or any such object.
    name : str
        Its name in error messages.
    chunks : (int, int), optional
        Rows and columns of the chunks in which it is stored. By default ``source.chunks``; without it the
        matrix is assumed to be stored row by row.
    block_bytes : int
        Approximate size of a block; at least a chunk.
    workers : int
        Threads, each with a block: one reads while another multiplies; no two read at the same time. The
        results do not depend on it.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.maps import StoredMap
    >>> A = StoredMap(np.array([[1, 2, 3], [4, 5, 6]], dtype=np.int16))
    >>> A.adjoint(np.array([1.0, 10.0])), A.columns([2])
    (array([41., 52., 63.]), array([[3.],
           [6.]]))
    """

    def __init__(
        self,
        source: Any,
        name: str = "A",
        *,
        chunks: tuple[int, int] | None = None,
        block_bytes: int = BLOCK_BYTES,
        workers: int = 2,
    ) -> None:
        super().__init__(source, name)
        self._itemsize = np.dtype(source.dtype).itemsize
        if chunks is None:
            chunks = chunks_of(source, block_bytes // self._itemsize)
        self.grid = Grid.along(self.shape, chunks, self._itemsize, block_bytes)
        self.workers = check_count("workers", workers)

    def fetch(self, place: Place) -> Matrix:
        """Return a block, which is not modified."""
        return np.asarray(self.source[place])

    def sweep(self, requests: Sequence[Request]) -> list[Any]:
        totals = [
            np.zeros(r.size(self.shape), r.dtype(self.like.dtype), order=r.order) for r in requests
        ]
        needed = self.grid.needed(requests)
        reading = Lock()  # a reader may have a position in its file

        def visit(each: tuple[Place, list[int]]) -> list[Any]:
            place, who = each
            with reading:
                block = self.fetch(place)
            self._check_block(block, place)
            concerned = [requests[i] for i in who]
            return [r.contribution(block, r.restricted(place[r.along])) for r in concerned]

        visits = in_order(visit, needed, self.workers)
        with closing(visits):
            for place, who in needed:
                for i, share in zip(who, next(visits), strict=True):
                    totals[i][requests[i].place(*place)] += share
                count("bytes_read", entries(place) * self._itemsize)
                after_block()
        self._count_pass(needed)
        return [r.finish(total) for r, total in zip(requests, totals, strict=True)]

    def _check_block(self, block: Matrix, place: Place) -> None:
        """Raise if an entry is NaN or infinite, unless all entries have been checked."""
        if not self._known_finite and not isfinite(block):
            rows, columns = place
            raise ValueError(
                f"{self.name} must be finite, but it contains NaN or inf, in rows "
                f"{rows.start} to {rows.stop - 1}, columns {columns.start} to {columns.stop - 1}"
            )


class MemmapMap(StoredMap):
    """A ``numpy.memmap``, stored by rows or by columns.

    Blocks are views: the operating system reads them into its cache, without a copy.

    Parameters
    ----------
    source : numpy.memmap
        Not modified.
    name : str
        Its name in error messages.
    block_bytes : int
        Approximate size of a block.
    workers : int
        Threads, each with a block. The results do not depend on it.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from lopro.maps import linear_map
    >>> with tempfile.TemporaryFile() as file:
    ...     stored = np.memmap(file, dtype=np.float32, shape=(2, 3), mode="w+")
    ...     stored[:] = [[1, 2, 3], [4, 5, 6]]
    ...     A = linear_map(stored)
    ...     print(A.adjoint(np.array([1.0, 10.0])), A)
    [41. 52. 63.] LinearMap(memmap of shape (2, 3))
    """

    def __init__(
        self,
        source: np.memmap[Any, Any],
        name: str = "A",
        *,
        block_bytes: int = VIEWED_BYTES,
        workers: int = 2,
    ) -> None:
        super().__init__(source, name, block_bytes=block_bytes, workers=workers)
        # Slices of a memmap are memmaps, which are slow to create; those of a plain view are not.
        self._view = source.view(np.ndarray)

    @staticmethod
    def fits(A: Any) -> bool:
        """Whether an object is a memmap of a file, and not an array in memory computed from one."""
        return isinstance(A, np.memmap) and getattr(A, "_mmap", None) is not None

    def fetch(self, place: tuple[slice, slice]) -> np.ndarray[Any, Any]:
        return self._view[place]


def chunks_of(source: Any, entries: int) -> tuple[int, int]:
    """Return rows and columns of the chunks in which an object is stored.

    Without ``chunks`` it is assumed to be stored row by row, or column by column according to its strides; a
    chunk is then a row or a column, or ``entries`` of it.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.maps.stored import chunks_of
    >>> chunks_of(np.zeros((30, 40)), 1000), chunks_of(np.zeros((30, 40), order="F"), 10)
    ((1, 40), (10, 1))
    """
    chunks = getattr(source, "chunks", None)
    if isinstance(chunks, tuple) and all(isinstance(c, int) for c in chunks):
        return chunks[0], chunks[1]
    strides = getattr(source, "strides", None)
    if isinstance(strides, tuple) and abs(strides[0]) < abs(strides[1]):
        return min(source.shape[0], max(1, entries)), 1
    return 1, min(source.shape[1], max(1, entries))
