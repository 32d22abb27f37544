"""Conic programs solved by an engine, with a proof by us."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import cast

import numpy as np
import scipy  # parts of it load when first used

from lopro.certificates import FARTHER, FEASIBLE, Violation, of_rows
from lopro.certificates.violation import magnitudes
from lopro.cones.bound import ConicData, conic_bound, repaired
from lopro.cones.by_clarabel import run_clarabel
from lopro.cones.cones import Nonnegative, Zero
from lopro.core.deadline import Deadline
from lopro.core.real_vectors import Vector
from lopro.newton.engines import NotConvex, QuadraticProgram, solve_program
from lopro.newton.solve import Status as ProgramStatus

__all__ = ["ConicOutcome", "ConicStatus", "solve_conic"]

#: What the engine is asked for.
_ACCURACY = 1e-10


class ConicStatus(enum.Enum):
    """How a conic program ended."""

    PROVED = "the gap is proved"
    UNPROVED = "a point, but the gap is not proved"
    INFEASIBLE = "multipliers prove that there is no feasible point"
    UNBOUNDED = "the objective falls without end along a ray"
    STOPPED = "there is no answer within the limits"


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
        return _by_clarabel(data, tol)


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
        return None
    radius = FARTHER * max(1.0, float(np.linalg.norm(outcome.x)))
    lower_bound = outcome.bound.within(radius) - outcome.charge
    rows = np.asarray(outcome.multipliers[0])
    everywhere = outcome.bound.slope == 0.0
    return ConicOutcome(
        ConicStatus.PROVED, outcome.x, rows, outcome.fun, lower_bound, outcome.violation,
        math.inf if everywhere else radius, outcome.steps,
    )  # fmt: skip


def _by_clarabel(data: ConicData, tol: float) -> ConicOutcome:
    blocks = [block for cone, _ in data.cones for block in cone.blocks()]
    # In units of single rows, so that tolerances mean the same for each; powers of two round nothing.
    sizes = _row_sizes(data)
    A = scipy.sparse.diags_array(1.0 / sizes) @ data.A
    answer = run_clarabel(data.P, data.q, A, data.b / sizes, blocks, _ACCURACY, True)
    x, z, slack = answer.x, answer.z / sizes, answer.s * sizes
    name = str(answer.status)
    if "PrimalInfeasible" in name and proves_empty(data, z):
        return ConicOutcome(ConicStatus.INFEASIBLE, x, z, iterations=answer.iterations)
    if "DualInfeasible" in name and proves_unbounded(data, x):
        return ConicOutcome(ConicStatus.UNBOUNDED, x, z, iterations=answer.iterations)
    if not (np.isfinite(x).all() and np.isfinite(z).all()) or "Infeasible" in name:
        return ConicOutcome(ConicStatus.STOPPED, x, z, iterations=answer.iterations)
    v, multipliers = repaired(data, x, z, slack)
    bound = conic_bound(data, v, multipliers)
    radius = FARTHER * max(1.0, float(np.linalg.norm(x)))
    lower = bound.within(radius)
    Px = data.P @ x
    fun = float(x @ (0.5 * Px + data.q))
    size = abs(0.5 * float(x @ Px)) + float(np.abs(data.q * x).sum())
    outside = violation(data, x)
    proved = outside.relative <= FEASIBLE and fun - lower <= tol * max(size, abs(fun))
    status = ConicStatus.PROVED if proved else ConicStatus.UNPROVED
    return ConicOutcome(
        status, x, multipliers, fun, lower, outside.relative, radius, answer.iterations
    )


def _row_sizes(data: ConicData) -> Vector:
    """Return the powers of two nearest to the largest entries of rows, of all rows of a cone together."""
    largest = abs(data.A).max(axis=1).toarray().ravel() if data.A.nnz else np.zeros(len(data.b))
    found = []
    for (cone, _), own in zip(data.cones, data.blocks(largest), strict=True):
        apart = isinstance(cone, Zero | Nonnegative)
        sizes = own if apart else np.full(len(own), own.max(initial=0.0))
        found.append(np.exp2(np.rint(np.log2(np.where(sizes > 0.0, sizes, 1.0)))))
    return np.concatenate(found) if found else np.zeros(0)


def violation(data: ConicData, x: Vector) -> Violation:
    """Return how far slacks are outside of their cones: rows one by one, other cones by their own rows."""
    slack = data.b - data.A @ x
    worst, start = Violation(), 0
    for (cone, size), own in zip(data.cones, data.blocks(slack), strict=True):
        rows = slice(start, start + size)
        start += size
        if isinstance(cone, Zero | Nonnegative):
            excess = np.abs(own) if isinstance(cone, Zero) else -own
            found = of_rows(data.A[rows], x, excess, data.b[rows], lambda: data.units)
        else:
            distance = cone.outside(own)
            compared = _size_of_cone(data, rows, x) if distance > 0.0 else 1.0
            found = Violation(distance / compared, distance)
        worst = worst.and_also(found)
    return worst


def _size_of_cone(data: ConicData, rows: slice, x: Vector) -> float:
    """Return what the rows of a cone compare, together."""
    A, b = data.A[rows], data.b[rows]
    w = np.abs(x) if b.any() else np.maximum(np.abs(x), data.units.at(x))
    return float(np.linalg.norm(magnitudes(A, np.arange(len(b)), w) + np.abs(b))) or math.inf


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
    return fall > 0.0 and bend <= 1e-7 * fall and violation(direction, ray).relative <= 1e-7
