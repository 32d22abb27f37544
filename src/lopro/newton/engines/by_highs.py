"""HiGHS, through SciPy: linear programs, structured and sparse ones above all."""

from __future__ import annotations

import numpy as np
import scipy  # parts of it load when first used

from lopro.newton.engines.answer import Answer, AnswerStatus
from lopro.newton.engines.program import QuadraticProgram, in_handy_units

__all__ = ["solve_by_highs"]

_NAMES = {
    0: AnswerStatus.SOLVED,
    1: AnswerStatus.TIME,
    2: AnswerStatus.EMPTY,
    3: AnswerStatus.UNBOUNDED,
    4: AnswerStatus.FAILED,
}


def solve_by_highs(
    program: QuadraticProgram, tol: float = 1e-9, seconds: float | None = None
) -> Answer:
    """Solve a linear program by HiGHS.

    Parameters
    ----------
    program : QuadraticProgram
        Without a quadratic part.
    tol : float
        Primal and dual feasibility, in handy units; HiGHS takes 1e-10 at least.
    seconds : float, optional
        Time limit.
    """
    if program.P is not None:
        raise ValueError("program: HiGHS through SciPy solves linear programs only")
    p, units = in_handy_units(program)
    equal = p.lower == p.upper
    above, below = ~equal & np.isfinite(p.upper), ~equal & np.isfinite(p.lower)
    A = p.A if isinstance(p.A, np.ndarray) else scipy.sparse.csr_array(p.A)
    stack = np.vstack if isinstance(A, np.ndarray) else scipy.sparse.vstack
    options = {
        "primal_feasibility_tolerance": max(tol, 1e-10),
        "dual_feasibility_tolerance": max(tol, 1e-10),
    }
    if seconds is not None:
        options["time_limit"] = seconds
    found = scipy.optimize.linprog(
        p.q,
        A_ub=stack([A[above], -A[below]]),
        b_ub=np.concatenate([p.upper[above], -p.lower[below]]),
        A_eq=A[equal],
        b_eq=p.lower[equal],
        bounds=np.column_stack([p.least, p.most]),
        method="highs",
        options=options,
    )
    rows, box = np.zeros(len(p.lower)), np.zeros(len(p.q))
    status = _NAMES.get(found.status, AnswerStatus.FAILED)
    if found.x is None:
        return Answer(status, np.full(len(p.q), np.nan), rows, box, int(found.nit))
    # SciPy's marginals are derivatives of the value by the bounds: the negatives of our multipliers.
    inequalities = -np.asarray(found.ineqlin.marginals)
    rows[above] += inequalities[: int(above.sum())]
    rows[below] -= inequalities[int(above.sum()) :]
    rows[equal] = -np.asarray(found.eqlin.marginals)
    box = -np.asarray(found.lower.marginals) - np.asarray(found.upper.marginals)
    return units.back(Answer(status, np.asarray(found.x), rows, box, int(found.nit)))
