"""Quadratic and linear programs: engines solve them, and their answers are proved from the data."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # parts of it load when first used

from lopro.certificates import FEASIBLE, Emptiness, begins_a_ray, column_units
from lopro.certificates.certificate import Outcome, Status
from lopro.certificates.programs import ProgramProof
from lopro.certificates.tolerances import Scale, Target
from lopro.core.deadline import Deadline
from lopro.engines import Answer, Engine, EngineUnavailable, QuadraticProgram, engines_for
from lopro.functions.atoms import Interval
from lopro.functions.term import Term
from lopro.linalg.dense import Array
from lopro.linalg.eigenvalues import negative_curvature
from lopro.maps import NumPyMap, SparseMap
from lopro.newton.bounds.lower import reach_units
from lopro.newton.equilibrated import scaling_factors
from lopro.newton.problem import Composite
from lopro.newton.program_rays import unproved, without_solution
from lopro.newton.quadratic_form import QuadraticForm
from lopro.newton.smooth import Image
from lopro.newton.solve import prove

__all__ = ["NotConvex", "program_composite", "solve_program"]

#: Relative residuals required of the engines, a tenth of the violation that is allowed (`FEASIBLE`). A tenth
#: and ten times as much change nothing in ``python -m benchmarks.constants newton.programs``.
_RESIDUAL = 1e-10


class NotConvex(ValueError):
    """The quadratic part is indefinite by more than rounding; ``direction`` proves it."""

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
        The program.
    tol, feasibility, scale : float
        As for `lopro.newton.prove`; the scale may be a callable, as for `lopro.certificates.Target`.
    length : callable
        Returns the length there; called if a bound decreases with the distance.
    seconds : float, optional
        Time limit.
    convex : bool
        Whether the quadratic part is known to be positive semidefinite.
    engines : sequence of engines
        The engines in the order in which they run; by default those that fit.
    problem, split : callables
        Return the problem that answers are proved for where ``proof`` fails, and its multipliers from those
        of the rows and of the box; by default the problem is the program itself.
    proof : ProgramProof, optional
        Proves answers from the data of the program; tried first.
    size : int, optional
        Number of variables of the problem, which are the first ones of the program; by default all.

    Raises
    ------
    NotConvex
        If the quadratic part is indefinite.
    EngineUnavailable
        If no engine can solve the program: none is installed, or it exceeds the memory.

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
    run = _ProgramRun(
        program, problem, split, proof, size, tol, feasibility, scale, length, seconds, deadline
    )
    unavailable: EngineUnavailable | None = None
    answered = False
    for engine, units in _calls(program, engines or engines_for(program)):
        left = None if seconds is None else max(0.01, deadline.left)
        try:
            answer = units.back(engine(units.program, _RESIDUAL, left))
        except EngineUnavailable as error:
            unavailable = unavailable or error
            continue
        answered = True
        outcome = run.evaluate(answer)
        if outcome is not None:
            return outcome
        if deadline.passed:
            break
    if unavailable is not None and not answered:
        raise unavailable
    return run.outcome()


@dataclass
class _ProgramRun:
    """The best outcome of the answers of engines to one program."""

    program: QuadraticProgram
    problem: Callable[[], Composite]
    split: Callable[[Array, Array], Image]
    proof: ProgramProof | None
    size: int | None
    tol: float
    feasibility: float
    scale: Scale
    length: Callable[[], float]
    seconds: float | None
    deadline: Deadline
    best: Outcome | None = None
    #: Its certificate excludes feasible points within the largest radius so far.
    excluded: Outcome | None = None

    def evaluate(self, answer: Answer) -> Outcome | None:
        """Return the outcome that ends the run; None if the answer proves too little."""
        solution = answer.finite and not (answer.status.empty or answer.status.unbounded)
        x, v = answer.x[: self.size], self.split(answer.rows, answer.box)
        if solution and (outcome := self._proved_from_data(answer, x, v)) is not None:
            return outcome
        outcome = without_solution(self.program, self.problem, answer)
        if outcome is not None and outcome.status is Status.UNBOUNDED:
            left = None if self.seconds is None else self.deadline.left
            outcome = _from_a_point(self.program, outcome, left)
        if outcome is not None and outcome.status is not Status.STOPPED:
            return outcome
        if outcome is not None and isinstance(outcome.certificate, Emptiness):
            self.excluded = _farther(self.excluded, outcome)
        return self._proved(x, v) if solution else None

    def _proved_from_data(self, answer: Answer, x: Array, v: Image) -> Outcome | None:
        """Return the outcome that the data of the program prove, if it satisfies the tolerances."""
        if self.proof is None:
            return None
        outcome = self.proof.outcome(x, answer.rows[: len(self.proof.upper)], v)
        length = 0.0 if outcome is None or outcome.bound.flat else self.length()
        if outcome is None or not outcome.proves(self.tol, self.feasibility, self.scale, length):
            return None
        return dataclasses.replace(outcome, status=Status.CONVERGED)

    def _proved(self, x: Array, v: Image) -> Outcome | None:
        """Return the outcome that Newton's method proves, if it satisfies the tolerances."""
        length, mu = self.length(), None if self.proof is None else self.proof.convexity
        accuracy = self.tol, self.feasibility, Target(self.tol, self.scale).scale, length
        outcome = prove(self.problem(), x, v, *accuracy, mu, lambda: self.deadline.passed)
        if outcome.status is Status.CONVERGED:
            return outcome
        if self.best is None or outcome.better(self.best, self.feasibility, length):
            self.best = outcome
        return None

    def outcome(self) -> Outcome:
        """Return the best outcome, with a certificate that excludes points where one was found."""
        best = self.best or unproved(self.problem(), Status.STOPPED)
        if self.excluded is None or best.violation <= self.feasibility:
            return best
        return dataclasses.replace(
            best, certificate=self.excluded.certificate, ray=self.excluded.ray
        )


def _farther(one: Outcome | None, other: Outcome) -> Outcome:
    """Return the outcome that excludes points within the larger radius."""
    if one is None:
        return other
    assert isinstance(one.certificate, Emptiness) and isinstance(other.certificate, Emptiness)
    return one if one.certificate.radius >= other.certificate.radius else other


@dataclass(frozen=True)
class _ColumnUnits:
    """A program whose variable j is measured in units of ``sizes[j]``, powers of two; None for units of 1."""

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
    """Yield the engines, and once more with scaled variables if their units differ widely."""
    plain = _ColumnUnits(program, None)
    for engine in engines:
        yield engine, plain
    sides = [(program.A, program.lower), (program.A, program.upper)]
    bounds = [(None, program.least), (None, program.most)]
    units = column_units([*sides, *bounds], len(program.q)).known
    sizes = scaling_factors(units)
    if sizes is not None:
        scaled = _ColumnUnits.of(program, sizes)
        for engine in engines:
            yield engine, scaled


def program_composite(program: QuadraticProgram) -> Composite:
    """Convert a program to a composite problem, whose terms are the rows and the box."""
    A = scipy.sparse.csr_array(program.A) if program.A.shape[0] == 0 else program.A
    kind = SparseMap if scipy.sparse.issparse(A) else NumPyMap
    rows = Term(Interval(program.lower, program.upper), kind(A, "A"))
    box = Term(Interval(program.least, program.most))
    return Composite(QuadraticForm(program.P, program.q, program.constant), [rows, box])


def _from_a_point(program: QuadraticProgram, found: Outcome, seconds: float | None) -> Outcome:
    """Add a feasible point, where the ray of descent begins; the status is STOPPED if none is found.

    If the program turns out to be empty, the outcome that proves it is returned.
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
