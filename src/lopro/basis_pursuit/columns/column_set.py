"""The columns of a working set with their Gram matrix, which may be in single precision.

Vectors with an entry per column or per row (signs, coefficients, residuals) are NumPy arrays in double
precision, on the host. Columns and their Gram matrix stay where the matrix is. A Gram matrix in single
precision halves the cost of its factors; residuals in double precision correct them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from lopro.basis_pursuit.columns.pieces import (
    Pieces,
    Vector,
    bordered,
    cholesky_routines,
    submatrix,
)
from lopro.core.arrays import Array, from_numpy, is_single, namespace, to_numpy
from lopro.core.deadline import current_deadline
from lopro.core.device_cholesky import device_factor
from lopro.core.real_vectors import power_of_two
from lopro.errors import StalledError
from lopro.maps import LinearMap, NumPyMap, SparseMap
from lopro.maps.algebra import dense, gram_of, times_for, widened

__all__ = ["SETTINGS", "ColumnSet", "Solver", "column_set", "columns_to_add"]

#: A solver for the Gram matrix of a support: of one right-hand side, or of the columns of a block.
Solver: TypeAlias = "Callable[[Vector], Vector]"


@dataclass(frozen=True)
class Settings:
    """Sizes of the arrays that hold columns, and limits of precision."""

    #: Columns that are read, widened and multiplied at a time: enough for the speed of matrix products, few
    #: enough that the temporary copies are small beside all columns.
    piece: int = 1024
    #: On the host: entries up to which neighbouring pieces are joined. 256 KiB are copied in the time of a
    #: few calls. (On a device, where calls cost more, pieces are joined up to `piece` columns.)
    small: int = 2**15
    #: Roundings: a column is dependent on others if its squared distance from their span is a smaller share
    #: of its squared length. A tenth and ten times as many change no sum of products.
    dependent: float = 1e3
    #: Rows and columns from which on a Gram matrix in single precision pays; the support decides. `bpdn` on
    #: one thread, double and single: 253 and 285 ms for 700 x 3000; 44 and 54 for 1000 x 5000 with 100
    #: nonzeros, 256 and 220 with 200; 1.34 and 0.83 s for 2000 x 8000 with 0.3 of the noise as sigma; 0.99
    #: and 0.78 s for 4000 x 20000.
    single_from: int = 1000
    #: With a ridge: columns that may be added once there are as many nonzeros as rows, as a share of the
    #: nonzeros. The elastic net of `benchmarks.lasso`, 1500 x 15000 at a fiftieth, takes 29 products
    #: without this limit, 9 with a quarter or a tenth; at a two-hundredth 38, 40 and 19.
    beyond: float = 0.1
    #: The least number of columns to add or to start with: a round with fewer costs a product all the same. A
    #: tenth and ten times as many change the sum of the products of the 62 instances of `python -m
    #: benchmarks.constants basis_pursuit` that search columns by less than half a per cent.
    fewest: int = 10


SETTINGS = Settings()


class ColumnSet:
    """Some columns of a matrix, their Gram matrix and their correlations with ``y``, real or complex.

    ``y`` may be several right-hand sides, the columns of an array. Columns are held in pieces, sparse ones
    where they come sparse, so that the set takes the memory of its columns and of their Gram matrix.

    Parameters
    ----------
    y : array
        The right-hand side.
    weights : array of length d
        The weights of all columns of the matrix.
    like : array, optional
        An array of the library, device and precision of the columns: NumPy in double precision by default.
        Columns in single precision are widened one piece at a time; the Gram matrix is in double precision.
    single : bool
        Hold the Gram matrix of NumPy columns in single precision until `to_double` is called.
    """

    def __init__(
        self, y: Vector, weights: Vector, *, like: Array | None = None, single: bool = False
    ) -> None:
        self.y = y
        #: The weight of ``|x|^2 / 2``, added to the diagonal of the Gram matrix where that is factored.
        self.ridge = 0.0
        #: Whether columns are in single precision, and widened for products.
        self.widens = like is not None and is_single(like)
        self.single = single
        self._like = y if like is None else widened(like)
        self._times = times_for(self._like)
        on_host = isinstance(self._like, np.ndarray)
        self._joined = SETTINGS.small // max(1, len(y)) if on_host else SETTINGS.piece
        self._all_weights = weights
        self.indices = np.empty(0, dtype=np.intp)
        self.weights = np.empty(0, dtype=weights.dtype)
        self.correlations = np.empty((0, *y.shape[1:]), dtype=y.dtype)
        #: ``A^H A`` of the columns; in single precision, of the columns times `_scale`.
        self.gram: Any = self._empty_gram()
        self._pieces = Pieces()  # columns in the order of the indices
        self._copies = Pieces()  # scaled copies of the pieces in single precision
        self._scale = 1.0  # a power of two: entries are at most about 1 in single precision
        self._most = (self.correlations, 0.0)

    def _empty_gram(self) -> Any:
        return from_numpy(np.empty((0, 0), np.float32 if self.single else self.y.dtype), self._like)

    @property
    def most(self) -> float:
        """The largest correlation with ``y`` in units of the weights, alpha at x = 0; cached."""
        of, most = self._most
        if of is not self.correlations:
            most = float((np.abs(self.correlations) / self.weights).max(initial=0.0))
            self._most = (self.correlations, most)
        return most

    def __len__(self) -> int:
        return self.indices.size

    # Which columns.

    def extend(
        self, indices: Vector, read: Callable[[Vector], Array], correlations: Vector
    ) -> None:
        """Add columns; ``read`` returns those of given indices as the columns of a matrix.

        Correlations of columns in single precision are computed again: those given may be sums in single
        precision.
        """
        there, own = from_numpy(self.y, self._like) if self.widens else None, [np.empty(0)]
        for start in range(0, len(indices), SETTINGS.piece):
            new = read(indices[start : start + SETTINGS.piece])
            self._append(new)
            if self.widens:
                own.append(to_numpy(self._times(widened(new).T, there)))
        if self.widens:
            correlations = np.concatenate(own)
        self.indices = np.concatenate([self.indices, indices])
        self.weights = self._all_weights[self.indices]
        self.correlations = np.concatenate([self.correlations, correlations])

    def _append(self, new: Any) -> None:
        """Append a piece; the Gram matrix grows by its products with all columns."""
        if self.single and not self._pieces:
            self._scale = 1.0 / power_of_two(float(np.abs(new).max(initial=0.0)))
        held = self._copies if self.single else self._pieces
        with np.errstate(over="ignore", invalid="ignore"):  # the factorisation then fails
            factor = (self._scale * new).astype(np.float32) if self.single else self._widened(new)
            beside = [self._product(factor, piece) for piece in held]
            self.gram = bordered(self.gram, beside, self._product(factor, factor))
        self._pieces.append_columns(new, self._joined)
        if self.single:
            self._copies.append_columns(factor, self._joined)

    def _widened(self, piece: Any) -> Any:
        return widened(piece) if self.widens else piece

    def _product(self, a: Any, b: Any) -> Any:
        if self.single:
            return a.T @ b
        if isinstance(self._like, np.ndarray):
            return dense(gram_of(a, b))
        return self._times(a.T, self._widened(b))

    def keep(self, stays: Vector) -> None:
        """Drop the columns for which ``stays`` is false."""
        kept = np.flatnonzero(stays)
        self.gram = submatrix(self.gram, kept)
        self._copies.keep(stays)
        self._pieces.keep(stays)
        self.indices, self.weights = self.indices[kept], self.weights[kept]
        self.correlations = self.correlations[kept]

    def to_double(self) -> None:
        """Compute the Gram matrix in double precision, now and for columns added later."""
        if self.single:
            self.single, self._copies, self._scale = False, Pieces(), 1.0
            pieces, self._pieces, self.gram = self._pieces, Pieces(), self._empty_gram()
            for piece in pieces:
                current_deadline().check()
                self._append(piece)

    def toarray(self) -> Vector:
        """Return the columns side by side."""
        return np.concatenate([dense(piece) for piece in self._pieces], axis=1)

    @property
    def rank(self) -> float:
        """The largest number of columns that can be independent: the rows, or any number with a ridge."""
        return math.inf if self.ridge > 0.0 else len(self.y)

    # Products.

    def forward(self, x: Vector) -> Vector:
        """Return ``A x`` for coefficients of all columns of the set, one vector or the columns of a block."""
        if not self._pieces:
            return np.zeros((len(self.y), *x.shape[1:]), dtype=self.y.dtype)
        there = from_numpy(x, self._like)
        parts = (
            self._times(self._widened(piece), there[at, ...]) for at, piece in self._pieces.placed()
        )
        return to_numpy(functools.reduce(lambda image, part: image + part, parts))

    def adjoint(self, r: Vector) -> Vector:
        """Return ``A^H r`` for all columns of the set."""
        if not self._pieces:
            return np.empty_like(self.correlations)
        # A^H r is conj(A^T conj(r)): no piece is conjugated. Real arrays return themselves.
        there = from_numpy(r.conj(), self._like)
        parts = [self._times(self._widened(piece).T, there) for piece in self._pieces]
        return to_numpy(namespace(there).concat(parts) if len(parts) > 1 else parts[0]).conj()

    # Factors.

    def factor(self, support: Vector) -> Solver | None:
        """Return a solver for the Gram matrix of some columns; None where they are nearly dependent.

        None also where the array library has no Cholesky factorisation.
        """
        if support.size == 0:
            return lambda right: right
        G = self._to_factor(support)
        if not isinstance(G, np.ndarray):
            current_deadline().check()
            found = device_factor(G)
            return None if found is None or found.loses(self._dependent) else found.solve
        current_deadline().need(support.size**3 / 3.0)
        potrf, potrs, *_ = cholesky_routines(G.dtype.char)
        least = self._dependent * G.diagonal()
        # The transpose of the symmetric G is in the order of LAPACK: nothing is copied.
        factor, info = potrf(G.T, lower=True, overwrite_a=True, clean=False)
        # Negated, so that NaN fails the test.
        if info != 0 or not bool((np.diagonal(factor) ** 2 > least).all()):
            return None
        if not self.single:
            return lambda right: np.asarray(potrs(factor, right, lower=True)[0])
        square = self._scale**2

        def solve(right: Vector) -> Vector:
            # In units of the largest entry: single precision has a short range.
            size = np.abs(right).max(axis=0)
            size = np.where(size > 0.0, size, 1.0)
            solved, _ = potrs(factor, (right / size).astype(np.float32), lower=True)
            return np.asarray(solved.astype(np.float64) * (size * square))

        return solve

    @property
    def _dependent(self) -> float:
        """The least share of the squared length of a column that may be outside the span of the others."""
        return SETTINGS.dependent * float(np.finfo(np.float32 if self.single else np.float64).eps)

    def independent(self, support: Vector) -> tuple[Vector, Solver]:
        """Return a maximal independent subset of some columns, by pivoting, and a solver for it."""
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
        G = submatrix(self.gram, positions)
        if self.ridge == 0.0:
            return G
        return G + from_numpy(self._scale**2 * self.ridge * np.eye(len(positions)), G)


def columns_to_add(signs: Vector, rows: int, part: int, ridge: bool = False) -> int:
    """Return the number of columns that may be added: one for ``part`` nonzeros, and some more.

    At most half of the remaining rows: with more columns than rows the pivot order would decide which are
    dropped. A ridge makes all columns independent; but the signs of many more columns than rows predict
    little, so that beyond the rows few are added at a time.
    """
    n = int(np.count_nonzero(signs))
    beyond = max(SETTINGS.fewest, SETTINGS.beyond * n) if ridge else 1.0
    return int(min(max(SETTINGS.fewest, n // part), max(beyond, 0.5 * (rows - n))))


def column_set(A: LinearMap, like: Array, y: Vector, weights: Vector, equations: bool) -> ColumnSet:
    """Return an empty column set for a map and points of the library and precision of ``like``.

    For equations the Gram matrix is in double precision: no residual corrects it. Sparse columns, also
    those in single precision, are held in double precision on the host: they take little memory.
    """
    elsewhere = not isinstance(like, np.ndarray) or is_single(like)
    if elsewhere and not isinstance(A, SparseMap):
        return ColumnSet(y, weights, like=like)
    single = isinstance(A, NumPyMap) and min(A.shape) >= SETTINGS.single_from and not equations
    return ColumnSet(y, weights, single=single)
