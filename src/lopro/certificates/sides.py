"""Sides of rows that are rounding errors of numbers that cancelled before the rows were passed on.

``0.3 - 0.2 - 0.1`` is -2.8e-17. Such a side counts as 0: it gives no unit of the columns, and the violation
of the row is measured like that of a row with the side 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.certificates.tolerances import NOISE
from lopro.core.arrays import asarray_like, namespace, take, to_numpy
from lopro.core.real_vectors import Vector
from lopro.linalg.rounding import AT_A_TIME

__all__ = ["is_rounding_of", "magnitudes", "of_rounding", "slabs", "without"]


def of_rounding(blocks: Sequence[tuple[Any, Vector]]) -> list[Any]:
    """Return for each block the mask of the sides that are rounding of the largest one, in units of the rows.

    Parameters
    ----------
    blocks : sequence of (A, b)
        Matrices, dense or sparse (None: the identity), and one side for each row; infinite ones do not count.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.certificates.sides import of_rounding
    >>> A = np.array([[3.0, 1.0], [1.0, 1.0]])
    >>> of_rounding([(A, np.array([-4e-16, 5.0])), (None, np.array([0.0, np.inf]))])
    [array([ True, False]), array([False, False])]
    """
    sizes = [np.where(np.isfinite(b), np.abs(b), 0.0) for _, b in blocks]
    in_units = []
    for (A, _), size in zip(blocks, sizes, strict=True):
        used = np.flatnonzero(size)
        found = np.zeros(len(size))
        lengths = 1.0 if A is None else _largest_entries(A, used)
        with np.errstate(divide="ignore"):
            found[used] = size[used] / lengths
        in_units.append(np.where(np.isfinite(found), found, 0.0))
    largest = max((float(found.max(initial=0.0)) for found in in_units), default=0.0)
    return [(found > 0.0) & (found <= NOISE * largest) for found in in_units]


def is_rounding_of(sides: Vector, terms: Vector) -> Any:
    """Return the mask of the sides that are rounding of the terms of their rows.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.certificates.sides import is_rounding_of
    >>> is_rounding_of(np.array([0.0, -1e-16, 1e-3]), np.ones(3))
    array([ True,  True, False])
    """
    return np.abs(sides) <= NOISE * terms


def without(blocks: Sequence[tuple[Any, Vector]], masks: Sequence[Any]) -> list[tuple[Any, Vector]]:
    """Return the rows with 0 in place of the masked sides."""
    pairs = zip(blocks, masks, strict=True)
    return [(A, np.where(mask, 0.0, b)) for (A, b), mask in pairs]


def magnitudes(A: Any, rows: Any, w: Vector) -> Vector:
    """Return ``|A| w`` for some rows; of a dense matrix a few at a time.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.certificates.sides import magnitudes
    >>> magnitudes(np.array([[1.0, -2.0], [0.0, 3.0]]), np.array([0]), np.ones(2))
    array([3.])
    """
    if A is None:
        return np.array(w[rows], dtype=np.float64)
    if scipy.sparse.issparse(A):
        return np.asarray(abs(A[rows]) @ w, dtype=np.float64)
    step, beside = max(1, AT_A_TIME // max(1, A.shape[1])), asarray_like(w, A)
    xp, found = namespace(A), [np.zeros(0)]
    for start in range(0, len(rows), step):
        found.append(to_numpy(xp.abs(take(A, rows[start : start + step])) @ beside))
    return np.asarray(np.concatenate(found), dtype=np.float64)


def slabs(A: Any, rows: Any) -> Any:
    """Yield slices of rows of a dense matrix with the absolute values of their entries, on its device."""
    step, xp = max(1, AT_A_TIME // max(1, A.shape[1])), namespace(A)
    every = len(rows) == A.shape[0]
    for start in range(0, len(rows), step):
        part = slice(start, min(start + step, len(rows)))
        sizes = xp.abs(A[part, :] if every else take(A, rows[part]))
        yield part, sizes if sizes.dtype == xp.float64 else xp.astype(sizes, xp.float64)


def _largest_entries(A: Any, rows: Any) -> Vector:
    found = np.zeros(len(rows))
    if scipy.sparse.issparse(A):
        if len(rows):
            found[:] = abs(A.tocsr()[rows]).max(axis=1).toarray().ravel()
        return found
    for part, entries in slabs(A, rows):
        found[part] = to_numpy(namespace(entries).max(entries, axis=1)) if A.shape[1] else 0.0
    return found
