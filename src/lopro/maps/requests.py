"""Requests that one pass over a matrix can answer.

Several requests are passed to a map together, ``A.read(Adjoint(dual), Columns(new))``. A map in memory
answers one after the other; one on disk or on a cluster answers all of them in one pass over its data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lopro.core.arrays import Array, to_numpy
from lopro.maps.algebra import checked_indices, vectors

if TYPE_CHECKING:
    from lopro.maps.base import LinearMap

__all__ = [
    "Adjoint",
    "Columns",
    "Forward",
    "Norms",
    "Request",
    "Rows",
]


class Request:
    """A request to a map."""

    #: The counter to which a request adds, if any.
    counter: str | None = None

    def ask(self, A: LinearMap) -> Any:
        """Return the answer of a map to this request alone."""
        raise NotImplementedError

    def checked(self, A: LinearMap) -> Any:
        """Return the request in NumPy, with sizes and indices that fit the map."""
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
    points: Array

    def ask(self, A: LinearMap) -> Array:
        return A.forward(self.points)

    def checked(self, A: LinearMap) -> Forward:
        return Forward(_on_host("points", self.points, A.shape[1]))

    @property
    def amount(self) -> int:
        return vectors(self.points)

    def needed_columns(self) -> Any:
        # Columns that are multiplied by zeros need not be read.
        used = self.points if self.points.ndim == 1 else self.points.any(axis=1)
        return None if used.all() else np.flatnonzero(used)


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
    duals: Array

    def ask(self, A: LinearMap) -> Array:
        return A.adjoint_exactly(self.duals)

    def checked(self, A: LinearMap) -> Adjoint:
        return Adjoint(_on_host("duals", self.duals, A.shape[0]))

    @property
    def amount(self) -> int:
        return vectors(self.duals)


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
    indices: Any

    def ask(self, A: LinearMap) -> Any:
        return A.columns(self.indices)

    def checked(self, A: LinearMap) -> Columns:
        return Columns(checked_indices("columns", self.indices, A.shape[1]))

    @property
    def amount(self) -> int:
        return len(self.indices)

    def needed_columns(self) -> Any:
        return self.indices


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

    def ask(self, A: LinearMap) -> Any:
        return A.rows(self.indices)

    def checked(self, A: LinearMap) -> Rows:
        return Rows(checked_indices("rows", self.indices, A.shape[0]))

    @property
    def amount(self) -> int:
        return len(self.indices)

    def needed_rows(self) -> Any:
        return self.indices


@dataclass(frozen=True)
class Norms(Request):
    """Euclidean norms of all columns (axis 0) or of all rows (axis 1)."""

    axis: int

    def ask(self, A: LinearMap) -> Array:
        return A.column_norms if self.axis == 0 else A.row_norms


def _on_host(name: str, block: Array, size: int) -> np.ndarray[Any, Any]:
    """Return a vector or a block of vectors in NumPy, with its length checked."""
    host = to_numpy(block)
    if host.ndim not in (1, 2) or host.shape[0] != size:
        raise ValueError(f"{name} must have {size} rows, got shape {host.shape}")
    return host
