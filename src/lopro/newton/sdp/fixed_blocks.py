"""Singular blocks of fixed entries: every semidefinite matrix with these entries shares their null vectors.

Where ``X[C, C]`` is fixed and ``X[C, C] v = 0``, a positive semidefinite X has ``X u = 0`` for u with
``u[C] = v`` and zeros elsewhere. Then there is no interior point, and multipliers need not exist.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lopro.linalg.dense import EPS, Array, Pattern
from lopro.linalg.eigenvalues import is_above

__all__ = ["fixed_blocks", "null_vectors"]


def fixed_blocks(fixed: Pattern) -> list[Any]:
    """Return maximal sets of variables with all entries fixed, which cover the variables with fixed entries.

    Variables are added to them in the order of their numbers of fixed entries.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.newton.sdp.fixed_blocks import fixed_blocks
    >>> fixed = np.zeros((4, 4), dtype=bool)
    >>> fixed[:3, :3] = True
    >>> [block.tolist() for block in fixed_blocks(fixed)]
    [[0, 1, 2]]
    """
    n = len(fixed)
    neighbours: Any = fixed & ~np.eye(n, dtype=np.bool_)
    order = np.argsort(-neighbours.sum(axis=1), kind="stable")
    neighbours = neighbours[np.ix_(order, order)]
    covered: Any = ~neighbours.any(axis=1)
    blocks = []
    for first in range(n):
        if covered[first]:
            continue
        members, candidates = [first], neighbours[first].copy()
        while candidates.any():
            following = int(np.argmax(candidates))
            members.append(following)
            candidates &= neighbours[following]
        covered[members] = True
        blocks.append(np.sort(order[members]))
    return blocks


def null_vectors(M: Array, fixed: Pattern) -> tuple[Array, int]:
    """Return null vectors of the fixed blocks of M as columns, and the number of eigendecompositions.

    Eigenvalues within rounding of 0 count as 0; no proof depends on it. If a block is indefinite no X exists,
    and no vectors are returned.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.newton.sdp.fixed_blocks import null_vectors
    >>> M, fixed = np.array([[1.0, 1.0, 0.5], [1.0, 1.0, 0.0], [0.5, 0.0, 1.0]]), np.eye(3) > 0
    >>> fixed[:2, :2] = True
    >>> abs(null_vectors(M, fixed)[0].round(3))
    array([[0.707],
           [0.707],
           [0.   ]])
    """
    found, decomposed = [np.zeros((len(M), 0))], 0
    for block in fixed_blocks(fixed):
        B = M[np.ix_(block, block)]
        if is_above(B, 0.0):
            continue
        decomposed += 1
        values, vectors = np.linalg.eigh(B)
        rounding = 8.0 * len(B) * EPS * float(np.abs(values).max())
        if values[0] < -rounding:
            return np.zeros((len(M), 0)), decomposed
        null = vectors[:, np.abs(values) <= rounding]
        columns = np.zeros((len(M), null.shape[1]))
        columns[block] = null
        found.append(columns)
    return np.hstack(found), decomposed
