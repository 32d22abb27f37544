"""Projection on intersections of sets with conic rows by Clarabel.

It computes the point to about six digits and the active constraints; `lopro.projections.newton` computes the
remaining digits.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.real_vectors import Vector, power_of_two
from lopro.engines import ConicProgram, EngineUnavailable
from lopro.engines.cones import ConeRows
from lopro.errors import InfeasibleError, ProjectionError
from lopro.projections.emptiness import cones_exclude

__all__ = ["project_conic"]

_EPS = float(np.finfo(np.float64).eps)


def project_conic(
    x: Vector, members: list[ConeRows], unit: float = _EPS
) -> tuple[Vector, list[Vector], list[Vector]]:
    """Return an approximate projection of ``x``, with slacks and multipliers of each member.

    Those are of the rows of the member divided by their largest entry, rounded to a power of two.

    Raises
    ------
    InfeasibleError
        If multipliers prove that the set is empty, for data with the rounding unit ``unit``.
    ProjectionError
        If Clarabel finds no point.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.engines.cones import ball_rows, halfspace_rows
    >>> from lopro.projections.conic import project_conic
    >>> half = halfspace_rows(np.array([[1.0, 0.0]]), np.zeros(1))
    >>> ball = ball_rows(np.eye(2), np.zeros(2), 1.0)
    >>> project_conic(np.array([3.0, 4.0]), [half, ball])[0].round(6) + 0.0
    array([0., 1.])
    """
    program = ConicProgram(x.size)
    program.add_quadratic(scipy.sparse.identity(x.size))
    # The variable is the step from x, so that tolerances of the solver refer to the step and not to x. The
    # rows of each member are scaled to size 1, so that the tolerances do not depend on their units; the
    # program scales the step.
    sizes = [power_of_two(_largest(member)) for member in members]
    for member, size in zip(members, sizes, strict=True):
        slack = (member.bounds - member.rows @ x) / size
        program.add_set(replace(member, rows=member.rows / size, bounds=slack))
    try:
        answer = program.solve(1e-12)
    except EngineUnavailable as error:
        raise ProjectionError(f"the conic solver found no projection: {error}") from error
    slacks, multipliers = program.of_sets(answer.slacks), program.of_sets(answer.rows)
    if answer.status.empty:
        weights = [z / size for z, size in zip(multipliers, sizes, strict=True)]
        if cones_exclude(members, weights, unit):
            raise InfeasibleError("the set is empty: multipliers of the conic solver prove it")
    if not answer.finite:
        raise ProjectionError(f"the conic solver found no projection: {answer.message}")
    return x + answer.x, slacks, multipliers


def _largest(member: ConeRows) -> float:
    """Return the largest modulus of an entry of the rows; 0 for a polyhedron without rows."""
    return float(abs(member.rows).max()) if member.rows.shape[0] else 0.0
