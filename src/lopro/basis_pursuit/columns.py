"""The columns of a working set with their Gram matrix, which may be in single precision.

Vectors as long as the number of columns or rows (signs, coefficients, residuals) are NumPy's, in double
precision, on the host. Columns and their Gram matrix stay where the matrix is. Where the Gram matrix is in
single precision, factors of it cost half and are corrected by residuals in double precision.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.arrays import Array, from_numpy, is_single, namespace, to_numpy
from lopro.core.deadline import current_deadline
from lopro.core.device_cholesky import device_factor
from lopro.errors import StalledError
from lopro.maps import LinearMap, NumPyMap, SparseMap
from lopro.maps.algebra import dense, gram_of, times_for, widened

__all__ = [
    "SETTINGS",
    "ColumnSet",
    "DeviceColumns",
    "Solver",
    "Vector",
    "cholesky_routines",
    "column_set",
    "columns_to_add",
    "largest",
    "submatrix",
]

Vector: TypeAlias = "np.ndarray[Any, Any]"
#: Solves with the Gram matrix of a support, for a vector or for the columns of a block.
Solver: TypeAlias = "Callable[[Vector], Vector]"


@dataclass(frozen=True)
class Settings:
    """Sizes that steer how columns are held."""

    #: Columns of one array on the host: blocks of 256 reach the speed of matrix products.
    piece: int = 256
    #: Entries up to which two neighbouring pieces are copied into one, 256 KiB: a call costs more.
    small: int = 2**15
    #: In roundings: a column of whose square others leave less counts as dependent on them.
    dependent: float = 1e3
    #: Entries of this size have squares and sums of squares in the range of single precision.
    usual: tuple[float, float] = (1e-6, 1e6)
    #: Columns of one array on a device, widened at a time: few calls, and no wide copy of all of them.
    device_piece: int = 1024
    #: Rows and columns from which on a Gram matrix in single precision pays; the support decides. `bpdn` on
    #: one thread, double and single: 253 and 285 ms for 700 x 3000; 44 and 54 for 1000 x 5000 with 100
    #: nonzeros, 256 and 220 with 200; 1.34 and 0.83 s for 2000 x 8000 with 0.3 of the noise as sigma; 0.99
    #: and 0.78 s for 4000 x 20000.
    single_from: int = 1000


SETTINGS = Settings()


@functools.cache
def cholesky_routines(dtype: str) -> tuple[Any, Any, Any, Any]:
    """Return LAPACK's potrf, potrs, pstrf and posv for a type: a look-up takes as long as a small factor."""
    names = ("potrf", "potrs", "pstrf", "posv")
    return tuple(scipy.linalg.get_lapack_funcs(names, dtype=np.dtype(dtype)))


class ColumnSet:
    """Some columns of a matrix, their Gram matrix and their correlations with ``y``, real or complex.

    ``y`` may be several right-hand sides, the columns of an array. Columns are held in pieces, sparse ones
    where they come sparse, and the Gram matrix exactly, so that memory is what the columns take.

    Parameters
    ----------
    y : array
        The right-hand side.
    weights : array of length d
        Of all columns of the matrix.
    single : bool
        Hold the Gram matrix in single precision, until `to_double` is called.
    """

    def __init__(self, y: Vector, weights: Vector, *, single: bool = False) -> None:
        self.y = y
        #: Added to the diagonal of the Gram matrix where it is factored: the weight of ``|x|^2 / 2``.
        self.ridge = 0.0
        self._all_weights = weights
        self.indices = np.empty(0, dtype=np.intp)
        self.weights = np.empty(0, dtype=weights.dtype)
        self.correlations = np.empty((0, *y.shape[1:]), dtype=y.dtype)
        self.single = single
        #: ``A^H A`` of the columns; in single precision, of the columns times `_scale`.
        self.gram: Any = np.empty((0, 0), dtype=np.float32 if single else y.dtype)
        self._pieces: list[Any] = []  # columns in the order of the indices
        self._copies: list[Any] = []  # of the pieces, scaled, in single precision
        self._scale = 1.0  # a power of two
        self._most = (self.correlations, 0.0)

    @property
    def most(self) -> float:
        """The largest correlation with ``y`` in units of the weights, alpha at x = 0; kept."""
        of, most = self._most
        if of is not self.correlations:
            most = float((np.abs(self.correlations) / self.weights).max(initial=0.0))
            self._most = (self.correlations, most)
        return most

    def __len__(self) -> int:
        return len(self.indices)

    # Which columns.

    def extend(
        self, indices: Vector, read: Callable[[Vector], Vector], correlations: Vector
    ) -> None:
        """Add columns; ``read`` returns those asked for as the columns of a matrix."""
        n, total = len(self), len(self) + len(indices)
        gram = np.empty((total, total), dtype=self.gram.dtype)
        gram[:n, :n] = self.gram
        self.gram = gram
        for start in range(n, total, SETTINGS.piece):
            stop = min(start + SETTINGS.piece, total)
            self._append(read(indices[start - n : stop - n]), start)
        self._add_indices(indices, correlations)

    def _add_indices(self, indices: Vector, correlations: Vector) -> None:
        self.indices = np.concatenate([self.indices, indices])
        self.weights = self._all_weights[self.indices]
        self.correlations = np.concatenate([self.correlations, correlations])

    def _append(self, new: Any, start: int) -> None:
        """Hold another piece and fill in the border of the Gram matrix that belongs to it."""
        stop = start + new.shape[1]
        if self.single and not self._pieces:
            self._scale = _scale_for(new)
        self._pieces.append(new)
        for (at, _), product in zip(self._placed(), self._products_with_last(), strict=True):
            self.gram[start:stop, at] = product
        self.gram[:start, start:stop] = self.gram[start:stop, :start].conj().T
        for pieces in (self._copies, self._pieces):
            _join_last(pieces)

    def _products_with_last(self) -> list[Vector]:
        """Return the products of the last piece with all of them, in the precision of the Gram matrix."""
        new = self._pieces[-1]
        if not self.single:
            return [dense(gram_of(new, piece)) for piece in self._pieces]
        scaled = new if self._scale == 1.0 else self._scale * new
        with np.errstate(over="ignore", invalid="ignore"):  # the factor will tell
            self._copies.append(scaled.astype(np.float32))
            return [self._copies[-1].T @ copy for copy in self._copies]

    def keep(self, stays: Vector) -> None:
        """Drop the columns that do not stay."""
        self.gram = submatrix(self.gram, np.flatnonzero(stays))
        for pieces in (self._copies, self._pieces):
            _compress(pieces, stays)
        self._keep_indices(np.flatnonzero(stays))

    def _keep_indices(self, kept: Vector) -> None:
        self.indices, self.weights = self.indices[kept], self.weights[kept]
        self.correlations = self.correlations[kept]

    def to_double(self) -> None:
        """Compute the Gram matrix in double precision, now and for columns to come."""
        if self.single:
            self.single, self._copies, self._scale = False, [], 1.0
            self.gram = np.empty((len(self), len(self)), dtype=self.y.dtype)
            pieces, self._pieces, start = self._pieces, [], 0
            for piece in pieces:
                current_deadline().check()
                self._append(piece, start)
                start += piece.shape[1]

    def _placed(self) -> Iterator[tuple[slice, Any]]:
        """Yield the pieces, each with the places of its columns."""
        at = 0
        for piece in self._pieces:
            yield slice(at, at + piece.shape[1]), piece
            at += piece.shape[1]

    def toarray(self) -> Vector:
        """Return the columns side by side."""
        return np.concatenate([dense(piece) for piece in self._pieces], axis=1)

    @property
    def rank(self) -> float:
        """The most columns that may be independent: the rows, or any number with a ridge."""
        return math.inf if self.ridge > 0.0 else len(self.y)

    # Products.

    def forward(self, x: Vector) -> Vector:
        """Return ``A x`` for coefficients of all columns of the set, one vector or the columns of a block."""
        image = np.zeros((len(self.y), *x.shape[1:]), dtype=self.y.dtype)
        for at, piece in self._placed():
            image += piece @ x[at]
        return image

    def adjoint(self, r: Vector) -> Vector:
        """Return ``A^H r`` for all columns of the set."""
        pulled = np.empty_like(self.correlations)
        for at, piece in self._placed():
            pulled[at] = piece.conj().T @ r
        return pulled

    # Factors.

    def factor(self, support: Vector) -> Solver | None:
        """Return a solver for the Gram matrix of some columns; None where they are dependent, nearly."""
        if support.size == 0:
            return lambda right: right
        current_deadline().need(support.size**3 / 3.0)
        G = submatrix(self.gram, support)
        if self.ridge > 0.0:
            np.einsum("ii->i", G)[:] += self._scale**2 * self.ridge
        potrf, potrs, *_ = cholesky_routines(G.dtype.char)
        least = self._dependent * G.diagonal()
        # G is symmetric, and its transpose is in the order LAPACK wants: nothing is copied.
        factor, info = potrf(G.T, lower=True, overwrite_a=True, clean=False)
        # Written so that what is not a number counts as too close.
        if info != 0 or not bool((np.diagonal(factor) ** 2 > least).all()):
            return None
        if not self.single:
            return lambda right: np.asarray(potrs(factor, right, lower=True)[0])
        square = self._scale**2

        def solve(right: Vector) -> Vector:
            # In units of their sizes: single precision has a short range.
            size = np.abs(right).max(axis=0)
            size = np.where(size > 0.0, size, 1.0)
            solved, _ = potrs(factor, (right / size).astype(np.float32), lower=True)
            return np.asarray(solved.astype(np.float64) * (size * square))

        return solve

    @property
    def _dependent(self) -> float:
        """The share of a column's square that others must leave."""
        return SETTINGS.dependent * float(np.finfo(np.float32 if self.single else np.float64).eps)

    def independent(self, support: Vector) -> tuple[Vector, Solver]:
        """Return a largest independent part of some columns, found by pivoting, and a solver for it."""
        G = self._host_gram_of(support)
        potrf, potrs, pstrf, _ = cholesky_routines(G.dtype.char)
        least = float((self._dependent * G.diagonal()).max(initial=0.0))
        _, pivots, rank, _ = pstrf(G, lower=True, tol=least)
        left = np.delete(support, pivots[rank:] - 1)
        if left.size == 0:
            return left, lambda right: right
        factor, info = potrf(self._host_gram_of(left), lower=True, clean=False)
        if info != 0:
            raise StalledError("the Gram matrix of independent columns is not definite")
        return left, lambda right: np.asarray(potrs(factor, right, lower=True)[0])

    def _host_gram_of(self, positions: Vector) -> Vector:
        """Return what is factored for some columns, on the host."""
        return submatrix(self.host_gram, positions) + self.ridge * np.eye(len(positions))

    @property
    def host_gram(self) -> Vector:
        """The Gram matrix on the host."""
        return np.asarray(self.gram)


def submatrix(matrix: Vector, positions: Vector) -> Vector:
    """Return the rows and columns at some positions; columns first, then whole rows, is the quickest way."""
    return matrix.take(positions, axis=1).take(positions, axis=0)


def largest(sizes: Vector, count: int) -> Vector:
    """Return the positions of the ``count`` largest entries, in no order."""
    if count >= len(sizes):
        return np.arange(len(sizes))
    return np.argpartition(-sizes, count)[:count]


def columns_to_add(signs: Vector, rows: float, part: int) -> int:
    """Return how many columns may join those with a sign: a part of them, and fewer as rows run out.

    With more columns than rows the pivot order would decide which are dropped.
    """
    n = int(np.count_nonzero(signs))
    return int(min(max(10, n // part), max(1.0, 0.5 * (rows - n))))


def _scale_for(block: Vector) -> float:
    """Return a power of two that brings the entries of a block to a usual size."""
    peak = float(np.abs(block).max(initial=0.0))
    if peak == 0.0 or SETTINGS.usual[0] < peak < SETTINGS.usual[1]:
        return 1.0
    return math.ldexp(1.0, -math.frexp(peak)[1])


def _join_last(pieces: list[Any]) -> None:
    """Copy the last two pieces into one where they are small: each is a call of its own in products."""
    if len(pieces) < 2 or scipy.sparse.issparse(pieces[-1]) or scipy.sparse.issparse(pieces[-2]):
        return
    rows, columns = pieces[-1].shape
    if rows * (columns + pieces[-2].shape[1]) <= SETTINGS.small:
        last = pieces.pop()
        pieces[-1] = np.concatenate([pieces[-1], last], axis=1)


def _compress(pieces: list[Any], stays: Vector) -> None:
    """Keep the columns that stay, piece by piece: there is never a second copy of all columns."""
    at = 0
    for i, piece in enumerate(pieces):
        mask = stays[at : at + piece.shape[1]]
        at += piece.shape[1]
        if not mask.all():
            pieces[i] = piece[:, mask]
        del piece
    pieces[:] = [piece for piece in pieces if piece.shape[1] > 0]


def column_set(A: LinearMap, like: Array, y: Vector, weights: Vector, equations: bool) -> ColumnSet:
    """Return a set of no columns yet, for a map and points of the library and precision of ``like``.

    Equations have no residual that could correct a Gram matrix in single precision. Sparse columns are few
    numbers: those of single precision are held in double precision.
    """
    other = not isinstance(like, np.ndarray) or is_single(like)
    if other and not isinstance(A, SparseMap):
        return DeviceColumns(like, y, weights)
    single = isinstance(A, NumPyMap) and min(A.shape) >= SETTINGS.single_from and not equations
    return ColumnSet(y, weights, single=single)


class DeviceColumns(ColumnSet):
    """Some columns of a real matrix and their Gram matrix, in the library and on the device of ``like``.

    Columns in single precision are widened a piece at a time; the Gram matrix is in double precision.
    """

    def __init__(self, like: Array, y: Vector, weights: Vector) -> None:
        super().__init__(y, weights)
        self._like = widened(like)
        self._data_single = is_single(like)
        self._times = times_for(like)
        self.gram = from_numpy(np.empty((0, 0)), self._like)

    @property
    def host_gram(self) -> Vector:
        return to_numpy(self.gram)

    def _gram_of(self, positions: Vector) -> Array:
        """Return the Gram matrix of some of the columns, on the device."""
        return self._taken(self._taken(self.gram, positions, 0), positions, 1)

    def _taken(self, block: Array, positions: Vector, axis: int) -> Array:
        return namespace(block).take(block, from_numpy(positions, block), axis=axis)

    def extend(
        self, indices: Vector, read: Callable[[Vector], Array], correlations: Vector
    ) -> None:
        there, own = from_numpy(self.y, self._like), [np.empty(0)]
        for start in range(0, len(indices), SETTINGS.device_piece):
            new = read(indices[start : start + SETTINGS.device_piece])
            self._append(new, len(self) + start)
            if self._data_single:
                own.append(to_numpy(self._times(widened(new).T, there)))
        if self._data_single:
            # Those of all columns may be sums in single precision.
            correlations = np.concatenate(own)
        self._add_indices(indices, correlations)

    def _append(self, new: Array, start: int) -> None:
        """Hold a piece: the Gram matrix grows by a border."""
        xp, wide = namespace(self._like), widened(new)
        corner = self._times(wide.T, wide)
        if self._pieces:
            beside = xp.concat(
                [self._times(wide.T, widened(piece)) for piece in self._pieces], axis=1
            )
            upper = xp.concat([self.gram, beside.T], axis=1)
            corner = xp.concat([upper, xp.concat([beside, corner], axis=1)], axis=0)
        self.gram = corner
        self._pieces.append(new)
        self._join_small_pieces()

    def _join_small_pieces(self) -> None:
        """Copy neighbours into one as long as they are small: each piece is a call of its own in products."""
        joined: list[Array] = []
        for piece in self._pieces:
            if joined and joined[-1].shape[1] + piece.shape[1] <= SETTINGS.device_piece:
                piece = namespace(piece).concat([joined.pop(), piece], axis=1)
            joined.append(piece)
        self._pieces = joined

    def keep(self, stays: Vector) -> None:
        kept = np.flatnonzero(stays)
        self.gram = self._gram_of(kept)
        for i, (at, piece) in enumerate(self._placed()):
            if not stays[at].all():
                self._pieces[i] = self._taken(piece, np.flatnonzero(stays[at]), 1)
        self._pieces = [piece for piece in self._pieces if piece.shape[1] > 0]
        self._join_small_pieces()
        self._keep_indices(kept)

    def forward(self, x: Vector) -> Vector:
        there = from_numpy(x, self._like)
        parts = [self._times(widened(piece), there[at, ...]) for at, piece in self._placed()]
        if not parts:
            return np.zeros((len(self.y), *x.shape[1:]))
        return to_numpy(sum(parts[1:], start=parts[0]))

    def adjoint(self, r: Vector) -> Vector:
        there = from_numpy(r, self._like)
        parts = [self._times(widened(piece).T, there) for piece in self._pieces]
        xp = namespace(self._like)
        return to_numpy(xp.concat(parts)) if parts else np.empty_like(self.correlations)

    def factor(self, support: Vector) -> Solver | None:
        """Return a solver; None where columns are dependent, or the library has no factor."""
        if support.size == 0 or isinstance(self.gram, np.ndarray):
            return super().factor(support)
        current_deadline().check()
        there = self._gram_of(support)
        if self.ridge > 0.0:
            there = there + from_numpy(self.ridge * np.eye(support.size), there)
        found = device_factor(there)
        dependent = SETTINGS.dependent * float(np.finfo(np.float64).eps)
        return None if found is None or found.loses(dependent) else found.solve
