"""Second derivatives as lists of pieces, so that solvers of linear systems can use their structure.

Every generalised Hessian here is ``sum of D' (...) D``: a diagonal, a matrix that never changes,
``B' diag(h) B`` or ``B' blocks B`` with changing ``h`` or blocks, a matrix of low rank, or an operator known
by its products. Matrices may be on a device; the vectors that a piece takes and returns are on the host.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # parts of it load when first used
from array_api_compat import is_jax_array

from lopro.core.arrays import asarray_like, namespace, to_numpy
from lopro.linalg.dense import Array, Matrix
from lopro.maps.algebra import dense
from lopro.maps.host import rows_at_a_time, slabs

__all__ = [
    "LARGEST",
    "ConstantMatrix",
    "Diagonal",
    "Gram",
    "GroupBlocks",
    "LowRank",
    "Piece",
    "Product",
    "apply",
    "diagonal",
    "is_host_matrix",
    "trace",
]


#: Largest size of dense matrices that are formed and factorised: half a gigabyte, and 2e11 operations.
LARGEST = 8192


class Piece:
    """A summand of a Hessian: its products, and its structure for the solvers of linear systems."""

    #: Whether the matrix is in the memory of a device.
    on_device: bool = False
    #: Whether it is sparse, or diagonal.
    sparse: bool = False
    #: Whether it changes in every step by more than its coefficients.
    renewed: bool = False
    #: B of a piece ``B' S B`` (None for others), and the number of rows of a block of S.
    factor: Any = None
    height: int = 1
    #: Numbers that change in each step, on which the entries, of a fixed pattern, depend linearly; or None.
    coefficients: Any = None

    def apply(self, s: Array) -> Array:
        """Return the product with a vector on the host."""
        raise NotImplementedError

    def diagonal(self) -> Array:
        """Return the diagonal, or its mean where only products are known."""
        raise NotImplementedError

    def dense(self) -> Array:
        """Return the matrix as an array on the host."""
        raise TypeError("a matrix on a device is not copied to the host")

    def assembled(self) -> Any:
        """Return the matrix, on its device."""
        return self.dense()


@dataclass(frozen=True)
class Diagonal(Piece):
    """``diag(values)``, not negative."""

    values: Array
    sparse = True

    @property
    def coefficients(self) -> Array:
        """The diagonal."""
        return self.values

    def apply(self, s: Array) -> Array:
        return self.values * s

    def diagonal(self) -> Array:
        return self.values


@dataclass(frozen=True)
class ConstantMatrix(Piece):
    """A positive semidefinite matrix, dense, sparse or on a device, that is the same at every point."""

    matrix: Matrix

    @property
    def on_device(self) -> bool:  # type: ignore[override]
        """Whether the matrix is in the memory of a device."""
        return not is_host_matrix(self.matrix)

    @property
    def sparse(self) -> bool:  # type: ignore[override]
        """Whether the matrix is sparse."""
        return bool(scipy.sparse.issparse(self.matrix))

    def dense(self) -> Array:
        return dense(self.matrix)

    def apply(self, s: Array) -> Array:
        if self.on_device:
            return to_numpy(self.matrix @ asarray_like(s, self.matrix))
        return np.asarray(self.matrix @ s)

    def diagonal(self) -> Array:
        if self.on_device:
            return np.array(to_numpy(namespace(self.matrix).linalg.diagonal(self.matrix)))
        return np.asarray(self.matrix.diagonal())

    def assembled(self) -> Any:
        return self.matrix


class _Congruence(Piece):
    """``B' S B`` with a constant ``B``."""

    B: Matrix

    @property
    def sparse(self) -> bool:  # type: ignore[override]
        """Whether ``B`` is sparse."""
        return bool(scipy.sparse.issparse(self.B))

    @property
    def factor(self) -> Matrix:
        """``B``."""
        return self.B


@dataclass(frozen=True)
class Gram(_Congruence):
    """``B' diag(weights) B`` with a constant ``B`` and ``weights >= 0`` that change.

    The weights are on the device of the matrix.
    """

    B: Matrix
    weights: Any

    @property
    def on_device(self) -> bool:  # type: ignore[override]
        """Whether the matrix is in the memory of a device."""
        return not is_host_matrix(self.B)

    @property
    def coefficients(self) -> Any:
        """The weights."""
        return self.weights

    def apply(self, s: Array) -> Array:
        if self.on_device:
            return to_numpy(self.B.T @ (self.weights * (self.B @ asarray_like(s, self.B))))
        return np.asarray((self.weights * (self.B @ s)) @ self.B)

    def diagonal(self) -> Array:
        if self.on_device:
            parts = ((slab * slab).T @ self.weights[at] for at, slab in slabs(self.B))
            return np.array(to_numpy(functools.reduce(operator.add, parts)))
        squares = self.B * self.B if isinstance(self.B, np.ndarray) else self.B.multiply(self.B)
        return np.asarray(self.weights @ squares).ravel()

    def assembled(self) -> Any:
        """Return the matrix, on its device; where few weights are nonzero only their rows are multiplied."""
        xp, roots = namespace(self.B), namespace(self.B).sqrt(self.weights)
        if not is_jax_array(roots):  # JAX compiles a program for every new shape
            used = xp.nonzero(self.weights)[0]
            if 2 * used.shape[0] < self.B.shape[0] and used.shape[0] <= rows_at_a_time(self.B):
                return _square(xp, xp.take(self.B, used, axis=0), xp.take(roots, used))
        parts = (_square(xp, slab, roots[at]) for at, slab in slabs(self.B))
        return functools.reduce(operator.add, parts)


def is_host_matrix(M: Matrix) -> bool:
    """Whether a matrix is a NumPy array or a scipy.sparse array."""
    return isinstance(M, np.ndarray) or bool(scipy.sparse.issparse(M))


def _square(xp: Any, rows: Any, roots: Any) -> Any:
    scaled = rows * xp.expand_dims(roots, axis=1)
    return scaled.T @ scaled


@dataclass(frozen=True)
class GroupBlocks(_Congruence):
    """``B' S B`` with a constant ``B`` and a block diagonal ``S >= 0`` whose blocks change.

    ``blocks`` has the shape (groups, k, k); a group is k consecutive rows of ``B``.
    """

    B: Matrix
    blocks: Array
    renewed = True

    @property
    def height(self) -> int:  # type: ignore[override]
        """Number of rows of a group."""
        return int(self.blocks.shape[1])

    @property
    def coefficients(self) -> Array:
        """The entries of the blocks, one after the other."""
        return self.blocks.ravel()

    def dense(self) -> Array:
        return dense(self.B.T @ (self.middle @ self.B))

    @property
    def middle(self) -> Matrix:
        """``S`` as a sparse matrix."""
        groups = len(self.blocks)
        return scipy.sparse.bsr_array((self.blocks, np.arange(groups), np.arange(groups + 1)))

    def apply(self, s: Array) -> Array:
        return np.asarray((self.middle @ (self.B @ s)) @ self.B)

    def diagonal(self) -> Array:
        image = self.middle @ self.B
        products = self.B * image if isinstance(self.B, np.ndarray) else self.B.multiply(image)
        return np.asarray(products.sum(axis=0)).ravel()


@dataclass(frozen=True)
class LowRank(Piece):
    """``rows' core rows`` with few rows, new in every step, and a symmetric core of any sign.

    It may be indefinite; its sum with the other pieces is positive semidefinite.
    """

    rows: Array
    core: Array
    renewed = True

    def dense(self) -> Array:
        return np.asarray(self.rows.T @ (self.core @ self.rows))

    def apply(self, s: Array) -> Array:
        return np.asarray((self.core @ (self.rows @ s)) @ self.rows)

    def diagonal(self) -> Array:
        return np.asarray(np.einsum("ki,ki->i", self.rows, self.core @ self.rows))


@dataclass(frozen=True)
class Product(Piece):
    """A positive semidefinite operator known by its products; ``mean`` estimates its mean eigenvalue."""

    product: Callable[[Array], Array]
    mean: float
    size: int
    renewed = True

    def dense(self) -> Array:
        return np.array([self.product(e) for e in np.eye(self.size)])

    def apply(self, s: Array) -> Array:
        return self.product(s)

    def diagonal(self) -> Array:
        return np.full(self.size, self.mean)


def apply(pieces: Sequence[Piece], s: Array) -> Array:
    """Return the product of the sum of the pieces with ``s``."""
    total = np.zeros_like(s)
    for piece in pieces:
        total += piece.apply(s)
    return total


def diagonal(pieces: Sequence[Piece], size: int) -> Array:
    """Return the diagonal of the sum of the pieces (its mean where only products are known)."""
    total = np.zeros(size)
    for piece in pieces:
        total += piece.diagonal()
    return total


def trace(pieces: Sequence[Piece], size: int) -> float:
    """Return the trace of the sum of the pieces."""
    return float(diagonal(pieces, size).sum())
