"""Units that rows with the side 0 hand on, from columns that have one to those they compare them with."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.arrays import take
from lopro.core.real_vectors import Vector
from lopro.maps.host import transferred

__all__ = ["NEAR", "WORK", "Entries", "entries_of", "spread"]

#: Entries times rounds of handing units or bounds on from column to column, at most: half a second, as a
#: round takes 10 ns for each entry, measured on one core.
WORK = 5e7
#: Rows over which small sides are compared with others, each a pass over the entries: 3, 10 and 100 prove the
#: same programs of Maros and Meszaros; DTOC3, a chain of 5,000 rows, takes 39, 45 and 85 ms.
NEAR = 10

#: Row, column and size of entries, and the number of rows.
Entries: TypeAlias = "tuple[Any, Any, Vector, int]"


def entries_of(A: Any, used: Any) -> tuple[Any, Any, Vector]:
    """Return row, column and size of the entries of some rows that are not 0.

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
    """Return units of all columns that rows connect with one that has a unit, over so many rows at most."""
    row, column, entry, count = entries
    units = units.copy()
    for _ in range(int(WORK / max(1, len(entry))) + 1 if rounds is None else rounds):
        told = np.isfinite(units)[column]
        sizes = np.zeros(count)
        np.maximum.at(sizes, row[told], entry[told] * units[column[told]])
        reached = sizes[row] > 0.0
        asked = ~told & reached
        if not asked.any():
            break
        np.minimum.at(units, column[asked], sizes[row[asked]] / entry[asked])
        # All columns of a row that is reached have a unit now.
        row, column, entry = row[~reached], column[~reached], entry[~reached]
    return units
