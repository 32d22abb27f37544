"""Propagation of the units of columns through rows whose side is 0, to the columns without a unit."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.arrays import take
from lopro.core.real_vectors import Vector
from lopro.maps.host import transferred

__all__ = ["NEAR", "WORK", "Entries", "entries_of", "spread"]

#: The largest product of entries and rounds in propagating units or bounds between columns: half a second, as
#: a round takes 10 ns for each entry, measured on one core.
WORK = 5e7
#: The most rounds of propagation before small sides are compared, each a pass over the entries: 3, 10 and 100
#: prove the same programs of Maros and Meszaros; DTOC3, a chain of 5,000 rows, takes 39, 45 and 85 ms.
NEAR = 10

#: Row, column and modulus of entries, and the number of rows.
Entries: TypeAlias = "tuple[Any, Any, Vector, int]"


def entries_of(A: Any, used: Any) -> tuple[Any, Any, Vector]:
    """Return row, column and modulus of the nonzero entries of some rows.

    Rows of a dense matrix on a device are copied to the host, which is counted.
    """
    if not scipy.sparse.issparse(A):
        rows = np.flatnonzero(used)
        sizes = np.abs(transferred(take(A, rows)) if len(rows) else np.zeros((0, A.shape[1])))
        row, column = np.nonzero(sizes)
        return rows[row], column, sizes[row, column]
    A = A.tocsr()
    row = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    kept = used[row] & (A.data != 0.0)
    return row[kept], A.indices[kept], np.abs(A.data[kept])


def spread(entries: Entries, units: Vector, rounds: int | None = None) -> Vector:
    """Return units of all columns connected with one that has a unit by at most ``rounds`` rows."""
    row, column, entry, count = entries
    units = units.copy()
    for _ in range(int(WORK / max(1, len(entry))) + 1 if rounds is None else rounds):
        known = np.isfinite(units)[column]
        sizes = np.zeros(count)
        np.maximum.at(sizes, row[known], entry[known] * units[column[known]])
        reached = sizes[row] > 0.0
        new = ~known & reached
        if not new.any():
            break
        np.minimum.at(units, column[new], sizes[row[new]] / entry[new])
        # All columns of a row that is reached have a unit now.
        row, column, entry = row[~reached], column[~reached], entry[~reached]
    return units
