"""Positive semidefinite matrices that satisfy rows: the sets of semidefinite programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.constraints.base import Constraint
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
        The bounds of the rows.
    counts : tuple of int
        Number of rows of each member, in the order of the members; 0 for the cone.
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
    """Return the rows of an intersection of one cone of real matrices with rows; None for other sets.

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
    rows = [m.rows_on_matrices(n) for m in members]
    known = [r for r in rows if r is not None]
    if len(known) < len(rows):
        return None
    A = scipy.sparse.vstack([r[0] for r in known], format="csr")
    if not A.shape[0]:
        return None
    lower, upper = (np.concatenate([r[i] for r in known]) for i in (1, 2))
    return MatrixRows(n, A, lower, upper, tuple(len(r[1]) for r in known))
