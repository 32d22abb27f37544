"""The base class of linear maps: counted products, and optional columns, rows and entries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lopro.core.arrays import Array, asarray_like, namespace
from lopro.core.counting import count, count_product
from lopro.errors import MissingCapabilityError
from lopro.maps.algebra import (
    adjoint_product,
    bytes_of,
    checked_indices,
    norms_of,
    times_for,
    vectors,
)
from lopro.maps.requests import Request
from lopro.maps.spectrum import Spectral

__all__ = ["LinearMap"]

#: Rows or columns that are copied at a time: 2 kB of doubles for each column or row of the matrix.
PIECE = 256


class LinearMap(Spectral):
    """A matrix or operator ``A`` with counted products: the base of all linear maps.

    A subclass defines `multiply` and `multiply_adjoint`, and `read_columns` and `read_rows` if single columns
    and rows can be read.

    Parameters
    ----------
    source : object
        The object that the map was made from.
    shape : (int, int)
        Rows and columns.
    like : array
        An array of the library, dtype and device of points and images.
    name : str
        Its name in error messages.
    nbytes : int
        Bytes of all entries; 0 if they are not stored.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.maps import LinearMap
    >>> class Reversal(LinearMap):
    ...     def __init__(self, size):
    ...         super().__init__(None, (size, size), np.zeros(1))
    ...
    ...     def multiply(self, X):
    ...         return X[::-1].copy()
    ...
    ...     multiply_adjoint = multiply
    >>> A = Reversal(3)
    >>> A.forward(np.array([1.0, 2.0, 3.0])), A.has_columns
    (array([3., 2., 1.]), False)
    """

    #: Whether a map without rows is allowed; `linear_map` rejects it in any case.
    may_be_empty = False
    #: Whether products return the vector itself.
    is_identity = False

    def __init__(
        self, source: Any, shape: tuple[int, int], like: Array, name: str = "A", nbytes: int = 0
    ) -> None:
        self.source = source
        self.shape = (int(shape[0]), int(shape[1]))
        if 0 in self.shape and not self.may_be_empty:
            raise ValueError(f"{name} must not be empty, got shape {self.shape}")
        self.like = like
        self.name = name
        self.nbytes = nbytes

    def __repr__(self) -> str:
        return f"LinearMap({type(self.source).__name__} of shape {self.shape})"

    @property
    def explicit(self) -> bool:
        """Whether all entries fit in memory, for factorisations."""
        return False

    @property
    def in_memory(self) -> bool:
        """Whether all entries are in the memory of the host or of a device."""
        return self.explicit

    @property
    def kind(self) -> str:
        """The kind of a map that is not explicit, for error messages."""
        return "an operator"

    # Defined by subclasses.

    def multiply(self, X: Array) -> Array:
        """Return ``A X`` for a vector, or for the columns of a block, in one pass."""
        raise NotImplementedError

    def multiply_adjoint(self, Y: Array) -> Array:
        """Return ``A^H Y`` for a vector, or for the columns of a block, in one pass."""
        raise NotImplementedError

    def multiply_adjoint_exactly(self, Y: Array) -> Array:
        """Return ``A^H Y`` with sums in the precision of ``Y``, also if the entries have less."""
        return self.multiply_adjoint(Y)

    def passes_for(self, count: int) -> int:
        """Return the number of passes of a product with ``count`` vectors."""
        return 1

    @property
    def has_columns(self) -> bool:
        """Whether single columns can be read: `columns`."""
        return callable(getattr(self, "read_columns", None))

    @property
    def has_rows(self) -> bool:
        """Whether single rows can be read: `rows`, `pull_through_rows`."""
        return callable(getattr(self, "read_rows", None))

    # Products.

    def forward(self, x: Array) -> Array:
        """Return ``A x``, or ``A X`` for a block of vectors; each vector is counted as a matvec."""
        k = 1 if x.ndim == 1 else vectors(x)
        passes = self.passes_for(k)
        count_product("matvecs", k, passes, passes * self.nbytes)
        return self.multiply(x)

    def adjoint(self, y: Array) -> Array:
        """Return ``A^H y``, or ``A^H Y`` for a block; each vector is counted as an rmatvec."""
        k = 1 if y.ndim == 1 else vectors(y)
        passes = self.passes_for(k)
        count_product("rmatvecs", k, passes, passes * self.nbytes)
        return self.multiply_adjoint(y)

    def adjoint_exactly(self, y: Array) -> Array:
        """Return ``A^H y`` with sums in the precision of ``y``, also if the entries have less; an rmatvec.

        Examples
        --------
        >>> import numpy as np
        >>> from lopro.maps import linear_map
        >>> A = linear_map(np.array([[1.0], [1e-9]], dtype=np.float32))
        >>> (
        ...     float(A.adjoint_exactly(np.ones(2))[0]) > 1.0,
        ...     float(A.adjoint(np.ones(2, np.float32))[0]) > 1.0,
        ... )
        (True, False)
        """
        k = 1 if y.ndim == 1 else vectors(y)
        passes = self.passes_for(k)
        count_product("rmatvecs", k, passes, passes * self.nbytes)
        return self.multiply_adjoint_exactly(y)

    # Columns and rows.

    def columns(self, indices: Any) -> Any:
        """Return a copy of some columns, in the library (or sparse format) of the map."""
        block = self._reader("read_columns", "single columns")(
            checked_indices("columns", indices, self.shape[1])
        )
        count_product("columns", len(indices), 0, bytes_of(block))
        return block

    def bytes_for_columns(self, indices: Any) -> int:
        """Return the bytes that are read for some columns: all of the matrix if it is stored row by row.

        Examples
        --------
        >>> import numpy as np
        >>> from lopro.maps import StoredMap, linear_map
        >>> A = np.zeros((10, 50))
        >>> linear_map(A).bytes_for_columns([3, 4]), StoredMap(A).bytes_for_columns([3, 4])
        (160, 4000)
        """
        return self.nbytes * len(indices) // self.shape[1]

    def rows(self, indices: Any) -> Any:
        """Return a copy of some rows, in the library (or sparse format) of the map."""
        block = self._reader("read_rows", "single rows")(
            checked_indices("rows", indices, self.shape[0])
        )
        count_product("rows", len(indices), 0, bytes_of(block))
        return block

    def pull_through_rows(self, rows: Any, x: Array, weigh: Callable[[Array], Array]) -> Array:
        """Return ``R^H weigh(R x)`` for the given rows ``R`` of the matrix; not counted as a product."""
        R = self._reader("read_rows", "single rows")(checked_indices("rows", rows, self.shape[0]))
        count("bytes_read", bytes_of(R))
        times = times_for(x)
        return adjoint_product(R, weigh(times(R, x)), times)

    @property
    def row_norms(self) -> Array:
        """Euclidean norms of the rows."""
        rows = np.array_split(np.arange(self.shape[0]), 1 + self.shape[0] // PIECE)
        return namespace(self.like).concat([norms_of(self.rows(some), axis=1) for some in rows])

    @property
    def column_norms(self) -> Array:
        """Euclidean norms of the columns."""
        columns = np.array_split(np.arange(self.shape[1]), 1 + self.shape[1] // PIECE)
        parts = [norms_of(self.columns(some), axis=0) for some in columns]
        return namespace(self.like).concat(parts)

    def read(self, *requests: Request) -> tuple[Any, ...]:
        """Answer several requests, in the given order.

        Maps in memory answer one request after the other. Maps on disk or on a cluster read their data once
        for all of them.

        Examples
        --------
        >>> import numpy as np
        >>> from lopro.maps import Columns, Forward, linear_map
        >>> A = linear_map(np.array([[1.0, 2.0]]))
        >>> A.read(Forward(np.ones(2)), Columns([1]))
        (array([3.]), array([[2.]]))
        """
        return tuple(request.evaluate(self) for request in requests)

    # All entries.

    @property
    def matrix(self) -> Any:
        """The matrix, an array or a scipy.sparse matrix; explicit maps only. It must not be modified."""
        raise self._missing("the matrix")

    def toarray(self) -> Array:
        """Return the matrix as an array; an operator is applied to the columns of the identity."""
        identity = np.eye(self.shape[1], dtype=np.float64)
        images = [self.forward(asarray_like(column, self.like)) for column in identity]
        return namespace(self.like).stack(images, axis=1)

    def _reader(self, method: str, what: str) -> Callable[[Any], Any]:
        reader = getattr(self, method, None)
        if reader is None:
            raise self._missing(what)
        found: Callable[[Any], Any] = reader
        return found

    def _missing(self, what: str) -> MissingCapabilityError:
        return MissingCapabilityError(
            f"{self.name} is {self.kind}: {what} can be read from a matrix only"
        )
