"""Positive semidefinite matrices that satisfy rows: the sets of semidefinite programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.constraints.base import Constraint
from lopro.constraints.on_symmetric import symmetrised
from lopro.constraints.psd import PSDCone
from lopro.constraints.rows import LinearRows
from lopro.constraints.spectrahedron import Spectrahedron
from lopro.core.arrays import to_numpy
from lopro.newton.sdp.nearest import NearestProblem

__all__ = ["MatrixRows", "matrix_rows"]


@dataclass(frozen=True, eq=False)
class MatrixRows:
    """``{X psd : lower <= A X <= upper}``.

    Attributes
    ----------
    size : int
        Rows of X.
    A : scipy.sparse array of shape (m, size^2)
        Symmetric rows, as functions of ``X.ravel()``, in double precision.
    lower, upper : arrays of shape (m,)
        Their sides.
    counts : tuple of int
        How many rows each member has, in the order of the members; 0 for the cone.
    """

    size: int
    A: Any
    lower: Any
    upper: Any
    counts: tuple[int, ...]

    def nearest(self) -> NearestProblem:
        """Return the problem of the nearest matrix of the set."""
        return NearestProblem(self.size, self.A, self.lower, self.upper)


def matrix_rows(members: Sequence[Constraint]) -> MatrixRows | None:
    """Return an intersection of one cone of real matrices with rows; None for other sets.

    Examples
    --------
    >>> from lopro.constraints import Affine, PSDCone
    >>> from lopro.constraints.matrix_rows import matrix_rows
    >>> fixed = Affine.entries(([0, 1], [0, 1]), 1.0, 1.0, shape=(2, 2))
    >>> matrix_rows([PSDCone(2), fixed]).counts
    (0, 2)
    """
    cones = [m for m in members if m.is_semidefinite]
    if len(cones) != 1 or cones[0].shape is None:
        return None
    n = cones[0].shape[0]
    found = [_rows(m, n) for m in members]
    known = [rows for rows in found if rows is not None]
    if len(known) < len(found):
        return None
    A = scipy.sparse.vstack([rows[0] for rows in known], format="csr")
    if not A.shape[0]:
        return None
    lower, upper = (np.concatenate([rows[i] for rows in known]) for i in (1, 2))
    return MatrixRows(n, A, lower, upper, tuple(len(rows[1]) for rows in known))


def _rows(set_: Constraint, n: int) -> tuple[Any, Any, Any] | None:
    """Return symmetric rows with their sides; None for a set that is not made of rows."""
    if isinstance(set_, PSDCone):
        return scipy.sparse.csr_array((0, n * n)), np.zeros(0), np.zeros(0)
    if isinstance(set_, Spectrahedron):
        trace = scipy.sparse.csr_array(np.eye(n).reshape(1, -1))
        return trace, np.array([set_.trace if set_.equality else -np.inf]), np.array([set_.trace])
    if not isinstance(set_, LinearRows):
        return None
    if set_.M is None:
        return _bounded_entries(set_, n)
    matrix = set_.M.matrix
    rows = scipy.sparse.csr_array(
        matrix if scipy.sparse.issparse(matrix) else to_numpy(matrix), dtype=np.float64
    )
    both = symmetrised(rows, n)
    return rows if both is None else both, set_.lower, set_.upper


def _bounded_entries(box: LinearRows, n: int) -> tuple[Any, Any, Any]:
    low, high = box.lower, box.upper
    # Entries (i, j) and (j, i) are one; where their bounds differ, rows for both are kept.
    same = np.array_equal(low, low.T) and np.array_equal(high, high.T)
    bounded = np.isfinite(low) | np.isfinite(high)
    i, j = np.nonzero(np.tril(bounded) if same else bounded)
    halves = np.full(2 * len(i), 0.5)
    places = np.tile(np.arange(len(i)), 2), np.concatenate([i * n + j, j * n + i])
    A = scipy.sparse.csr_array((halves, places), (len(i), n * n))
    return A, low[i, j], high[i, j]
