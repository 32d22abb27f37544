"""The task graph of a pass over a dask array: a task for each block, and sums of their results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from lopro.core.arrays import Matrix
from lopro.maps.grid import Place
from lopro.maps.requests import Request

__all__ = ["Node", "answer", "task"]

#: A value to be computed by dask.
Node: TypeAlias = Any

#: Number of partial results that one task adds: n of them take log8 n levels and n / 7 tasks.
_FAN_IN = 8


def task(function: Callable[..., Any], *values: Any) -> Node:
    """Return the node of a function call; values may be nodes or lists of nodes."""
    import dask

    return dask.delayed(function, pure=False)(*values)


def answer(
    request: Request, blocks: Sequence[tuple[Place, Node]], shape: tuple[int, int], dtype: Any
) -> Node:
    """Return the node that answers a request from the blocks it needs."""
    import dask

    parts: dict[int, Node] = {}  # one node for each band of rows or columns, shared by its blocks
    shares: dict[Any, tuple[Any, list[Node]]] = {}
    for place, block in blocks:
        band = place[request.along]
        if band.start not in parts:
            parts[band.start] = dask.delayed(request.restricted(band), pure=False, traverse=False)
        at = request.place(*place)
        # Contributions to the same place are added.
        key = at.start if isinstance(at, slice) else (place[0].start, place[1].start)
        node = task(request.contribution, block, parts[band.start])
        shares.setdefault(key, (at, []))[1].append(node)
    places, sums = [at for at, _ in shares.values()], [_sum(nodes) for _, nodes in shares.values()]
    zeros = request.size(shape), request.dtype(dtype), request.order
    return task(_assembled, request.finish, places, sums, *zeros)


def _sum(nodes: list[Node]) -> Node:
    """Add nodes in their order, `_FAN_IN` at a time, until one is left."""
    while len(nodes) > 1:
        groups = [nodes[i : i + _FAN_IN] for i in range(0, len(nodes), _FAN_IN)]
        nodes = [task(_add, group) if len(group) > 1 else group[0] for group in groups]
    return nodes[0]


# The functions of the tasks, which run on the workers.


def _add(parts: Sequence[Any]) -> Any:
    return sum(parts[1:], start=parts[0])


def _assembled(
    finish: Callable[..., Matrix],
    places: Sequence[Any],
    parts: Sequence[Matrix],
    size: Any,
    dtype: Any,
    order: Any,
) -> Matrix:
    whole = np.zeros(size, dtype=dtype, order=order)
    for place, part in zip(places, parts, strict=True):
        whole[place] = part
    return finish(whole)
