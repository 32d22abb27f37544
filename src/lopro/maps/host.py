"""Maps for vectors of doubles on the host, for entries of any library, precision or device."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.arrays import (
    Array,
    asarray_like,
    is_array,
    is_single,
    namespace,
    on_host,
    to_numpy,
)
from lopro.core.counting import count
from lopro.maps.algebra import bytes_of, widened
from lopro.maps.arrays import ArrayMap, NumPyMap
from lopro.maps.base import LinearMap
from lopro.maps.sparse_map import SparseMap

__all__ = [
    "Transferred",
    "engine_matrix",
    "entries_of",
    "host_map",
    "host_matrix",
    "host_vector",
    "rows_at_a_time",
    "slabs",
    "transferred",
    "widens_there",
]

#: Entries of rows on a device that are copied at a time: half a gigabyte of doubles.
_SLAB = 1 << 26
#: The largest matrix in single precision that is copied in double precision on its device, in bytes: the
#: copy takes 8 GB.
_WIDENED_BYTES = 1 << 32
#: Random sign vectors that estimate the Frobenius norm of an operator: the standard deviation of its square
#: is at most sqrt(2 / 8) = 0.5 of it (Avron and Toledo, J. ACM 58 (2011)), less with rank above 1.
_PROBES = 8
#: The largest matrix that is copied for a solver on the host, in bytes: 0.4 ms at 10 GB/s, less than the
#: first factorisation of the solver.
_ENGINE_BYTES = 1 << 22


def host_map(A: LinearMap) -> LinearMap:
    """Return a map for NumPy vectors of doubles with the entries of ``A``; made once for each map.

    Matrices in double precision on the host are used directly, those of other libraries without a copy
    where possible; matrices in single precision are copied, on their device if they are on one. Of all other
    maps the products are used, with a transfer of the vectors.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.maps import linear_map
    >>> from lopro.maps.host import host_map
    >>> A = linear_map(np.ones((1, 2)))
    >>> host_map(A) is A, host_map(linear_map(np.ones((1, 2), np.float32))).matrix.dtype
    (True, dtype('float64'))
    """
    if "_on_host" not in A.__dict__:
        made = _host_map(A)
        # A map that refers to itself would keep its entries until the next garbage collection.
        A.__dict__["_on_host"] = None if made is A else made
    found: LinearMap | None = A.__dict__["_on_host"]
    return A if found is None else found


def _host_map(A: LinearMap) -> LinearMap:
    if type(A) is NumPyMap and A.like.dtype == np.float64:
        return A
    if A.is_identity or isinstance(A, Transferred):
        return A
    if not A.explicit or (A.in_memory and not on_host(A.like)):
        if A.explicit and is_single(A.like) and isinstance(A, ArrayMap):
            A = ArrayMap(widened(A.matrix), A.name)
        return Transferred(A)
    entries = A.matrix
    if scipy.sparse.issparse(entries):
        same = isinstance(A, SparseMap) and entries.dtype == np.float64
        return A if same else SparseMap(entries.astype(np.float64), A.name)
    return NumPyMap(host_vector(entries), A.name)


def widens_there(A: LinearMap) -> bool:
    """Whether a map in single precision on a device can be copied there in double precision."""
    if not isinstance(A, ArrayMap) or A.nbytes > _WIDENED_BYTES:
        return False
    try:
        return not is_single(widened(A.like[:1]))
    except (TypeError, RuntimeError):  # devices without double precision
        return False


def host_matrix(A: LinearMap) -> Any:
    """Return the entries of a map of `host_map`, dense or sparse; None where they are not on the host."""
    return A.matrix if isinstance(A, (NumPyMap, SparseMap)) else None


def entries_of(A: LinearMap) -> Any:
    """Return the entries of a map of `host_map`, on the host or on their device, or None."""
    if isinstance(A, Transferred):
        return A.device_matrix if A.on_device else None
    return host_matrix(A)


def engine_matrix(A: LinearMap) -> Any:
    """Return the entries of a matrix for a solver on the host, or None; the only transfer from a device.

    Matrices of up to 4 MB are copied from their device, once, and the copy is counted
    (``counts.transfers``, ``counts.bytes_transferred``). Larger ones are not copied: other methods compute
    on the device.

    Examples
    --------
    >>> import array_api_strict as xp
    >>> from lopro.core.counting import Counts, counting
    >>> from lopro.maps import linear_map
    >>> from lopro.maps.host import engine_matrix
    >>> A = linear_map(xp.ones((2, 3), device=xp.Device("device1")))
    >>> with counting(Counts()) as counts:
    ...     engine_matrix(A).shape, engine_matrix(A) is engine_matrix(A)
    ((2, 3), True)
    >>> counts.transfers, counts.bytes_transferred
    (1, 48)
    """
    found = host_map(A)
    if not (isinstance(found, Transferred) and found.on_device) or A.nbytes > _ENGINE_BYTES:
        return host_matrix(found)
    copied: np.ndarray[Any, Any] | None = A.__dict__.get("_copied")
    if copied is None:
        copied = A.__dict__["_copied"] = transferred(found.device_matrix)
    return copied


def transferred(values: Any) -> np.ndarray[Any, Any]:
    """Return numbers as a NumPy array of doubles; a copy from a device is counted."""
    if is_array(values) and not on_host(values):
        count("transfers")
        count("bytes_transferred", bytes_of(values))
    return host_vector(values)


def host_vector(values: Any) -> np.ndarray[Any, Any]:
    """Return numbers as a NumPy array of doubles."""
    if type(values) is np.ndarray and values.dtype == np.float64:
        return values
    return np.asarray(to_numpy(values) if is_array(values) else values, dtype=np.float64)


def rows_at_a_time(B: Any) -> int:
    """Return the number of rows of a matrix on a device that may be copied at a time."""
    return max(1, _SLAB // max(1, int(B.shape[1])))


def slabs(B: Any, height: int | None = None) -> Iterator[tuple[slice, Any]]:
    """Yield slabs of rows of a matrix on a device, of this height or of `rows_at_a_time`."""
    step = height or rows_at_a_time(B)
    for start in range(0, B.shape[0], step):
        at = slice(start, min(start + step, B.shape[0]))
        yield at, B[at, :]


class Transferred(LinearMap):
    """Products of vectors on the host with a map on a device, or with an operator.

    Parameters
    ----------
    A : LinearMap
        The map; not copied.
    """

    def __init__(self, A: LinearMap) -> None:
        super().__init__(A, A.shape, np.zeros(1), A.name, A.nbytes)
        self._map = A

    @property
    def on_device(self) -> bool:
        """Whether the entries are in the memory of a device."""
        return self._map.explicit

    @property
    def device_matrix(self) -> Any:
        """The entries, on their device."""
        return self._map.matrix

    @property
    def xp(self) -> Any:
        """The library of the device."""
        return namespace(self.device_matrix)

    def to_device(self, v: Any) -> Array:
        """Return numbers of the host on the device of the entries."""
        return asarray_like(v, self.device_matrix)

    def forward(self, x: Array) -> np.ndarray[Any, Any]:
        return host_vector(self.image(x))

    def image(self, x: Array) -> Array:
        """Return the product on the device."""
        return self._map.forward(self.to_device(x) if self.on_device else x)

    def adjoint(self, y: Array) -> np.ndarray[Any, Any]:
        """Return the product with a vector of the host or of the device, on the host."""
        there = self.to_device(y) if self.on_device and isinstance(y, np.ndarray) else y
        return host_vector(self._map.adjoint(there))

    @cached_property
    def _norms(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Norms of rows and of columns, from one pass over the entries."""
        of_rows, of_columns = [np.zeros(0)], np.zeros(self.shape[1])
        for _, slab in slabs(self.device_matrix):
            squares = slab * slab
            of_rows.append(to_numpy(self.xp.sum(squares, axis=1)))
            of_columns += to_numpy(self.xp.sum(squares, axis=0))
        return np.sqrt(np.concatenate(of_rows)), np.sqrt(of_columns)

    @cached_property
    def row_norms(self) -> np.ndarray[Any, Any]:
        """The norms of the rows; of an operator their root mean square, estimated, for every row."""
        if self.on_device:
            return self._norms[0]
        # |D s|^2 over random signs has the squared Frobenius norm as its mean.
        signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(_PROBES, self.shape[1]))
        squares = np.array([self.forward(s) for s in signs]) ** 2
        rows = self.shape[0]
        return np.full(rows, np.sqrt(squares.sum() / _PROBES / max(1, rows)))

    @property
    def column_norms(self) -> np.ndarray[Any, Any]:
        return self._norms[1]
