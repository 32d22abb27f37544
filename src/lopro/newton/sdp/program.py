"""Semidefinite programs: ``min <C, X>`` over ``<A_k, X> = b_k``, X a positive semidefinite block matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.newton.arrays import Array, Matrix

__all__ = ["Block", "SemidefiniteProgram"]


@dataclass(frozen=True)
class Block:
    """A block of X: a symmetric matrix, or a vector of nonnegative numbers where it is diagonal.

    Attributes
    ----------
    size : int
        Rows of the matrix, or the number of numbers.
    diagonal : bool
        Which of the two.
    C : array
        The cost: a symmetric matrix, or a vector.
    A : scipy.sparse array, shape (rows, size^2 or size)
        The rows, as functions of the raveled block.
    """

    size: int
    diagonal: bool
    C: Array
    A: Matrix

    @staticmethod
    def of(
        size: int,
        diagonal: bool,
        rows: int,
        cost: tuple[Any, Any, Array],
        entries: tuple[Any, Any, Any, Array],
    ) -> Block:
        """Build a block from entries of one triangle: ``(i, j, value)`` and ``(k, i, j, value)``."""
        i, j, values = cost
        k, p, q, weights = entries
        if diagonal:
            C = np.bincount(i, weights=values, minlength=size).astype(np.float64)
            A = scipy.sparse.coo_array((weights, (k, p)), shape=(rows, size)).tocsr()
            return Block(size, True, C, A)
        C = np.zeros((size, size))
        np.add.at(C, (i, j), values)
        C = C + C.T - np.diag(C.diagonal())
        off = p != q
        places = np.concatenate([p * size + q, q[off] * size + p[off]])
        owners, both = np.concatenate([k, k[off]]), np.concatenate([weights, weights[off]])
        A = scipy.sparse.coo_array((both, (owners, places)), shape=(rows, size * size)).tocsr()
        return Block(size, False, C, A)

    @property
    def full(self) -> bool:
        """Whether the rows have so few zeros that a dense matrix is the faster one."""
        rows, columns = self.A.shape
        return bool(self.A.nnz > 0.3 * rows * columns)

    @property
    def identity(self) -> Array:
        """The centre of the cone: the identity matrix, or ones."""
        return np.ones(self.size) if self.diagonal else np.eye(self.size)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the block as an array."""
        return (self.size,) if self.diagonal else (self.size, self.size)


@dataclass(frozen=True)
class SemidefiniteProgram:
    """``min sum <C_p, X_p>`` over ``sum <A_kp, X_p> = b_k`` for all k, every ``X_p`` positive semidefinite.

    Its dual is ``max b'y`` over ``C - A*y`` positive semidefinite.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.newton.sdp import SemidefiniteProgram
    >>> program = SemidefiniteProgram.dense(np.diag([2.0, 1.0]), [np.eye(2)], [1.0])
    >>> program.value([np.eye(2) / 2])
    1.5
    """

    b: Array
    blocks: tuple[Block, ...]

    @staticmethod
    def dense(C: Any, rows: Sequence[Any], b: Any) -> SemidefiniteProgram:
        """Return a program with one block from dense symmetric matrices."""
        C = np.asarray(C, dtype=np.float64)
        A = scipy.sparse.csr_array(np.array([np.asarray(a, np.float64).ravel() for a in rows]))
        return SemidefiniteProgram(np.asarray(b, np.float64), (Block(len(C), False, C, A),))

    def value(self, X: Sequence[Array]) -> float:
        """Return ``<C, X>``."""
        return float(sum(np.sum(p.C * x) for p, x in zip(self.blocks, X, strict=True)))

    def size_of_terms(self, X: Sequence[Array]) -> float:
        """Return the sum of the absolute terms of ``<C, X>``."""
        return float(sum(np.abs(p.C * x).sum() for p, x in zip(self.blocks, X, strict=True)))

    def rows(self, X: Sequence[Array]) -> Array:
        """Return ``A X``."""
        total = np.zeros(len(self.b))
        for p, x in zip(self.blocks, X, strict=True):
            total += p.A @ x.ravel()
        return total

    def gram(self) -> Matrix:
        """Return ``A A*`` as a sparse matrix; rows that are full are multiplied as such."""
        parts = []
        for p in self.blocks:
            if p.full:
                A = p.A.toarray()
                parts.append(scipy.sparse.csr_array(A @ A.T))
            else:
                parts.append(p.A @ p.A.T)
        return sum(parts[1:], parts[0])

    def adjoint(self, y: Array) -> list[Array]:
        """Return ``A* y``, one array for each block."""
        return [np.asarray(y @ p.A).reshape(p.shape) for p in self.blocks]

    def slack(self, y: Array) -> list[Array]:
        """Return ``C - A* y``."""
        return [p.C - a for p, a in zip(self.blocks, self.adjoint(y), strict=True)]
