"""Indices of rows and columns: checks, and selection by a band."""

from __future__ import annotations

from typing import Any

import numpy as np

from lopro.core.validation import host_array

__all__ = ["checked_indices", "within"]


def checked_indices(name: str, indices: Any, size: int) -> np.ndarray[Any, Any]:
    """Return indices as a NumPy array of integers in ``0 .. size - 1``; repetitions are allowed.

    Examples
    --------
    >>> from lopro.maps.indices import checked_indices
    >>> checked_indices("columns", [2, 0], 3)
    array([2, 0])
    """
    found = host_array(name, indices)
    if found.ndim != 1:
        raise ValueError(f"{name} must be a list of indices, got shape {found.shape}")
    if found.size == 0:
        return np.empty(0, dtype=np.intp)
    if found.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integers, got dtype {found.dtype}")
    if found.min() < 0 or found.max() >= size:
        raise IndexError(f"{name} must be in 0..{size - 1}, got {found.min()} to {found.max()}")
    return found.astype(np.intp, copy=False)


def within(
    indices: np.ndarray[Any, Any], band: slice
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the positions of the indices that lie in a band, and their offsets in it.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.maps.indices import within
    >>> within(np.array([7, 1, 5]), slice(4, 8))
    (array([0, 2]), array([3, 1]))
    """
    which = np.flatnonzero((indices >= band.start) & (indices < band.stop))
    return which, indices[which] - band.start
