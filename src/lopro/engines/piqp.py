"""PIQP: a proximal interior point method for sparse and dense quadratic programs."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.deadline import current_deadline
from lopro.core.real_vectors import Vector
from lopro.engines.answer import (
    BYTES_OF_PIQP,
    BYTES_OF_SPARSE,
    Answer,
    AnswerStatus,
    not_installed,
    require_memory,
    time_left,
)
from lopro.engines.forms import QuadraticProgram, chosen, in_handy_units, nonzeros

__all__ = ["solve_by_piqp"]

#: Iterations at most: PIQP's own default.
_ITERATIONS = 250
#: PIQP treats sides of at least this size as infinite, and reports rows with two such sides on the console.
_INFINITE = 1e30
_NAMES = {
    "PIQP_SOLVED": AnswerStatus.SOLVED,
    "PIQP_MAX_ITER_REACHED": AnswerStatus.TIME,
    "PIQP_PRIMAL_INFEASIBLE": AnswerStatus.EMPTY,
    "PIQP_DUAL_INFEASIBLE": AnswerStatus.UNBOUNDED,
}


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
    begin = time.perf_counter()
    left = time_left(seconds)
    too_long = _too_large(program, left)
    if too_long is not None:
        return too_long
    p, units = in_handy_units(program)
    rows = _Rows(p)
    solver = _set_up(p, rows, tol)
    solver.settings.max_iter = _affordable(solver, left)
    solver.solve()
    x, multipliers, box = units.restored(*rows.vectors(solver.result))
    said, spent = solver.result.info.status.name, time.perf_counter() - begin
    status, iterations = _NAMES.get(said, AnswerStatus.FAILED), int(solver.result.info.iter)
    if status is AnswerStatus.TIME and iterations >= _ITERATIONS:
        # It did not run out of time: its vectors may prove that the program is empty.
        status = AnswerStatus.FAILED
    return Answer(status, x, multipliers, box, iterations, spent, message=said)


def _too_large(program: QuadraticProgram, left: float) -> Answer | None:
    """Refuse a program that exceeds the memory; return the answer where there is no time for a step."""
    m, n = program.A.shape
    what = f"a quadratic program of {n} variables and {m} rows"
    if program.sparse:
        require_memory(BYTES_OF_SPARSE * nonzeros(program.A), what)
        return None
    require_memory(BYTES_OF_PIQP * n * (n + m), what)
    # The matrix ``P + A'A`` and its factors.
    if current_deadline().affords(float(n) * n * (m + n / 3.0), left):
        return None
    nothing = np.full(n, np.nan), np.zeros(m), np.zeros(n)
    return Answer(AnswerStatus.TIME, *nothing, 0, message=f"{what} takes longer than {left:.3g} s")


class _Rows:
    """The rows and variables that are equations for PIQP, and the inequalities with a finite side."""

    def __init__(self, p: QuadraticProgram) -> None:
        self.p = p
        self.equal = p.lower == p.upper
        # A variable that is fixed leaves no interior between its bounds: it is an equation.
        self.fixed = p.least == p.most
        self.between = ~self.equal & ((p.lower > -_INFINITE) | (p.upper < _INFINITE))

    def vectors(self, result: Any) -> tuple[Vector, Vector, Vector]:
        """Return the point and the multipliers in the order of the rows; those without sides have none."""
        p, equal = self.p, self.equal
        rows, y = np.zeros(len(p.lower)), np.asarray(result.y)
        rows[equal] = y[: int(equal.sum())]
        if self.between.any():
            rows[self.between] = np.asarray(result.z_u) - np.asarray(result.z_l)
        box = np.zeros(len(p.q))
        if p.boxed:
            box = np.asarray(result.z_bu) - np.asarray(result.z_bl)
            box[self.fixed] = y[int(equal.sum()) :]
        return np.array(result.x), rows, box


def _set_up(p: QuadraticProgram, rows: _Rows, tol: float) -> Any:
    try:
        import piqp
    except ImportError as error:
        raise not_installed("piqp") from error

    equal, fixed, between = rows.equal, rows.fixed, rows.between
    n = len(p.q)
    if p.sparse:
        solver, wrap = piqp.SparseSolver(), scipy.sparse.csc_matrix
        P = scipy.sparse.csc_matrix((n, n)) if p.P is None else p.P
        A = scipy.sparse.csr_array(p.A)
    else:
        solver, wrap = piqp.DenseSolver(), np.ascontiguousarray
        P, A = (np.zeros((n, n)) if p.P is None else _dense(p.P)), _dense(p.A)
    pinned, inequalities = equal.any() or fixed.any(), between.any()
    solver.settings.eps_abs = tol
    solver.settings.eps_rel = tol
    solver.settings.check_duality_gap = True
    solver.settings.eps_duality_gap_abs = tol
    solver.settings.eps_duality_gap_rel = tol
    solver.setup(
        P=wrap(P),
        c=p.q,
        A=wrap(_with_fixed(A[equal], fixed)) if pinned else None,
        b=np.concatenate([p.lower[equal], p.least[fixed]]) if pinned else None,
        G=wrap(chosen(A, between)) if inequalities else None,
        h_l=p.lower[between] if inequalities else None,
        h_u=p.upper[between] if inequalities else None,
        x_l=np.where(fixed, -np.inf, p.least) if p.boxed else None,
        x_u=np.where(fixed, np.inf, p.most) if p.boxed else None,
    )
    return solver


def _with_fixed(A: Any, fixed: Any) -> Any:
    """Return the rows of equations with those that fix variables below them."""
    if isinstance(A, np.ndarray):
        return np.vstack([A, np.eye(len(fixed))[fixed]])
    return scipy.sparse.vstack([A, scipy.sparse.eye_array(len(fixed), format="csr")[fixed]])


def _dense(M: Any) -> Vector:
    return np.asarray(M if isinstance(M, np.ndarray) else M.toarray())


def _affordable(solver: Any, seconds: float) -> int:
    """Return how many iterations may be made within the time."""
    if seconds == np.inf:
        return _ITERATIONS
    solver.settings.max_iter = 1
    begin = time.perf_counter()
    solver.solve()
    spent = time.perf_counter() - begin
    return int(min(_ITERATIONS, max(1.0, (seconds - spent) / max(spent, 1e-6))))
