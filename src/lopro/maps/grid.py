"""How a stored matrix is cut into blocks: along its chunks, in pieces that are read at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from lopro.maps.requests import Request

__all__ = ["Grid", "Place"]

#: Bytes that are read at a time: large enough for a disk to be fast, small beside any matrix that is on one.
BLOCK_BYTES = 2**25

#: The rows and the columns of a block.
Place: TypeAlias = tuple[slice, slice]


@dataclass(frozen=True)
class Grid:
    """The places of the blocks: bands of columns, each cut into bands of rows.

    Examples
    --------
    >>> from lopro.maps.grid import Grid
    >>> grid = Grid.along((4, 6), chunks=(4, 2), itemsize=8, block_bytes=128)
    >>> grid.columns
    (slice(0, 4, None), slice(4, 6, None))
    """

    rows: tuple[slice, ...]
    columns: tuple[slice, ...]

    @staticmethod
    def along(
        shape: tuple[int, int],
        chunks: tuple[int, int],
        itemsize: int,
        block_bytes: int = BLOCK_BYTES,
    ) -> Grid:
        """Return blocks of whole chunks, about ``block_bytes`` large: taller first, then wider.

        A band of columns that is read from top to bottom leaves little behind: its correlations are
        complete. Chunks that are rows make bands of rows, and so does a matrix stored row by row.
        """
        height, width = (min(c, s) for c, s in zip(chunks, shape, strict=True))
        entries = max(1, block_bytes // itemsize)
        height *= max(1, entries // (height * width))
        if height >= shape[0]:
            height = shape[0]
            width *= max(1, entries // (height * width))
        return Grid(bands(shape[0], height), bands(shape[1], width))

    @staticmethod
    def of_chunks(chunks: tuple[tuple[int, ...], tuple[int, ...]]) -> Grid:
        """Return the grid with these heights and widths."""
        heights, widths = chunks
        return Grid(_consecutive(heights), _consecutive(widths))

    def __len__(self) -> int:
        return len(self.rows) * len(self.columns)

    def needed(self, requests: Sequence[Request]) -> list[tuple[Place, list[int]]]:
        """Return the blocks that requests need, column by column, each with the numbers of those who do."""
        by_rows = [[r.needs_rows(band) for r in requests] for band in self.rows]
        by_columns = [[r.needs_columns(band) for r in requests] for band in self.columns]
        found = []
        for columns, some in zip(self.columns, by_columns, strict=True):
            for rows, others in zip(self.rows, by_rows, strict=True):
                who = [i for i in range(len(requests)) if some[i] and others[i]]
                if who:
                    found.append(((rows, columns), who))
        return found


def bands(size: int, step: int) -> tuple[slice, ...]:
    """Cut a range into bands of equal size; the last one may be smaller."""
    return tuple(slice(i, min(i + step, size)) for i in range(0, size, step))


def _consecutive(sizes: tuple[int, ...]) -> tuple[slice, ...]:
    """Return consecutive ranges of these sizes, without the empty ones."""
    found, start = [], 0
    for size in sizes:
        if size:
            found.append(slice(start, start + size))
        start += size
    return tuple(found)
