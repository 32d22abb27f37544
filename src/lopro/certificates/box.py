"""Bounds of single variables: given ones, and those that rows imply.

A row ``a'x <= u`` bounds each of its variables once the others are bounded on the side that makes the row
small: ``a_j x_j <= u - min sum_{k != j} a_k x_k``. In ``sum_j x_ij = m_i``, ``x >= 0``, every ``x_ij`` is at
most ``m_i``. Bounds from one row are used in the others, until no new bound follows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.certificates.spread import WORK
from lopro.core.deadline import current_deadline
from lopro.core.real_vectors import Vector
from lopro.linalg.rounding import EPS, gamma

__all__ = ["VariableBounds"]

#: Entries of a dense matrix that are listed one by one, at 40 bytes each.
_LISTED = 2_000_000


@dataclass(frozen=True, eq=False)
class VariableBounds:
    """``lower <= x <= upper``, infinite where there is no bound."""

    lower: Vector
    upper: Vector

    @property
    def bounded(self) -> bool:
        """Whether no bound is missing."""
        return bool(np.isfinite(self.lower).all() and np.isfinite(self.upper).all())

    def implied(self, blocks: Iterable[tuple[Any, Vector, Vector]]) -> VariableBounds:
        """Return the box with missing bounds replaced by those that rows ``lower <= A x <= upper`` imply.

        Every point of the box that satisfies the rows is in the box that is returned: bounds are rounded
        outwards. Finite bounds are not changed.

        Parameters
        ----------
        blocks : iterable of (A, lower, upper)
            Dense or sparse matrices; large dense ones are ignored.

        Examples
        --------
        >>> import numpy as np
        >>> from lopro.certificates import VariableBounds
        >>> orthant = VariableBounds(np.zeros(3), np.full(3, np.inf))
        >>> rows = (
        ...     np.array([[1.0, 2.0, 0.0], [0.0, -3.0, 1.0]]),
        ...     np.array([4.0, -np.inf]),
        ...     np.array([4.0, 0]),
        ... )
        >>> orthant.implied([rows]).upper.round(12)
        array([4., 2., 6.])
        """
        rows = _RowEntries.of(blocks)
        box, rounds = self, int(WORK / max(1, len(rows.a))) + 1
        for _ in range(rounds):
            if box.bounded or current_deadline().passed:
                break
            found = rows.fill(box)
            if found is None:
                break
            box = found
        return box


@dataclass(frozen=True, eq=False)
class _RowEntries:
    """Rows ``a'x <= side`` as lists of entries; a row with two sides becomes two rows."""

    row: Any
    column: Any
    a: Vector
    sides: Vector

    @staticmethod
    def of(blocks: Iterable[tuple[Any, Vector, Vector]]) -> _RowEntries:
        rows, columns, entries, sides, start = [], [], [], [], 0
        for A, lower, upper in blocks:
            if not scipy.sparse.issparse(A) and A.size > _LISTED:
                continue
            coo = scipy.sparse.coo_array(A)
            for sign, side in ((1.0, upper), (-1.0, -np.asarray(lower))):
                used = np.isfinite(side)
                number = start + np.cumsum(used) - 1
                kept = used[coo.row] & (coo.data != 0.0)
                rows.append(number[coo.row[kept]])
                columns.append(coo.col[kept])
                entries.append(sign * coo.data[kept])
                sides.append(side[used])
                start += int(used.sum())
        empty = [np.zeros(0, dtype=np.intp)]
        return _RowEntries(
            np.concatenate([*empty, *rows]),
            np.concatenate([*empty, *columns]),
            np.concatenate([np.zeros(0), *entries]),
            np.concatenate([np.zeros(0), *sides]),
        )

    def fill(self, box: VariableBounds) -> VariableBounds | None:
        """Return the box with the bounds that one pass over the rows adds; None if there are none."""
        i, j, a, m = self.row, self.column, self.a, len(self.sides)
        up = a > 0.0
        # The least contribution of each entry to its row, and whether it is unbounded.
        least = a * np.where(up, box.lower[j], box.upper[j])
        open_ = np.isinf(least)
        least = np.where(open_, 0.0, least)
        count = np.bincount(i, open_, m)
        missing = np.isinf(np.where(up, box.upper[j], box.lower[j]))
        used = np.flatnonzero(missing & (count[i] == open_))
        if len(used) == 0:
            return None
        sums, sizes = np.bincount(i, least, m), np.bincount(i, np.abs(least), m)
        longest = int(np.bincount(i, minlength=1).max())
        # The error of a sum of n terms is at most gamma_n times the sum of their sizes; three operations
        # follow.
        error = gamma(longest + 4) * (2.0 * sizes + np.abs(self.sides))
        r, k = i[used], j[used]
        room = (self.sides[r] - sums[r]) + least[used] + error[r] * (1.0 + 8.0 * EPS)
        ends = room / a[used]
        ends = ends + np.where(up[used], EPS, -EPS) * np.abs(ends)
        lower, upper = box.lower.copy(), box.upper.copy()
        np.minimum.at(upper, k[up[used]], ends[up[used]])
        np.maximum.at(lower, k[~up[used]], ends[~up[used]])
        return VariableBounds(lower, upper)
