"""Following the smallest eigenpairs of a symmetric matrix that changes a little from call to call."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np

from lopro.core.arrays import Array, asarray_like, is_complex, namespace, norm, to_numpy
from lopro.core.counting import count
from lopro.core.deadline import current_deadline
from lopro.core.validation import check_count, check_number

__all__ = ["EigenpairTracker", "can_follow"]

#: A small matrix, or few numbers, on the host.
Small: TypeAlias = "np.ndarray[Any, Any]"

#: Pairs that are followed beyond those required, because the order may change. `python -m
#: benchmarks.constants projections`: none takes 1.1 times the calls; with ten times as many a block is no
#: longer small beside a matrix of 120 rows.
_SPARE = 7
#: Limit of the products with a block in one call. `python -m benchmarks.constants projections`: with none the
#: pairs are not followed, ten times as many change nothing.
_TRIES = 8
#: Products after which the random search direction restarts.
_SCOUTING = 32


def can_follow(k: int, rows: int) -> bool:
    """Whether ``k`` eigenpairs of a matrix can be followed: a block has far fewer columns than the matrix.

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

    A call multiplies the matrix by one block of vectors: those found the last time and their residuals.
    The Ritz pairs of that block are the answer where their residuals are at most ``accuracy`` times the
    larger of ``|theta_1|`` and the root mean square of the eigenvalues; otherwise the block is improved
    and multiplied again. One product suffices for a matrix that has changed little. Two more vectors are a
    search direction from a random start: it descends to the smallest eigenvector orthogonal to the others
    and restarts periodically, so that every eigenvector is found eventually.

    Ritz values are upper bounds of the eigenvalues at any accuracy.

    Parameters
    ----------
    k : int
        How many pairs.
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
        self._basis: Array | None = None  # orthonormal rows: products with rows run along memory
        self._age = 0  # of the search direction
        self._rng = np.random.default_rng(0)

    def smallest(self, X: Array) -> tuple[Small, Array] | None:
        """Return values (ascending, on the host) and vectors; None where the accuracy cannot be reached."""
        if not can_follow(self.k, X.shape[0]):
            return None
        basis = self._basis
        if basis is None or not _alike(basis, X):
            basis = _orthonormal(self._random(self._width, X))
        scale = norm(X) / math.sqrt(X.shape[0])
        count("eigenpairs", self.k)
        for _ in range(_TRIES):
            current_deadline().check()
            products = basis @ X
            # The small matrix is decomposed on the host: a device takes a hundred times as long.
            inside = to_numpy(products @ _conjugate(basis).T)
            if not np.isfinite(inside).all():
                return None
            values, vectors, residuals = _ritz_pairs(inside, basis, products, self._followed)
            search = self._search_direction(inside, basis, products)
            basis = self._basis = _orthonormal(_stacked(vectors, _scaled(residuals), search))
            allowed = self.accuracy * max(abs(float(values[0])), scale)
            if norm(residuals[: self.k, :]) <= allowed:
                return values[: self.k], _conjugate(vectors[: self.k, :]).T
        return None

    def _search_direction(self, inside: Small, basis: Array, products: Array) -> Array:
        """Return the search direction after one step of steepest descent, and its residual."""
        self._age += 1
        if self._age % _SCOUTING == 0:
            return _scaled(self._random(2, basis))
        n = self._width - 2
        _, vector, residual = _ritz_pairs(inside[n:, n:], basis[n:, :], products[n:, :], 1)
        return _stacked(vector, _scaled(residual))

    def _random(self, rows: int, like: Array) -> Array:
        return asarray_like(self._rng.standard_normal((rows, like.shape[1])), like)


def _ritz_pairs(
    inside: Small, basis: Array, products: Array, count: int
) -> tuple[Small, Array, Array]:
    """Return the lowest Ritz values of a block, their vectors (as rows) and their residuals."""
    values, mixing = np.linalg.eigh(0.5 * (inside + inside.conj().T))
    values, mixing = values[:count], mixing[:, :count].conj().T
    there = asarray_like(mixing, basis)
    vectors = there @ basis
    residuals = there @ products - asarray_like(values[:, None], basis) * vectors
    return values, vectors, residuals


def _stacked(*rows: Array) -> Array:
    return namespace(rows[0]).concat(rows)


def _scaled(rows: Array) -> Array:
    """Return the rows scaled to a largest entry of one, so that squares do not overflow."""
    xp = namespace(rows)
    peaks = xp.max(xp.abs(rows), axis=1, keepdims=True)
    return rows / xp.where(peaks > 0.0, peaks, xp.ones_like(peaks))


def _alike(basis: Array, X: Array) -> bool:
    same_kind = type(basis) is type(X) and basis.dtype == X.dtype
    return same_kind and bool(basis.shape[1] == X.shape[1]) and basis.device == X.device


def _conjugate(V: Array) -> Array:
    return namespace(V).conj(V) if is_complex(V) else V


def _orthonormal(rows: Array) -> Array:
    q, _ = namespace(rows).linalg.qr(rows.T)
    return q.T
