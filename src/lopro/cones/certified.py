"""Conic programs solved by an engine, with a proof by us."""

from __future__ import annotations

import enum
import math
from contextlib import suppress
from dataclasses import dataclass
from typing import cast

import numpy as np

from lopro.cones.bound import ConicData, conic_bound, repaired
from lopro.cones.cones import Nonnegative, Zero
from lopro.core.deadline import Deadline, OutOfTime, current_deadline
from lopro.core.real_vectors import Vector
from lopro.engines import AnswerStatus, ConeProgram, QuadraticProgram, solve_cones
from lopro.newton.engines import NotConvex, solve_program
from lopro.newton.solve import FARTHER
from lopro.newton.solve import Status as ProgramStatus

__all__ = ["ConicOutcome", "ConicStatus", "solve_conic"]

#: What the engine is asked for.
_ACCURACY = 1e-10
#: A point is feasible up to this share of what its rows compare.
_FEASIBLE = 1e-8


class ConicStatus(enum.Enum):
    """How a conic program ended."""

    PROVED = "the gap is proved"
    UNPROVED = "a point, but the gap is not proved"
    INFEASIBLE = "multipliers prove that there is no feasible point"
    UNBOUNDED = "the objective falls without end along a ray"
    STOPPED = "the time was up: the best point so far, or none where its value is not a number"


@dataclass(frozen=True)
class ConicOutcome:
    """A point, its multipliers, and what they prove.

    Attributes
    ----------
    status : ConicStatus
        How it ended.
    x, z : arrays
        The point and the multipliers; a ray where there is no solution.
    fun, lower_bound : float
        The value, and a lower bound of the optimal one within ``radius`` of the point.
    violation : float
        How far the slacks are outside of their cones, relative to what the rows compare.
    radius : float
        Where the bound holds.
    iterations : int
        Of the engine.
    """

    status: ConicStatus
    x: Vector
    z: Vector
    fun: float = math.nan
    lower_bound: float = -math.inf
    violation: float = math.inf
    radius: float = 0.0
    iterations: int = 0

    @property
    def gap(self) -> float:
        """What is proved: the value is at most so far above the optimal one."""
        return self.fun - self.lower_bound


def solve_conic(data: ConicData, tol: float = 1e-6, seconds: float | None = None) -> ConicOutcome:
    """Solve a conic program and prove the answer.

    Linear and quadratic programs go to the engines for these, programs with other cones to Clarabel.

    Parameters
    ----------
    data : ConicData
        The program.
    tol : float
        The gap to prove, relative to the value, or to the terms that cancel in it.
    seconds : float, optional
        Time limit.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> from lopro.cones.bound import ConicData
    >>> from lopro.cones.certified import solve_conic
    >>> from lopro.cones.cones import SecondOrder
    >>> A = scipy.sparse.csr_array(np.array([[0.0, 0.0], [-1.0, 0.0], [0.0, -1.0]]))
    >>> disc = ConicData(
    ...     scipy.sparse.csr_array((2, 2)),
    ...     np.array([3.0, 4.0]),
    ...     A,
    ...     np.array([1.0, 0, 0]),
    ...     [(SecondOrder(3), 3)],
    ... )
    >>> outcome = solve_conic(disc)
    >>> outcome.status.name, round(outcome.fun, 6), outcome.x.round(6)
    ('PROVED', -5.0, array([-0.6, -0.8]))
    """
    with Deadline(seconds).active() as deadline:
        if all(isinstance(cone, Zero | Nonnegative) for cone, _ in data.cones):
            found = _program(data, tol, None if seconds is None else deadline.left)
            if found is not None:
                return found
        try:
            return _by_clarabel(data, tol)
        except OutOfTime:
            return ConicOutcome(ConicStatus.STOPPED, 0.0 * data.q, 0.0 * data.b)


def _program(data: ConicData, tol: float, seconds: float | None) -> ConicOutcome | None:
    """Solve a quadratic or linear program; None where its engines do not prove their answer."""
    equal = np.concatenate(
        [np.full(size, isinstance(cone, Zero)) for cone, size in data.cones] or [np.zeros(0, bool)]
    )
    P = data.P if data.P.nnz else None
    lower = np.where(equal, data.b, -np.inf)
    program = QuadraticProgram.of(P, data.q, data.A, lower, data.b)
    try:
        outcome = solve_program(program, tol, seconds=seconds)
    except NotConvex:
        return None
    if outcome.status is ProgramStatus.EMPTY:
        contradiction, _ = cast("tuple[Vector, Vector]", outcome.ray)
        return ConicOutcome(ConicStatus.INFEASIBLE, outcome.x, np.asarray(contradiction))
    if outcome.status is ProgramStatus.UNBOUNDED:
        ray = np.asarray(outcome.ray)
        return ConicOutcome(ConicStatus.UNBOUNDED, ray, np.zeros(len(data.b)))
    if outcome.status is not ProgramStatus.CONVERGED:
        if not current_deadline().passed or outcome.violation > _FEASIBLE:
            return None
        rows, violation = np.asarray(outcome.multipliers[0]), outcome.violation
        return ConicOutcome(ConicStatus.STOPPED, outcome.x, rows, outcome.fun, violation=violation)
    radius = FARTHER * max(1.0, float(np.linalg.norm(outcome.x)))
    lower_bound = outcome.bound.within(radius) - outcome.charge
    rows = np.asarray(outcome.multipliers[0])
    everywhere = outcome.bound.slope == 0.0
    return ConicOutcome(
        ConicStatus.PROVED, outcome.x, rows, outcome.fun, lower_bound, outcome.violation,
        math.inf if everywhere else radius, outcome.steps,
    )  # fmt: skip


def _by_clarabel(data: ConicData, tol: float) -> ConicOutcome:
    cones = [cone for cone, _ in data.cones]
    answer = solve_cones(ConeProgram(data.P, data.q, data.A, data.b, cones), _ACCURACY)
    x, z, slack, status = answer.x, answer.rows, answer.slacks, answer.status
    if status.empty and proves_empty(data, z):
        return ConicOutcome(ConicStatus.INFEASIBLE, x, z, iterations=answer.iterations)
    if status.unbounded and proves_unbounded(data, x):
        return ConicOutcome(ConicStatus.UNBOUNDED, x, z, iterations=answer.iterations)
    if not answer.finite or status.empty or status.unbounded:
        return ConicOutcome(ConicStatus.STOPPED, x, z, iterations=answer.iterations)
    v, multipliers = x, data.inside(z)
    with suppress(OutOfTime):  # the bound is then that of the multipliers as they are
        v, multipliers = repaired(data, x, z, slack)
    bound = conic_bound(data, v, multipliers)
    radius = FARTHER * max(1.0, float(np.linalg.norm(x)))
    lower = bound.within(radius)
    Px = data.P @ x
    fun = float(x @ (0.5 * Px + data.q))
    size = abs(0.5 * float(x @ Px)) + float(np.abs(data.q * x).sum())
    violation = relative_violation(data, x)
    proved = violation <= _FEASIBLE and fun - lower <= tol * max(size, abs(fun))
    late = status is AnswerStatus.TIME or current_deadline().passed
    unproved = ConicStatus.STOPPED if late else ConicStatus.UNPROVED
    ended = ConicStatus.PROVED if proved else unproved
    return ConicOutcome(ended, x, multipliers, fun, lower, violation, radius, answer.iterations)


def relative_violation(data: ConicData, x: Vector) -> float:
    """Return the largest distance of a slack to its cone, relative to what the rows of the cone compare."""
    slack = data.b - data.A @ x
    sizes = np.abs(data.b) + np.sqrt(
        np.asarray(data.A.multiply(data.A).sum(axis=1)).ravel()
    ) * np.linalg.norm(x)
    worst = 0.0
    parts = zip(data.cones, data.blocks(slack), data.blocks(sizes), strict=True)
    for (cone, _), own, size in parts:
        # Every cone here but zero is its own dual, so moving inside measures the distance.
        inside = 0.0 * own if isinstance(cone, Zero) else cone.into_dual(own)
        largest = float(size.max(initial=0.0)) or 1.0
        worst = max(worst, float(np.linalg.norm(inside - own)) / largest)
    return worst


def proves_empty(data: ConicData, z: Vector) -> bool:
    """Whether multipliers in the dual cone contradict the rows: ``A'z`` nearly 0 and ``b'z < 0``."""
    z = data.inside(z)
    margin, residual = -float(data.b @ z), float(np.linalg.norm(data.A.T @ z))
    return margin > 0.0 and margin >= FARTHER * residual


def proves_unbounded(data: ConicData, x: Vector) -> bool:
    """Whether the objective falls along ``x``: ``q'x < 0``, ``Px`` nearly 0, ``-Ax`` in the cones."""
    length = float(np.linalg.norm(x))
    if not (math.isfinite(length) and length > 0.0):
        return False
    ray = x / length
    fall, bend = -float(data.q @ ray), float(np.linalg.norm(data.P @ ray))
    direction = ConicData(data.P, data.q, data.A, 0.0 * data.b, data.cones)
    return fall > 0.0 and bend <= 1e-7 * fall and relative_violation(direction, ray) <= 1e-7
