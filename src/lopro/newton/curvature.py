"""Second derivatives as lists of pieces, so that what solves with them can choose how.

Every generalised Hessian here is ``sum of D' (...) D``: a diagonal, a matrix that never changes,
``B' diag(h) B`` with a changing ``h``, or products alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from lopro.newton.arrays import Array, Matrix

__all__ = ["Constant", "Diagonal", "Gram", "Piece", "Product", "apply", "diagonal", "trace"]


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
    """``B' diag(weights) B`` with ``weights >= 0``: ``B`` never changes, the weights do.

    ``fixed`` is False where ``B`` itself is new in every step, so that nothing is remembered of it.
    """

    B: Matrix
    weights: Array
    fixed: bool = True

    def apply(self, s: Array) -> Array:
        return np.asarray((self.weights * (self.B @ s)) @ self.B)

    def diagonal(self) -> Array:
        squares = self.B * self.B if isinstance(self.B, np.ndarray) else self.B.multiply(self.B)
        return np.asarray(self.weights @ squares).ravel()


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


Piece: TypeAlias = Diagonal | Constant | Gram | Product


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
