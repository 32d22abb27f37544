"""The linear maps ``D`` in ``g(Dx)``: the identity, matrices dense, sparse and on a device, and operators."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.arrays import asarray_like, namespace, to_numpy
from lopro.newton.arrays import Array, Matrix

__all__ = [
    "Dense",
    "Identity",
    "LinearMap",
    "OnDevice",
    "Operator",
    "Sparse",
    "as_map",
    "matrix_of",
]

#: Entries of rows on a device that are copied at a time: half a gigabyte of doubles.
_SLAB = 1 << 26


class LinearMap(Protocol):
    """A linear map from points to the space of a part."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        ...

    def forward(self, x: Array) -> Array:
        """Return ``D x``."""
        ...

    def adjoint(self, v: Array) -> Array:
        """Return ``D' v``."""
        ...

    def row_norms(self) -> Array:
        """Return the Euclidean norms of the rows (an estimate for operators)."""
        ...


@dataclass(frozen=True)
class Identity:
    """``D x = x`` in ``size`` dimensions."""

    size: int

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.size, self.size

    def forward(self, x: Array) -> Array:
        return x

    def adjoint(self, v: Array) -> Array:
        return v

    def row_norms(self) -> Array:
        return np.ones(self.size)


class Dense:
    """A dense matrix."""

    def __init__(self, M: Matrix) -> None:
        self.M: Array = np.asarray(M, dtype=np.float64)
        self.shape: tuple[int, int] = (self.M.shape[0], self.M.shape[1])

    def forward(self, x: Array) -> Array:
        return np.asarray(self.M @ x)

    def adjoint(self, v: Array) -> Array:
        """Return ``M' v``; few nonzeros in ``v`` are worth gathering their rows."""
        if v.size > 64:
            used = np.flatnonzero(v)
            if 4 * len(used) < v.size:
                return np.asarray(v[used] @ self.M[used])
        return np.asarray(v @ self.M)

    @cached_property
    def _norms(self) -> Array:
        return np.asarray(np.sqrt(np.einsum("ij,ij->i", self.M, self.M)))

    def row_norms(self) -> Array:
        return self._norms


class Sparse:
    """A sparse matrix; its transpose is kept in rows, too, so that both products are fast."""

    def __init__(self, M: Matrix) -> None:
        self.M: Matrix = scipy.sparse.csr_array(M, dtype=np.float64)
        self.shape: tuple[int, int] = (self.M.shape[0], self.M.shape[1])

    @cached_property
    def _transposed(self) -> Matrix:
        return self.M.T.tocsr()

    def forward(self, x: Array) -> Array:
        return np.asarray(self.M @ x)

    def adjoint(self, v: Array) -> Array:
        return np.asarray(self._transposed @ v)

    @cached_property
    def _norms(self) -> Array:
        return np.asarray(np.sqrt(np.asarray((self.M.multiply(self.M)).sum(axis=1)).ravel()))

    def row_norms(self) -> Array:
        return self._norms


class OnDevice:
    """A dense matrix in the memory of a device; vectors come from the host and go back to it.

    Parameters
    ----------
    M : array
        A matrix of doubles of PyTorch, JAX, CuPy or another library of the array API standard; not copied.
    """

    def __init__(self, M: Any) -> None:
        self.M = M
        self.shape: tuple[int, int] = (M.shape[0], M.shape[1])

    def there(self, v: Array) -> Any:
        """Return numbers of the host on the device."""
        return asarray_like(v, self.M)

    def forward(self, x: Array) -> Array:
        return to_numpy(self.M @ self.there(x))

    def adjoint(self, v: Array) -> Array:
        return to_numpy(self.M.T @ self.there(v))

    @property
    def xp(self) -> Any:
        """The library."""
        return namespace(self.M)

    def slabs(self, height: int | None = None) -> Iterator[tuple[slice, Any]]:
        """Yield the rows in slabs of this height, or of which a copy may be made, each with its range."""
        step = height or self.rows_at_a_time
        for start in range(0, self.shape[0], step):
            at = slice(start, min(start + step, self.shape[0]))
            yield at, self.M[at, :]

    @property
    def rows_at_a_time(self) -> int:
        """Rows of which a copy may be made."""
        return max(1, _SLAB // max(1, self.shape[1]))

    @cached_property
    def _norms(self) -> tuple[Array, Array]:
        """Lengths of rows and of columns, from one look at each entry."""
        of_rows, of_columns = [np.zeros(0)], np.zeros(self.shape[1])
        for _, slab in self.slabs():
            squares = slab * slab
            of_rows.append(to_numpy(self.xp.sum(squares, axis=1)))
            of_columns += to_numpy(self.xp.sum(squares, axis=0))
        return np.sqrt(np.concatenate(of_rows)), np.sqrt(of_columns)

    def row_norms(self) -> Array:
        return self._norms[0]

    def column_norms(self) -> Array:
        """Return the Euclidean norms of the columns."""
        return self._norms[1]


class Operator:
    """A map known by its products alone.

    Parameters
    ----------
    shape : (int, int)
        Rows and columns.
    forward, adjoint : callable
        The two products.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        forward: Callable[[Array], Array],
        adjoint: Callable[[Array], Array],
    ) -> None:
        self.shape = shape
        self.forward = forward
        self.adjoint = adjoint

    @cached_property
    def _norms(self) -> Array:
        # |D s|^2 over random signs has the squared Frobenius norm as its mean.
        rng = np.random.default_rng(0)
        signs = rng.choice([-1.0, 1.0], size=(8, self.shape[1]))
        squares = np.array([self.forward(s) for s in signs]) ** 2
        return np.full(self.shape[0], np.sqrt(squares.sum() / 8.0 / max(1, self.shape[0])))

    def row_norms(self) -> Array:
        """Return the root mean square of the row norms, for every row: columns are out of reach."""
        return self._norms


def matrix_of(D: LinearMap) -> Matrix | None:
    """Return the entries of a map that has them on the host, else None."""
    return D.M if isinstance(D, Dense | Sparse) else None


def as_map(D: Any, size: int | None = None) -> LinearMap:
    """Return ``D`` as a map: None is the identity, arrays and operators of SciPy are wrapped."""
    if D is None and size is not None:
        return Identity(size)
    if isinstance(D, Identity | Dense | Sparse | OnDevice | Operator):
        return D
    if scipy.sparse.issparse(D):
        return Sparse(D)
    if hasattr(D, "matvec"):
        return Operator(tuple(D.shape), D.matvec, D.rmatvec)
    return Dense(D)
