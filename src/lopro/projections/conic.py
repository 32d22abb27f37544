"""Projection on an intersection of polyhedra and residual balls by a conic solver.

Clarabel finds the point to about six digits and tells what is active there; `lopro.projections.newton`
brings the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import clarabel
import numpy as np
import scipy.sparse

from lopro.errors import ProjectionError
from lopro.projections.real_vectors import Vector

__all__ = ["ConeRows", "ConicAnswer", "ball_rows", "halfspace_rows", "project_conic"]


@dataclass(frozen=True)
class ConeRows:
    """One member as ``rows z + s = bounds`` with ``s`` in a cone of Clarabel."""

    rows: Any
    bounds: Vector
    cone: Any


def halfspace_rows(normals: Any, bounds: Vector) -> ConeRows:
    """Return ``normals z <= bounds``."""
    return ConeRows(
        scipy.sparse.csc_matrix(normals), bounds, clarabel.NonnegativeConeT(len(bounds))
    )


def ball_rows(A: Any, y: Vector, sigma: float) -> ConeRows:
    """Return ``|A z - y| <= sigma``."""
    top = scipy.sparse.csc_matrix((1, A.shape[1]))
    rows = scipy.sparse.vstack([top, scipy.sparse.csc_matrix(A)])
    return ConeRows(rows, np.concatenate([[sigma], y]), clarabel.SecondOrderConeT(len(y) + 1))


@dataclass(frozen=True)
class ConicAnswer:
    """The point, and for every member its slacks and its multipliers."""

    point: Vector
    slacks: list[Vector]
    multipliers: list[Vector]


def project_conic(x: Vector, members: list[ConeRows]) -> ConicAnswer:
    """Return the projection of ``x`` as Clarabel finds it.

    Raises `ProjectionError` when it finds none.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.projections.conic import ball_rows, halfspace_rows, project_conic
    >>> half = halfspace_rows(np.array([[1.0, 0.0]]), np.zeros(1))
    >>> ball = ball_rows(np.eye(2), np.zeros(2), 1.0)
    >>> project_conic(np.array([3.0, 4.0]), [half, ball]).point.round(6) + 0.0
    array([0., 1.])
    """
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    # Measured from x, so that the solver's tolerances are about the step and not about x.
    solver = clarabel.DefaultSolver(
        scipy.sparse.identity(x.size, format="csc"),
        np.zeros(x.size),
        scipy.sparse.vstack([m.rows for m in members]).tocsc(),
        np.concatenate([m.bounds - m.rows @ x for m in members]),
        [m.cone for m in members],
        settings,
    )
    answer = solver.solve()
    step, slacks, multipliers = (np.asarray(v) for v in (answer.x, answer.s, answer.z))
    if not (np.isfinite(step).all() and np.isfinite(multipliers).all()):
        raise ProjectionError(f"the conic solver found no projection: {answer.status}")
    ends = np.cumsum([len(m.bounds) for m in members])[:-1]
    return ConicAnswer(x + step, np.split(slacks, ends), np.split(multipliers, ends))
