"""Products with linear maps on the host, with bounds of their rounding errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lopro.core.arrays import asarray_like, to_numpy
from lopro.linalg.dense import EPS, Array
from lopro.linalg.rounding import adjoint_product, gamma, length, product
from lopro.maps.base import LinearMap
from lopro.maps.host import entries_of, host_matrix, slabs

__all__ = ["enclose_adjoint", "enclose_forward"]

#: Assumed rounding error of products with an operator, relative to ``|row| |x|``, in rounding units: at most
#: 0.2 for Fourier and cosine transforms of 1e3 to 1e6 random numbers (SciPy, against extended precision).
_ROUNDINGS = 8.0
#: Number of rows whose products are added on a device; the sums of such chunks are added on the host.
#: The error of a chunk, 2048 roundings or 2.3e-13, is far below the violation of 1e-9 that is allowed.
_CHUNK = 2048


def enclose_forward(D: LinearMap, x: Array) -> tuple[Array, Array]:
    """Return ``D x`` and a bound of the error of each entry, for a map of `lopro.maps.host.host_map`.

    Products with an operator cannot be checked; their error is assumed to be a few roundings of
    ``|row| |x|``.
    """
    if D.is_identity:
        return x, np.zeros(len(x))
    M = host_matrix(D)
    if M is not None:
        return product(M, x)
    if entries_of(D) is not None:
        # The error of a sum of n products in any order is at most gamma_n |row| |x|.
        return D.forward(x), _rounded_up(gamma(len(x)) * length(x) * D.row_norms, len(x))
    return D.forward(x), _ROUNDINGS * EPS * length(x) * D.row_norms


def enclose_adjoint(D: LinearMap, v: Array, error: Array | float = 0.0) -> tuple[Array, Array]:
    """Return ``D' v``, for ``v`` known up to ``error``, and a bound of the error of each entry.

    For an operator the same assumption is made, and its columns are assumed to have about equal norms.
    """
    if D.is_identity:
        return v, np.zeros(len(v)) + error
    M = host_matrix(D)
    if M is not None:
        return adjoint_product(M, v, error)
    there = entries_of(D)
    if there is not None:
        return _adjoint_on_device(D, there, v, length(np.zeros(len(v)) + error))
    normal = D.adjoint(v)
    column = length(D.row_norms) / math.sqrt(len(normal))
    uncertain = length(np.zeros(len(v)) + error) + _ROUNDINGS * EPS * length(v)
    return normal, np.full(len(normal), column * uncertain)


def _adjoint_on_device(D: LinearMap, M: Any, v: Array, uncertain: float) -> tuple[Array, Array]:
    """Return ``D' v`` as a sum over chunks of rows, as the error bound of one long sum would be large."""
    there, rows = asarray_like(v, M), D.shape[0]
    parts = [slab.T @ there[at] for at, slab in slabs(M, _CHUNK)]
    sums = np.stack([np.zeros(D.shape[1]), *(to_numpy(part) for part in parts)])
    total = np.sum(sums, axis=0)
    within = gamma(min(_CHUNK, rows)) * length(v) + uncertain
    error = within * D.column_norms + gamma(len(sums)) * np.sum(np.abs(sums), axis=0)
    return total, _rounded_up(error, rows)


def _rounded_up(error: Array, terms: int) -> Array:
    """Return an error bound raised by the rounding of its own evaluation, with norms of ``terms`` terms."""
    return error * (1.0 + (2 * terms + 64) * EPS)
