"""Index arrays of pairs of samples: their checks, and the two groups that they may define."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.validation import host_array

__all__ = ["checked_pairs", "two_sides"]

Indices: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"
Matrix: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"


def checked_pairs(pairs: Any, samples: int) -> tuple[Indices, Indices]:
    """Return the two index arrays; raise an error if they are not valid."""
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


def two_sides(N: int, pairs: tuple[Indices, Indices], targets: Matrix) -> Matrix | None:
    """Return the two groups of samples, +-1 for each, that the targets define, or None.

    Pairs have equal signs where the target is 0, and opposite signs elsewhere. None is returned if positive
    targets differ, if the pairs do not connect all samples, or if no such signs exist.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.metric.pair_indices import two_sides
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
