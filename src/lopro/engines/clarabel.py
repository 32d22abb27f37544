"""Clarabel: an interior point method for quadratic objectives over cones."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.deadline import current_deadline
from lopro.engines.answer import (
    BYTES_OF_CLARABEL,
    Answer,
    AnswerStatus,
    cone_entries,
    cone_work,
    not_installed,
    require_memory,
    time_left,
)
from lopro.engines.cones import (
    Cone,
    Nonnegative,
    PSDTriangle,
    SecondOrder,
    Zero,
)
from lopro.engines.exponentials import Exponentials
from lopro.engines.forms import (
    ConeProgram,
    QuadraticProgram,
    cone_units,
    nonzeros,
    normalised,
)
from lopro.engines.one_sided import as_cones

__all__ = ["conic_work", "solve_by_clarabel", "solve_cones"]

#: Operations of the first steps for each pair of entries in one row: measured on dense rows.
_FIRST_STEPS = 200.0
#: Number of factorisations of dense blocks that every run needs.
_FACTORISATIONS = 5.0
#: Share of the time left that Clarabel gets, so that its last step ends in time.
_SHARE = 0.7
_TOO_LONG = (
    "the first steps of an interior point method would take longer than the time that is left"
)

_NAMES = {
    "Solved": AnswerStatus.SOLVED,
    "AlmostSolved": AnswerStatus.INACCURATE,
    "PrimalInfeasible": AnswerStatus.EMPTY,
    "AlmostPrimalInfeasible": AnswerStatus.NEARLY_EMPTY,
    "DualInfeasible": AnswerStatus.UNBOUNDED,
    "AlmostDualInfeasible": AnswerStatus.NEARLY_UNBOUNDED,
    "MaxIterations": AnswerStatus.TIME,
    "MaxTime": AnswerStatus.TIME,
    "CallbackTerminated": AnswerStatus.TIME,
}


def solve_by_clarabel(
    program: QuadraticProgram, tol: float = 1e-9, seconds: float | None = None
) -> Answer:
    """Solve a quadratic program by Clarabel, on one thread.

    Parameters
    ----------
    program : QuadraticProgram
        Dense matrices are made sparse.
    tol : float
        Feasibility and gap, in normalised units.
    seconds : float, optional
        Time limit.
    """
    begin = time.perf_counter()
    what = f"a quadratic program of {len(program.q)} variables and {len(program.lower)} rows"
    require_memory(BYTES_OF_CLARABEL * nonzeros(program.A), what)
    p, units = normalised(program)
    cones, read = as_cones(p)
    answer = _limited(cones, tol, time_left(seconds), threads=1)
    rows, box = read(answer.rows)
    answer = replace(answer, rows=rows, box=box, slacks=np.zeros(0))
    return replace(units.back(answer), seconds=time.perf_counter() - begin)


def solve_cones(
    program: ConeProgram,
    tol: float,
    seconds: float | None = None,
    *,
    scaled: bool = True,
    threads: int = 0,
) -> Answer:
    """Solve a cone program by Clarabel.

    Parameters
    ----------
    program : ConeProgram
        The program.
    tol : float
        Tolerance of gap and residuals.
    seconds : float, optional
        Time limit. Without one the deadline of the enclosing call is the limit: `OutOfTime` is raised if it
        leaves no time for the first steps, or has passed at the end.
    scaled : bool
        Whether variables and objective are multiplied by powers of two so that the data are about 1. That
        rounds nothing, so the same program in other units gives the same run.
    threads : int
        The most threads; 0 for Clarabel's own choice.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> from lopro.engines.cones import SecondOrder
    >>> from lopro.engines import ConeProgram, solve_cones
    >>> A = scipy.sparse.csc_array([[0.0, 0.0], [-1.0, 0.0], [0.0, -1.0]])
    >>> P, q, b = scipy.sparse.csc_array((2, 2)), np.array([3.0, 4.0]), np.array([1.0, 0.0, 0.0])
    >>> solve_cones(ConeProgram(P, q, A, b, [SecondOrder(3)]), 1e-9).x.round(6)
    array([-0.6, -0.8])
    """
    begin, deadline = time.perf_counter(), current_deadline()
    x, f = cone_units(program) if scaled else (1.0, 1.0)
    P, q = program.P * (x * x / f), program.q * (x / f)
    in_units = ConeProgram(P, q, program.A, program.b / x, program.cones)
    if seconds is None:
        # Clarabel checks the time only between its steps: it is not started without time for a few of them.
        if math.isfinite(deadline.left):
            pairs, blocks = conic_work(program)
            deadline.need(_FIRST_STEPS * pairs + _FACTORISATIONS * blocks, _TOO_LONG)
        answer = _run(in_units, tol, _SHARE * deadline.left, threads)
        deadline.check()
    else:
        answer = _limited(in_units, tol, time_left(seconds), threads)
    return replace(
        answer,
        x=answer.x * x,
        rows=answer.rows * (f / x),
        slacks=answer.slacks * x,
        seconds=time.perf_counter() - begin,
    )


def _limited(program: ConeProgram, tol: float, left: float, threads: int) -> Answer:
    """Solve within the time; if one factorisation would take longer, return without a point."""
    if math.isfinite(left) and not current_deadline().affords(sum(conic_work(program)), left):
        n, m = len(program.q), len(program.b)
        nothing = np.full(n, np.nan), np.zeros(m), np.zeros(0)
        return Answer(AnswerStatus.TIME, *nothing, 0, slacks=np.zeros(m), message=_TOO_LONG)
    return _run(program, tol, left, threads)


def _run(program: ConeProgram, tol: float, left: float, threads: int) -> Answer:
    """Solve the program by Clarabel without scaling, unless it exceeds the memory."""
    try:
        import clarabel
    except ImportError as error:
        raise not_installed("clarabel") from error

    _require_memory(program)
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_threads = False, threads
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tol
    settings.time_limit = left
    solver = clarabel.DefaultSolver(
        # Clarabel reads the upper triangle of P.
        scipy.sparse.triu(scipy.sparse.csc_matrix(program.P), format="csc"),
        program.q,
        scipy.sparse.csc_matrix(program.A),
        program.b,
        [block for cone in program.cones for block in _blocks(cone, clarabel)],
        settings,
    )
    stop = _Stop()
    if hasattr(solver, "set_termination_callback"):  # from 0.11.1 on
        solver.set_termination_callback(stop)
    found = solver.solve()
    stop.finish()
    said = str(found.status)
    return Answer(
        _NAMES.get(said, AnswerStatus.FAILED),
        np.array(found.x),
        np.array(found.z),
        np.zeros(0),
        int(found.iterations),
        slacks=np.array(found.s),
        message=said,
    )


class _Stop:
    """The callback between two iterations, which ends the run at the deadline and on Ctrl-C.

    Python handles signals during the callback. Clarabel would print an exception of the callback and
    continue, so the exception is kept, and `finish` raises it.
    """

    def __init__(self) -> None:
        self._deadline = current_deadline()
        self._raised: BaseException | None = None

    def __call__(self, info: Any) -> bool:
        try:
            return self._deadline.passed
        except BaseException as error:
            self._raised = error
            return True

    def finish(self) -> None:
        """Raise the exception of the callback, if there was one."""
        if self._raised is not None:
            raise self._raised


def _blocks(cone: Cone, clarabel: Any) -> list[Any]:
    """Return a cone as Clarabel's objects."""
    match cone:
        case Zero(size):
            return [clarabel.ZeroConeT(size)]
        case Nonnegative(size):
            return [clarabel.NonnegativeConeT(size)]
        case SecondOrder(size, count):
            return [clarabel.SecondOrderConeT(size)] * count
        case PSDTriangle(order):
            return [clarabel.PSDTriangleConeT(order)]
        case Exponentials(count):
            return [clarabel.ExponentialConeT()] * count
    raise TypeError(f"Clarabel has no cone {cone!r}")


def _nonzero_rows(program: ConeProgram) -> list[tuple[Cone, int]]:
    """Return the semidefinite cones with their numbers of rows that are not empty."""
    if not any(isinstance(cone, PSDTriangle) for cone in program.cones):
        return []
    used = (np.diff(scipy.sparse.csr_array(program.A).indptr) > 0) | (program.b != 0.0)
    ends = np.cumsum([cone.rows for cone in program.cones])[:-1]
    parts = zip(program.cones, np.split(used, ends), strict=True)
    return [(cone, int(part.sum())) for cone, part in parts if isinstance(cone, PSDTriangle)]


def conic_work(program: ConeProgram) -> tuple[float, float]:
    """Return the number of pairs of entries in one row, and the operations of factoring dense blocks."""
    lengths = np.diff(scipy.sparse.csr_array(program.A).indptr).astype(np.float64)
    blocks = sum(cone_work(cone, used) for cone, used in _nonzero_rows(program))
    return float(lengths @ lengths), blocks


def _require_memory(program: ConeProgram) -> None:
    m, n = program.A.shape
    # One triangle of the matrix that is factored, without fill-in.
    entries = program.A.nnz + 0.5 * program.P.nnz + m + n
    entries += sum(cone_entries(cone, used) for cone, used in _nonzero_rows(program))
    what = f"a cone program of {n} variables and {m} rows"
    require_memory(BYTES_OF_CLARABEL * entries, what)
