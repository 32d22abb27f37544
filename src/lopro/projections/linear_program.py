"""Minima of linear functions over half-spaces, with the multipliers that prove them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from lopro.core.deadline import current_deadline
from lopro.engines import AnswerStatus, QuadraticProgram, solve_by_highs
from lopro.errors import ProjectionError
from lopro.projections.halfspaces import HalfSpaces

__all__ = ["LinearMinimum", "minimize_linear"]

Vector: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"


@dataclass(frozen=True, eq=False)
class LinearMinimum:
    """A vertex that minimises ``cost . z``, and ``multipliers >= 0`` with ``N' multipliers = -cost``."""

    vertex: Vector
    multipliers: Vector


def minimize_linear(cost: Vector, rows: HalfSpaces) -> LinearMinimum:
    """Minimise ``cost . z`` over ``N z <= h`` by HiGHS' dual simplex; the set must be bounded.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.projections.halfspaces import HalfSpaces
    >>> from lopro.projections.linear_program import minimize_linear
    >>> interval = HalfSpaces(np.array([[1.0], [-1.0]]), np.array([2.0, 1.0]))
    >>> minimize_linear(np.array([3.0]), interval).vertex
    array([-1.])
    """
    size = float(np.abs(cost).max(initial=0.0))
    # Tolerances of the solver are absolute; a cost of size 1 makes them independent of units.
    unit = cost / size if size > 0.0 else cost
    program = QuadraticProgram.of(None, unit, rows.csc, upper=rows.bounds)
    answer = solve_by_highs(program, 1e-10, scaled=False, simplex=True)
    current_deadline().check()
    if answer.status is not AnswerStatus.SOLVED:
        raise ProjectionError(f"the linear program of a Frank-Wolfe step failed: {answer.message}")
    return LinearMinimum(answer.x, size * np.maximum(answer.rows, 0.0))
