"""Rows on symmetric matrices, rewritten with symmetric normals.

Projections on such rows, and their slopes, are symmetric, as a cone of matrices requires of its points.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.constraints.affine import Affine
from lopro.constraints.base import Constraint
from lopro.constraints.polyhedron import Box, Polyhedron
from lopro.constraints.rows import LinearRows
from lopro.constraints.symmetrised import symmetrised
from lopro.core.arrays import asarray_like

__all__ = ["on_symmetric"]


def on_symmetric(set_: Constraint) -> Constraint:
    """Return a set with symmetric normals that contains the same symmetric matrices.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.constraints import Affine
    >>> from lopro.constraints.on_symmetric import on_symmetric
    >>> fixed = on_symmetric(Affine.entries(([0], [1]), 1.0, 1.0, shape=(2, 2)))
    >>> fixed.project(np.zeros((2, 2)))
    array([[0., 1.],
           [1., 0.]])
    """
    if not isinstance(set_, LinearRows) or len(set_.shape) != 2 or len(set(set_.shape)) != 1:
        return set_
    if set_.M is None:
        return _box_on_symmetric(set_)
    M = symmetrised(set_.M.matrix, set_.shape[0])
    lower, upper = set_.lower, set_.upper
    if M is None:
        return set_
    if scipy.sparse.issparse(M):
        # Entries (i, j) and (j, i) are one entry here.
        first, group = _groups(M)
        least, most = np.full(len(first), -np.inf), np.full(len(first), np.inf)
        np.maximum.at(least, group, lower)
        np.minimum.at(most, group, upper)
        # Bounds that contradict each other are reported by the rows.
        if not (least > most).any():
            M, lower, upper = M[first], least, most
    return Affine(M, lower, upper, set_.shape, set_.form)


def _box_on_symmetric(box: LinearRows) -> Constraint:
    low, high = box.lower, box.upper
    least, most = np.maximum(low, low.T), np.minimum(high, high.T)
    if np.array_equal(least, low) and np.array_equal(most, high):
        return box
    if (least > most).any():
        # Bounds that contradict each other are reported by the rows.
        return Polyhedron(symmetrised(box.C.matrix, box.shape[0]), box.b, box.form, box.shape)
    return Box(asarray_like(least, box.like), asarray_like(most, box.like), box.form)


def _groups(M: Any) -> tuple[Any, Any]:
    """Return the first row of each group of equal rows, in order, and the group of each row."""
    M.sort_indices()
    # Equal rows have equal products with any vector; the converse is checked.
    keys = M @ np.random.default_rng(0).standard_normal(M.shape[1]).astype(M.dtype)
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    if (M[first][group] != M).nnz:
        return np.arange(M.shape[0]), np.arange(M.shape[0])
    # Multipliers are returned in this order.
    order = np.argsort(first)
    return first[order], np.argsort(order)[group]
