"""Partition of a stored matrix into blocks of whole chunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from lopro.core.arrays import Vector
from lopro.maps.algebra import within
from lopro.maps.requests import Request

__all__ = ["Bands", "Grid", "Place", "entries"]

#: Bytes of a block, 32 MB: reading it takes several seek times of a disk (10 ms at 200 MB/s are 2 MB), and
#: two blocks (one per thread) are small beside the memory.
BLOCK_BYTES = 2**25

#: The rows and the columns of a block.
Place: TypeAlias = tuple[slice, slice]


@dataclass(frozen=True)
class Bands:
    """A range partitioned into bands of chunks; a chunk is the smallest part that can be read.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.maps.grid import Bands
    >>> bands = Bands.of_chunks(10, chunk=2, per_band=2)
    >>> bands.all()
    [slice(0, 4, None), slice(4, 8, None), slice(8, 10, None)]
    >>> bands.around(np.array([2, 3, 9]))
    [slice(2, 4, None), slice(8, 10, None)]
    """

    #: The start of each chunk, and the end of the last one.
    edges: Vector
    #: Number of chunks of a band.
    per_band: int

    @staticmethod
    def of_chunks(length: int, chunk: int, per_band: int) -> Bands:
        """Return bands of chunks of equal length; the last chunk may be shorter."""
        return Bands(np.append(np.arange(0, length, chunk), length), per_band)

    def all(self) -> list[slice]:
        """Return bands that cover the whole range."""
        return self._of(np.arange(len(self.edges) - 1))

    def around(self, indices: Vector | None) -> list[slice]:
        """Return bands of the chunks that contain these indices; of all chunks for None."""
        if indices is None:
            return self.all()
        return self._of(np.unique(np.searchsorted(self.edges, indices, side="right") - 1))

    def _of(self, chunks: Vector) -> list[slice]:
        """Join neighbouring chunks (in ascending order) to bands."""
        found: list[slice] = []
        for run in np.split(chunks, np.flatnonzero(np.diff(chunks) > 1) + 1):
            for i in range(0, len(run), self.per_band):
                part = run[i : i + self.per_band]
                found.append(slice(int(self.edges[part[0]]), int(self.edges[part[-1] + 1])))
        return found


@dataclass(frozen=True)
class Grid:
    """The places of the blocks: bands of columns, each divided into bands of rows.

    Examples
    --------
    >>> from lopro.maps.grid import Grid
    >>> grid = Grid.along((4, 6), chunks=(4, 2), itemsize=8, block_bytes=128)
    >>> grid.columns.all()
    [slice(0, 4, None), slice(4, 6, None)]
    """

    rows: Bands
    columns: Bands

    @staticmethod
    def along(
        shape: tuple[int, int],
        chunks: tuple[int, int],
        itemsize: int,
        block_bytes: int = BLOCK_BYTES,
    ) -> Grid:
        """Return blocks of whole chunks of about ``block_bytes``, as tall as possible.

        Chunks that are rows, as in a matrix stored row by row, make bands of rows.
        """
        height, width = (min(c, s) for c, s in zip(chunks, shape, strict=True))
        tallest = -(-shape[0] // height)
        down = min(tallest, max(1, block_bytes // (itemsize * height * width)))
        # If whole columns fit, a block has several of them.
        right = max(1, block_bytes // (itemsize * shape[0] * width))
        return Grid(
            Bands.of_chunks(shape[0], height, down), Bands.of_chunks(shape[1], width, right)
        )

    @staticmethod
    def of_chunks(chunks: tuple[tuple[int, ...], tuple[int, ...]]) -> Grid:
        """Return the grid whose blocks are chunks of these heights and widths; empty ones are omitted."""
        rows, columns = (np.append(0, np.cumsum([n for n in sizes if n])) for sizes in chunks)
        return Grid(Bands(rows, 1), Bands(columns, 1))

    def needed(self, requests: Sequence[Request]) -> list[tuple[Place, list[int]]]:
        """Return the blocks that requests need, column by column, each with the numbers of its requests."""
        needed = [(r.needed_rows(), r.needed_columns()) for r in requests]
        rows = self.rows.around(_union([each[0] for each in needed]))
        columns = self.columns.around(_union([each[1] for each in needed]))
        by_rows = [[_touches(each[0], band) for each in needed] for band in rows]
        by_columns = [[_touches(each[1], band) for each in needed] for band in columns]
        found = []
        for j, right in enumerate(columns):
            for i, down in enumerate(rows):
                who = [k for k in range(len(requests)) if by_rows[i][k] and by_columns[j][k]]
                if who:
                    found.append(((down, right), who))
        return found


def entries(place: Place) -> int:
    """Return the number of entries of a block."""
    rows, columns = place
    return int((rows.stop - rows.start) * (columns.stop - columns.start))


def _union(needed: Sequence[Vector | None]) -> Vector | None:
    """Return the union of the needed indices; None if a request needs all."""
    some = [indices for indices in needed if indices is not None]
    return np.concatenate([np.empty(0, dtype=np.intp), *some]) if len(some) == len(needed) else None


def _touches(indices: Vector | None, band: slice) -> bool:
    return indices is None or len(within(indices, band)[0]) > 0
