"""Clarabel on the dual form: an interior point method, with chordal decomposition of sparse slacks."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.newton.arrays import Array
from lopro.newton.sdp.program import SemidefiniteProgram

__all__ = ["solve_by_clarabel"]


def solve_by_clarabel(
    program: SemidefiniteProgram, seconds: float | None = None, tol: float = 1e-9
) -> tuple[tuple[Array, ...], Array, str]:
    """Return X, y and what Clarabel says of them; nothing of it is believed before it is proved.

    Where Clarabel calls the program empty, y is its certificate; where it calls it unbounded, X is the ray.

    Parameters
    ----------
    program : SemidefiniteProgram
        With rows, ``b`` and ``C`` of about size 1.
    seconds : float, optional
        Time limit.
    tol : float
        Feasibility and gap.
    """
    import clarabel

    rows, sides, cones = [], [], []
    for block in program.blocks:
        n = block.size
        if block.diagonal:
            rows.append(block.A.T.tocsr())
            sides.append(block.C)
            cones.append(clarabel.NonnegativeConeT(n))
            continue
        i, j, scale = _triangle(n)
        rows.append(scipy.sparse.diags_array(scale) @ block.A.T.tocsr()[i * n + j])
        sides.append(scale * block.C[i, j])
        cones.append(clarabel.PSDTriangleConeT(n))
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_threads = False, 1
    settings.tol_feas = settings.tol_gap_abs = settings.tol_gap_rel = tol
    if seconds is not None:
        settings.time_limit = seconds
    m = len(program.b)
    A = scipy.sparse.csc_matrix(scipy.sparse.vstack(rows))
    nothing = scipy.sparse.csc_matrix((m, m))
    solver = clarabel.DefaultSolver(nothing, -program.b, A, np.concatenate(sides), cones, settings)
    solution = solver.solve()
    return _blocks(program, np.array(solution.z)), np.array(solution.x), str(solution.status)


def _triangle(n: int) -> tuple[Any, Any, Array]:
    """Return the places of the upper triangle, column by column, and the scale that keeps norms."""
    j, i = np.tril_indices(n)
    return i, j, np.where(i == j, 1.0, np.sqrt(2.0))


def _blocks(program: SemidefiniteProgram, z: Array) -> tuple[Array, ...]:
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
