"""The nearest correlation matrix as a semidefinite problem, with checks of the arguments.

With weights w of the variables and a least eigenvalue e, ``Z = W^(1/2) (X - e I) W^(1/2)`` ranges over the
positive semidefinite matrices with the diagonal ``w (1 - e)`` and fixed entries that are scaled likewise. The
problem is to find the one nearest to ``T = W^(1/2) (G - e I) W^(1/2)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.arrays import Array as AnyArray
from lopro.core.arrays import (
    copy,
    eps,
    from_numpy,
    is_single,
    namespace,
    norm,
    on_host,
    take,
    to_numpy,
)
from lopro.core.diagonals import diagonal_of, raise_diagonal, with_diagonal
from lopro.core.validation import check_array, check_number, check_shape, host_array
from lopro.linalg.dense import EPS, Array, Pattern
from lopro.maps.algebra import widened
from lopro.maps.host import transferred
from lopro.newton.sdp.fixed_blocks import null_vectors
from lopro.newton.sdp.nearest import NearestProblem

__all__ = ["CorrelationTarget"]


@dataclass(frozen=True)
class CorrelationTarget:
    """The matrix, the weights, the entries to keep and the least eigenvalue required.

    Attributes
    ----------
    G : array of shape (n, n)
        Exactly symmetric, in double precision, on the device of the given matrix.
    w : array of shape (n,)
        One positive weight for each variable, on the host.
    kept : array of bool of shape (n, n)
        Which entries of ``G`` are kept; symmetric, on the host.
    least : float
        The least eigenvalue, at least 0 and below 1.
    dtype : dtype of the library of G
        The precision of the answer, whose rounding is charged.
    """

    G: AnyArray
    w: Array
    kept: Pattern
    least: float
    dtype: Any

    @staticmethod
    def of(G: Any, weights: Any = None, fixed: Any = None, least: Any = 0.0) -> CorrelationTarget:
        """Check the arguments; error messages name the argument and the value."""
        matrix, dtype = _symmetric(G)
        n = matrix.shape[0]
        least = check_number("min_eigenvalue", least, minimum=0.0)
        if least >= 1.0:
            raise ValueError(f"min_eigenvalue must be below 1, the mean eigenvalue, got {least:g}")
        w = np.ones(n) if weights is None else _weights(weights)
        check_shape("weights", w, (n,))
        if not w.min() > 0.0:
            raise ValueError(f"weights must be positive, got {w.min():g}")
        target = CorrelationTarget(matrix, w, _pattern(fixed, n), least, dtype)
        target._check_kept()
        return target

    @property
    def unit(self) -> float:
        """The rounding unit of the dtype of the answer."""
        return float(namespace(self.G).finfo(self.dtype).eps)

    def in_dtype(self, X: AnyArray) -> AnyArray:
        """Return ``X`` in the dtype of the answer."""
        return namespace(X).astype(X, self.dtype)

    def rounded(self, X: AnyArray) -> AnyArray:
        """Return ``X`` rounded to the dtype of the answer, in double precision."""
        xp = namespace(X)
        return X if self.unit == EPS else xp.astype(self.in_dtype(X), xp.float64)

    @cached_property
    def pairs(self) -> tuple[Any, Any]:
        """The row and column indices of the kept entries below the diagonal."""
        i, j = np.nonzero(np.tril(self.kept, -1))
        return i, j

    @cached_property
    def kept_entries(self) -> Array:
        """The entries of G that are kept, in the order of `pairs`, on the host."""
        return self._entries(self.G, *self.pairs)

    @cached_property
    def null_vectors(self) -> tuple[Array, int]:
        """Vectors u with ``X u = least u`` for all feasible X, implied by single blocks of fixed entries.

        They are the columns of a matrix, returned with the number of eigendecompositions.
        """
        i, j = self.pairs
        M = np.diag(np.full(len(self.w), 1.0 - self.least))
        M[i, j] = M[j, i] = self.kept_entries
        return null_vectors(M, self.kept)

    def far_multipliers(self, T: AnyArray, size: float) -> Array:
        """Return large multipliers of `nearest_problem` in the direction ``-u u'`` of the null vectors.

        The projection of ``T + A*y`` then nearly vanishes on u. ``size`` is relative to the norm of T.
        """
        i, j = self.pairs
        N = self.null_vectors[0] / np.sqrt(self.w)[:, None]
        S = N @ N.T
        S *= size * norm(T) / float(np.linalg.norm(S, 2))
        own = self.w * (1.0 - self.least) - to_numpy(diagonal_of(T))
        return np.concatenate([own - S.diagonal(), -2.0 * S[i, j]])

    def onto_null_space(self, X: AnyArray, Q: AnyArray) -> AnyArray:
        """Return X with ``X - least I`` replaced by ``Q (X - least I) Q``, and the fixed entries."""
        inner = Q @ raise_diagonal(copy(X), -self.least) @ Q
        return self.correlation(inner * self._products)

    def _check_kept(self) -> None:
        """Raise ValueError for fixed entries that violate a 2 x 2 minor."""
        j, i = self.pairs
        if len(i) == 0:
            return
        entries = self.kept_entries
        # The first of the largest, in the order of the rows of the upper triangle.
        largest = np.flatnonzero(np.abs(entries) == np.abs(entries).max())
        k = min(largest, key=lambda k: (i[k], j[k]))
        if abs(entries[k]) > 1.0 - self.least:
            raise ValueError(
                f"fixed keeps G[{i[k]}, {j[k]}] = {entries[k]:g}, which exceeds "
                f"1 - min_eigenvalue = {1.0 - self.least:g} in size"
            )

    def _entries(self, M: AnyArray, i: Any, j: Any) -> Array:
        """Return entries of a matrix as a vector on the host."""
        raveled = namespace(M).reshape(M, (-1,))
        return to_numpy(take(raveled, i * M.shape[0] + j))

    @cached_property
    def _products(self) -> AnyArray:
        """``sqrt(w_i w_j)``, on the device of G."""
        roots = from_numpy(np.sqrt(self.w), self.G)
        return roots[:, None] * roots

    def nearest_problem(self, margin: float = 0.0) -> tuple[NearestProblem, AnyArray]:
        """Return the problem of Z and T, with the least eigenvalue raised by a margin."""
        n, least = len(self.w), self.least + margin
        i, j = self.pairs
        m, k = n + len(i), n + np.arange(len(i))
        T = raise_diagonal(self.G * self._products, -from_numpy(least * self.w, self.G))
        owners = np.concatenate([np.arange(n), k, k])
        places = np.concatenate([np.arange(n) * (n + 1), i * n + j, j * n + i])
        values = np.concatenate([np.ones(n), np.full(2 * len(i), 0.5)])
        A = scipy.sparse.csr_array((values, (owners, places)), (m, n * n))
        b = np.concatenate([self.w * (1.0 - least), self._entries(T, i, j)])
        return NearestProblem(n, A, b, b), T

    def correlation(self, Z: AnyArray) -> AnyArray:
        """Return the correlation matrix X of ``Z``, with exact diagonal and fixed entries."""
        X = Z / self._products
        X = 0.5 * (X + X.T)
        if len(self.pairs[0]):
            X = namespace(X).where(from_numpy(self.kept, X), self.G, X)
        return with_diagonal(X, 1.0)


def _weights(weights: Any) -> Array:
    """Return a copy in double precision, on the host."""
    array = check_array("weights", weights, ndim=1, allow_complex=False)
    return np.array(to_numpy(array), dtype=np.float64)


def _symmetric(G: Any) -> tuple[AnyArray, Any]:
    """Return a symmetric copy in double precision on the device of G, and the dtype of G."""
    given = check_array("G", G, ndim=2, allow_complex=False)
    if on_host(given):
        given = to_numpy(given)
    elif is_single(widened(given[:1, :1])):  # the library has no double precision there
        given = transferred(given).astype(np.float32)
    xp, n = namespace(given), given.shape[0]
    if n != given.shape[1]:
        raise ValueError(f"G must be square, got shape {tuple(given.shape)}")
    matrix = xp.astype(given, xp.float64)
    unequal = abs(matrix - matrix.T)
    i, j = divmod(int(xp.argmax(xp.reshape(unequal, (-1,)))), n)
    if float(unequal[i, j]) > 64.0 * eps(given) * float(xp.max(abs(matrix))):
        raise ValueError(
            f"G must be symmetric, got G[{i}, {j}] = {float(matrix[i, j]):g} "
            f"and G[{j}, {i}] = {float(matrix[j, i]):g}; pass (G + G.T) / 2"
        )
    return 0.5 * (matrix + matrix.T), given.dtype


def _pattern(fixed: Any, n: int) -> Pattern:
    if fixed is None:
        return np.zeros((n, n), dtype=np.bool_)
    kept = np.array(host_array("fixed", fixed))
    if kept.dtype != np.bool_:
        raise TypeError(
            f"fixed must be an array of bool, True for the entries to keep, got dtype {kept.dtype}"
        )
    check_shape("fixed", kept, (n, n))
    if not np.array_equal(kept, kept.T):
        i, j = np.argwhere(kept != kept.T)[0]
        raise ValueError(f"fixed must be symmetric, got fixed[{i}, {j}] = {kept[i, j]}")
    return kept
