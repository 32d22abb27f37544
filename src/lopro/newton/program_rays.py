"""What answers of engines prove of programs without a solution: empty sets, rays of descent."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from lopro.certificates import Bound, Emptiness, VariableBounds, check_descent, check_empty
from lopro.certificates.certificate import Outcome, Status
from lopro.certificates.emptiness import without_remnants
from lopro.engines import Answer, AnswerStatus, QuadraticProgram
from lopro.linalg.dense import Array, norm
from lopro.newton.bounds import relative_violation
from lopro.newton.problem import Composite
from lopro.newton.rays import farkas_of_rows, ray_of_rows

__all__ = ["unproved", "without_solution"]

#: Statuses whose multipliers are not those of a contradiction: before a time limit no ray has been found.
_NO_RAY = (AnswerStatus.SOLVED, AnswerStatus.INACCURATE, AnswerStatus.TIME)


def unproved(problem: Composite, status: Status) -> Outcome:
    """Return an outcome at the point zero, without a bound."""
    zero = np.zeros(problem.size)
    v, bound = tuple(np.zeros(t.size) for t in problem.terms), Bound.everywhere(-math.inf)
    outside = relative_violation(problem, zero)
    return Outcome(status, zero, v, problem.value(zero), bound, 0.0, outside, 0)


def without_solution(
    program: QuadraticProgram, problem: Callable[[], Composite], answer: Answer
) -> Outcome | None:
    """Return what an answer proves of a program without a solution; None if nothing.

    The status is INFEASIBLE, UNBOUNDED (if a feasible point exists), or STOPPED where the set is proved to be
    empty only within a radius.
    """
    if not answer.finite or answer.status in _NO_RAY:
        return None
    rows = [(program.A, program.lower, program.upper), (None, program.least, program.most)]
    box = VariableBounds(program.least, program.most)
    size = float(np.abs(answer.rows).max(initial=0.0))
    if size > 0.0:
        y, emptiness = _emptiness(program, rows, box, answer.rows / size)
        if emptiness.radius > 0.0:
            status = Status.INFEASIBLE if emptiness.proved else Status.STOPPED
            outcome = unproved(problem(), status)
            return dataclasses.replace(outcome, certificate=emptiness, ray=y)
    if answer.status.unbounded and norm(answer.x) > 0.0:
        for v in without_remnants(answer.x / norm(answer.x)):
            d = ray_of_rows(program.P, program.A, program.lower, program.upper, box, v)
            descent = check_descent(program.P, program.q, rows, d)
            if descent.proved:
                outcome = unproved(problem(), Status.UNBOUNDED)
                return dataclasses.replace(outcome, certificate=descent, ray=d[: outcome.x.size])
    return None


def _emptiness(
    program: QuadraticProgram, rows: Any, box: VariableBounds, v: Array
) -> tuple[tuple[Array, Array], Emptiness]:
    """Return multipliers near ``v`` that prove the set to be empty, else those with the largest radius."""
    best: tuple[tuple[Array, Array], Emptiness] | None = None
    for y in without_remnants(v):
        both = farkas_of_rows(program.A, program.lower, program.upper, box, y)
        found = check_empty(rows, both, len(program.q))
        if best is None or found.proved or found.radius > best[1].radius:
            best = both, found
        if found.proved:
            break
    assert best is not None
    return best
