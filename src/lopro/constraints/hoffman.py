"""Hoffman constants of small linear systems, by enumeration of linearly independent rows.

For ``C x <= b`` every distance to the set obeys ``dist <= c(x) / rho``, where ``rho`` is the least
``|C_J' v|`` over linearly independent row sets ``J`` and ``v >= 0`` with ``|v| = 1`` in the norm
dual to that of the violations: the 1-norm for ``c = max_i``, the 2-norm for
``c = |[C x - b]_+|``. The reason: ``x - P x = C_J' u`` with ``u >= 0`` (Caratheodory), so
``|x - P x|^2 = u'(C_J x - b_J) <= |u| c(x)`` and ``|C_J' u| >= rho |u|``. The constants do not
depend on ``b``. No eigenvalue of ``C'C`` determines them, in contrast to a statement of the paper.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np

__all__ = ["hoffman_max", "hoffman_norm"]

Matrix: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"

#: Number of row sets up to which the constant is computed, since it grows exponentially: 16 000 sets of up
#: to 14 rows take 0.3 s.
MAX_SUBSETS = 20_000
#: Unit rows whose smallest singular value is below this count as dependent: about a hundred times the
#: rounding error of the singular values of 14 such rows.
_DEPENDENT = 1e-12


def hoffman_max(C: Matrix) -> float | None:
    """Return rho of ``c(x) = max_i (c_i x - b_i)``; None where there are too many row sets.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.constraints.hoffman import hoffman_max
    >>> round(hoffman_max(np.eye(4)), 12)
    0.5
    """
    return _smallest(C, _least_on_simplex)


def hoffman_norm(C: Matrix) -> float | None:
    """Return rho of ``c(x) = |[C x - b]_+|``; None where there are too many row sets.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.constraints.hoffman import hoffman_norm
    >>> round(hoffman_norm(np.array([[2.0]])), 12)
    2.0
    """
    return _smallest(C, _least_on_sphere)


def _smallest(C: Matrix, least: Callable[[Matrix, Matrix], Matrix]) -> float | None:
    C = C[np.linalg.norm(C, axis=1) > 0.0]
    if len(C) == 0 or _number_of_subsets(*C.shape) > MAX_SUBSETS:
        return None
    values = [least(U, S) for U, S in _independent_sets(C)]
    return float(min(v.min(initial=math.inf) for v in values))


def _number_of_subsets(rows: int, columns: int) -> int:
    return sum(math.comb(rows, k) for k in range(1, min(rows, columns) + 1))


def _independent_sets(C: Matrix) -> Iterator[tuple[Matrix, Matrix]]:
    """Yield left singular vectors and singular values of all independent ``C_J``, by size."""
    unit = C / np.linalg.norm(C, axis=1, keepdims=True)
    for k in range(1, min(C.shape) + 1):
        chosen = np.array(list(combinations(range(len(C)), k)), dtype=np.intp)
        spread = np.linalg.svd(unit[chosen], compute_uv=False)[:, -1]
        chosen = chosen[spread > _DEPENDENT]
        if len(chosen) == 0:
            return
        U, S, _ = np.linalg.svd(C[chosen], full_matrices=False)
        yield U, S


def _least_on_simplex(U: Matrix, S: Matrix) -> Matrix:
    """Return ``min |C_J' v|, sum v = 1`` where its solution ``v ~ (C_J C_J')^-1 1`` is >= 0."""
    ones = U.sum(axis=1)
    v = np.einsum("nij,nj->ni", U, ones / S**2)
    value = 1.0 / np.linalg.norm(ones / S, axis=1)
    inside = v.min(axis=1) >= -1e-10 * np.abs(v).max(axis=1)
    return np.asarray(value[inside])


def _least_on_sphere(U: Matrix, S: Matrix) -> Matrix:
    """Return the singular values whose left vectors have one sign: the stationary points."""
    size = np.abs(U).max(axis=1)
    inside = (U.min(axis=1) >= -1e-10 * size) | (U.max(axis=1) <= 1e-10 * size)
    return np.asarray(S[inside])
