"""The map from a matrix ``A`` to the squared distances ``z_e'A z_e`` of pairs, and its adjoint.

Three ways to the same numbers, for few pairs, for many, and for many samples of which few pairs are
formed. None makes an object with ``d^2`` entries for each pair.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.arrays import Array, Companion, from_numpy, namespace, take, to_numpy

__all__ = ["Differences", "Graph", "PairMap", "SparseGraph", "pair_map", "symmetric_product"]

Indices = np.ndarray[Any, np.dtype[np.int64]]

#: Rows of a block of a symmetric product: it fits into the cache of one core.
_BLOCK = 250
#: Numbers in the differences that are held at a time.
_CHUNK = 2**20
#: A matrix over all pairs of samples may be so many times as large as the list of pairs.
_SPARSE_FROM = 16


class PairMap(Protocol):
    """``A -> (z_e'A z_e)_e`` and its adjoint ``w -> sum_e w_e z_e z_e'``."""

    def distances(self, A: Array) -> Array:
        """Return ``z_e'A z_e`` for every pair."""
        ...

    def adjoint(self, w: Array) -> Array:
        """Return the symmetric matrix ``sum_e w_e z_e z_e'``."""
        ...


def pair_map(X: Array, first: Indices, second: Indices) -> PairMap:
    """Return the map that suits these pairs of rows of ``X``."""
    N, pairs = X.shape[0], len(first)
    if pairs < N:
        return Differences(take(X, first) - take(X, second))
    if _SPARSE_FROM * pairs < N * N and N > 1000:
        return SparseGraph(X, first, second)
    return Graph(X, first, second)


class Differences:
    """Through the differences ``z_e`` themselves, the rows of ``Z``: for fewer pairs than samples."""

    def __init__(self, Z: Array) -> None:
        self._Z = Companion(Z)

    def distances(self, A: Array) -> Array:
        Z = self._Z.beside(A)
        return namespace(A).sum((Z @ A) * Z, axis=1)

    def adjoint(self, w: Array) -> Array:
        Z = self._Z.beside(w)
        return symmetric_product(Z, w[:, None] * Z)


class Graph:
    """Through ``X A X'``: samples are the vertices of a graph, pairs its edges, ``w`` their weights.

    The adjoint is ``X' Lap(w) X`` with the Laplacian of the graph, however many edges there are.
    """

    def __init__(self, X: Array, first: Indices, second: Indices) -> None:
        N = X.shape[0]
        self._N = N
        self._X = Companion(X)
        low, high = np.minimum(first, second), np.maximum(first, second)
        edges, merged = _distinct(low * N + high)
        #: Which edge each pair lies on; None where every pair has one of its own.
        self._edge_of = merged if len(edges) < len(first) else None
        order = merged if self._edge_of is None else np.arange(len(edges))
        # In the table a place holds the number of its weight, and one past the end where there is none:
        # gathering is in the array standard, scattering is not.
        table = np.full((N, N), len(edges))
        table.flat[edges[order]] = np.arange(len(edges))
        self._places = _IndexCompanion(np.minimum(table, table.T).ravel())
        self._forth = _IndexCompanion(first * N + second)
        self._back = _IndexCompanion(second * N + first)
        self._loops = tuple(_IndexCompanion(ends * (N + 1)) for ends in (first, second))

    def distances(self, A: Array) -> Array:
        X = self._X.beside(A)
        K = (X @ A) @ X.T
        xp = namespace(K)
        flat = xp.reshape(K, (-1,))
        ii, jj = (xp.take(flat, loops.beside(K)) for loops in self._loops)
        return ii + jj - xp.take(flat, self._forth.beside(K)) - xp.take(flat, self._back.beside(K))

    def adjoint(self, w: Array) -> Array:
        X, W = self._X.beside(w), self._weights(w)
        # The Laplacian diag(W 1) - W; a pair of a sample with itself cancels.
        degrees = namespace(W).sum(W, axis=1)
        return symmetric_product(X, degrees[:, None] * X - W @ X)

    def _weights(self, w: Array) -> Array:
        """Return the symmetric matrix of the weights of the edges."""
        xp = namespace(w)
        if self._edge_of is not None:
            total = np.bincount(self._edge_of, weights=to_numpy(w))
            w = xp.astype(from_numpy(total, w), w.dtype)
        padded = xp.concat([w, 0.0 * w[:1]])
        return xp.reshape(xp.take(padded, self._places.beside(w)), (self._N, self._N))


class SparseGraph:
    """The same with a sparse Laplacian, which is made on the host: no matrix over all pairs of samples."""

    def __init__(self, X: Array, first: Indices, second: Indices) -> None:
        self._X = Companion(X)
        self._first, self._second = first, second

    def distances(self, A: Array) -> Array:
        X = self._X.beside(A)
        XA = X @ A
        xp, size = namespace(A), max(1, _CHUNK // X.shape[1])
        found = []
        for start in range(0, len(self._first), size):
            i, j = (ends[start : start + size] for ends in (self._first, self._second))
            products = (take(X, i) - take(X, j)) * (take(XA, i) - take(XA, j))
            found.append(xp.sum(products, axis=1))
        return xp.concat(found)

    def adjoint(self, w: Array) -> Array:
        X, N = self._X.beside(w), self._X.array.shape[0]
        weights, i, j = to_numpy(w), self._first, self._second
        # Entries of one place add up.
        values = np.concatenate([weights, weights, -weights, -weights])
        places = np.concatenate([i, j, i, j]), np.concatenate([i, j, j, i])
        laplacian = scipy.sparse.csr_array((values, places), shape=(N, N))
        return symmetric_product(X, from_numpy(laplacian @ to_numpy(X), X))


def symmetric_product(X: Array, Y: Array) -> Array:
    """Return ``X'Y``, known to be symmetric, without the asymmetry that rounding would leave.

    The distances are blind to that asymmetry, so that a long run would never get rid of it.
    """
    if not isinstance(Y, np.ndarray):
        product = X.T @ Y
        return 0.5 * (product + product.T)
    d = Y.shape[1]
    out = np.empty((d, d), dtype=Y.dtype)
    # Half of the blocks are products, the others their mirror images: no slower than one product.
    for start in range(0, d, _BLOCK):
        stop = min(start + _BLOCK, d)
        np.matmul(X.T[start:stop], Y[:, start:], out=out[start:stop, start:])
        corner = out[start:stop, start:stop]
        corner[...] = 0.5 * (corner + corner.T)
        out[stop:, start:stop] = out[start:stop, stop:].T
    return out


class _IndexCompanion(Companion):
    """Indices that take on the library and device of the points they meet."""

    def _dtype_beside(self, x: Array) -> Any:
        return namespace(x).int64


def _distinct(keys: Indices) -> tuple[Indices, Indices]:
    """Return the different keys, ascending, and where each of ``keys`` stands among them."""
    if np.all(keys[1:] > keys[:-1]):  # as in lists of all pairs, which are the long ones
        return keys, np.arange(len(keys))
    found, places = np.unique(keys, return_inverse=True)
    return found, places
