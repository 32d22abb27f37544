"""Requests that can be answered together in one pass over a matrix.

Several requests are passed to a map together, ``A.read(Adjoint(dual), Columns(new))``. A map in memory
answers one after the other; one on disk or on a cluster answers all of them in one pass over its data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from lopro.core.arrays import Array, Matrix, to_numpy
from lopro.maps.algebra import checked_indices, vectors, within
from lopro.maps.double import adjoint_product, product, squares, wide_dtype

__all__ = ["Adjoint", "Columns", "Forward", "Norms", "Request", "Rows"]


class Answers(Protocol):
    """The operations with which a map answers requests one after the other."""

    @property
    def row_norms(self) -> Array: ...

    @property
    def column_norms(self) -> Array: ...

    def forward(self, x: Array) -> Array: ...

    def adjoint_exactly(self, y: Array) -> Array: ...

    def columns(self, indices: Any) -> Any: ...

    def rows(self, indices: Any) -> Any: ...


class Request:
    """A request to a map, with the rules that assemble its answer from blocks of the matrix.

    The answer starts as zeros of `size`; each block adds its `contribution` at its `place`, and `finish` is
    applied to the sum. A contribution depends on the block and on the part of the request for the rows or
    the columns of the block (`along`, `restricted`), so that a worker receives no more.
    """

    #: The counter of such requests, if any.
    counter: str | None = None
    #: The axis of the blocks along which the request is cut into parts: 0 for rows, 1 for columns.
    along = 0
    #: The order of the entries of the answer in memory.
    order: Any = "C"
    #: Returns the contribution of a block from the block and the restricted data; called by several threads.
    contribution: Callable[..., Matrix]
    #: Returns the answer from the sum of the contributions.
    finish: Callable[..., Matrix] = staticmethod(np.asarray)

    def evaluate(self, A: Answers) -> Any:
        """Return the answer of a map to this request alone."""
        raise NotImplementedError

    def checked(self, shape: tuple[int, int]) -> Any:
        """Return the request in NumPy, with sizes and indices that fit a map of this shape."""
        return self

    @property
    def amount(self) -> int:
        """The number of vectors, columns or rows, to be added to the counter."""
        return 0

    def needed_rows(self) -> Any:
        """Return the rows on which the answer depends; None for all."""
        return None

    def needed_columns(self) -> Any:
        """Return the columns on which the answer depends; None for all."""
        return None

    def size(self, shape: tuple[int, int]) -> tuple[int, ...]:
        """Return the shape of the answer for a map of this shape."""
        raise NotImplementedError

    def dtype(self, entries: np.dtype[Any]) -> np.dtype[Any]:
        """Return the dtype of the answer for a map with entries of this (double precision) dtype."""
        return entries

    def restricted(self, band: slice) -> Any:
        """Return the part of the request that belongs to some rows (or columns, see `along`)."""
        raise NotImplementedError

    def place(self, rows: slice, columns: slice) -> Any:
        """Return the place in the answer to which the contribution of a block is added."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Forward(Request):
    """``A X``, for a vector or for the columns of a block.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.maps import Forward, linear_map
    >>> linear_map(np.array([[1.0, 2.0]])).read(Forward(np.ones(2)))
    (array([3.]),)
    """

    counter = "matvecs"
    along = 1
    contribution = staticmethod(product)
    points: Array

    def evaluate(self, A: Answers) -> Array:
        return A.forward(self.points)

    def checked(self, shape: tuple[int, int]) -> Forward:
        return Forward(_on_host("points", self.points, shape[1]))

    @property
    def amount(self) -> int:
        return vectors(self.points)

    def needed_columns(self) -> Any:
        # Columns that are multiplied by zeros need not be read.
        used = self.points if self.points.ndim == 1 else self.points.any(axis=1)
        return None if used.all() else np.flatnonzero(used)

    def size(self, shape: tuple[int, int]) -> tuple[int, ...]:
        return (shape[0], *self.points.shape[1:])

    def dtype(self, entries: np.dtype[Any]) -> np.dtype[Any]:
        return np.result_type(entries, wide_dtype(self.points.dtype))

    def restricted(self, band: slice) -> Matrix:
        return np.asarray(self.points[band])

    def place(self, rows: slice, columns: slice) -> slice:
        return rows


@dataclass(frozen=True, eq=False)
class Adjoint(Request):
    """``A^H Y``, for a vector or for the columns of a block.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.maps import Adjoint, linear_map
    >>> linear_map(np.array([[1.0, 2.0]])).read(Adjoint(np.ones(1)))
    (array([1., 2.]),)
    """

    counter = "rmatvecs"
    contribution = staticmethod(adjoint_product)
    duals: Array

    def evaluate(self, A: Answers) -> Array:
        return A.adjoint_exactly(self.duals)

    def checked(self, shape: tuple[int, int]) -> Adjoint:
        return Adjoint(_on_host("duals", self.duals, shape[0]))

    @property
    def amount(self) -> int:
        return vectors(self.duals)

    def size(self, shape: tuple[int, int]) -> tuple[int, ...]:
        return (shape[1], *self.duals.shape[1:])

    def dtype(self, entries: np.dtype[Any]) -> np.dtype[Any]:
        return np.result_type(entries, wide_dtype(self.duals.dtype))

    def restricted(self, band: slice) -> Matrix:
        return np.asarray(self.duals[band])

    def place(self, rows: slice, columns: slice) -> slice:
        return columns


@dataclass(frozen=True, eq=False)
class Columns(Request):
    """Some columns, as the columns of a matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.maps import Columns, linear_map
    >>> linear_map(np.array([[1.0, 2.0, 3.0]])).read(Columns([2, 0]))
    (array([[3., 1.]]),)
    """

    counter = "columns"
    along = 1
    order = "F"
    indices: Any

    def evaluate(self, A: Answers) -> Any:
        return A.columns(self.indices)

    def checked(self, shape: tuple[int, int]) -> Columns:
        return Columns(checked_indices("columns", self.indices, shape[1]))

    @property
    def amount(self) -> int:
        return len(self.indices)

    def needed_columns(self) -> Any:
        return self.indices

    def size(self, shape: tuple[int, int]) -> tuple[int, ...]:
        return shape[0], len(self.indices)

    def restricted(self, band: slice) -> Matrix:
        return within(self.indices, band)[1]

    @staticmethod
    def contribution(block: Matrix, part: Any) -> Matrix:
        return np.asarray(block[:, part])

    def place(self, rows: slice, columns: slice) -> tuple[slice, Matrix]:
        return rows, within(self.indices, columns)[0]


@dataclass(frozen=True, eq=False)
class Rows(Request):
    """Some rows, as the rows of a matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.maps import Rows, linear_map
    >>> linear_map(np.array([[1.0, 2.0], [3.0, 4.0]])).read(Rows([1]))
    (array([[3., 4.]]),)
    """

    counter = "rows"
    indices: Any

    def evaluate(self, A: Answers) -> Any:
        return A.rows(self.indices)

    def checked(self, shape: tuple[int, int]) -> Rows:
        return Rows(checked_indices("rows", self.indices, shape[0]))

    @property
    def amount(self) -> int:
        return len(self.indices)

    def needed_rows(self) -> Any:
        return self.indices

    def size(self, shape: tuple[int, int]) -> tuple[int, ...]:
        return len(self.indices), shape[1]

    def restricted(self, band: slice) -> Matrix:
        return within(self.indices, band)[1]

    @staticmethod
    def contribution(block: Matrix, part: Any) -> Matrix:
        return np.asarray(block[part])

    def place(self, rows: slice, columns: slice) -> tuple[Matrix, slice]:
        return within(self.indices, rows)[0], columns


@dataclass(frozen=True)
class Norms(Request):
    """Euclidean norms of all columns (axis 0) or of all rows (axis 1)."""

    contribution = staticmethod(squares)
    finish = staticmethod(np.sqrt)
    axis: int

    def evaluate(self, A: Answers) -> Array:
        return A.column_norms if self.axis == 0 else A.row_norms

    def size(self, shape: tuple[int, int]) -> tuple[int, ...]:
        return (shape[1 - self.axis],)

    def dtype(self, entries: np.dtype[Any]) -> np.dtype[Any]:
        return np.dtype(np.float64)

    def restricted(self, band: slice) -> int:
        return self.axis

    def place(self, rows: slice, columns: slice) -> slice:
        return columns if self.axis == 0 else rows


def _on_host(name: str, block: Array, size: int) -> np.ndarray[Any, Any]:
    """Return a vector or a block of vectors in NumPy, with its length checked."""
    host = to_numpy(block)
    if host.ndim not in (1, 2) or host.shape[0] != size:
        raise ValueError(f"{name} must have {size} rows, got shape {host.shape}")
    return host
