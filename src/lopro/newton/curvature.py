"""Second derivatives as lists of pieces, so that what solves with them can choose how.

Every generalised Hessian here is ``sum of D' (...) D``: a diagonal, a matrix that never changes,
``B' diag(h) B`` or ``B' blocks B`` with changing ``h`` or blocks, a few rows, or products alone. Matrices
may be those of a device; then what a piece returns of the size of a vector is on the host all the same.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy  # parts of it load when first used
from array_api_compat import is_jax_array

from lopro.core.arrays import to_numpy
from lopro.newton.arrays import Array, Matrix
from lopro.newton.maps import Dense, Identity, LinearMap, OnDevice, Sparse

__all__ = [
    "Blocks",
    "Constant",
    "ConstantOnDevice",
    "Diagonal",
    "Gram",
    "GramOnDevice",
    "LowRank",
    "Piece",
    "Product",
    "apply",
    "diagonal",
    "trace",
    "weighted",
]


@dataclass(frozen=True)
class Diagonal:
    """``diag(values)``, not negative."""

    values: Array

    def apply(self, s: Array) -> Array:
        return self.values * s

    def diagonal(self) -> Array:
        return self.values


@dataclass(frozen=True)
class Constant:
    """A positive semidefinite matrix, dense or sparse, that is the same at every point."""

    matrix: Matrix

    def apply(self, s: Array) -> Array:
        return np.asarray(self.matrix @ s)

    def diagonal(self) -> Array:
        return np.asarray(self.matrix.diagonal())


@dataclass(frozen=True)
class Gram:
    """``B' diag(weights) B`` with ``weights >= 0``: ``B`` never changes, the weights do."""

    B: Matrix
    weights: Array

    def apply(self, s: Array) -> Array:
        return np.asarray((self.weights * (self.B @ s)) @ self.B)

    def diagonal(self) -> Array:
        squares = self.B * self.B if isinstance(self.B, np.ndarray) else self.B.multiply(self.B)
        return np.asarray(self.weights @ squares).ravel()


@dataclass(frozen=True)
class ConstantOnDevice:
    """A positive semidefinite matrix on a device that is the same at every point."""

    P: OnDevice

    def apply(self, s: Array) -> Array:
        return self.P.forward(s)

    def diagonal(self) -> Array:
        return np.array(to_numpy(self.P.xp.linalg.diagonal(self.P.M)))

    def matrix(self) -> Any:
        """Return the matrix, on the device."""
        return self.P.M


@dataclass(frozen=True)
class GramOnDevice:
    """``B' diag(weights) B`` with ``weights >= 0`` and ``B`` on a device; the weights are there, too."""

    B: OnDevice
    weights: Any

    def apply(self, s: Array) -> Array:
        return to_numpy(self.B.M.T @ (self.weights * (self.B.M @ self.B.there(s))))

    def diagonal(self) -> Array:
        parts = ((slab * slab).T @ self.weights[at] for at, slab in self.B.slabs())
        return np.array(to_numpy(functools.reduce(operator.add, parts)))

    def matrix(self) -> Any:
        """Return the matrix, on the device; few rows with a weight are gathered."""
        xp, roots = self.B.xp, self.B.xp.sqrt(self.weights)
        if not is_jax_array(roots):  # JAX compiles a program for every shape it has not seen
            used = xp.nonzero(self.weights)[0]
            if 2 * used.shape[0] < self.B.shape[0] and used.shape[0] <= self.B.rows_at_a_time:
                return _square(xp, xp.take(self.B.M, used, axis=0), xp.take(roots, used))
        parts = (_square(xp, slab, roots[at]) for at, slab in self.B.slabs())
        return functools.reduce(operator.add, parts)


def _square(xp: Any, rows: Any, roots: Any) -> Any:
    scaled = rows * xp.expand_dims(roots, axis=1)
    return scaled.T @ scaled


@dataclass(frozen=True)
class Blocks:
    """``B' S B`` with a block diagonal ``S >= 0``: ``B`` never changes, the blocks do.

    ``blocks`` has the shape (groups, k, k); a group is k consecutive rows of ``B``.
    """

    B: Matrix
    blocks: Array

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
class LowRank:
    """``rows' core rows`` with few rows, new in every step, and a symmetric core of any sign.

    By itself it may be indefinite; the sum with the other pieces is not.
    """

    rows: Array
    core: Array

    def apply(self, s: Array) -> Array:
        return np.asarray((self.core @ (self.rows @ s)) @ self.rows)

    def diagonal(self) -> Array:
        return np.asarray(np.einsum("ki,ki->i", self.rows, self.core @ self.rows))


@dataclass(frozen=True)
class Product:
    """A positive semidefinite matrix known by its products; ``mean`` is about its mean eigenvalue."""

    product: Callable[[Array], Array]
    mean: float
    size: int

    def apply(self, s: Array) -> Array:
        return self.product(s)

    def diagonal(self) -> Array:
        return np.full(self.size, self.mean)


Piece: TypeAlias = (
    Diagonal | Constant | ConstantOnDevice | Gram | GramOnDevice | Blocks | LowRank | Product
)


def weighted(D: LinearMap, weights: Array) -> Piece:
    """Return ``D' diag(weights) D`` for weights that are not negative.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.newton.curvature import weighted
    >>> from lopro.newton.maps import Identity
    >>> weighted(Identity(2), np.array([1.0, 3.0]))
    Diagonal(values=array([1., 3.]))
    """
    if isinstance(D, Identity):
        return Diagonal(weights)
    if isinstance(D, Dense | Sparse):
        return Gram(D.M, weights)
    if isinstance(D, OnDevice):
        return GramOnDevice(D, D.there(weights))
    norms = D.row_norms()
    mean = float(weights @ (norms * norms)) / D.shape[1]
    return Product(lambda s: D.adjoint(weights * D.forward(s)), mean, D.shape[1])


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
