"""HiGHS, through SciPy: a solver for linear programs, fastest on structured and sparse ones."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.aside import run_aside
from lopro.engines.answer import BYTES_OF_SPARSE, Answer, AnswerStatus, require_memory, time_left
from lopro.engines.forms import QuadraticProgram, nonzeros, normalised
from lopro.engines.one_sided import OneSided

__all__ = ["solve_by_highs"]

_NAMES = {
    0: AnswerStatus.SOLVED,
    1: AnswerStatus.TIME,
    2: AnswerStatus.EMPTY,
    3: AnswerStatus.UNBOUNDED,
    4: AnswerStatus.FAILED,
}


def solve_by_highs(
    program: QuadraticProgram,
    tol: float = 1e-9,
    seconds: float | None = None,
    *,
    scaled: bool = True,
    simplex: bool = False,
    iterations: int | None = None,
) -> Answer:
    """Solve a linear program by HiGHS.

    Parameters
    ----------
    program : QuadraticProgram
        Without a quadratic part.
    tol : float
        Tolerance of primal and dual feasibility; HiGHS accepts 1e-10 at least, its default is 1e-7.
    seconds : float, optional
        Time limit; the deadline of the enclosing call is a limit in any case.
    scaled : bool
        Whether to normalise the program first; otherwise the caller has done that.
    simplex : bool
        Whether to use the dual simplex method, which ends at a vertex.
    iterations : int, optional
        The most iterations.
    """
    if program.P is not None:
        raise ValueError("program: HiGHS through SciPy solves linear programs only")
    begin = time.perf_counter()
    what = f"a linear program of {len(program.q)} variables and {len(program.lower)} rows"
    require_memory(BYTES_OF_SPARSE * nonzeros(program.A), what)
    options: dict[str, Any] = {
        "primal_feasibility_tolerance": max(tol, 1e-10),
        "dual_feasibility_tolerance": max(tol, 1e-10),
        "time_limit": time_left(seconds),
    }
    if iterations is not None:
        options["maxiter"] = iterations
    p, units = normalised(program) if scaled else (program, None)
    rows = OneSided(p)
    found = _solved(p, rows, options, "highs-ds" if simplex else "highs")
    answer = _answer(p, rows, found)
    if answer.status is AnswerStatus.EMPTY:
        answer = _contradiction(p, answer, options)
    if units is not None:
        answer = units.back(answer)
    return replace(answer, seconds=time.perf_counter() - begin)


def _solved(
    p: QuadraticProgram, rows: OneSided, options: dict[str, Any], method: str = "highs"
) -> Any:
    """Return SciPy's answer, or a time-out."""
    bounds = np.column_stack([p.least, p.most])
    given = p.q, rows.G, rows.h, rows.A, rows.b, bounds, method
    # HiGHS ignores Ctrl-C, and it may exceed its own limit.
    found = run_aside(partial(scipy.optimize.linprog, *given, options=options), _stop)
    return found or SimpleNamespace(status=1, nit=0, x=None, message="left at the deadline")


def _stop(thread: int) -> None:
    """Set the time limit of the HiGHS that runs in this thread to 0.

    SciPy does not offer the callbacks of HiGHS that can interrupt it, but the solver is a local variable of
    its function ``_highs_wrapper``. HiGHS reads the limit in every iteration.
    """
    frame = sys._current_frames().get(thread)
    while frame is not None:
        set_option = getattr(frame.f_locals.get("highs"), "setOptionValue", None)
        if set_option is not None:
            set_option("time_limit", 0.0)
        frame = frame.f_back


def _contradiction(p: QuadraticProgram, said: Answer, options: dict[str, Any]) -> Answer:
    """Return the answer for an empty program with multipliers that contradict its rows.

    SciPy does not return the dual ray. The multipliers of ``min sum |s|`` over the rows of ``A x + s``, which
    always has a solution, are one: ``A' y + box = 0`` with a positive optimal value.
    """
    m, n = p.A.shape
    eye = scipy.sparse.eye_array(m, format="csr")
    A = scipy.sparse.hstack([scipy.sparse.csr_array(p.A), eye, -eye], format="csr")
    cost = np.concatenate([np.zeros(n), np.ones(2 * m)])
    least = np.concatenate([p.least, np.zeros(2 * m)])
    most = np.concatenate([p.most, np.full(2 * m, np.inf)])
    elastic = QuadraticProgram(None, cost, A, p.lower, p.upper, least, most)
    found = _solved(elastic, OneSided(elastic), options)
    if found.x is None or not found.fun > 0.0:
        return said
    rows = _answer(elastic, OneSided(elastic), found)
    count = said.iterations + rows.iterations
    return replace(said, x=rows.x[:n], rows=rows.rows, box=rows.box[:n], iterations=count)


def _answer(p: QuadraticProgram, rows: OneSided, found: Any) -> Answer:
    status = _NAMES.get(found.status, AnswerStatus.FAILED)
    count, said = int(found.nit), str(found.message)
    if found.x is None:
        nothing = np.full(len(p.q), np.nan), np.zeros(len(p.lower)), np.zeros(len(p.q))
        return Answer(status, *nothing, count, message=said)
    # SciPy's marginals are derivatives of the value by the bounds: the negatives of our multipliers.
    multipliers = rows.multipliers(
        -np.asarray(found.eqlin.marginals), -np.asarray(found.ineqlin.marginals)
    )
    box = -np.asarray(found.lower.marginals) - np.asarray(found.upper.marginals)
    return Answer(status, np.asarray(found.x), multipliers, box, count, message=said)
