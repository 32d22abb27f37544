"""Maps of matrices that are read block by block, from disk or on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from typing import Any

import numpy as np

from lopro.core.arrays import Array, from_numpy, to_numpy
from lopro.core.counting import count
from lopro.core.deadline import current_deadline
from lopro.maps.algebra import adjoint_product, checked_indices
from lopro.maps.base import LinearMap
from lopro.maps.double import wide_dtype
from lopro.maps.grid import Grid, Place, entries
from lopro.maps.requests import (
    Adjoint,
    Columns,
    Forward,
    Norms,
    Request,
    Rows,
)
from lopro.maps.spectrum import SETTINGS

__all__ = ["StreamedMap", "called_between_blocks"]

_between_blocks: ContextVar[Callable[[], None] | None] = ContextVar("lopro_blocks", default=None)


@contextmanager
def called_between_blocks(function: Callable[[], None]) -> Iterator[None]:
    """Call a function after each block that is read, to show progress or to stop by an exception.

    The time limit of a call is checked between blocks as well.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.maps import StoredMap, called_between_blocks
    >>> seen = []
    >>> with called_between_blocks(lambda: seen.append("a block")):
    ...     image = StoredMap(np.eye(3)).forward(np.ones(3))
    >>> seen
    ['a block']
    """
    token = _between_blocks.set(function)
    try:
        yield
    finally:
        _between_blocks.reset(token)


def after_block() -> None:
    """Check the deadline, and call the function of `called_between_blocks`."""
    current_deadline().check()
    function = _between_blocks.get()
    if function is not None:
        function()


class StreamedMap(LinearMap):
    """A matrix that is read block by block; requests that are made together share a pass.

    Points and images are NumPy arrays in double precision; points of other libraries are converted. A matrix
    of at most ``SETTINGS.exact_entries`` is explicit: it is loaded if all of it is needed.
    """

    #: The partition into blocks.
    grid: Grid

    def __init__(self, source: Any, name: str) -> None:
        rows, columns = _checked_shape(source, name)
        dtype = np.dtype(source.dtype)
        if dtype.kind not in "biufc" or dtype.char in "gG":
            raise TypeError(
                f"{name} must hold real or complex numbers of up to double precision, got {dtype}"
            )
        like = np.zeros(1, dtype=wide_dtype(dtype))
        super().__init__(source, (rows, columns), like, name, rows * columns * dtype.itemsize)
        #: Whether all entries have been checked to be finite.
        self._known_finite = False

    def sweep(self, requests: Sequence[Request]) -> list[Any]:
        """Answer checked requests from one pass over the blocks that they need, and count what is read."""
        raise NotImplementedError

    def _count_pass(self, needed: Sequence[tuple[Place, Any]]) -> None:
        """Count a pass if these are all blocks; the entries are then known to be finite."""
        if sum(entries(place) for place, _ in needed) == self.shape[0] * self.shape[1]:
            count("passes")
            self._known_finite = True

    @property
    def explicit(self) -> bool:
        return self.shape[0] * self.shape[1] <= SETTINGS.exact_entries

    @property
    def in_memory(self) -> bool:
        return False

    @property
    def kind(self) -> str:
        return "too large to be loaded"

    def read(self, *requests: Request) -> tuple[Any, ...]:
        checked = [request.checked(self.shape) for request in requests]
        for request in checked:
            if request.counter is not None:
                count(request.counter, request.amount)
        return tuple(self.sweep(checked))

    def forward(self, x: Array) -> Array:
        return from_numpy(self.read(Forward(x))[0], x)

    def adjoint(self, y: Array) -> Array:
        return from_numpy(self.read(Adjoint(y))[0], y)

    adjoint_exactly = adjoint

    def columns(self, indices: Any) -> np.ndarray[Any, Any]:
        return np.asarray(self.read(Columns(indices))[0])

    def bytes_for_columns(self, indices: Any) -> int:
        needed = self.grid.needed([Columns(checked_indices("columns", indices, self.shape[1]))])
        size = self.nbytes // (self.shape[0] * self.shape[1])
        return size * sum(entries(place) for place, _ in needed)

    def rows(self, indices: Any) -> np.ndarray[Any, Any]:
        return np.asarray(self.read(Rows(indices))[0])

    def pull_through_rows(self, rows: Any, x: Array, weigh: Callable[[Array], Array]) -> Array:
        R = self._some_rows(checked_indices("rows", rows, self.shape[0]))
        weighed = weigh(from_numpy(R @ to_numpy(x), x))
        return from_numpy(adjoint_product(R, to_numpy(weighed)), x)

    def _some_rows(self, indices: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return np.asarray(self.sweep([Rows(indices)])[0])

    @property
    def has_columns(self) -> bool:
        return True

    @property
    def has_rows(self) -> bool:
        return True

    @cached_property
    def row_norms(self) -> np.ndarray[Any, Any]:
        return self._norms(axis=1)

    @cached_property
    def column_norms(self) -> np.ndarray[Any, Any]:
        return self._norms(axis=0)

    def _norms(self, axis: int) -> np.ndarray[Any, Any]:
        norms: np.ndarray[Any, Any] = self.read(Norms(axis))[0]
        norms.setflags(write=False)
        return norms

    @property
    def matrix(self) -> np.ndarray[Any, Any]:
        """The matrix in memory, in double precision; not cached; for explicit maps only."""
        self._require_entries("the matrix")
        return self._some_rows(np.arange(self.shape[0]))

    def toarray(self) -> np.ndarray[Any, Any]:
        return self.matrix


def _checked_shape(source: Any, name: str) -> tuple[int, int]:
    if len(source.shape) != 2:
        raise ValueError(f"{name} must have 2 dimensions, got shape {tuple(source.shape)}")
    return source.shape[0], source.shape[1]
