"""Dot products rounded once, and the columns of dense and sparse matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.exact import exact_terms

__all__ = ["columns", "exact_dot"]


def exact_dot(x: Any, y: Any) -> float:
    """Return ``<x, y>`` rounded once (barring overflow and underflow).

    Examples
    --------
    >>> from lopro.certificates.exact import exact_dot
    >>> exact_dot([1e16, 1.0, -1e16], [1.0, 1.0, 1.0])
    1.0
    """
    return math.fsum(exact_terms(x, y))


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
