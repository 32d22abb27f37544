"""The columns of a working set with their Gram matrix, which may be in single precision.

Vectors as long as the number of columns or rows (signs, coefficients, residuals) are NumPy's, in double
precision, on the host. Columns and their Gram matrix stay where the matrix is. Where the Gram matrix is in
single precision, factors of it cost half and are corrected by residuals in double precision.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.arrays import Array, from_numpy, is_single, namespace, to_numpy
from lopro.core.deadline import current_deadline
from lopro.core.device_cholesky import device_factor
from lopro.errors import StalledError
from lopro.maps import Adjoint, Columns, LinearMap, NumPyMap, SparseMap
from lopro.maps.algebra import dense, gram_of, times_for, widened

__all__ = [
    "SETTINGS",
    "ColumnSet",
    "DeviceColumns",
    "PassRequest",
    "PassRequests",
    "Pool",
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
    #: Of the nonzeros: columns that may join where these are as many as rows, with a ridge. The elastic net
    #: of `benchmarks.lasso`, 1500 x 15000 at a fiftieth, takes 29 products without this limit, 9 with a
    #: quarter or a tenth; at a two-hundredth 38, 40 and 19.
    beyond: float = 0.1
    #: Bytes of columns that a pool holds beside those in use.
    capacity: int = 2**29


SETTINGS = Settings()


@functools.cache
def cholesky_routines(dtype: str) -> tuple[Any, Any, Any, Any]:
    """Return LAPACK's potrf, potrs, pstrf and posv for a type: a look-up takes as long as a small factor."""
    names = ("potrf", "potrs", "pstrf", "posv")
    return tuple(scipy.linalg.get_lapack_funcs(names, dtype=np.dtype(dtype)))


class Pieces(list[Any]):
    """Columns side by side in several arrays; there is never a second copy of all of them."""

    def append_columns(self, new: Any, fits: Callable[[int], bool]) -> None:
        """Hold another array; join neighbours where so many columns fit: each is a call in products."""
        self.append(new)
        joined: list[Any] = []
        for piece in self:
            dense = joined and not (
                scipy.sparse.issparse(piece) or scipy.sparse.issparse(joined[-1])
            )
            if dense and fits(joined[-1].shape[1] + piece.shape[1]):
                piece = namespace(piece).concat([joined.pop(), piece], axis=1)
            joined.append(piece)
        self[:] = joined

    def placed(self) -> Iterator[tuple[slice, Any]]:
        """Yield the arrays, each with the places of its columns."""
        at = 0
        for piece in self:
            yield slice(at, at + piece.shape[1]), piece
            at += piece.shape[1]

    def keep(self, stays: Vector) -> None:
        """Drop the columns that do not stay."""
        for i, (at, piece) in enumerate(self.placed()):
            if not stays[at].all():
                self[i] = _taken(piece, np.flatnonzero(stays[at]))
        self[:] = [piece for piece in self if piece.shape[1] > 0]


def _taken(block: Any, positions: Vector) -> Any:
    """Return some columns of an array."""
    if scipy.sparse.issparse(block):
        return block[:, positions]
    if isinstance(block, np.ndarray):
        # By rows of the transpose, which is in the order of storage where columns were read.
        return np.take(block.T, positions, axis=0).T
    return namespace(block).take(block, from_numpy(positions, block), axis=1)


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
        self._pieces = Pieces()  # columns in the order of the indices
        self._copies = Pieces()  # of the pieces, scaled, in single precision
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
        return self.indices.size

    # Which columns.

    def extend(
        self, indices: Vector, read: Callable[[Vector], Vector], correlations: Vector
    ) -> None:
        """Add columns; ``read`` returns those of given indices as the columns of a matrix."""
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
        beside = self._copies if self.single else self._pieces
        with np.errstate(over="ignore", invalid="ignore"):  # the factorisation then fails
            of_gram = (self._scale * new).astype(np.float32) if self.single else new
            for at, piece in beside.placed():
                self.gram[start:stop, at] = self._product(of_gram, piece)
            self.gram[start:stop, start:stop] = self._product(of_gram, of_gram)
        self.gram[:start, start:stop] = self.gram[start:stop, :start].conj().T
        small = SETTINGS.small // max(1, len(self.y))
        self._pieces.append_columns(new, lambda columns: columns <= small)
        if self.single:
            self._copies.append_columns(of_gram, lambda columns: columns <= small)

    def _product(self, a: Any, b: Any) -> Vector:
        return a.T @ b if self.single else dense(gram_of(a, b))

    def keep(self, stays: Vector) -> None:
        """Drop the columns that do not stay."""
        kept = np.flatnonzero(stays)
        self.gram = self._gram_of(kept)
        self._copies.keep(stays)
        self._pieces.keep(stays)
        self.indices, self.weights = self.indices[kept], self.weights[kept]
        self.correlations = self.correlations[kept]

    def _gram_of(self, positions: Vector) -> Any:
        """Return the Gram matrix of some of the columns."""
        return submatrix(self.gram, positions)

    def to_double(self) -> None:
        """Compute the Gram matrix in double precision, now and for columns to come."""
        if self.single:
            self.single, self._copies, self._scale = False, Pieces(), 1.0
            self.gram = np.empty((len(self), len(self)), dtype=self.y.dtype)
            pieces, self._pieces, start = self._pieces, Pieces(), 0
            for piece in pieces:
                current_deadline().check()
                self._append(piece, start)
                start += piece.shape[1]

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
        for at, piece in self._pieces.placed():
            image += piece @ x[at]
        return image

    def adjoint(self, r: Vector) -> Vector:
        """Return ``A^H r`` for all columns of the set."""
        pulled = np.empty_like(self.correlations)
        for at, piece in self._pieces.placed():
            pulled[at] = piece.conj().T @ r
        return pulled

    # Factors.

    def factor(self, support: Vector) -> Solver | None:
        """Return a solver for the Gram matrix of some columns; None where they are dependent, nearly."""
        if support.size == 0:
            return lambda right: right
        current_deadline().need(support.size**3 / 3.0)
        G = self._to_factor(support)
        potrf, potrs, *_ = cholesky_routines(G.dtype.char)
        least = self._dependent * G.diagonal()
        # G is symmetric, and its transpose is in the order of LAPACK: nothing is copied.
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
        G = to_numpy(self._to_factor(support))
        potrf, potrs, pstrf, _ = cholesky_routines(G.dtype.char)
        least = float((self._dependent * G.diagonal()).max(initial=0.0))
        _, pivots, rank, _ = pstrf(G, lower=True, tol=least)
        left = np.delete(support, pivots[rank:] - 1)
        if left.size == 0:
            return left, lambda right: right
        factor, info = potrf(to_numpy(self._to_factor(left)), lower=True, clean=False)
        if info != 0:
            raise StalledError("the Gram matrix of independent columns is not definite")
        return left, lambda right: np.asarray(potrs(factor, right, lower=True)[0])

    def _to_factor(self, positions: Vector) -> Any:
        """Return the Gram matrix of some columns with the ridge on its diagonal."""
        G = self._gram_of(positions)
        if self.ridge == 0.0:
            return G
        return G + from_numpy(self._scale**2 * self.ridge * np.eye(len(positions)), G)


def submatrix(matrix: Vector, positions: Vector) -> Vector:
    """Return the rows and columns at some positions; columns first, then whole rows, is the quickest way."""
    return matrix.take(positions, axis=1).take(positions, axis=0)


def largest(sizes: Vector, count: int) -> Vector:
    """Return the positions of the ``count`` largest entries, in no order."""
    if count >= len(sizes):
        return np.arange(len(sizes))
    return np.argpartition(-sizes, count)[:count]


def columns_to_add(signs: Vector, rows: int, part: int, ridge: bool = False) -> int:
    """Return how many columns may join those with a sign: a part of them, and fewer as rows run out.

    With more columns than rows the pivot order would decide which are dropped. A ridge makes all columns
    independent, but as signs of many more than the rows tell little, few join at a time.
    """
    n = int(np.count_nonzero(signs))
    beyond = max(10.0, SETTINGS.beyond * n) if ridge else 1.0
    return int(min(max(10, n // part), max(beyond, 0.5 * (rows - n))))


def _scale_for(block: Vector) -> float:
    """Return a power of two that brings the entries of a block to a usual size."""
    peak = float(np.abs(block).max(initial=0.0))
    if peak == 0.0 or SETTINGS.usual[0] < peak < SETTINGS.usual[1]:
        return 1.0
    return math.ldexp(1.0, -math.frexp(peak)[1])


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

    def _gram_of(self, positions: Vector) -> Array:
        """Return the Gram matrix of some of the columns, on the device."""
        there = from_numpy(positions, self.gram)
        xp = namespace(self.gram)
        return xp.take(xp.take(self.gram, there, axis=0), there, axis=1)

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
        self._pieces.append_columns(new, lambda columns: columns <= SETTINGS.device_piece)

    def forward(self, x: Vector) -> Vector:
        there = from_numpy(x, self._like)
        parts = [self._times(widened(piece), there[at, ...]) for at, piece in self._pieces.placed()]
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
        found = device_factor(self._to_factor(support))
        dependent = SETTINGS.dependent * float(np.finfo(np.float64).eps)
        return None if found is None or found.loses(dependent) else found.solve


@dataclass(frozen=True, eq=False)
class PassRequest:
    """What a search needs from the next pass: correlations with a dual point, and columns for the pool."""

    dual: Vector | None = None
    columns: Vector | None = None


#: A search as a generator: it yields requests, and is sent the correlations of all columns (or None).
PassRequests: TypeAlias = Generator[PassRequest, Any, None]


class Pool:
    """Columns that have been read, in the library of their matrix, held for all searches on it.

    Where the matrix is stored or distributed, a pass over it costs the same for any request. So more
    columns are fetched than are needed at once, and all that the columns in the pool allow is done before the
    next pass.

    Parameters
    ----------
    A : LinearMap
        With columns.
    capacity : int
        Bytes to hold; columns in use are never dropped.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.basis_pursuit.columns import Pool, PassRequest
    >>> from lopro.maps import linear_map
    >>> pool = Pool(linear_map(np.array([[1.0, 2.0, 3.0]])))
    >>> pool.answer([PassRequest(dual=np.ones(1), columns=np.array([2, 0]))])
    [array([1., 2., 3.])]
    >>> pool.indices, pool.read(np.array([2]))
    (array([0, 2]), array([[3.]]))
    """

    def __init__(self, A: LinearMap, capacity: int = SETTINGS.capacity) -> None:
        self.A = A
        self.indices: Vector = np.empty(0, dtype=np.intp)
        self._place = np.full(A.shape[1], -1, dtype=np.int32)
        self._pieces = Pieces()
        self._score = np.zeros(A.shape[1])  # how near to a violation a column was last
        #: Columns to hold, beside those in use if these are many.
        self.most = max(1, capacity // (8 * A.shape[0]))

    def __len__(self) -> int:
        return len(self.indices)

    def __contains__(self, index: int) -> bool:
        return bool(self._place[index] >= 0)

    def answer(self, requests: Sequence[PassRequest]) -> list[Any]:
        """Answer several requests from one pass, where the matrix answers requests together."""
        duals = [q.dual for q in requests if q.dual is not None]
        new = self.lacking(requests)
        reads: list[Any] = [Columns(new)] if new.size else []
        if duals:
            block = duals[0] if len(duals) == 1 else np.stack(duals, axis=1)
            reads.append(Adjoint(from_numpy(block, self.A.like)))
        answers = list(self.A.read(*reads)) if reads else []
        if new.size:
            self._add(new, answers.pop(0))
        pulled = to_numpy(answers[0]).reshape(self.A.shape[1], -1).T if duals else ()
        found = iter(pulled)
        return [None if q.dual is None else next(found) for q in requests]

    def lacking(self, requests: Sequence[PassRequest]) -> Vector:
        """Return the requested columns that are not in the pool."""
        chosen = [q.columns for q in requests if q.columns is not None]
        indices = np.unique(np.concatenate([np.empty(0, dtype=np.intp), *chosen]))
        return np.asarray(indices[self._place[indices] < 0])

    def _add(self, indices: Vector, block: Any) -> None:
        self._place[indices] = np.arange(len(self), len(self) + len(indices))
        self.indices = np.concatenate([self.indices, indices])
        self._pieces.append(block.toarray() if hasattr(block, "toarray") else block)

    def note(self, excess: Vector) -> None:
        """Remember how near to a violation columns are; those far from it are dropped first."""
        self._score = excess

    def room_for(self, count: int, in_use: Vector) -> None:
        """Drop columns that are far from any use, if the pool would grow beyond its capacity."""
        surplus = len(self) + count - max(self.most, 2 * len(in_use))
        # The columns that stay are copied: not for the sake of a few.
        if surplus <= self.most // 20:
            return
        free = np.setdiff1d(self.indices, in_use)
        self._drop(free[np.argsort(self._score[free], kind="stable")[:surplus]])

    def _drop(self, leaving: Vector) -> None:
        stays = np.isin(self.indices, leaving, invert=True)
        self._pieces.keep(stays)
        self._place[self.indices] = -1
        self.indices = self.indices[stays]
        self._place[self.indices] = np.arange(len(self))

    def read(self, indices: Vector) -> Array:
        """Return columns of the pool, as the columns of a matrix."""
        positions = self._place[indices]
        order = np.argsort(positions, kind="stable")
        here, parts = positions[order], []
        for at, piece in self._pieces.placed():
            local = here[(here >= at.start) & (here < at.stop)] - at.start
            if local.size:
                parts.append(_taken(piece, local))
        whole = namespace(parts[0]).concat(parts, axis=1) if len(parts) > 1 else parts[0]
        back = np.argsort(order, kind="stable")
        return whole if (back[1:] > back[:-1]).all() else _taken(whole, back)

    def adjoint(self, r: Vector) -> Vector:
        """Return the correlations of the columns of the pool, on the host."""
        if not self._pieces:
            return np.empty(0)
        there = from_numpy(r, self._pieces[0])
        times = times_for(there)
        return np.concatenate([to_numpy(times(widened(p).T, there)) for p in self._pieces])
