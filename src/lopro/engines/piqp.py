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
from lopro.engines.forms import QuadraticProgram, nonzeros, normalised

__all__ = ["solve_by_piqp"]

#: The most iterations: PIQP's own default.
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
        Absolute and relative residuals, in normalised units.
    seconds : float, optional
        PIQP has no time limit: one iteration is timed first, and the number of iterations is limited by that.
    """
    begin = time.perf_counter()
    left = time_left(seconds)
    too_long = _too_large(program, left)
    if too_long is not None:
        return too_long
    p, units = normalised(program)
    rows = _Rows(p)
    solver = _set_up(p, rows, tol)
    solver.settings.max_iter = _affordable(solver, left)
    solver.solve()
    x, multipliers, box = units.restored(*rows.vectors(solver.result))
    said, spent = solver.result.info.status.name, time.perf_counter() - begin
    status, iterations = _NAMES.get(said, AnswerStatus.FAILED), int(solver.result.info.iter)
    if status is AnswerStatus.TIME and iterations >= _ITERATIONS:
        # The time was sufficient: the vectors may prove that the program is empty.
        status = AnswerStatus.FAILED
    return Answer(status, x, multipliers, box, iterations, spent, message=said)


def _too_large(program: QuadraticProgram, left: float) -> Answer | None:
    """Refuse a program that exceeds the memory; return an answer if there is no time for one step."""
    m, n = program.A.shape
    what = f"a quadratic program of {n} variables and {m} rows"
    if program.sparse:
        require_memory(BYTES_OF_SPARSE * nonzeros(program.A), what)
        return None
    require_memory(BYTES_OF_PIQP * n * (n + m), what)
    # The matrix ``P + A'A`` and its factors.
    if left == np.inf or current_deadline().affords(float(n) * n * (m + n / 3.0), left):
        return None
    nothing = np.full(n, np.nan), np.zeros(m), np.zeros(n)
    return Answer(AnswerStatus.TIME, *nothing, 0, message=f"{what} takes longer than {left:.3g} s")


class _Rows:
    """The rows and variables that PIQP receives as equations, and the inequalities with a finite side."""

    def __init__(self, p: QuadraticProgram) -> None:
        self.p = p
        self.equal = p.lower == p.upper
        # The bounds of a fixed variable have no interior between them: they become an equation.
        self.fixed = p.least == p.most
        self.equations = int(np.count_nonzero(self.equal))
        self.pinned = self.equations > 0 or (p.boxed and bool(self.fixed.any()))
        self.between = (p.lower > -_INFINITE) | (p.upper < _INFINITE)
        if self.equations:
            self.between &= ~self.equal
        self.inequalities = int(np.count_nonzero(self.between))

    @property
    def all_between(self) -> bool:
        """Whether every row is an inequality."""
        return 0 < self.inequalities == len(self.between)

    def vectors(self, result: Any) -> tuple[Vector, Vector, Vector]:
        """Return the point and the multipliers in the order of the rows, 0 for rows without a side."""
        p, k = self.p, self.equations
        if self.all_between:
            rows = np.asarray(result.z_u) - np.asarray(result.z_l)
        else:
            rows = np.zeros(len(p.lower))
            rows[self.equal] = np.asarray(result.y)[:k]
            if self.inequalities:
                rows[self.between] = np.asarray(result.z_u) - np.asarray(result.z_l)
        box = np.zeros(len(p.q))
        if p.boxed:
            box = np.asarray(result.z_bu) - np.asarray(result.z_bl)
            box[self.fixed] = np.asarray(result.y)[k:]
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
    settings = solver.settings
    settings.eps_abs = settings.eps_rel = tol
    settings.check_duality_gap = True
    settings.eps_duality_gap_abs = settings.eps_duality_gap_rel = tol
    data: dict[str, Any] = {"P": wrap(P), "c": p.q}
    if rows.pinned:
        data["A"] = wrap(_with_fixed(A[equal], fixed))
        data["b"] = np.concatenate([p.lower[equal], p.least[fixed]])
    if rows.all_between:
        data |= {"G": wrap(A), "h_l": p.lower, "h_u": p.upper}
    elif rows.inequalities:
        data |= {"G": wrap(A[between]), "h_l": p.lower[between], "h_u": p.upper[between]}
    if p.boxed:
        data["x_l"] = np.where(fixed, -np.inf, p.least)
        data["x_u"] = np.where(fixed, np.inf, p.most)
    solver.setup(**data)
    return solver


def _with_fixed(A: Any, fixed: Any) -> Any:
    """Return the rows of the equations followed by the rows that fix variables."""
    if isinstance(A, np.ndarray):
        return np.vstack([A, np.eye(len(fixed))[fixed]])
    return scipy.sparse.vstack([A, scipy.sparse.eye_array(len(fixed), format="csr")[fixed]])


def _dense(M: Any) -> Vector:
    return np.asarray(M if isinstance(M, np.ndarray) else M.toarray())


def _affordable(solver: Any, seconds: float) -> int:
    """Return the number of iterations that fit in the time."""
    if seconds == np.inf:
        return _ITERATIONS
    solver.settings.max_iter = 1
    begin = time.perf_counter()
    solver.solve()
    spent = time.perf_counter() - begin
    return int(min(_ITERATIONS, max(1.0, (seconds - spent) / max(spent, 1e-6))))
