"""Units of the columns of linear constraints, from their data alone.

The unit of a row ``a'x <= b`` with ``b != 0`` is its side: ``|b| / |a_j|`` is the change of ``x_j`` that
changes the row by ``|b|``. The unit of a column is the smallest of these. A column with entries only in rows
with the side 0 gets its unit from the columns that it is compared with there. Both rules commute with changes
of the units of rows and of columns. Columns that no row connects with a nonzero side (the set is a cone in
them) have no unit; they are measured in units of the point, separately for each set of connected columns. A
side that is rounding counts as 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.certificates.sides import is_rounding_of, magnitudes, of_rounding, slabs, without
from lopro.certificates.spread import NEAR, Entries, entries_of, spread
from lopro.core.arrays import from_numpy, namespace, to_numpy
from lopro.core.real_vectors import Vector

__all__ = ["Units", "column_units", "curvature_units", "reach_units"]


@dataclass(frozen=True, eq=False)
class Units:
    """Units of columns.

    Attributes
    ----------
    known : array
        The unit of each column, 0 if the data give none.
    ratios : array
        The units of the others, up to one factor for each group of columns.
    groups : array of int
        The group of each of the others; -1 for columns with a unit.
    """

    known: Vector
    ratios: Vector
    groups: np.ndarray[Any, np.dtype[np.intp]]

    @staticmethod
    def given(sizes: Vector) -> Units:
        """Return given units; columns with 0 have none, and each is a group of its own."""
        places = np.arange(len(sizes))
        return Units(sizes, np.ones(len(sizes)), np.where(sizes > 0.0, -1, places))

    def at(self, x: Vector) -> Vector:
        """Return a unit for each column; those of groups without any are taken from the point."""
        lone = np.flatnonzero(self.groups >= 0)
        if len(lone) == 0:
            return self.known
        largest = np.zeros(int(self.groups.max()) + 1)
        np.maximum.at(largest, self.groups[lone], np.abs(x[lone]) / self.ratios[lone])
        units = self.known.copy()
        units[lone] = largest[self.groups[lone]] * self.ratios[lone]
        return units

    def relative(self) -> Vector:
        """Return the units with 1 for the largest of each group whose units the data give up to a factor.

        Examples
        --------
        >>> import numpy as np
        >>> from lopro.certificates.units import column_units
        >>> column_units([(np.array([[2.0, 8.0, 0.0]]), np.zeros(1))], 3).relative()
        array([1.  , 0.25, 1.  ])
        """
        lone = np.flatnonzero(self.groups >= 0)
        units, largest = self.known.copy(), np.zeros(int(self.groups.max(initial=-1)) + 1)
        np.maximum.at(largest, self.groups[lone], self.ratios[lone])
        units[lone] = self.ratios[lone] / largest[self.groups[lone]]
        return units

    def sizes(self, x: Vector, fallback: float = 0.0) -> Vector:
        """Return ``max(|x_j|, s_j)``: the size of each entry, at least its unit.

        Columns that no row compares with others, and those that get no unit from the point either, have the
        size of the largest entry of the point, at least ``fallback``.

        Examples
        --------
        >>> import numpy as np
        >>> from lopro.certificates import Units
        >>> Units.given(np.array([1e-3, 5.0, 0.0])).sizes(np.array([2.0, 0.0, 0.0]), fallback=0.1)
        array([2., 5., 2.])
        """
        units, size = self.at(x), np.abs(x)
        lone = np.flatnonzero(self.groups >= 0)
        if len(lone):
            alone = np.bincount(self.groups[lone])[self.groups[lone]] == 1
            unknown = lone[alone | (units[lone] == 0.0)]
            units = units.copy()
            units[unknown] = max(fallback, float(size.max(initial=0.0)))
        return np.asarray(np.maximum(size, units))


def column_units(
    blocks: Iterable[tuple[Any, Vector]], size: int, own: Vector | None = None
) -> Units:
    """Return the units of the columns of rows ``A x <= b``.

    Parameters
    ----------
    blocks : iterable of (A, b)
        Matrices, dense or sparse (None: the identity), and one side for each row; infinite ones are ignored.
    size : int
        The number of columns.
    own : array, optional
        Units from other constraints on the same variables, 0 if there are none.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.certificates.units import column_units
    >>> A = np.array([[2.0, 0.0, 0.0], [1.0, -4.0, 0.0], [0.0, 0.0, 1.0]])
    >>> units = column_units([(A, np.array([6.0, 0.0, 0.0]))], 3)
    >>> units.known, units.at(np.array([0.0, 0.0, 7.0]))
    (array([3.  , 0.75, 0.  ]), array([3.  , 0.75, 7.  ]))
    """
    entries, units = _of_sides(_without_rounding(blocks, size, own), size, own)
    if np.logical_and.reduce(np.isfinite(units)):
        return Units(units, np.ones(size), np.full(size, -1, dtype=np.intp))
    return _propagated(entries, units)


def _without_rounding(
    blocks: Iterable[tuple[Any, Vector]], size: int, own: Vector | None
) -> list[tuple[Any, Vector]]:
    """Return the rows with 0 in place of sides that are rounding.

    A small side is kept if no other row gives units of its columns, or if the terms of its row are small too.
    """
    blocks = list(blocks)
    masks = of_rounding(blocks)
    if not any(mask.any() for mask in masks):
        return blocks
    near = spread(*_of_sides(without(blocks, masks), size, own), rounds=NEAR)
    known = np.where(np.isfinite(near), near, 0.0)
    for (A, b), mask in zip(blocks, masks, strict=True):
        rows = np.flatnonzero(mask)
        mask[rows] = is_rounding_of(b[rows], magnitudes(A, rows, known))
    return without(blocks, masks)


def _of_sides(
    blocks: list[tuple[Any, Vector]], size: int, own: Vector | None
) -> tuple[Entries, Vector]:
    """Return the entries of rows with the side 0, and the units from other sides, infinite without one."""
    units = np.full(size, np.inf) if own is None else np.where(own > 0.0, own, np.inf)
    parts, rows = [(np.zeros(0, np.intp), np.zeros(0, np.intp), np.zeros(0))], 0
    homogeneous = []
    for A, b in blocks:
        sides = np.where(np.isfinite(b), np.abs(b), 0.0)
        if A is None:
            units = np.minimum(units, np.where(sides > 0.0, sides, np.inf))
            continue
        units = np.minimum(units, _smallest_ratios(A, sides))
        homogeneous.append((A, (sides == 0.0) & np.isfinite(b)))
    for A, flat in homogeneous if not np.isfinite(units).all() else ():
        row, column, entry = entries_of(A, flat)
        parts.append((row + rows, column, entry))
        rows += A.shape[0]
    row, column, entry = (np.concatenate(part) for part in zip(*parts, strict=True))
    return (row, column, entry, rows), units


def reach_units(
    blocks: Iterable[tuple[Any, Vector]], size: int, own: Vector | None = None
) -> Units:
    """Return the units of columns for the region in which solutions are assumed: the largest from the data.

    Every block gives its own unit of a column: the geometric mean of ``|b_i| / |a_ij|`` over its rows, so
    that a single small entry or side has little influence; each of the k entries of a row counts with
    ``|b| / sqrt(k)``, as if their contributions were orthogonal. A norm, a ball or a loss of an image
    ``D x - b`` is a block of one row: the norms of the columns of D, and the size of the numbers that the
    image is compared with.

    Parameters
    ----------
    blocks : iterable of (A, b)
        As for `column_units`.
    size : int
        The number of columns.
    own : array, optional
        Units from the curvature, 0 if there are none.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.certificates.units import column_units, reach_units
    >>> near = np.array([[1.0, 1.0]]), np.array([1.0])
    >>> far = np.array([[1e-12, 0.0]]), np.array([1.0])
    >>> reach_units([near, far], 2).known, column_units([near, far], 2).known
    (array([1.00000000e+12, 7.07106781e-01]), array([1., 1.]))
    """
    blocks = _without_rounding(blocks, size, own)
    known = np.zeros(size) if own is None else own
    for A, b in blocks:
        sides = np.where(np.isfinite(b), np.abs(b), 0.0)
        found = sides if A is None else _mean_ratios(A, sides)
        known = np.maximum(known, np.where(np.isfinite(found), found, 0.0))
    level = [(A, np.where(np.asarray(b) == 0.0, 0.0, np.inf)) for A, b in blocks if A is not None]
    return _propagated(*_of_sides(level, size, known))


def _mean_ratios(A: Any, sides: Vector) -> Vector:
    """Return the geometric means of ``|b_i| / (sqrt(k_i) |a_ij|)`` of columns; 0 without an entry."""
    used, n = np.flatnonzero(sides > 0.0), A.shape[1]
    sums, counts = np.zeros(n), np.zeros(n)
    if scipy.sparse.issparse(A):
        i, j, entries = entries_of(A, sides > 0.0)
        shares = np.log(np.where(sides > 0.0, sides, 1.0)) - 0.5 * np.log(
            np.maximum(1, np.bincount(i, minlength=len(sides)))
        )
        sums = np.bincount(j, shares[i] - np.log(entries), n)
        counts = np.bincount(j, minlength=n)
        return np.where(counts > 0.0, np.exp(sums / np.maximum(counts, 1.0)), 0.0)
    for part, sizes in slabs(A, used):
        xp = namespace(sizes)
        present = xp.astype(sizes > 0.0, sizes.dtype)
        of_rows = to_numpy(xp.sum(present, axis=1))
        shares = np.log(sides[used[part]]) - 0.5 * np.log(np.maximum(1.0, of_rows))
        logs = from_numpy(shares, sizes)[:, None] - xp.log(
            xp.where(sizes > 0.0, sizes, present + 1.0)
        )
        sums += to_numpy(xp.sum(present * logs, axis=0))
        counts += to_numpy(xp.sum(present, axis=0))
    return np.where(counts > 0.0, np.exp(sums / np.maximum(counts, 1.0)), 0.0)


def curvature_units(diagonal: Vector, q: Vector) -> Vector:
    """Return units from ``1/2 x'Px + q'x``, whose size is ``max q_j^2 / P_jj`` up to a factor.

    They are 0 where ``P_jj`` is 0, and everywhere if q is 0.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.certificates.units import curvature_units
    >>> curvature_units(np.array([1.0, 1e-6, 0.0]), np.array([2.0, 0.0, 7.0]))
    array([   2., 2000.,    0.])
    """
    curved = diagonal > 0.0
    found = np.zeros(len(q))
    with np.errstate(over="ignore"):
        roots = np.sqrt(diagonal[curved])
        found[curved] = np.max(np.abs(q[curved]) / roots, initial=0.0) / roots
    return np.where(np.isfinite(found), found, 0.0)


def _smallest_ratios(A: Any, sides: Vector) -> Vector:
    """Return ``min |b_i| / |a_ij|`` over rows with a nonzero side for each column; infinite without one."""
    used, n = np.flatnonzero(sides > 0.0), A.shape[1]
    found = np.full(n, np.inf)
    if scipy.sparse.issparse(A):
        row, column, entry = entries_of(A, sides > 0.0)
        np.minimum.at(found, column, sides[row] / entry)
        return found
    for part, entries in slabs(A, used):
        with np.errstate(divide="ignore", over="ignore"):
            ratios = from_numpy(sides[used[part]], entries)[:, None] / entries
            found = np.minimum(found, to_numpy(namespace(ratios).min(ratios, axis=0)))
    return found


def _propagated(entries: Entries, units: Vector) -> Units:
    """Return the units with those that follow for other columns from rows with the side 0."""
    row, column, entry, rows = entries
    known = spread(entries, units)
    lone = ~np.isfinite(known)
    groups = np.full(len(units), -1, dtype=np.intp)
    ratios = np.ones(len(units))
    if lone.any() and not len(row):
        return Units.given(np.where(lone, 0.0, known))
    if lone.any():
        inside = lone[column]
        shape = (rows, len(units))
        graph = scipy.sparse.csr_array(
            (np.ones(inside.sum()), (row[inside], column[inside])), shape
        )
        both = scipy.sparse.block_array([[None, graph], [graph.T, None]], format="csr")
        labels = scipy.sparse.csgraph.connected_components(both, directed=False)[1][rows:]
        _, groups[lone] = np.unique(labels[lone], return_inverse=True)
        first = np.unique(groups[lone], return_index=True)[1]
        start = np.full(len(units), np.inf)
        start[np.flatnonzero(lone)[first]] = 1.0
        found = spread((row[inside], column[inside], entry[inside], rows), start)
        ratios = np.where(np.isfinite(found), found, 1.0)
    return Units(np.where(lone, 0.0, known), ratios, groups)
