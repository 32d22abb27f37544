"""The task graph of a pass over a dask array: a task for each block, and sums of their results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from lopro.core.arrays import Matrix
from lopro.maps.algebra import within
from lopro.maps.double import adjoint_product, product, squares, wide_dtype
from lopro.maps.grid import Place
from lopro.maps.requests import (
    Adjoint,
    Columns,
    Forward,
    Norms,
    Request,
    Rows,
)

__all__ = ["Node", "answer", "task"]

#: A value to be computed by dask.
Node: TypeAlias = Any

#: Number of partial results that one task adds: n of them take log8 n levels and n / 7 tasks.
_FAN_IN = 8


def task(function: Callable[..., Any], *values: Any) -> Node:
    """Return the node of a function call; values may be nodes or lists of nodes."""
    import dask

    return dask.delayed(function, pure=False)(*values)


class _PerBand:
    """The parts of an argument for bands of rows or columns: one node each, shared by the band."""

    def __init__(self, cut: Callable[[slice], Any]) -> None:
        self._cut = cut
        self._nodes: dict[int, Node] = {}

    def __call__(self, band: slice) -> Node:
        import dask

        if band.start not in self._nodes:
            part = self._cut(band)
            self._nodes[band.start] = dask.delayed(part, pure=False, traverse=False)
        return self._nodes[band.start]


class _Visits:
    """The blocks that a request needs, ordered by columns, then by rows."""

    def __init__(self, blocks: Sequence[tuple[Place, Node]]) -> None:
        self._blocks = blocks

    def each(self, function: Callable[..., Any], *, axis: int, cut: Callable[[slice], Any]) -> Any:
        """Return a node for each block: the function of it and of the part of its rows or columns."""
        part = _PerBand(cut)
        return [task(function, block, part(place[axis])) for place, block in self._blocks]

    def by_band(self, nodes: Sequence[Node], axis: int) -> list[tuple[slice, list[Node]]]:
        """Return the nodes of each band of rows (axis 0) or of columns (axis 1)."""
        groups: dict[int, tuple[slice, list[Node]]] = {}
        for (place, _), node in zip(self._blocks, nodes, strict=True):
            groups.setdefault(place[axis].start, (place[axis], []))[1].append(node)
        return [groups[start] for start in sorted(groups)]

    def stacked(self, nodes: Sequence[Node], axis: int, shape: Any, dtype: Any) -> Node:
        """Add the nodes of each band, and concatenate the sums."""
        bands = self.by_band(nodes, axis)
        sums = [_tree(_add, group) for _, group in bands]
        return task(_stacked, [band for band, _ in bands], sums, shape, dtype)

    def places(self, indices: Matrix, axis: int) -> list[tuple[Any, Any]]:
        """Return the places in the answer of the rows (axis 0) or columns (axis 1) of each block."""
        found: list[tuple[Any, Any]] = []
        for (rows, columns), _ in self._blocks:
            which = within(indices, rows if axis == 0 else columns)[0]
            found.append((which, columns) if axis == 0 else (rows, which))
        return found


def answer(
    request: Request, blocks: Sequence[tuple[Place, Node]], shape: tuple[int, int], dtype: Any
) -> Node:
    """Return the node that answers a request from the blocks it needs."""
    visits = _Visits(blocks)
    match request:
        case Forward(X):
            nodes = visits.each(product, axis=1, cut=lambda band: X[band])
            wide = np.result_type(dtype, wide_dtype(X.dtype))
            return visits.stacked(nodes, 0, (shape[0], *X.shape[1:]), wide)
        case Adjoint(Y):
            nodes = visits.each(adjoint_product, axis=0, cut=lambda band: Y[band])
            wide = np.result_type(dtype, wide_dtype(Y.dtype))
            return visits.stacked(nodes, 1, (shape[1], *Y.shape[1:]), wide)
        case Norms(axis):
            nodes = [task(squares, block, axis) for _, block in blocks]
            return task(np.sqrt, visits.stacked(nodes, 1 - axis, shape[1 - axis], np.float64))
        case Columns(S):
            nodes = visits.each(_picked_columns, axis=1, cut=lambda band: within(S, band)[1])
            return task(_placed, visits.places(S, 1), nodes, (shape[0], len(S)), dtype)
        case Rows(S):
            nodes = visits.each(_picked_rows, axis=0, cut=lambda band: within(S, band)[1])
            return task(_placed, visits.places(S, 0), nodes, (len(S), shape[1]), dtype)
    raise TypeError(f"{request!r} is no request of lopro.maps")


def _tree(combine: Callable[[list[Any]], Any], nodes: Sequence[Node]) -> Node:
    """Combine nodes in order, `_FAN_IN` at a time, until one is left."""
    while len(nodes) > 1:
        groups = [nodes[i : i + _FAN_IN] for i in range(0, len(nodes), _FAN_IN)]
        nodes = [task(combine, list(group)) if len(group) > 1 else group[0] for group in groups]
    return nodes[0]


# The functions of the tasks, which run on the workers.


def _add(parts: Sequence[Any]) -> Any:
    return sum(parts[1:], start=parts[0])


def _stacked(bands: Sequence[slice], parts: Sequence[Matrix], shape: Any, dtype: Any) -> Matrix:
    total = np.zeros(shape, dtype=dtype)
    for band, part in zip(bands, parts, strict=True):
        total[band] = part
    return total


def _placed(places: Sequence[Any], parts: Sequence[Matrix], shape: Any, dtype: Any) -> Matrix:
    whole = np.empty(shape, dtype=dtype, order="F")
    for place, part in zip(places, parts, strict=True):
        whole[place] = part
    return whole


def _picked_columns(block: Matrix, indices: Matrix) -> Matrix:
    return block[:, indices]


def _picked_rows(block: Matrix, indices: Matrix) -> Matrix:
    return block[indices]
