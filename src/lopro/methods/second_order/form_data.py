"""Data of problems in double precision: nothing is made dense or fetched from a device."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.arrays import is_array, on_host, to_numpy
from lopro.errors import MissingCapabilityError
from lopro.maps import LinearMap
from lopro.newton.maps import OnDevice, Operator

__all__ = ["MapOrNone", "host", "matrix", "matrix_or_operator", "on_device", "scaled"]

#: A matrix, dense, sparse or on a device, an operator, or None for the identity.
MapOrNone: TypeAlias = Any


def matrix(A: LinearMap) -> Any:
    """Return the entries of a map, in double precision, dense or sparse as they are."""
    if not A.explicit:
        raise MissingCapabilityError(f"{A.name} is an operator: its entries are needed")
    entries = A.matrix
    if scipy.sparse.issparse(entries):
        return entries.astype(np.float64)
    if on_device(A):
        raise MissingCapabilityError(f"{A.name} is on a device: its entries are needed")
    return host(entries)


def on_device(A: LinearMap) -> bool:
    """Whether the entries of a map are in the memory of a device: arrays of other libraries may not be."""
    return A.explicit and A.in_memory and not on_host(A.like)


def matrix_or_operator(A: LinearMap) -> Any:
    """Return the entries of a map, or its two products where these are all there is."""
    if on_device(A):
        return OnDevice(A.matrix)
    if A.explicit:
        return matrix(A)
    return Operator(A.shape, lambda x: host(A.forward(x)), lambda v: host(A.adjoint(v)))


def host(values: Any) -> Any:
    """Return numbers as a NumPy array of doubles."""
    return np.asarray(to_numpy(values) if is_array(values) else values, dtype=np.float64)


def scaled(factor: float, A: Any) -> Any:
    """Return ``factor * A``, the same object for a factor of one."""
    if factor == 1.0:
        return A
    if isinstance(A, Operator):
        forward, adjoint = A.forward, A.adjoint
        return Operator(A.shape, lambda x: factor * forward(x), lambda v: factor * adjoint(v))
    return OnDevice(factor * A.M) if isinstance(A, OnDevice) else factor * A
