"""The two kinds of rows that sets are mostly made of: half-spaces and balls."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.cones.cones import ConeRows, Nonnegative, SecondOrder
from lopro.core.real_vectors import Vector

__all__ = ["ball_rows", "halfspace_rows"]


def halfspace_rows(normals: Any, bounds: Vector) -> ConeRows:
    """Return ``normals z <= bounds``.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.cones.rows import halfspace_rows
    >>> halfspace_rows(np.eye(2), np.zeros(2)).cone
    Nonnegative(size=2)
    """
    return ConeRows(scipy.sparse.csc_matrix(normals), bounds, Nonnegative(len(bounds)))


def ball_rows(A: Any, y: Vector, sigma: float) -> ConeRows:
    """Return ``|A z - y| <= sigma``.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.cones.rows import ball_rows
    >>> ball_rows(np.eye(2), np.zeros(2), 1.0).bounds
    array([1., 0., 0.])
    """
    top = scipy.sparse.csc_matrix((1, A.shape[1]))
    rows = scipy.sparse.vstack([top, scipy.sparse.csc_matrix(A)])
    return ConeRows(rows, np.concatenate([[sigma], y]), SecondOrder(len(y) + 1))
