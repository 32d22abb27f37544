"""The dual of a semidefinite program as a cone program: ``max b'y``, slacks ``C - sum y_k A_k`` in cones."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.engines import ConeProgram
from lopro.engines.cones import Cone, Nonnegative, PSDTriangle, triangle
from lopro.linalg.dense import Array
from lopro.newton.sdp.program import SemidefiniteProgram

__all__ = ["dual_form", "primal_blocks"]


def dual_form(program: SemidefiniteProgram) -> ConeProgram:
    """Return the cone program of y, whose multipliers give X (`primal_blocks`).

    If an engine finds the semidefinite program empty, y is the certificate; if unbounded, X is the ray.
    Sparse slacks remain sparse, so that Clarabel can decompose their cones.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.newton.sdp import SemidefiniteProgram
    >>> from lopro.newton.sdp.dual_form import dual_form
    >>> C = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> form = dual_form(SemidefiniteProgram.dense(C, [np.eye(2)], [1.0]))
    >>> form.q, form.A.toarray().ravel(), form.b.round(3), form.cones
    (array([-1.]), array([1., 0., 1.]), array([2.   , 1.414, 2.   ]), [PSDTriangle(order=2)])
    """
    rows: list[Any] = []
    sides: list[Array] = []
    cones: list[Cone] = []
    for block in program.blocks:
        n = block.size
        if block.diagonal:
            rows.append(block.A.T.tocsr())
            sides.append(block.C)
            cones.append(Nonnegative(n))
            continue
        i, j, scale = _triangle(n)
        rows.append(scipy.sparse.diags_array(scale) @ block.A.T.tocsr()[i * n + j])
        sides.append(scale * block.C[i, j])
        cones.append(PSDTriangle(n))
    m = len(program.b)
    A = scipy.sparse.csc_matrix(scipy.sparse.vstack(rows))
    nothing = scipy.sparse.csc_matrix((m, m))
    return ConeProgram(nothing, -program.b, A, np.concatenate(sides), cones)


def primal_blocks(program: SemidefiniteProgram, z: Array) -> tuple[Array, ...]:
    """Return the blocks of X from the multipliers of `dual_form`."""
    X, start = [], 0
    for block in program.blocks:
        n = block.size
        length = n if block.diagonal else n * (n + 1) // 2
        part = z[start : start + length]
        start += length
        if block.diagonal:
            X.append(part)
            continue
        i, j, scale = _triangle(n)
        x = np.zeros((n, n))
        x[i, j] = x[j, i] = part / scale
        X.append(x)
    return tuple(X)


def _triangle(n: int) -> tuple[Any, Any, Array]:
    """Return the indices of the upper triangle, column by column, and the scale that preserves norms."""
    i, j = triangle(n)
    return i, j, np.where(i == j, 1.0, np.sqrt(2.0))
