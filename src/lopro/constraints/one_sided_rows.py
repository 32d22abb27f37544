"""Rows with two sides as rows with one side each, ``C x <= b``: what engines, proofs and users read."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.constraints.row_forms import Numbers
from lopro.constraints.shapes import ShapedPoints
from lopro.core.arrays import Array, asarray_like, copy, namespace, take
from lopro.core.arrays import to_numpy as to_host
from lopro.core.counting import count
from lopro.core.real_vectors import Vector
from lopro.core.vectors import one_entry
from lopro.engines.cones import ConeRows, halfspace_rows
from lopro.maps import LinearMap, linear_map
from lopro.projections.cuts import Cut
from lopro.projections.halfspaces import HalfSpaces
from lopro.projections.newton import Equation

__all__ = ["OneSidedRows"]


class OneSidedRows(ShapedPoints):
    """The set ``{x : C x <= b}`` for ``lower <= M x <= upper``.

    The rows of ``C`` are those of ``M`` with an upper bound, followed by the negatives of those with a lower
    bound. They are computed on first use. Subclasses provide the data under the names below.
    """

    #: The map; None for the identity.
    M: LinearMap | None
    #: The sides, on the host, infinite where there is no bound.
    lower: Any
    upper: Any
    like: Array
    #: Lengths of the rows of M, on the host; None for the identity.
    _norms: Numbers | None

    @cached_property
    def _all_above(self) -> bool:
        """Whether all rows have an upper bound and none has a lower one."""
        above, below = self.upper < np.inf, self.lower > -np.inf
        return bool(np.logical_and.reduce(above > below, axis=None))

    @cached_property
    def _above(self) -> np.ndarray[Any, Any]:
        """The rows with an upper bound."""
        return np.flatnonzero(np.isfinite(self.upper))

    @cached_property
    def _below(self) -> np.ndarray[Any, Any]:
        """The rows with a lower bound."""
        return np.flatnonzero(np.isfinite(self.lower))

    def _by_side(self, above: Any, below: Any) -> Numbers:
        """Return entries of ``above`` at the upper bounds, then of ``below`` at the lower ones."""
        if self._all_above:
            return np.asarray(above.ravel())
        return np.concatenate([above.ravel()[self._above], below.ravel()[self._below]])

    @cached_property
    def _bounds(self) -> Numbers:
        """The sides of ``C x <= b``, on the host."""
        return self._by_side(self.upper, -self.lower)

    @cached_property
    def _row_lengths(self) -> Numbers:
        """The norms of the rows of C."""
        norms = np.ones(self.lower.size) if self._norms is None else self._norms
        return self._by_side(norms, norms)

    def signed_row(self, i: int, sign: float, like: Array) -> Array:
        """Return ``sign`` times row ``i`` of M, in the library of ``like`` and the shape of a point."""
        if self.M is None:
            return self._point(one_entry(self.lower.size, i, sign, like))
        matrix = self.M.matrix
        if scipy.sparse.issparse(matrix):
            row = np.asarray(matrix.tocsr()[[i]].toarray()).ravel()
        else:
            row = copy(matrix[i, :])
        return self._point(asarray_like(row if sign > 0.0 else -row, like))

    def row(self, i: int, like: Array) -> Array:
        """Return a copy of row ``i`` of ``C``, in the library of ``like`` and the shape of a point."""
        above = len(self._above)
        if i < above:
            return self.signed_row(int(self._above[i]), 1.0, like)
        return self.signed_row(int(self._below[i - above]), -1.0, like)

    def row_values(self, rows: np.ndarray[Any, Any], x: Array) -> np.ndarray[Any, Any]:
        """Return ``c_i x - b_i`` of the given rows, on the host; the other rows are not computed."""
        count("rows", len(rows))
        v = self._vector(x)
        if isinstance(self.C.like, np.ndarray):
            products = self._matrix[rows] @ to_host(v)
        else:
            products = to_host(take(self._entries, rows) @ v)
        return np.asarray(np.asarray(products, dtype=np.float64) - self._bounds[rows])

    @property
    def row_norms(self) -> np.ndarray[Any, Any]:
        """The lengths of the rows of ``C``, on the host."""
        return self._row_lengths.copy()

    @cached_property
    def C(self) -> LinearMap:
        """The rows with an upper bound, followed by the negatives of those with a lower bound."""
        if self.M is not None:
            if self._all_above:
                return self.M
            return linear_map(_one_sided(self.M.matrix, self._above, self._below), "C")
        signs = np.concatenate([np.ones(len(self._above)), -np.ones(len(self._below))])
        columns = np.concatenate([self._above, self._below])
        size = len(signs), self.lower.size
        C = scipy.sparse.csr_array((signs, (np.arange(len(signs)), columns)), size)
        if isinstance(self.like, np.ndarray):
            return linear_map(C.astype(self.like.dtype), "C")
        return linear_map(asarray_like(C.toarray(), self.like), "C")

    @property
    def b(self) -> Array:
        """The bounds of the rows of ``C``."""
        return asarray_like(self._bounds, self.like)

    @cached_property
    def _entries(self) -> Any:
        """``C`` as a scipy.sparse matrix or an array of its own library."""
        return self.C.matrix

    @cached_property
    def _matrix(self) -> Any:
        """``C`` as a scipy.sparse matrix or a NumPy array."""
        entries = self._entries
        return entries.tocsr() if scipy.sparse.issparse(entries) else to_host(entries)

    @cached_property
    def halfspaces(self) -> HalfSpaces:
        """The inequalities with unit rows, on the host; raises if a row of zeros is violated."""
        return HalfSpaces.from_system(self._matrix, self._bounds)

    @property
    def rows_and_sides(self) -> tuple[Any, Any]:
        """``C`` and ``b`` on the host; do not write on them."""
        return self._matrix, self._bounds

    def typical_size(self) -> float | None:
        used = self._row_lengths > 0.0
        used[self._redundant_bounds] = False
        sizes = np.abs(self._bounds[used]) / self._row_lengths[used]
        return float(sizes.max(initial=0.0)) or None

    @property
    def _redundant_bounds(self) -> np.ndarray[Any, Any]:
        """Rows that bound an entry less tightly than another row, which do not affect the size of the set."""
        none = np.zeros(0, dtype=np.intp)
        if self.M is None or not isinstance(self.C.like, np.ndarray):
            return none
        single = _rows_with_one_entry(self._entries)
        if len(single) < 2:
            return none
        entries = scipy.sparse.coo_array(self._entries[single])
        entries.eliminate_zeros()
        row, column, entry = single[entries.row], entries.col, entries.data
        bound = self._bounds[row] / np.abs(entry)
        order = np.lexsort((bound, entry > 0.0, column))
        sides = np.stack([column[order], entry[order] > 0.0])
        repeated = np.zeros(order.size, dtype=bool)
        repeated[1:] = (sides[:, 1:] == sides[:, :-1]).all(axis=0)
        return np.asarray(row[order[repeated]])

    @property
    def cone_rows(self) -> ConeRows:
        return halfspace_rows(self.halfspaces.normals, self.halfspaces.bounds)

    def conic_form(self, complex_points: bool = False) -> list[ConeRows]:
        return [self.cone_rows]

    @property
    def as_halfspaces(self) -> HalfSpaces:
        return self.halfspaces

    def boundary(self, near: Vector, slack: Vector, multiplier: Vector) -> list[Equation]:
        active = np.flatnonzero(multiplier > slack)
        bounds = self.halfspaces.bounds[active]
        return [
            Equation(lambda z, n=n, h=h: float(n @ z) - h, lambda z, n=n: n)  # type: ignore[misc]
            for n, h in zip(self.halfspaces.rows(active), bounds, strict=True)
        ]

    def cuts(self, v: Vector, z: Array) -> list[Cut]:
        rows = self.halfspaces
        violated = np.flatnonzero(rows.normals @ v > rows.bounds)
        normals = rows.rows(violated)
        return [Cut(n, float(rows.bounds[i])) for n, i in zip(normals, violated, strict=True)]


def _rows_with_one_entry(matrix: Any) -> np.ndarray[Any, Any]:
    """Return which rows have exactly one nonzero entry."""
    entries = matrix != 0.0
    if scipy.sparse.issparse(matrix):
        return np.flatnonzero(np.diff(scipy.sparse.csr_array(entries).indptr) == 1)
    return np.flatnonzero(np.count_nonzero(entries, axis=1) == 1)


def _one_sided(matrix: Any, above: Any, below: Any) -> Array:
    """Return the rows with an upper bound, followed by the negatives of those with a lower bound."""
    if scipy.sparse.issparse(matrix):
        rows = matrix.tocsr()[np.concatenate([above, below])]
        rows.data[rows.indptr[len(above)] :] *= -1.0
        return rows
    parts = [take(matrix, above), -take(matrix, below)]
    return namespace(matrix).concat(parts, axis=0)
