"""The linear map from a matrix ``A`` to the distances ``z_e'A z_e`` of pairs of samples, and its adjoint.

It has three implementations: for fewer pairs than samples, for many pairs, and for many samples with few
pairs. None forms ``d^2`` entries for each pair.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.arrays import (
    Array,
    Companion,
    eps,
    from_numpy,
    inner,
    namespace,
    take,
    to_numpy,
)
from lopro.metric.symmetric import ENTRIES_AT_A_TIME, symmetric_product

__all__ = [
    "Differences",
    "Graph",
    "PairMap",
    "SparseGraph",
    "largest_eigenvalue",
    "pair_map",
]

Indices: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"
Matrix: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"

#: The largest ratio of the entries of a dense matrix over all pairs of samples to the number of pairs; beyond
#: it, and above 1000 samples (8 MB), the matrix is sparse.
_SPARSE_FROM = 16
#: Most power iterations for the largest eigenvalue, and the relative accuracy at which they stop: the bound
#: holds after any number of them.
_POWER_STEPS, _POWER_ACCURACY = 500, 1e-9


class PairMap:
    """``A -> (z_e'A z_e)_e`` and its adjoint ``w -> sum_e w_e z_e z_e'``."""

    def distances(self, A: Array) -> Array:
        """Return ``z_e'A z_e`` for every pair."""
        raise NotImplementedError

    def factors(self, w: Array) -> tuple[Array, Array]:
        """Return ``X`` and ``Y`` with ``X'Y = sum_e w_e z_e z_e'``."""
        raise NotImplementedError

    def adjoint(self, w: Array) -> Array:
        """Return the symmetric matrix ``sum_e w_e z_e z_e'``."""
        return symmetric_product(*self.factors(w))


def pair_map(X: Array, first: Indices, second: Indices) -> PairMap:
    """Return the map that suits these pairs of rows of ``X``."""
    N, pairs = X.shape[0], len(first)
    if pairs < N:
        return Differences(take(X, first) - take(X, second))
    if _SPARSE_FROM * pairs < N * N and N > 1000:
        return SparseGraph(X, first, second)
    return Graph(X, first, second)


class Differences(PairMap):
    """By the differences ``z_e``, the rows of ``Z``: for fewer pairs than samples."""

    def __init__(self, Z: Array) -> None:
        self._Z = Companion(Z)

    def distances(self, A: Array) -> Array:
        Z = self._Z.beside(A)
        return namespace(A).sum((Z @ A) * Z, axis=1)

    def factors(self, w: Array) -> tuple[Array, Array]:
        Z = self._Z.beside(w)
        return Z, w[:, None] * Z


class Graph(PairMap):
    """By ``X A X'``: samples are the vertices of a graph, pairs its edges, ``w`` their weights.

    The adjoint is ``X' Lap(w) X`` with the Laplacian of the graph.
    """

    def __init__(self, X: Array, first: Indices, second: Indices) -> None:
        N = X.shape[0]
        self._N = N
        self._X = Companion(X)
        low, high = np.minimum(first, second), np.maximum(first, second)
        edges, merged = _distinct(low * N + high)
        #: The index of the edge of each pair; None if no edge belongs to two pairs.
        self._edge_of = merged if len(edges) < len(first) else None
        order = merged if self._edge_of is None else np.arange(len(edges))
        # Each place of the table holds the index of its weight, or one past the last if there is none:
        # the array standard has gathering, but no scattering.
        table = np.full((N, N), len(edges))
        table.flat[edges[order]] = np.arange(len(edges))
        self._places = _IndexCompanion(np.minimum(table, table.T).ravel())
        #: The places of ``K`` at (i, i), (j, j), (i, j) and (j, i) for every pair (i, j).
        ends = [first * (N + 1), second * (N + 1), first * N + second, second * N + first]
        self._ends = _IndexCompanion(np.concatenate(ends))

    def distances(self, A: Array) -> Array:
        X = self._X.beside(A)
        K = (X @ A) @ X.T
        xp = namespace(K)
        found = xp.take(xp.reshape(K, (-1,)), self._ends.beside(K))
        parts = xp.reshape(found, (4, -1))
        return parts[0, :] + parts[1, :] - parts[2, :] - parts[3, :]

    def factors(self, w: Array) -> tuple[Array, Array]:
        X, W = self._X.beside(w), self._weights(w)
        # The Laplacian diag(W 1) - W; a pair of a sample with itself cancels.
        degrees = namespace(W).sum(W, axis=1)
        return X, degrees[:, None] * X - W @ X

    def _weights(self, w: Array) -> Array:
        """Return the symmetric matrix of the weights of the edges."""
        xp = namespace(w)
        if self._edge_of is not None:
            total = np.bincount(self._edge_of, weights=to_numpy(w))
            w = xp.astype(from_numpy(total, w), w.dtype)
        padded = xp.concat([w, 0.0 * w[:1]])
        return xp.reshape(xp.take(padded, self._places.beside(w)), (self._N, self._N))


class SparseGraph(PairMap):
    """As `Graph` with a sparse Laplacian, formed on the host: no matrix over all pairs of samples."""

    def __init__(self, X: Array, first: Indices, second: Indices) -> None:
        self._X = Companion(X)
        self._first, self._second = first, second

    def distances(self, A: Array) -> Array:
        X = self._X.beside(A)
        XA = X @ A
        xp, size = namespace(A), max(1, ENTRIES_AT_A_TIME // X.shape[1])
        found = []
        for start in range(0, len(self._first), size):
            i, j = (ends[start : start + size] for ends in (self._first, self._second))
            products = (take(X, i) - take(X, j)) * (take(XA, i) - take(XA, j))
            found.append(xp.sum(products, axis=1))
        return xp.concat(found)

    def factors(self, w: Array) -> tuple[Array, Array]:
        X, N = self._X.beside(w), self._X.array.shape[0]
        weights, i, j = to_numpy(w), self._first, self._second
        # Duplicate entries are summed.
        values = np.concatenate([weights, weights, -weights, -weights])
        places = np.concatenate([i, j, i, j]), np.concatenate([i, j, j, i])
        laplacian = scipy.sparse.csr_array((values, places), shape=(N, N))
        return X, from_numpy(laplacian @ to_numpy(X), X)


class _IndexCompanion(Companion):
    """Indices in the library and on the device of the points."""

    def _dtype_beside(self, x: Array) -> Any:
        return namespace(x).int64


def _distinct(keys: Indices) -> tuple[Indices, Indices]:
    """Return the distinct keys, ascending, and the position of each of ``keys`` among them."""
    if np.all(keys[1:] > keys[:-1]):  # as in lists of all pairs, the longest ones
        return keys, np.arange(len(keys))
    found, places = np.unique(keys, return_inverse=True)
    return found, places


def largest_eigenvalue(X: Matrix, pairs: tuple[Indices, Indices]) -> float:
    """Return an upper bound of the largest eigenvalue of ``H_ef = (z_e'z_f)^2``.

    ``H`` has no negative entry, so that every positive ``v`` proves ``lmax(H) <= max_e (Hv)_e / v_e``
    (Collatz and Wielandt). Power iterations make the bound sharp.
    """
    first, second = pairs
    moving = np.linalg.norm(X[first] - X[second], axis=1) > 0.0
    n, bound = int(moving.sum()), math.inf
    if n == 0:
        return 0.0
    # H depends on the Gram matrix of the samples alone: wide samples are replaced by a triangular factor.
    if X.shape[0] < X.shape[1]:
        X = np.asarray(np.linalg.qr(X.T, mode="r")).T
    to_pairs, v = pair_map(X, first[moving], second[moving]), np.ones(n)
    for _ in range(_POWER_STEPS):
        Hv = to_pairs.distances(to_pairs.adjoint(v))
        bound = min(bound, float(np.max(Hv / v)))
        if bound - inner(v, Hv) / inner(v, v) <= _POWER_ACCURACY * bound:
            break
        # The floor keeps v positive on components of the graph where it decays; any positive v is valid.
        v = np.maximum(Hv / np.max(Hv), 1e-13)
    return float(bound * (1.0 + 4.0 * n * eps(v)))
