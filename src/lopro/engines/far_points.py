"""Distant feasible points: a program that an engine reports as empty is solved again in their units.

Engines measure residuals of a contradiction relative to its terms. ``x_1 >= 1`` and ``1e-9 x_2 >= x_1``
contradict each other up to a residual of 1e-9, but have common points at ``x_2 = 1e9``. The multipliers show
where: with ``r = A'z`` they do not exclude points with ``|r_j x_j|`` of the size of ``-b'z`` for some column
j.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.real_vectors import Vector, powers_of_two
from lopro.engines.answer import Answer
from lopro.engines.clarabel import solve_cones
from lopro.engines.forms import ConeProgram

__all__ = ["far_units", "solve_far_out"]

#: Residual of a contradiction relative to its terms, as Clarabel leaves it (its ``tol_infeas_rel``).
_RESIDUAL = 1e-8


def far_units(A: Any, b: Vector, z: Vector) -> Vector | None:
    """Return units of the variables in which points that multipliers do not exclude are about 1.

    None if the multipliers exclude all points, up to the residuals that an engine leaves.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> from lopro.engines.far_points import far_units
    >>> rows = scipy.sparse.csr_array(
    ...     [[-1.0, 0.0], [1.0, -(2.0**-30)]]
    ... )  # x_1 >= 1, 2^-30 x_2 >= x_1
    >>> far_units(rows, np.array([-1.0, 0.0]), np.ones(2))
    array([1.00000000e+00, 1.07374182e+09])
    >>> far_units(rows[:, :1], np.array([-1.0, 0.0]), np.ones(2)) is None
    True
    """
    margin = -float(b @ z)
    residual, sizes = np.abs(A.T @ z), abs(A).T @ np.abs(z)
    left = residual > _RESIDUAL * sizes
    if not (margin > 0.0 and left.any()):
        return None
    units = np.ones(len(residual))
    with np.errstate(over="ignore"):
        units[left] = powers_of_two(margin / residual[left])
    return units


def solve_far_out(program: ConeProgram, tol: float, answer: Answer) -> Answer:
    """Solve again in the units of points that Clarabel's multipliers do not exclude; else return its answer.

    Parameters
    ----------
    program : ConeProgram
        The program.
    tol : float
        Tolerance of gap and residuals.
    answer : Answer
        Clarabel's answer, which does not prove that the program is empty.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> from lopro.engines import ConeProgram, solve_cones
    >>> from lopro.engines.cones import Nonnegative, SecondOrder
    >>> from lopro.engines.far_points import solve_far_out
    >>> rows = [[-1.0, 0.0], [1.0, -1e-9], [0.0, -1.0], [-1.0, 0.0]]
    >>> A, b = scipy.sparse.csc_array(rows), np.array([-1.0, 0.0, 1.0, 0.0])
    >>> P, q = scipy.sparse.csc_array((2, 2)), np.array([1.0, 0.0])
    >>> cones = [Nonnegative(2), SecondOrder(2)]  # x_1 >= 1, 1e-9 x_2 >= x_1, |x_1| <= x_2 + 1
    >>> program = ConeProgram(P, q, A, b, cones)
    >>> near = solve_cones(program, 1e-9)
    >>> far = solve_far_out(program, 1e-9, near)
    >>> near.status.name, far.status.name, float(far.x[0].round(6))
    ('EMPTY', 'SOLVED', 1.0)
    """
    finite = np.isfinite(answer.rows).all()
    units = far_units(program.A, program.b, answer.rows) if answer.status.empty and finite else None
    if units is None:
        return answer
    D = scipy.sparse.diags_array(units)
    far = ConeProgram(D @ program.P @ D, units * program.q, program.A @ D, program.b, program.cones)
    again = solve_cones(far, tol)
    return replace(again, x=units * again.x, iterations=answer.iterations + again.iterations)
