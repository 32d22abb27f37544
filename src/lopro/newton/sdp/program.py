"""Semidefinite programs: ``min <C, X>`` over ``<A_k, X> = b_k``, X a positive semidefinite block matrix.

Also their scaling to rows, costs and right-hand sides of about size 1, and inequalities as equations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.arrays import Array as AnyArray
from lopro.core.real_vectors import power_of_two
from lopro.linalg.dense import Array, Matrix, norm
from lopro.newton.sdp.entries import UsedEntries, row_squares

__all__ = ["ScaledProgram", "SemidefiniteBlock", "SemidefiniteProgram", "StandardRows"]


#: Number of entries up to which the images of all rows are formed, 300 MB. A tenth and ten times as much
#: change nothing in ``python -m benchmarks.constants newton.sdp``.
_IMAGES = 4e7


@dataclass(frozen=True)
class SemidefiniteBlock:
    """A block of X: a symmetric matrix, or a vector of nonnegative numbers if it is diagonal.

    Attributes
    ----------
    size : int
        Order of the matrix, or length of the vector.
    diagonal : bool
        Whether the block is diagonal.
    C : array
        The cost: a symmetric matrix, which may be on a device, or a vector.
    A : scipy.sparse array, shape (rows, size^2 or size)
        Coefficients of the raveled block in the rows.
    """

    size: int
    diagonal: bool
    C: AnyArray
    A: Matrix

    @staticmethod
    def of(
        size: int,
        diagonal: bool,
        rows: int,
        cost: tuple[Any, Any, Array],
        entries: tuple[Any, Any, Any, Array],
    ) -> SemidefiniteBlock:
        """Build a block from entries of one triangle: ``(i, j, value)`` and ``(k, i, j, value)``."""
        i, j, values = cost
        k, p, q, weights = entries
        if diagonal:
            C = np.bincount(i, weights=values, minlength=size).astype(np.float64)
            A = scipy.sparse.coo_array((weights, (k, p)), shape=(rows, size)).tocsr()
            return SemidefiniteBlock(size, True, C, A)
        C = np.zeros((size, size))
        np.add.at(C, (i, j), values)
        C = C + C.T - np.diag(C.diagonal())
        off = p != q
        places = np.concatenate([p * size + q, q[off] * size + p[off]])
        owners, both = np.concatenate([k, k[off]]), np.concatenate([weights, weights[off]])
        A = scipy.sparse.coo_array((both, (owners, places)), shape=(rows, size * size)).tocsr()
        return SemidefiniteBlock(size, False, C, A)

    @property
    def on_host(self) -> bool:
        """Whether the matrix is a NumPy array."""
        return isinstance(self.C, np.ndarray)

    @cached_property
    def used(self) -> UsedEntries:
        """The entries of a matrix block that the rows use."""
        return UsedEntries(self.A, self.size, self.C)

    def image(self, x: AnyArray) -> Array:
        """Return ``A x``, a vector on the host."""
        if isinstance(x, np.ndarray):
            return np.asarray(self.A @ x.ravel())
        return np.asarray(self.used.A @ self.used.of(x))

    def adjoint(self, y: Array) -> AnyArray:
        """Return ``A* y``, in the library of the block."""
        if self.on_host:
            return np.asarray(y @ self.A).reshape(self.shape)
        return self.used.matrix(y @ self.used.A)

    @property
    def full(self) -> bool:
        """Whether the rows have so few zeros that dense products are faster."""
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
    blocks: tuple[SemidefiniteBlock, ...]

    @staticmethod
    def dense(C: Any, rows: Sequence[Any], b: Any) -> SemidefiniteProgram:
        """Return a program with one block from dense symmetric matrices."""
        C = np.asarray(C, dtype=np.float64)
        A = scipy.sparse.csr_array(np.array([np.asarray(a, np.float64).ravel() for a in rows]))
        return SemidefiniteProgram(
            np.asarray(b, np.float64), (SemidefiniteBlock(len(C), False, C, A),)
        )

    def value(self, X: Sequence[Array]) -> float:
        """Return ``<C, X>``."""
        return float(sum(np.sum(p.C * x) for p, x in zip(self.blocks, X, strict=True)))

    def size_of_terms(self, X: Sequence[Array]) -> float:
        """Return the sum of the absolute terms of ``<C, X>``."""
        return float(sum(np.abs(p.C * x).sum() for p, x in zip(self.blocks, X, strict=True)))

    def rows(self, X: Sequence[AnyArray]) -> Array:
        """Return ``A X``."""
        total = np.zeros(len(self.b))
        for p, x in zip(self.blocks, X, strict=True):
            total += p.image(x)
        return total

    def gram(self) -> Matrix:
        """Return ``A A*`` as a sparse matrix; full rows are multiplied as dense ones."""
        parts = []
        for p in self.blocks:
            if p.full:
                A = p.A.toarray()
                parts.append(scipy.sparse.csr_array(A @ A.T))
            else:
                parts.append(p.A @ p.A.T)
        return sum(parts[1:], parts[0])

    @property
    def has_few_images(self) -> bool:
        """Whether the images of all rows under a change of basis, a matrix each, fit into memory."""
        matrices = sum(p.size**2 for p in self.blocks if not p.diagonal)
        return len(self.b) * matrices <= _IMAGES

    def adjoint(self, y: Array) -> list[AnyArray]:
        """Return ``A* y``, one array for each block."""
        return [p.adjoint(y) for p in self.blocks]

    def slack(self, y: Array) -> list[AnyArray]:
        """Return ``C - A* y``."""
        return [p.C - a for p, a in zip(self.blocks, self.adjoint(y), strict=True)]


@dataclass(frozen=True)
class ScaledProgram:
    """A program with rows, ``b`` and ``C`` divided by powers of two, and the map back."""

    program: SemidefiniteProgram
    rows: Array
    x: float
    cost: float

    @staticmethod
    def plain(program: SemidefiniteProgram) -> ScaledProgram:
        """Return the program without scaling."""
        return ScaledProgram(program, np.ones(len(program.b)), 1.0, 1.0)

    @staticmethod
    def of(program: SemidefiniteProgram) -> ScaledProgram:
        """Scale each row to about norm 1, then ``b`` and ``C``."""
        squares = np.zeros(len(program.b))
        for block in program.blocks:
            squares += row_squares(block.A)
        rows = np.array([power_of_two(s) for s in np.sqrt(squares)])
        x = power_of_two(norm(program.b / rows))
        cost = power_of_two(float(np.sqrt(sum(float(np.sum(p.C**2)) for p in program.blocks))))
        scale = scipy.sparse.diags_array(1.0 / rows)
        blocks = tuple(
            SemidefiniteBlock(p.size, p.diagonal, p.C / cost, scipy.sparse.csr_array(scale @ p.A))
            for p in program.blocks
        )
        return ScaledProgram(SemidefiniteProgram(program.b / (rows * x), blocks), rows, x, cost)

    def multipliers(self, y: Array) -> Array:
        """Return multipliers in the user's units."""
        return y * (self.cost / self.rows)

    def matrices(self, X: tuple[Array, ...]) -> tuple[Array, ...]:
        """Return a primal point in the user's units."""
        return tuple(x * self.x for x in X)


@dataclass(frozen=True)
class StandardRows:
    """``lower <= A x <= upper`` as ``A_k x + slack_k s = b_k``, ``s >= 0``.

    Attributes
    ----------
    A : scipy.sparse array
        The rows, once for each equation and for each side of an inequality.
    slack : scipy.sparse array
        One column for each inequality, with an entry of about the norm of the row, so that slacks have the
        units of x.
    b : array
        The right-hand sides.
    source : array of int
        The row of each equation.
    count : int
        The number of rows.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> from lopro.newton.sdp.program import StandardRows
    >>> A = scipy.sparse.csr_array(np.array([[4.0, 0.0], [0.0, 1.0]]))
    >>> rows = StandardRows.of(A, np.array([1.0, 2.0]), np.array([np.inf, 2.0]))
    >>> rows.A.toarray(), rows.slack.toarray().ravel(), rows.b
    (array([[4., 0.],
           [0., 1.]]), array([-4.,  0.]), array([1., 2.]))
    """

    A: Matrix
    slack: Matrix
    b: Array
    source: np.ndarray[Any, np.dtype[np.intp]]
    count: int

    @staticmethod
    def of(A: Matrix, lower: Array, upper: Array) -> StandardRows:
        """Split rows into equations and inequalities."""
        A = scipy.sparse.csr_array(A)
        equal = lower == upper
        above = np.flatnonzero(~equal & np.isfinite(upper))
        below = np.flatnonzero(~equal & np.isfinite(lower))
        same = np.flatnonzero(equal)
        units = np.array([power_of_two(size) for size in np.sqrt(row_squares(A))])
        # In the order of the rows, so that the program does not depend on the kinds of their sides.
        source = np.concatenate([same, above, below])
        coefficient = np.concatenate([np.zeros(len(same)), units[above], -units[below]])
        b = np.concatenate([upper[same], upper[above], lower[below]])
        order = np.argsort(source, kind="stable")
        source, coefficient, b = source[order], coefficient[order], b[order]
        own = np.flatnonzero(coefficient)
        places = own, np.arange(len(own))
        slack = scipy.sparse.csr_array((coefficient[own], places), (len(b), len(own)))
        return StandardRows(A[source], slack, b, source, A.shape[0])

    def multipliers(self, y: Array) -> Array:
        """Return one multiplier for each row, the sum of those of its sides."""
        return np.bincount(self.source, weights=y, minlength=self.count).astype(np.float64)

    def signed(self, y: Array) -> Array:
        """Return multipliers with 0 in place of those whose sign contradicts a nonnegative slack."""
        slopes = np.asarray(self.slack.sum(axis=1)).ravel()
        return np.where(slopes * y > 0.0, 0.0, y)

    def slacks(self, x: Array) -> Array:
        """Return the slacks of the sides at a point; nonnegative where they hold."""
        rows, columns = self.slack.nonzero()
        room = (self.b - self.A @ x)[rows] / self.slack.data
        found = np.empty(len(columns))
        found[columns] = room
        return found
