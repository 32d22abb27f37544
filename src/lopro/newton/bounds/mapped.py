"""Products with linear maps, with bounds of their rounding errors."""

from __future__ import annotations

import math

import numpy as np

from lopro.newton.arrays import EPS, Array
from lopro.newton.bounds.rounding import adjoint_product, length, product
from lopro.newton.maps import Identity, LinearMap, matrix_of

__all__ = ["enclose_adjoint", "enclose_forward"]

#: Roundings that the products of an operator are trusted to make, relative to the norms of its rows.
_ROUNDINGS = 8.0


def enclose_forward(D: LinearMap, x: Array) -> tuple[Array, Array]:
    """Return ``D x`` and a bound of the error of each entry.

    An operator is taken at its word: it is charged as if it were stable, a few roundings of ``|row| |x|``.
    """
    if isinstance(D, Identity):
        return x, np.zeros(len(x))
    M = matrix_of(D)
    if M is not None:
        return product(M, x)
    return D.forward(x), _ROUNDINGS * EPS * length(x) * D.row_norms()


def enclose_adjoint(D: LinearMap, v: Array, error: Array | float = 0.0) -> tuple[Array, Array]:
    """Return ``D' v``, for ``v`` known up to ``error``, and a bound of the error of each entry.

    An operator is taken at its word again, and its columns are taken to be about as long as each other.
    """
    if isinstance(D, Identity):
        return v, np.zeros(len(v)) + error
    M = matrix_of(D)
    if M is not None:
        return adjoint_product(M, v, error)
    normal = D.adjoint(v)
    column = length(D.row_norms()) / math.sqrt(len(normal))
    uncertain = length(np.zeros(len(v)) + error) + _ROUNDINGS * EPS * length(v)
    return normal, np.full(len(normal), column * uncertain)
