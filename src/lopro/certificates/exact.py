"""Dot products rounded once.

Every product is split into its rounded value and its error (Dekker), and `math.fsum` adds them exactly.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

__all__ = ["columns", "exact_dot", "exact_terms"]

_SPLIT = float(2**27 + 1)


def exact_dot(x: Any, y: Any) -> float:
    """Return ``<x, y>`` rounded once (barring overflow and underflow).

    Examples
    --------
    >>> from lopro.certificates.exact import exact_dot
    >>> exact_dot([1e16, 1.0, -1e16], [1.0, 1.0, 1.0])
    1.0
    """
    return math.fsum(exact_terms(x, y))


def exact_terms(x: Any, y: Any) -> list[float]:
    """Return numbers whose exact sum is ``<x, y>``: the products and their rounding errors."""
    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    products = a * b
    a_high = _SPLIT * a - (_SPLIT * a - a)
    b_high = _SPLIT * b - (_SPLIT * b - b)
    a_low, b_low = a - a_high, b - b_high
    errors = ((a_high * b_high - products) + a_high * b_low + a_low * b_high) + a_low * b_low
    return [*products.tolist(), *errors.tolist()]


def columns(M: Any) -> Any:
    """Yield the rows (as indices) and the entries of every column."""
    if scipy.sparse.issparse(M):
        csc = scipy.sparse.csc_array(M)
        for start, stop in zip(csc.indptr[:-1], csc.indptr[1:], strict=True):
            yield csc.indices[start:stop], csc.data[start:stop]
    else:
        dense = np.asarray(M, dtype=np.float64)
        everything = np.arange(dense.shape[0])
        for j in range(dense.shape[1]):
            yield everything, dense[:, j]
