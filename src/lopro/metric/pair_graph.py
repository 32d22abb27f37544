"""Pairs as the edges of a graph on the samples: its Laplacian, and whether it has two sides."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import scipy  # parts of it load when first used

from lopro.metric.pair_maps import Indices

__all__ = ["laplacian_times", "two_sides"]

Matrix: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"

#: Pairs whose differences are held at a time.
_BLOCK = 4096


def laplacian_times(X: Matrix, pairs: tuple[Indices, Indices], w: Matrix) -> Matrix:
    """Return ``Lap(w) X``.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.metric.pair_graph import laplacian_times
    >>> pairs = np.array([0]), np.array([1])
    >>> laplacian_times(np.array([[1.0], [4.0]]), pairs, np.array([2.0]))
    array([[-6.],
           [ 6.]])
    """
    (first, second), total = pairs, np.zeros_like(X)
    for start in range(0, len(first), _BLOCK):
        i, j = first[start : start + _BLOCK], second[start : start + _BLOCK]
        rows, ends = np.tile(np.arange(len(i)), 2), np.concatenate([i, j])
        signs = np.repeat([1.0, -1.0], len(i)).astype(X.dtype)
        incidence = scipy.sparse.csr_array((signs, (ends, rows)), shape=(len(X), len(i)))
        total += incidence @ (w[start : start + _BLOCK, None] * (X[i] - X[j]))
    return total


def two_sides(N: int, pairs: tuple[Indices, Indices], targets: Matrix) -> Matrix | None:
    """Return +-1 for the samples so that targets of 0 join and others, all equal, separate them, or None.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.metric.pair_graph import two_sides
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
