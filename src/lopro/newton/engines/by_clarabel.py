"""Clarabel: an interior point method for quadratic objectives over cones."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.newton.engines.answer import Answer, AnswerStatus
from lopro.newton.engines.program import QuadraticProgram, in_handy_units

__all__ = ["solve_by_clarabel"]

_NAMES = {
    "Solved": AnswerStatus.SOLVED,
    "AlmostSolved": AnswerStatus.INACCURATE,
    "PrimalInfeasible": AnswerStatus.EMPTY,
    "AlmostPrimalInfeasible": AnswerStatus.EMPTY,
    "DualInfeasible": AnswerStatus.UNBOUNDED,
    "AlmostDualInfeasible": AnswerStatus.UNBOUNDED,
    "MaxIterations": AnswerStatus.TIME,
    "MaxTime": AnswerStatus.TIME,
}


def solve_by_clarabel(
    program: QuadraticProgram, tol: float = 1e-9, seconds: float | None = None
) -> Answer:
    """Solve a quadratic program by Clarabel.

    Parameters
    ----------
    program : QuadraticProgram
        Dense matrices are made sparse.
    tol : float
        Feasibility and gap, in handy units.
    seconds : float, optional
        Time limit.
    """
    import clarabel

    p, units = in_handy_units(program)
    n = len(p.q)
    A = scipy.sparse.csr_array(p.A)
    eye = scipy.sparse.eye_array(n, format="csr")
    equal = p.lower == p.upper
    above, below = ~equal & np.isfinite(p.upper), ~equal & np.isfinite(p.lower)
    most, least = np.isfinite(p.most), np.isfinite(p.least)
    blocks = [A[equal], A[above], -A[below], eye[most], -eye[least]]
    sides = [p.lower[equal], p.upper[above], -p.lower[below], p.most[most], -p.least[least]]
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_threads = False, 1
    settings.tol_feas = settings.tol_gap_abs = settings.tol_gap_rel = tol
    if seconds is not None:
        settings.time_limit = seconds
    inequalities = int(above.sum() + below.sum() + most.sum() + least.sum())
    cones = [clarabel.ZeroConeT(int(equal.sum())), clarabel.NonnegativeConeT(inequalities)]
    P = scipy.sparse.csc_matrix((n, n)) if p.P is None else scipy.sparse.csc_matrix(p.P)
    solver = clarabel.DefaultSolver(
        scipy.sparse.triu(P, format="csc"),
        p.q,
        scipy.sparse.csc_matrix(scipy.sparse.vstack(blocks)),
        np.concatenate(sides),
        cones,
        settings,
    )
    return units.back(_answer(p, (equal, above, below, most, least), solver.solve()))


def _answer(p: QuadraticProgram, masks: tuple[Any, ...], solution: Any) -> Answer:
    equal, above, below, most, least = masks
    shares = np.split(np.array(solution.z), np.cumsum([int(m.sum()) for m in masks])[:-1])
    rows, box = np.zeros(len(p.lower)), np.zeros(len(p.q))
    rows[equal] += shares[0]
    rows[above] += shares[1]
    rows[below] -= shares[2]
    box[most] += shares[3]
    box[least] -= shares[4]
    status = _NAMES.get(str(solution.status), AnswerStatus.FAILED)
    return Answer(status, np.array(solution.x), rows, box, int(solution.iterations))
