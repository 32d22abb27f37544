"""Programs solved by an engine and proved by us."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.deadline import Deadline
from lopro.engines import (
    Answer,
    AnswerStatus,
    Engine,
    EngineUnavailable,
    QuadraticProgram,
    engines_for,
)
from lopro.functions.atoms import Interval
from lopro.functions.term import Term
from lopro.linalg.eigenvalues import negative_curvature
from lopro.maps import NumPyMap, SparseMap
from lopro.newton.arrays import norm
from lopro.newton.bounds import check_descent, check_empty
from lopro.newton.problem import Composite
from lopro.newton.smooth import QuadraticForm
from lopro.newton.solve import FARTHER, Outcome, Status, prove

__all__ = ["NotConvex", "program_composite", "solve_program"]

#: Residuals that the engines are asked for.
_RESIDUAL = 1e-10
#: A ray may leave the rows by this share of its length.
_DRIFT = 1e-9


class NotConvex(ValueError):
    """The quadratic part is indefinite, beyond rounding; ``direction`` proves it."""

    def __init__(self, direction: object) -> None:
        super().__init__("P: not positive semidefinite, the program is not convex")
        self.direction = direction


def solve_program(
    program: QuadraticProgram,
    tol: float = 1e-6,
    feasibility: float = 1e-9,
    scale: float = 0.0,
    length: float = 0.0,
    seconds: float | None = None,
    convex: bool = False,
    engines: Sequence[Engine] = (),
) -> Outcome:
    """Solve a quadratic or linear program by the engine that fits, and prove its answer.

    Where the proof fails, or an engine is not available, the next one is asked; the best outcome is returned.

    Parameters
    ----------
    program : QuadraticProgram
        What to solve.
    tol, feasibility, scale, length : float
        As for `lopro.newton.prove`.
    seconds : float, optional
        Time limit.
    convex : bool
        Whether it is known already that the quadratic part is positive semidefinite.
    engines : sequence of engines
        Those to ask, in this order; by default those that fit.

    Raises
    ------
    NotConvex
        If the quadratic part is indefinite.
    EngineUnavailable
        If there is no engine that can take the program: none is installed, or it exceeds the memory.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.engines import QuadraticProgram
    >>> from lopro.newton.engines import solve_program
    >>> program = QuadraticProgram.of(np.eye(2), [-3.0, 0.0], A=[[1.0, 1.0]], upper=[1.0])
    >>> outcome = solve_program(program)
    >>> outcome.status.name, outcome.x.round(6)
    ('CONVERGED', array([ 2., -1.]))
    """
    deadline = Deadline(seconds)
    if program.P is not None and not convex:
        direction = negative_curvature(program.P)
        if direction is not None:
            raise NotConvex(direction)
    problem = program_composite(program)
    best: Outcome | None = None
    unavailable: EngineUnavailable | None = None
    asked = False

    for engine in engines or engines_for(program):
        try:
            left = None if seconds is None else max(0.01, deadline.left)
            answer = engine(program, _RESIDUAL, left)
        except EngineUnavailable as error:
            unavailable = unavailable or error
            continue
        asked = True
        found = _without_solution(program, problem, answer)
        if found is not None:
            return found
        if answer.finite and not (answer.status.empty or answer.status.unbounded):
            found = prove(
                problem,
                answer.x,
                (answer.rows, answer.box),
                tol,
                feasibility,
                scale,
                length,
                None,
                lambda: deadline.passed,
            )
            if found.status is Status.CONVERGED:
                return found
            best = found if best is None or found.better(best, feasibility, length) else best
        if deadline.passed:
            break
    if unavailable is not None and not asked:
        raise unavailable
    return best or _unproved(program, problem, Status.STOPPED)


def program_composite(program: QuadraticProgram) -> Composite:
    """Return a program as the Newton method and the bounds take it: rows first, then the box."""
    A = scipy.sparse.csr_array(program.A) if program.A.shape[0] == 0 else program.A
    kind = SparseMap if scipy.sparse.issparse(A) else NumPyMap
    rows = Term(Interval(program.lower, program.upper), kind(A, "A"))
    box = Term(Interval(program.least, program.most))
    return Composite(QuadraticForm(program.P, program.q, program.constant), [rows, box])


def _unproved(program: QuadraticProgram, problem: Composite, status: Status) -> Outcome:
    """Return the outcome of a run that has no point to show."""
    zero = np.zeros(len(program.q))
    v = (np.zeros(len(program.lower)), zero)
    outcome = prove(problem, zero, v, convexity=0.0, stopped=lambda: True)
    return dataclasses.replace(outcome, status=status)


def _without_solution(
    program: QuadraticProgram, problem: Composite, answer: Answer
) -> Outcome | None:
    """Return the outcome of a program without points or least value, if the answer's vectors prove that."""
    if not answer.finite or answer.status in (AnswerStatus.SOLVED, AnswerStatus.INACCURATE):
        return None
    rows = [(program.A, program.lower, program.upper), (None, program.least, program.most)]
    size = max(float(np.abs(v).max(initial=0.0)) for v in (answer.rows, answer.box))
    if size > 0.0:
        y = (answer.rows / size, answer.box / size)
        # The box takes over what the rows leave, wherever a bound allows it.
        leftover = -(program.A.T @ y[0])
        y = (y[0], problem.terms[1].into_domain(leftover))
        emptiness = check_empty(rows, y, len(program.q))
        if emptiness.radius > FARTHER * FARTHER * norm(answer.x):
            outcome = _unproved(program, problem, Status.EMPTY)
            return dataclasses.replace(outcome, certificate=emptiness, ray=y)
    if answer.status.unbounded and norm(answer.x) > 0.0:
        d = answer.x / norm(answer.x)
        descent = check_descent(program.P, program.q, rows, d)
        if descent.unbounded(FARTHER * FARTHER, _DRIFT):
            outcome = _unproved(program, problem, Status.UNBOUNDED)
            return dataclasses.replace(outcome, certificate=descent, ray=d)
    return None
