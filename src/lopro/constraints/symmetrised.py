"""Symmetric parts of rows that act on raveled matrices."""

from __future__ import annotations

from typing import Any

import scipy  # parts of it load when first used

from lopro.core.arrays import namespace

__all__ = ["symmetrised"]


def symmetrised(matrix: Any, n: int) -> Any:
    """Return rows ``(A + A') / 2`` for rows A that act on raveled matrices; None if every A is symmetric.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.constraints.symmetrised import symmetrised
    >>> symmetrised(np.array([[0.0, 1.0, 0.0, 0.0]]), 2)
    array([[0. , 0.5, 0.5, 0. ]])
    """
    if scipy.sparse.issparse(matrix):
        entries = scipy.sparse.coo_array(matrix)
        i, columns = entries.coords
        swapped = (columns % n) * n + columns // n
        other = scipy.sparse.csr_array((entries.data, (i, swapped)), matrix.shape)
        rows = matrix.tocsr()
        return None if (rows != other).nnz == 0 else scipy.sparse.csr_array(0.5 * (rows + other))
    xp = namespace(matrix)
    cube = xp.reshape(matrix, (matrix.shape[0], n, n))
    transposed = xp.permute_dims(cube, (0, 2, 1))
    if bool(xp.all(cube == transposed)):
        return None
    return xp.reshape(0.5 * (cube + transposed), (matrix.shape[0], n * n))
