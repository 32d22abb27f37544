"""Clarabel, in units in which its tolerances mean something."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.deadline import current_deadline
from lopro.core.real_vectors import Vector
from lopro.core.units import power_of_two

__all__ = ["Solved", "run_clarabel"]

#: Operations of some steps, relative to the pairs of entries that meet in a row: measured on dense rows.
_FIRST_STEPS = 200.0
#: Of the time that is left, so that its last step still ends in time.
_SHARE = 0.7


@dataclass(frozen=True, eq=False)
class Solved:
    """What Clarabel says, in the units of the program."""

    x: Vector
    z: Vector
    s: Vector
    status: Any
    iterations: int


def run_clarabel(
    P: Any, q: Vector, A: Any, b: Vector, blocks: Sequence[Any], accuracy: float, homogeneous: bool
) -> Solved:
    """Solve ``min 1/2 v'Pv + q'v`` over ``b - Av`` in cones, within the time that is left.

    Parameters
    ----------
    P, A : scipy.sparse matrices
        All of ``P``.
    q, b : arrays
        Linear part and right-hand side.
    blocks : sequence
        The cones in Clarabel's words.
    accuracy : float
        For gap and residuals.
    homogeneous : bool
        Whether multiples of points of the cones are in them, so that the units can be changed: by powers of
        two, which rounds nothing, so that other units of the same program give the same run.
    """
    import clarabel

    deadline = current_deadline()
    # Clarabel looks at the clock between its steps only: a call that cannot make a few is not begun.
    lengths = np.diff(scipy.sparse.csr_array(A).indptr).astype(np.float64)
    deadline.need(_FIRST_STEPS * float(lengths @ lengths))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.time_limit = _SHARE * deadline.left
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = accuracy
    x, f = _units(P, q, b) if homogeneous else (1.0, 1.0)
    answer = clarabel.DefaultSolver(
        # Of a symmetric matrix Clarabel wants the upper triangle.
        scipy.sparse.triu(scipy.sparse.csc_matrix(P * (x * x / f)), format="csc"),
        q * (x / f),
        scipy.sparse.csc_matrix(A),
        b / x,
        list(blocks),
        settings,
    ).solve()
    deadline.check()
    return Solved(
        np.asarray(answer.x) * x,
        np.asarray(answer.z) * (f / x),
        np.asarray(answer.s) * x,
        answer.status,
        int(answer.iterations),
    )


def _units(P: Any, q: Vector, b: Vector) -> tuple[float, float]:
    """Return the units of the variables and of the objective in which the data are about 1."""
    x = power_of_two(float(np.abs(b).max(initial=0.0)))
    steepest = float(np.abs(q).max(initial=0.0)) * x
    curvature = (float(abs(P).max()) if P.nnz else 0.0) * x * x
    return x, power_of_two(max(steepest, curvature))
