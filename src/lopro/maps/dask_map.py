"""Maps of dask arrays: each pass is one task graph, whose results answer the requests.

Blocks are not moved, rechunked or persisted; blocks that are not persisted are recomputed in every pass.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from lopro.core.arrays import isfinite
from lopro.core.counting import count
from lopro.core.deadline import current_deadline
from lopro.maps.dask_graph import Node, answer, task
from lopro.maps.grid import Grid, Place, entries
from lopro.maps.requests import Request
from lopro.maps.streamed import StreamedMap, after_block

__all__ = ["DaskMap"]


class DaskMap(StreamedMap):
    """The linear map of a dask array of NumPy blocks, on the scheduler in use: threads or a cluster.

    dask recomputes the blocks of a worker that fails.

    Parameters
    ----------
    source : dask.array.Array
        Its chunks must have known sizes, which need not be equal. Persist it first if it fits in memory and
        is expensive to compute.
    name : str
        Its name in error messages.

    Examples
    --------
    >>> import numpy as np
    >>> import dask.array as da
    >>> from lopro.maps import linear_map
    >>> A = linear_map(da.from_array(np.arange(12.0).reshape(3, 4), chunks=(2, 2)))
    >>> A.forward(np.ones(4)), A.adjoint(np.ones(3))
    (array([ 6., 22., 38.]), array([12., 15., 18., 21.]))
    """

    def __init__(self, source: Any, name: str = "A") -> None:
        if any(math.isnan(size) for sizes in source.chunks for size in sizes):
            raise ValueError(f"{name} has chunks of unknown size: call compute_chunk_sizes() first")
        if not isinstance(source._meta, np.ndarray):
            raise TypeError(
                f"{name} must be a dask array of NumPy arrays, not of {type(source._meta).__name__}: "
                "map_blocks can convert them"
            )
        super().__init__(source, name)
        self.grid = Grid.of_chunks(source.chunks)

    @cached_property
    def _blocks(self) -> dict[tuple[int, int], Node]:
        """The blocks by their first row and column; empty ones are omitted."""
        nodes = self.source.to_delayed()
        full = [[i for i, size in enumerate(sizes) if size] for sizes in self.source.chunks]
        found = nodes[np.ix_(*full)]
        return {
            (rows.start, columns.start): found[i, j]
            for i, rows in enumerate(self.grid.rows.all())
            for j, columns in enumerate(self.grid.columns.all())
        }

    def sweep(self, requests: Sequence[Request]) -> list[Any]:
        import dask

        current_deadline().check()
        needed = self.grid.needed(requests)
        answers = dask.compute(*self.graph(requests))
        itemsize = np.dtype(self.source.dtype).itemsize
        count("bytes_read", itemsize * sum(entries(place) for place, _ in needed))
        after_block()
        self._count_pass(needed)
        return list(answers)

    def graph(self, requests: Sequence[Request]) -> list[Node]:
        """Return the nodes of a pass: one for each (checked) request, all from the same blocks."""
        needed = self.grid.needed(requests)
        blocks = [self._block(place) for place, _ in needed]
        nodes = []
        for k, request in enumerate(requests):
            own = [(p, b) for (p, users), b in zip(needed, blocks, strict=True) if k in users]
            nodes.append(answer(request, own, self.shape, self.like.dtype))
        return nodes

    def _block(self, place: Place) -> Node:
        """Return the node of a block; in the first pass, one that raises if the block is not finite."""
        block = self._blocks[place[0].start, place[1].start]
        return block if self._known_finite else task(_finite, block, self.name)


def _finite(block: np.ndarray[Any, Any], name: str) -> np.ndarray[Any, Any]:
    if not isfinite(block):
        raise ValueError(f"{name} must be finite, but it contains NaN or inf")
    return block
