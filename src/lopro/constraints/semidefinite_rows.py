"""The cone of positive semidefinite matrices as rows of a cone program."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.engines import require_room
from lopro.engines.cones import ConeRows, PSDTriangle, Zero, triangle

__all__ = ["semidefinite_rows"]


def semidefinite_rows(d: int, complex_points: bool) -> list[ConeRows]:
    """Return rows of cones that hold if a matrix is symmetric (Hermitian) and positive semidefinite.

    A Hermitian matrix is positive semidefinite if and only if ``[[Re, -Im], [Im, Re]]`` is.
    """
    entries = _Entries(d, complex_points)
    require_room(PSDTriangle(entries.order))
    i, j = triangle(entries.order)
    weight = np.where(i == j, -1.0, -np.sqrt(0.5))
    rows = entries.pick(i, j, weight)
    off = i != j
    rows = rows + entries.pick(j[off], i[off], weight[off], at=np.flatnonzero(off), count=len(i))
    above, below = np.triu_indices(entries.order, 1)
    ones = np.ones(len(above))
    skew = entries.pick(above, below, ones) - entries.pick(below, above, ones)
    # In the complex case every equation is trivial or occurs twice; one of each pair is kept.
    keep = _distinct_rows(skew)
    equations = ConeRows(skew[keep].tocsc(), np.zeros(len(keep)), Zero(len(keep)))
    cone = ConeRows(rows.tocsc(), np.zeros(len(i)), PSDTriangle(entries.order))
    return [equations, cone] if len(keep) else [cone]


class _Entries:
    """Positions, in the real vector, of the entries of the real form of a Hermitian matrix."""

    def __init__(self, d: int, complex_points: bool) -> None:
        self._d, self._double = d, complex_points
        self.order = 2 * d if complex_points else d
        self._size = (2 if complex_points else 1) * d * d

    def pick(self, i: Any, j: Any, weight: Any, at: Any = None, count: int | None = None) -> Any:
        """Return ``count`` rows; those with indices ``at`` select ``weight`` times the entries ``(i, j)``."""
        at = np.arange(len(i)) if at is None else at
        d = self._d
        column = (i % d) * d + j % d
        if self._double:
            imaginary = (i < d) != (j < d)
            column = column + d * d * imaginary
            weight = np.where(imaginary & (i < d), -weight, weight)
        shape = (len(i) if count is None else count, self._size)
        return scipy.sparse.csr_matrix((weight, (at, column)), shape)


def _distinct_rows(rows: Any) -> Any:
    """Return the indices of nonzero rows without those that equal an earlier one up to sign."""
    rows.eliminate_zeros()
    rows.sort_indices()
    seen: dict[tuple[int, ...], int] = {}
    for k in range(rows.shape[0]):
        where = slice(rows.indptr[k], rows.indptr[k + 1])
        values = rows.data[where]
        if len(values):
            same_sign = int(len(values) > 1 and values[0] * values[-1] > 0.0)
            seen.setdefault((same_sign, *rows.indices[where].tolist()), k)
    return np.array(sorted(seen.values()), dtype=int)
