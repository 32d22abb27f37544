"""Programs solved by an engine and proved by us."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.certificates import (
    FEASIBLE,
    Bound,
    Emptiness,
    VariableBounds,
    begins_a_ray,
    check_descent,
    check_empty,
    column_units,
)
from lopro.certificates.certificate import Outcome, Status
from lopro.certificates.emptiness import without_remnants
from lopro.certificates.programs import ProgramProof
from lopro.certificates.tolerances import Scale, Target
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
from lopro.linalg.dense import Array, norm
from lopro.linalg.eigenvalues import negative_curvature
from lopro.maps import NumPyMap, SparseMap
from lopro.newton.bounds import relative_violation
from lopro.newton.bounds.lower import reach_units
from lopro.newton.problem import Composite
from lopro.newton.quadratic_form import QuadraticForm
from lopro.newton.rays import farkas_of_rows, ray_of_rows
from lopro.newton.smooth import Image
from lopro.newton.solve import prove

__all__ = ["NotConvex", "program_composite", "solve_program"]

#: Units of variables that differ by more than the digits which residuals of 1e-10 leave of the smallest ones.
_SPREAD = 1e6
#: Statuses whose multipliers are none of a contradiction: what was found before the time was up is no ray.
_NO_RAY = (AnswerStatus.SOLVED, AnswerStatus.INACCURATE, AnswerStatus.TIME)
#: Residuals required of the engines.
_RESIDUAL = 1e-10


class NotConvex(ValueError):
    """The quadratic part is indefinite, beyond rounding; ``direction`` proves it."""

    def __init__(self, direction: object) -> None:
        super().__init__("P: not positive semidefinite, the program is not convex")
        self.direction = direction


def solve_program(
    program: QuadraticProgram,
    tol: float = 1e-6,
    feasibility: float = FEASIBLE,
    scale: Scale = 0.0,
    length: Callable[[], float] = lambda: 0.0,
    seconds: float | None = None,
    convex: bool = False,
    engines: Sequence[Engine] = (),
    problem: Callable[[], Composite] | None = None,
    split: Callable[[Array, Array], Image] = lambda rows, box: (rows, box),
    proof: ProgramProof | None = None,
    size: int | None = None,
) -> Outcome:
    """Solve a quadratic or linear program by the engine that fits, and prove its answer.

    Where the proof fails, or an engine is not available, the next one runs; the best outcome is returned.

    Parameters
    ----------
    program : QuadraticProgram
        What to solve.
    tol, feasibility, scale : float
        As for `lopro.newton.prove`; the scale may be a callable, as for `lopro.certificates.Target`.
    length : callable
        Gives the length there; called where a bound loses with the distance.
    seconds : float, optional
        Time limit.
    convex : bool
        Whether it is known already that the quadratic part is positive semidefinite.
    engines : sequence of engines
        Those to run, in this order; by default those that fit.
    problem, split : callables
        The problem that answers are proved for, made where the data of the program do not suffice, and
        what makes its multipliers of those of the rows and of the box; by default the program itself.
    proof : ProgramProof, optional
        Proves answers from the data alone where these suffice; by default nothing is proved so.
    size : int, optional
        Number of variables of the problem, which are the first ones of the program; by default all.

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
    >>> from lopro.newton.programs import solve_program
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
    problem = problem or functools.cache(functools.partial(program_composite, program))
    best: Outcome | None = None
    excluded: Outcome | None = None
    unavailable: EngineUnavailable | None = None
    asked = False
    for engine, units in _calls(program, engines or engines_for(program)):
        left = None if seconds is None else max(0.01, deadline.left)
        try:
            answer = units.back(engine(units.program, _RESIDUAL, left))
        except EngineUnavailable as error:
            unavailable = unavailable or error
            continue
        asked = True
        claims = answer.status.empty or answer.status.unbounded
        x, v = answer.x[:size], split(answer.rows, answer.box)
        if proof is not None and answer.finite and not claims:
            at_once = proof.outcome(x, answer.rows[: len(proof.upper)], v)
            far = 0.0 if at_once is None or at_once.bound.flat else length()
            if at_once is not None and at_once.proves(tol, feasibility, scale, far):
                return dataclasses.replace(at_once, status=Status.CONVERGED)
        found = _without_solution(program, problem, answer)
        if found is not None and found.status is Status.UNBOUNDED:
            found = _from_a_point(program, found, None if seconds is None else deadline.left)
        if found is not None and found.status is not Status.STOPPED:
            return found
        if found is not None and isinstance(found.certificate, Emptiness):
            excluded = _farther(excluded, found)
        if answer.finite and not claims:
            accuracy = tol, feasibility, Target(tol, scale).scale, length()
            convexity = None if proof is None else proof.convexity
            found = prove(problem(), x, v, *accuracy, convexity, lambda: deadline.passed)
            if found.status is Status.CONVERGED:
                return found
            best = found if best is None or found.better(best, feasibility, length()) else best
        if deadline.passed:
            break
    if unavailable is not None and not asked:
        raise unavailable
    best = best or _unproved(problem(), Status.STOPPED)
    if excluded is None or best.violation <= feasibility:
        return best
    return dataclasses.replace(best, certificate=excluded.certificate, ray=excluded.ray)


def _farther(one: Outcome | None, other: Outcome) -> Outcome:
    """Return the outcome that excludes points within the larger radius."""
    if one is None:
        return other
    assert isinstance(one.certificate, Emptiness) and isinstance(other.certificate, Emptiness)
    return one if one.certificate.radius >= other.certificate.radius else other


@dataclass(frozen=True)
class _ColumnUnits:
    """A program in which variable j is counted in multiples of ``sizes[j]``, powers of two; of 1 for None."""

    program: QuadraticProgram
    sizes: Array | None

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
        if self.sizes is None:
            return answer
        return dataclasses.replace(answer, x=answer.x * self.sizes, box=answer.box / self.sizes)


def _calls(
    program: QuadraticProgram, engines: Sequence[Engine]
) -> Iterator[tuple[Engine, _ColumnUnits]]:
    """Yield the engines, and again with units of single variables where these differ by much."""
    plain = _ColumnUnits(program, None)
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


def program_composite(program: QuadraticProgram) -> Composite:
    """Return a program as the Newton method and the bounds take it: rows first, then the box."""
    A = scipy.sparse.csr_array(program.A) if program.A.shape[0] == 0 else program.A
    kind = SparseMap if scipy.sparse.issparse(A) else NumPyMap
    rows = Term(Interval(program.lower, program.upper), kind(A, "A"))
    box = Term(Interval(program.least, program.most))
    return Composite(QuadraticForm(program.P, program.q, program.constant), [rows, box])


def _unproved(problem: Composite, status: Status) -> Outcome:
    """Return the outcome of a run that has no point to show."""
    zero = np.zeros(problem.size)
    v, bound = tuple(np.zeros(t.size) for t in problem.terms), Bound.everywhere(-math.inf)
    outside = relative_violation(problem, zero)
    return Outcome(status, zero, v, problem.value(zero), bound, 0.0, outside, 0)


def _without_solution(
    program: QuadraticProgram, problem: Callable[[], Composite], answer: Answer
) -> Outcome | None:
    """Return what the vectors of an answer prove: EMPTY, UNBOUNDED given a feasible point, or a radius.

    The outcome of a set that is proved to be empty within a radius only has the status STOPPED.
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
            outcome = _unproved(problem(), status)
            return dataclasses.replace(outcome, certificate=emptiness, ray=y)
    if answer.status.unbounded and norm(answer.x) > 0.0:
        for v in without_remnants(answer.x / norm(answer.x)):
            d = ray_of_rows(program.P, program.A, program.lower, program.upper, box, v)
            descent = check_descent(program.P, program.q, rows, d)
            if descent.proved:
                outcome = _unproved(problem(), Status.UNBOUNDED)
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


def _from_a_point(program: QuadraticProgram, found: Outcome, seconds: float | None) -> Outcome:
    """Return a ray of descent with a feasible point that it begins at; without one it proves nothing.

    The program may be empty: then that is returned.
    """
    flat = dataclasses.replace(program, P=None, q=0.0 * program.q, constant=0.0)
    point = solve_program(flat, 1.0, seconds=seconds)
    x = point.x[: len(found.x)]
    if point.status is Status.INFEASIBLE:
        return dataclasses.replace(point, x=x)
    problem = program_composite(program)
    begins = begins_a_ray(point.violation, point.x, reach_units(problem))
    status = Status.UNBOUNDED if begins else Status.STOPPED
    return dataclasses.replace(
        found, status=status, x=x, fun=problem.value(point.x), violation=point.violation
    )
