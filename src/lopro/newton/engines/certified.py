"""Programs solved by an engine and proved by us."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # parts of it load when first used

from lopro.certificates import BEYOND, FEASIBLE, check_descent, check_empty, column_units
from lopro.core.deadline import Deadline
from lopro.newton.arrays import Array, norm
from lopro.newton.bounds import negative_curvature
from lopro.newton.engines.answer import Answer, AnswerStatus
from lopro.newton.engines.program import QuadraticProgram
from lopro.newton.engines.rule import Engine, engines_for
from lopro.newton.problem import Composite
from lopro.newton.solve import Outcome, Status, prove

__all__ = ["NotConvex", "solve_program"]

#: Units of variables that differ by more than the digits which residuals of 1e-10 leave of the smallest ones.
_SPREAD = 1e6
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
    feasibility: float = FEASIBLE,
    scale: float = 0.0,
    length: float = 0.0,
    seconds: float | None = None,
    convex: bool = False,
    engines: Sequence[Engine] = (),
) -> Outcome:
    """Solve a quadratic or linear program by the engine that fits, and prove its answer.

    Where the proof fails the next engine is asked; the best outcome is returned in any case.

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

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.newton.engines import QuadraticProgram, solve_program
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
    problem = program.composite()
    best: Outcome | None = None

    for engine, units in _calls(program, engines or engines_for(program)):
        left = None if seconds is None else max(0.01, deadline.left)
        answer = units.back(engine(units.program, _RESIDUAL, left))
        found = _without_solution(program, problem, answer)
        if found is not None:
            return found
        if answer.finite and answer.status not in (AnswerStatus.EMPTY, AnswerStatus.UNBOUNDED):
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
    return best or _unproved(program, problem, Status.STOPPED)


@dataclass(frozen=True)
class _ColumnUnits:
    """A program in which variable j is counted in multiples of ``sizes[j]``, powers of two."""

    program: QuadraticProgram
    sizes: Array

    @staticmethod
    def of(p: QuadraticProgram, sizes: Array) -> _ColumnUnits:
        dense = isinstance(p.A, np.ndarray)
        A = p.A * sizes if dense else p.A @ scipy.sparse.diags_array(sizes)
        P = p.P
        if P is not None:
            D = scipy.sparse.diags_array(sizes)
            P = sizes[:, None] * P * sizes if isinstance(P, np.ndarray) else D @ P @ D
        least, most = p.least / sizes, p.most / sizes
        scaled = dataclasses.replace(p, P=P, q=p.q * sizes, A=A, least=least, most=most)
        return _ColumnUnits(scaled, sizes)

    def back(self, answer: Answer) -> Answer:
        """Return an answer in the units of the user."""
        return dataclasses.replace(answer, x=answer.x * self.sizes, box=answer.box / self.sizes)


def _calls(
    program: QuadraticProgram, engines: Sequence[Engine]
) -> Iterator[tuple[Engine, _ColumnUnits]]:
    """Yield the engines, and again with units of single variables where these differ by much."""
    plain = _ColumnUnits(program, np.ones(len(program.q)))
    for engine in engines:
        yield engine, plain
    sides = [(program.A, program.lower), (program.A, program.upper)]
    bounds = [(None, program.least), (None, program.most)]
    units = column_units([*sides, *bounds], len(program.q)).known
    known = units[units > 0.0]
    if len(known) and known.max() > _SPREAD * known.min():
        sizes = np.exp2(np.rint(np.log2(np.where(units > 0.0, units, np.median(known)))))
        scaled = _ColumnUnits.of(program, sizes)
        for engine in engines:
            yield engine, scaled


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
        y = (y[0], problem.terms[1].part.into_domain(leftover))
        emptiness = check_empty(rows, y, len(program.q))
        if emptiness.radius > BEYOND * norm(answer.x):
            outcome = _unproved(program, problem, Status.EMPTY)
            return dataclasses.replace(outcome, certificate=emptiness, ray=y)
    if answer.status is AnswerStatus.UNBOUNDED and norm(answer.x) > 0.0:
        d = answer.x / norm(answer.x)
        descent = check_descent(program.P, program.q, rows, d)
        if descent.unbounded(BEYOND, _DRIFT):
            outcome = _unproved(program, problem, Status.UNBOUNDED)
            return dataclasses.replace(outcome, certificate=descent, ray=d)
    return None
