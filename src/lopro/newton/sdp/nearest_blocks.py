"""The feasible point of a semidefinite program that is nearest to a given one: one augmented Lagrangian."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lopro.linalg.cholesky import SingularSystem
from lopro.newton.arrays import EPS, Array
from lopro.newton.multipliers import never
from lopro.newton.sdp.multipliers import minimised
from lopro.newton.sdp.program import Block, SemidefiniteProgram
from lopro.newton.sdp.scaled import ScaledProgram

__all__ = ["nearest_blocks"]

#: Newton steps at most, and the residual to reach in handy units.
_STEPS, _TOLERANCE = 60, 8.0 * EPS


def nearest_blocks(
    program: SemidefiniteProgram, X: tuple[Array, ...], stopped: Callable[[], bool] = never
) -> tuple[Array, ...]:
    """Return the feasible point of a program that is nearest to X, as near as Newton's method comes.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.newton.sdp import SemidefiniteProgram
    >>> from lopro.newton.sdp.nearest_blocks import nearest_blocks
    >>> program = SemidefiniteProgram.dense(np.eye(2), [np.eye(2)], [1.0])
    >>> nearest_blocks(program, (np.diag([0.75, 0.75]),))[0].round(12)
    array([[0.5, 0. ],
           [0. , 0.5]])
    """
    scaled = ScaledProgram.of(program)
    blocks = tuple(Block(p.size, p.diagonal, 0.0 * p.C, p.A) for p in scaled.program.blocks)
    flat, y = SemidefiniteProgram(scaled.program.b, blocks), np.zeros(len(program.b))
    centre = tuple(x / scaled.x for x in X)
    try:
        point, _ = minimised(flat, centre, y, _TOLERANCE, _STEPS, stopped)
    except SingularSystem:
        return X
    return scaled.matrices(point.X)
