"""Data of problems in double precision: nothing is made dense, and double precision is not copied."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import scipy  # parts of it load when first used

from lopro.errors import MissingCapabilityError
from lopro.maps import LinearMap
from lopro.newton.maps import Operator

__all__ = ["MapOrNone", "host", "matrix", "matrix_or_operator", "scaled"]

#: A matrix, dense or sparse, an operator, or None for the identity.
MapOrNone: TypeAlias = Any


def matrix(A: LinearMap) -> Any:
    """Return the entries of a map, in double precision, dense or sparse as they are."""
    if not A.explicit:
        raise MissingCapabilityError(f"{A.name} is an operator: its entries are needed")
    entries = A.matrix
    if scipy.sparse.issparse(entries):
        return entries.astype(np.float64)
    return np.asarray(entries, dtype=np.float64)


def matrix_or_operator(A: LinearMap) -> Any:
    """Return the entries of a map, or its two products where these are all there is."""
    if A.explicit:
        return matrix(A)
    return Operator(A.shape, lambda x: host(A.forward(x)), lambda v: host(A.adjoint(v)))


def host(values: Any) -> Any:
    """Return numbers as a NumPy array of doubles."""
    return np.asarray(values, dtype=np.float64)


def scaled(factor: float, A: Any) -> Any:
    """Return ``factor * A``, the same object for a factor of one."""
    if factor == 1.0:
        return A
    if isinstance(A, Operator):
        forward, adjoint = A.forward, A.adjoint
        return Operator(A.shape, lambda x: factor * forward(x), lambda v: factor * adjoint(v))
    return factor * A
