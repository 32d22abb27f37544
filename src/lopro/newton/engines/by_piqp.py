"""PIQP: a proximal interior point method for sparse and dense quadratic programs."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.newton.arrays import Array
from lopro.newton.engines.answer import Answer, AnswerStatus
from lopro.newton.engines.program import QuadraticProgram, in_handy_units

__all__ = ["solve_by_piqp"]

_ITERATIONS = 250


def solve_by_piqp(
    program: QuadraticProgram, tol: float = 1e-9, seconds: float | None = None
) -> Answer:
    """Solve a quadratic program by PIQP.

    Parameters
    ----------
    program : QuadraticProgram
        Dense or sparse.
    tol : float
        Absolute and relative residuals, in handy units.
    seconds : float, optional
        PIQP has no clock of its own: one iteration is timed first and their number limited by that.
    """
    p, units = in_handy_units(program)
    solver = _set_up(p, tol)
    solver.settings.max_iter = _affordable(solver, seconds)
    solver.solve()
    return units.back(_answer(p, solver.result))


def _set_up(p: QuadraticProgram, tol: float) -> Any:
    import piqp

    equal, fixed = p.lower == p.upper, p.least == p.most
    n = len(p.q)
    if p.sparse:
        solver, wrap = piqp.SparseSolver(), scipy.sparse.csc_matrix
        P = scipy.sparse.csc_matrix((n, n)) if p.P is None else p.P
        A, eye = scipy.sparse.csr_array(p.A), scipy.sparse.eye_array(n, format="csr")
        stack = scipy.sparse.vstack
    else:
        solver, wrap, stack = piqp.DenseSolver(), np.ascontiguousarray, np.vstack
        P, A = (np.zeros((n, n)) if p.P is None else _dense(p.P)), _dense(p.A)
        eye = np.eye(n)
    # A variable that is fixed leaves no interior between its bounds: it is an equality.
    pinned = equal.any() or fixed.any()
    solver.settings.eps_abs = tol
    solver.settings.eps_rel = tol
    solver.settings.check_duality_gap = True
    solver.settings.eps_duality_gap_abs = tol
    solver.settings.eps_duality_gap_rel = tol
    solver.setup(
        P=wrap(P),
        c=p.q,
        A=wrap(stack([A[equal], eye[fixed]])) if pinned else None,
        b=np.concatenate([p.lower[equal], p.least[fixed]]) if pinned else None,
        G=wrap(A[~equal]) if not equal.all() else None,
        h_l=p.lower[~equal] if not equal.all() else None,
        h_u=p.upper[~equal] if not equal.all() else None,
        x_l=np.where(fixed, -np.inf, p.least) if p.boxed else None,
        x_u=np.where(fixed, np.inf, p.most) if p.boxed else None,
    )
    return solver


def _dense(M: Any) -> Array:
    return np.asarray(M if isinstance(M, np.ndarray) else M.toarray())


def _affordable(solver: Any, seconds: float | None) -> int:
    if seconds is None:
        return _ITERATIONS
    solver.settings.max_iter = 1
    begin = time.perf_counter()
    solver.solve()
    spent = time.perf_counter() - begin
    return int(min(_ITERATIONS, max(1.0, (seconds - spent) / max(spent, 1e-6))))


def _answer(p: QuadraticProgram, result: Any) -> Answer:
    names = {
        "PIQP_SOLVED": AnswerStatus.SOLVED,
        "PIQP_MAX_ITER_REACHED": AnswerStatus.TIME,
        "PIQP_PRIMAL_INFEASIBLE": AnswerStatus.EMPTY,
        "PIQP_DUAL_INFEASIBLE": AnswerStatus.UNBOUNDED,
    }
    equal, fixed = p.lower == p.upper, p.least == p.most
    rows = np.zeros(len(p.lower))
    y = np.asarray(result.y)
    rows[equal] = y[: int(equal.sum())]
    if not equal.all():
        rows[~equal] = np.asarray(result.z_u) - np.asarray(result.z_l)
    box = np.zeros(len(p.q))
    if p.boxed:
        box = np.asarray(result.z_bu) - np.asarray(result.z_bl)
        box[fixed] = y[int(equal.sum()) :]
    status = names.get(result.info.status.name, AnswerStatus.FAILED)
    return Answer(status, np.array(result.x), rows, box, int(result.info.iter))
