"""Pairs of samples as index arrays, and the map from a matrix ``A`` to their distances ``z_e'A z_e``.

The map has three implementations: for fewer pairs than samples, for many pairs, and for many samples with
few pairs. None makes an object with ``d^2`` entries for each pair.
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
from lopro.core.validation import host_array

__all__ = [
    "Differences",
    "Graph",
    "PairMap",
    "SparseGraph",
    "checked_pairs",
    "features_in_use",
    "largest_eigenvalue",
    "pair_map",
    "symmetric_product",
    "two_sides",
]

Indices: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"
Matrix: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"

#: Rows of a block of a symmetric product: 500 kB in double precision, which the cache of one core holds.
_BLOCK = 250
#: Numbers in the differences that are held at a time: 8 MB in double precision.
_CHUNK = 2**20
#: A matrix over all pairs of samples may have so many times the entries of the list of pairs.
_SPARSE_FROM = 16
#: Features from which on distances are computed on those in use: below, a product takes less than a
#: millisecond.
_MANY = 400
#: Limit of power iterations for the largest eigenvalue, and the relative accuracy at which they stop.
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
    """Through the differences ``z_e`` themselves, the rows of ``Z``: for fewer pairs than samples."""

    def __init__(self, Z: Array) -> None:
        self._Z = Companion(Z)

    def distances(self, A: Array) -> Array:
        Z = self._Z.beside(A)
        return namespace(A).sum((Z @ A) * Z, axis=1)

    def factors(self, w: Array) -> tuple[Array, Array]:
        Z = self._Z.beside(w)
        return Z, w[:, None] * Z


class Graph(PairMap):
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
        #: Both ends of each pair with themselves, then with each other.
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

    def factors(self, w: Array) -> tuple[Array, Array]:
        X, N = self._X.beside(w), self._X.array.shape[0]
        weights, i, j = to_numpy(w), self._first, self._second
        # Entries of one place add up.
        values = np.concatenate([weights, weights, -weights, -weights])
        places = np.concatenate([i, j, i, j]), np.concatenate([i, j, j, i])
        laplacian = scipy.sparse.csr_array((values, places), shape=(N, N))
        return X, from_numpy(laplacian @ to_numpy(X), X)


def features_in_use(A: Array) -> Indices | None:
    """Return the features that a large matrix uses, at least one; None for a small or a dense one.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.metric.pair_maps import features_in_use
    >>> A = np.zeros((1000, 1000))
    >>> A[3, 3] = 1.0
    >>> features_in_use(A), features_in_use(np.eye(1000)), features_in_use(A[:9, :9])
    (array([3]), None, None)
    """
    if not isinstance(A, np.ndarray) or len(A) <= _MANY:
        return None
    used = np.flatnonzero(A.any(axis=0) | A.any(axis=1))
    if 2 * len(used) >= len(A):
        return None
    return used if used.size else np.zeros(1, dtype=np.int64)


def symmetric_product(X: Array, Y: Array) -> Array:
    """Return ``X'Y``, known to be symmetric, without the asymmetry that rounding would leave.

    Distances do not depend on the skew part, so that no later iteration would remove it.
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


def checked_pairs(pairs: Any, samples: int) -> tuple[Indices, Indices]:
    """Return the two index arrays, or raise with what is wrong with them."""
    try:
        first, second = pairs
    except (TypeError, ValueError):
        raise TypeError("pairs must be two arrays of indices (i, j)") from None
    checked = tuple(
        _checked_indices(f"pairs[{k}]", p, samples) for k, p in enumerate((first, second))
    )
    if len(checked[0]) != len(checked[1]):
        raise ValueError(
            f"pairs must be two arrays of one length, got {len(checked[0])} and {len(checked[1])}"
        )
    return checked[0], checked[1]


def _checked_indices(name: str, values: Any, samples: int) -> Indices:
    indices = host_array(name, values)
    if indices.ndim != 1 or indices.size == 0:
        raise ValueError(f"{name} must be a vector of indices, got shape {indices.shape}")
    if indices.dtype.kind not in "iu":
        raise TypeError(f"{name} must hold integers, got dtype {indices.dtype}")
    low, high = int(indices.min()), int(indices.max())
    if low < 0 or high >= samples:
        raise ValueError(f"{name} must lie in [0, {samples}), got {low if low < 0 else high}")
    return np.array(indices, dtype=np.int64)


def largest_eigenvalue(X: Matrix, pairs: tuple[Indices, Indices]) -> float:
    """Return an upper bound of the largest eigenvalue of ``H_ef = (z_e'z_f)^2``.

    ``H`` has no negative entry, so that every positive ``v`` proves ``lmax(H) <= max_e (Hv)_e / v_e``
    (Collatz and Wielandt). Power iterations make it sharp.
    """
    first, second = pairs
    moving = np.linalg.norm(X[first] - X[second], axis=1) > 0.0
    n, bound = int(moving.sum()), math.inf
    if n == 0:
        return 0.0
    # Only the Gram matrix of the samples matters: wide samples are replaced by a triangular factor.
    if X.shape[0] < X.shape[1]:
        X = np.asarray(np.linalg.qr(X.T, mode="r")).T
    to_pairs, v = pair_map(X, first[moving], second[moving]), np.ones(n)
    for _ in range(_POWER_STEPS):
        Hv = to_pairs.distances(to_pairs.adjoint(v))
        bound = min(bound, float(np.max(Hv / v)))
        if bound - inner(v, Hv) / inner(v, v) <= _POWER_ACCURACY * bound:
            break
        # The floor keeps v positive where components of the graph decay; any positive v will do.
        v = np.maximum(Hv / np.max(Hv), 1e-13)
    return float(bound * (1.0 + 4.0 * n * eps(v)))


def two_sides(N: int, pairs: tuple[Indices, Indices], targets: Matrix) -> Matrix | None:
    """Return +-1 for the samples so that targets of 0 join and others, all equal, separate them, or None.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.metric.pair_maps import two_sides
    >>> two_sides(3, (np.array([0, 0]), np.array([1, 2])), np.array([0.0, 2.0]))
    array([ 1.,  1., -1.])
    """
    top = float(targets.max())
    apart = targets > 0.5 * top
    if top <= 0.0 or not np.allclose(np.where(apart, top, 0.0), targets):
        return None
    first, second = pairs
    graph = scipy.sparse.coo_array((np.ones(len(first)), (first, second)), shape=(N, N)).tocsr()
    separates = {(int(i), int(j)) for i, j in zip(first[apart], second[apart], strict=True)}
    order, parents = scipy.sparse.csgraph.breadth_first_order(graph, int(first[0]), directed=False)
    if len(order) < N:
        return None
    sides = np.ones(N)
    for node in order[1:]:
        parent = int(parents[node])
        flips = (parent, int(node)) in separates or (int(node), parent) in separates
        sides[node] = -sides[parent] if flips else sides[parent]
    consistent = np.array_equal(sides[first] != sides[second], apart)
    return sides if consistent else None
