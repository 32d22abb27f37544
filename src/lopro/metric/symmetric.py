"""Symmetric products ``X'Y`` without the asymmetry of rounding, and matrices with few nonzero rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np

from lopro.core.arrays import Array
from lopro.core.deadline import current_deadline

__all__ = ["ENTRIES_AT_A_TIME", "features_in_use", "symmetric_product", "upper_blocks"]

Indices: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"
Matrix: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"

#: Rows of a block of a symmetric product: 500 kB in double precision, which the cache of one core holds.
_BLOCK = 250
#: Entries of large matrices that are formed at a time: 8 MB, which fits in the memory released by the
#: previous block. With 32 MB, the operating system clears new pages for every block.
ENTRIES_AT_A_TIME = 1 << 20
#: Features above which distances are computed on the nonzero rows: below, a product takes less than a
#: millisecond.
_MANY = 400


def features_in_use(A: Array) -> Indices | None:
    """Return the nonzero rows and columns of a large matrix, at least one; None if it is small or dense.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.metric.symmetric import features_in_use
    >>> A = np.zeros((1000, 1000))
    >>> A[3, 3] = 1.0
    >>> features_in_use(A), features_in_use(np.eye(1000)), features_in_use(A[:9, :9])
    (array([3]), None, None)
    """
    if not isinstance(A, np.ndarray) or len(A) <= _MANY:
        return None
    rows = A.any(axis=1)
    if 2 * np.count_nonzero(rows) >= len(A):
        return None
    # Other rows are zero, so that the columns in use are those of these rows: one pass over the matrix.
    used = np.flatnonzero(rows | A[rows].any(axis=0))
    if 2 * len(used) >= len(A):
        return None
    return used if used.size else np.zeros(1, dtype=np.int64)


def symmetric_product(X: Array, Y: Array) -> Array:
    """Return ``X'Y``, symmetric in exact arithmetic, without the asymmetry caused by rounding.

    Distances do not depend on the skew part, so that no later iteration would remove it.
    """
    if not isinstance(Y, np.ndarray):
        product = X.T @ Y
        return 0.5 * (product + product.T)
    d = Y.shape[1]
    out = np.empty((d, d), dtype=Y.dtype)
    # Half of the blocks are products, the others their transposes: no slower than one product.
    for start in range(0, d, _BLOCK):
        stop = min(start + _BLOCK, d)
        np.matmul(X.T[start:stop], Y[:, start:], out=out[start:stop, start:])
        corner = out[start:stop, start:stop]
        corner[...] = 0.5 * (corner + corner.T)
        out[stop:, start:stop] = out[start:stop, stop:].T
    return out


def upper_blocks(X: Matrix, Y: Matrix) -> Iterator[tuple[int, Matrix]]:
    """Yield the part of ``X'Y`` above its diagonal as blocks of rows.

    Each block comes with the index ``r`` of its first row and starts at column ``r``; entries that are not
    above the diagonal are 0. The time is checked between blocks.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.metric.symmetric import upper_blocks
    >>> list(upper_blocks(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]])))
    [(0, array([[0., 4.],
           [0., 0.]]))]
    """
    d = X.shape[1]
    size = max(1, ENTRIES_AT_A_TIME // d)
    for start in range(0, d, size):
        current_deadline().check()
        block = X[:, start : start + size].T @ Y[:, start:]
        rows = len(block)
        block[:, :rows] = np.triu(block[:, :rows], 1)
        yield start, block
