"""Tracking of the smallest eigenpairs of a symmetric matrix that changes little from call to call."""

from __future__ import annotations

import contextlib
import math
from typing import Any, TypeAlias

import numpy as np

from lopro.core.arrays import Array, asarray_like, is_complex, is_single, namespace, norm, to_numpy
from lopro.core.counting import count
from lopro.core.deadline import current_deadline
from lopro.core.real_vectors import power_of_two
from lopro.core.validation import check_count, check_number
from lopro.maps.algebra import widened

__all__ = ["EigenpairTracker", "can_follow"]

#: A small matrix, or few numbers, on the host.
Small: TypeAlias = "np.ndarray[Any, Any]"

#: Pairs that are tracked in addition to those required, because their order may change. `python -m
#: benchmarks.constants projections`: without them 1.1 times the calls; with ten times as many a block is not
#: small in comparison with a matrix of 120 rows.
_SPARE = 7
#: Smallest limit of the products with a block in one call. `python -m benchmarks.constants projections`: with
#: none the pairs are not tracked, ten times as many change nothing.
_TRIES = 8
#: Rows for each further product. A product with the block of one pair takes 36 n^2 operations, all pairs of
#: the matrix take 9 n^3: these products are a sixteenth of that. A matrix near the boundary of the cone has
#: many small eigenvalues, which take up to 14 products (LoPGD for metrics, 600 to 2000 rows).
_ROWS_PER_TRY = 64
#: Products after which the random search direction restarts. `python -m benchmarks.constants projections`: a
#: tenth takes 1.03 times the calls, ten times as many change nothing.
_SEARCH_PERIOD = 32
#: A row of a block counts as dependent on those before it where less than this share of its length is left:
#: the square root of the rounding of the Gram matrix, with six digits to spare in double precision.
_DEPENDENT = 1e-5
_EPS = float(np.finfo(np.float64).eps)


def can_follow(k: int, rows: int) -> bool:
    """Whether ``k`` eigenpairs can be tracked: a block must have at most a quarter of the columns.

    Examples
    --------
    >>> from lopro.projections.tracking import can_follow
    >>> can_follow(1, 100), can_follow(1, 50)
    (True, False)
    """
    return 4 * _width(k) <= rows


def _width(k: int) -> int:
    """Return the columns of a block: the pairs, their residuals and two that search."""
    return 2 * (k + _SPARE) + 2


class EigenpairTracker:
    """The ``k`` smallest eigenpairs of each of a sequence of matrices, to a modest accuracy.

    A call multiplies the matrix by one block of vectors: those of the previous call and their residuals.
    The Ritz pairs of that block are returned where their residuals are at most ``accuracy`` times the
    larger of ``|theta_1|`` and the root mean square of the eigenvalues; otherwise the block is improved
    and multiplied again. One product suffices for a matrix that has changed little. Two more vectors are a
    search direction with a random start, which converges to the smallest eigenvector orthogonal to the others
    and restarts periodically, so that each eigenvector is found eventually.

    Each product is followed by one device-to-host transfer of the Gram matrix of the block and its product,
    which the host needs alone; the device computes little more than three products with a block.

    Ritz values are upper bounds of the eigenvalues at any accuracy.

    Parameters
    ----------
    k : int
        Number of pairs.
    accuracy : float
        Between 0 and 1, both excluded.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.projections.tracking import EigenpairTracker
    >>> X = np.diag(np.linspace(-1.0, 3.0, 80))
    >>> values, vectors = EigenpairTracker(1, accuracy=0.1).smallest(X)
    >>> bool(-1.0 <= values[0] < -0.95)
    True
    """

    def __init__(self, k: int, accuracy: float) -> None:
        self.k = check_count("k", k)
        self.accuracy = check_number("accuracy", accuracy, minimum=0.0, maximum=1.0, exclusive=True)
        self._followed, self._width = self.k + _SPARE, _width(self.k)
        self._basis: Array | None = None  # as rows: products with rows run along memory
        self._unit = 1.0  # a power of two near the size of the eigenvalues
        self._age = 0  # of the search direction
        self._rng = np.random.default_rng(0)

    def smallest(self, X: Array) -> tuple[Small, Array] | None:
        """Return values (ascending, on the host) and vectors; None where the accuracy cannot be reached."""
        if not can_follow(self.k, X.shape[0]):
            return None
        basis, size = self._basis, None
        if basis is None or not _alike(basis, X):
            basis, size = self._random(self._width, X), norm(X)
        elif isinstance(X, np.ndarray):
            size = norm(X)
        if size is not None and 0.0 < size < math.inf:
            self._unit = power_of_two(size / math.sqrt(X.shape[0]))
        count("eigenpairs", self.k)
        for _ in range(max(_TRIES, X.shape[0] // _ROWS_PER_TRY)):
            current_deadline().check()
            block = _stacked(basis, (basis @ X) / self._unit)
            gram, square = _gram_on_host(block, X if size is None else None)
            if not np.isfinite(gram).all():
                self._basis = None
                return None
            if size is None:  # of the squares, unless these over- or underflowed
                size = math.sqrt(square) if 1e-20 < square < 1e30 else norm(X)
            scale = size / math.sqrt(X.shape[0]) / self._unit
            ritz = _Ritz(gram, self._followed)
            basis = self._basis = self._next(ritz, block)
            allowed = self.accuracy * max(abs(float(ritz.values[0])), scale)
            if math.sqrt(float(ritz.squares[: self.k].sum())) <= allowed:
                values = ritz.values[: self.k] * self._unit
                values = values.astype(np.float32) if is_single(X) else values
                return values, _conjugate(basis[: self.k, :]).T
        return None

    def _next(self, ritz: _Ritz, block: Array) -> Array:
        """Return the next block: Ritz vectors, their residuals, and the search direction with its own.

        The search direction has made a step of steepest descent. Residuals are approximate unit vectors that
        are not orthogonal to the other rows.
        """
        self._age += 1
        rows = [ritz.vectors, ritz.residuals]
        search = None if self._age % _SEARCH_PERIOD == 0 else ritz.search()
        rows = rows if search is None else [*rows, search]
        basis = asarray_like(np.concatenate(rows), block) @ block
        return basis if search is not None else _stacked(basis, self._random(2, block))

    def _random(self, rows: int, like: Array) -> Array:
        n = like.shape[1]
        return asarray_like(self._rng.standard_normal((rows, n)) / math.sqrt(n), like)


class _Ritz:
    """Ritz pairs of a block of rows ``B`` from the Gram matrix of the rows of ``B`` and ``B X``.

    Rows are orthonormalised in their order (Gram-Schmidt); dependent ones are dropped. Vectors and
    residuals are given by coefficients of the rows of ``B`` and ``B X`` together.
    """

    def __init__(self, gram: Small, followed: int) -> None:
        w = len(gram) // 2
        self._gram, self._first = gram, w - 2
        self._to_orthonormal, self._kept = _orthonormal(gram[:w, :w])
        T = self._to_orthonormal
        inside = T @ gram[w:, :w] @ T.conj().T
        self._inside = 0.5 * (inside + inside.conj().T)
        values, mixing = np.linalg.eigh(self._inside)
        self.values = values[:followed]
        self.vectors, self.residuals, self.squares = self._pairs(
            self.values, mixing[:, :followed], T
        )

    def search(self) -> Small | None:
        """Return the lowest vector of the last two rows, orthogonal to the others, and its residual."""
        last = np.flatnonzero(self._kept >= self._first)
        if len(last) == 0:
            return None
        values, mixing = np.linalg.eigh(self._inside[np.ix_(last, last)])
        rows = self._to_orthonormal[last]
        vector, residual, _ = self._pairs(values[:1], mixing[:, :1], rows)
        return np.concatenate([vector, residual])

    def _pairs(self, values: Small, mixing: Small, rows: Small) -> tuple[Small, Small, Small]:
        """Return vectors, scaled residuals, and bounds of the squared lengths of the residuals."""
        own = mixing.conj().T @ rows
        vectors = np.hstack([own, np.zeros_like(own)])
        residuals = np.hstack([-values[:, None] * own, own])
        w, squares = own.shape[1], _squares(residuals, self._gram)
        # After cancellation the error is that of the squares of the terms.
        rounding = len(self._gram) * _EPS * (values**2 + _squares(own, self._gram[w:, w:]))
        squares = np.maximum(squares, 0.0) + rounding
        lengths = np.sqrt(np.where(squares > 0.0, squares, 1.0))
        return vectors, residuals / lengths[:, None], squares


def _squares(rows: Small, gram: Small) -> Small:
    """Return the squared lengths of combinations of rows whose Gram matrix is given."""
    return np.asarray(np.einsum("ij,ij->i", rows @ gram, rows.conj()).real)


def _orthonormal(gram: Small) -> tuple[Small, Small]:
    """Return ``T`` for which ``T B`` has orthonormal rows, given ``B B'``, and the rows that span B."""
    lengths = np.sqrt(np.maximum(gram.diagonal().real, 0.0))
    units = np.where(lengths > 0.0, lengths, 1.0)
    N = gram / (units[:, None] * units)
    kept: Any = np.arange(len(N))
    L = _factor(N)
    if L is None:
        found: list[int] = []
        for i in range(len(N)):
            if lengths[i] > 0.0 and _factor(N[np.ix_([*found, i], [*found, i])]) is not None:
                found.append(i)
        kept = np.array(found, dtype=int)
        L = _factor(N[np.ix_(kept, kept)]) if found else np.zeros((0, 0))
        assert L is not None
    T = np.zeros((len(kept), len(N)), dtype=gram.dtype)
    T[:, kept] = np.linalg.solve(L, np.diag(1.0 / units[kept]))
    return T, kept


def _factor(N: Small) -> Small | None:
    """Return the Cholesky factor of a Gram matrix of unit vectors; None where these are dependent."""
    try:
        L = np.linalg.cholesky(N)
    except np.linalg.LinAlgError:
        return None
    return L if L.diagonal().real.min() > _DEPENDENT else None


def _gram_on_host(block: Array, X: Array | None) -> tuple[Small, float]:
    """Return the Gram matrix of rows and, if X is given, its sum of squares, in one transfer."""
    with contextlib.suppress(TypeError, RuntimeError):  # of devices without double precision
        block = widened(block)
    xp = namespace(block)
    gram = block @ _conjugate(block).T
    if X is None:
        return _double(to_numpy(gram)), math.nan
    with np.errstate(over="ignore", under="ignore"):
        square = xp.sum(xp.real(X * _conjugate(X)) if is_complex(X) else X * X)
    numbers = [xp.reshape(gram, (-1,)), xp.reshape(xp.astype(square, gram.dtype), (1,))]
    found = to_numpy(xp.concat(numbers))
    return _double(found[:-1]).reshape(gram.shape), float(found[-1].real)


def _double(values: Small) -> Small:
    return values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)


def _stacked(*rows: Array) -> Array:
    return namespace(rows[0]).concat(rows)


def _alike(basis: Array, X: Array) -> bool:
    same_kind = type(basis) is type(X) and basis.dtype == X.dtype
    return same_kind and bool(basis.shape[1] == X.shape[1]) and basis.device == X.device


def _conjugate(V: Array) -> Array:
    return namespace(V).conj(V) if is_complex(V) else V
