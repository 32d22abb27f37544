"""Conic programs solved by an engine, with proofs of its answers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import scipy  # parts of it load when first used

from lopro.certificates import (
    FEASIBLE,
    NOISE,
    Bound,
    Emptiness,
    Violation,
    begins_a_ray,
    exclude_cones,
)
from lopro.certificates.certificate import Outcome, Status
from lopro.certificates.emptiness import without_remnants
from lopro.core.deadline import Deadline, OutOfTime, current_deadline
from lopro.core.real_vectors import Vector, powers_of_two
from lopro.engines import Answer, AnswerStatus, ConeProgram, solve_cones
from lopro.engines.cone_bound import ConicData, conic_bound, repaired
from lopro.engines.cone_points import (
    falling_ray,
    lowered,
    made_feasible,
    violation,
    violation_charge,
)
from lopro.engines.far_points import solve_far_out

__all__ = ["solve_conic"]

#: Accuracy requested from the engine: with 1e-9 the iterations of ``python -m benchmarks.constants engines``
#: are 6 % fewer, with 1e-11 15 % more, and the same programs are certified.
_ACCURACY = 1e-10

#: Largest number of further solves, with the residuals of the last answer added to the right-hand sides.
#: CBLIB's sched_50_50_orig: a gap of 1.9e-6, then 4.9e-6, 2.9e-7 and 7.5e-8, at 0.9 s each.
_CORRECTIONS = 3

#: Multipliers, the bound that they prove, and the charge for the violation of the point.
_Proof: TypeAlias = "tuple[Vector, Bound, float]"


def solve_conic(data: ConicData, tol: float = 1e-6, seconds: float | None = None) -> Outcome:
    """Solve a conic program by Clarabel and prove the answer.

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
    >>> from lopro.engines.cone_bound import ConicData
    >>> from lopro.engines.proved_cones import solve_conic
    >>> from lopro.engines.cones import SecondOrder
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
    ('CONVERGED', -5.0, array([-0.6, -0.8]))
    """
    with Deadline(seconds).active():
        try:
            return _by_clarabel(data.merged(), tol)
        except OutOfTime:
            return Outcome(Status.STOPPED, 0.0 * data.q, 0.0 * data.b)


def _by_clarabel(data: ConicData, tol: float) -> Outcome:
    answer = _answer_of(data, data.P, data.q, data.b)
    if answer.status.empty:
        excluded = _excluded(data, answer.rows, answer.iterations)
        if excluded.status is Status.INFEASIBLE:
            return excluded
        answer = _answer_of(data, data.P, data.q, data.b, answer)
        if answer.status.empty:
            again = _excluded(data, answer.rows, answer.iterations)
            return again if again.status is Status.INFEASIBLE else excluded
    x, z, status = answer.x, answer.rows, answer.status
    ray = falling_ray(data, x) if status.unbounded else None
    if ray is not None:
        # A ray of descent proves unboundedness only if it begins at a feasible point.
        n = len(data.q)
        point = _answer_of(data, scipy.sparse.csr_array((n, n)), np.zeros(n), data.b)
        if point.status.empty:
            return _excluded(data, point.rows, point.iterations)
        outside = violation(data, point.x).relative if point.finite else math.inf
        if begins_a_ray(outside, point.x, data.reach_units):
            return Outcome(Status.UNBOUNDED, ray, z, steps=answer.iterations)
    if not answer.finite or status.unbounded:
        return Outcome(Status.STOPPED, x, z, steps=answer.iterations)
    return _corrected(data, tol, answer)


def _corrected(data: ConicData, tol: float, answer: Answer) -> Outcome:
    """Return the outcome of an answer, or of the answer for sides shifted by the residuals of the engine.

    The slacks ``s`` of an engine that stops early are in the cones, but differ from the slacks ``b - A x`` of
    its point. With ``b - A x - s`` added to the sides, the engine leaves a similar residual, so that the
    slacks of the new point are close to the cones.
    """
    best, sides = _proved(data, tol, answer), data.b
    for _ in range(_CORRECTIONS):
        ended = best.status is not Status.STALLED or current_deadline().passed
        if ended or answer.status is AnswerStatus.SOLVED:
            break
        sides = sides + (data.b - data.A @ answer.x - answer.slacks)
        if not np.isfinite(sides).all():
            break
        answer = _answer_of(data, data.P, data.q, sides)
        if not answer.finite or answer.status.empty or answer.status.unbounded:
            break
        found = _proved(data, tol, answer)
        best = replace(found if _closer(found, best) else best, steps=best.steps + found.steps)
    return best


def _closer(one: Outcome, other: Outcome) -> bool:
    """Whether an outcome has the smaller gap, or, if one is infeasible, the smaller violation."""
    if max(one.violation, other.violation) > FEASIBLE:
        return one.violation < other.violation
    return one.gap < other.gap


def _proved(data: ConicData, tol: float, answer: Answer) -> Outcome:
    """Return the outcome with what the point and the multipliers of an answer prove."""
    x, z = answer.x, answer.rows
    near, off = made_feasible(data, x)
    low = lowered(data, near)
    least = violation(data, low)
    if least.relative <= max(off.relative, FEASIBLE):
        near, off = low, least

    def proof(v: Vector, multipliers: Vector) -> _Proof:
        return (
            multipliers,
            conic_bound(data, v, multipliers),
            violation_charge(data, near, multipliers),
        )

    def proofs() -> Iterator[_Proof]:
        yield proof(x, data.inside(z))
        with suppress(OutOfTime):  # the bound is then that of the unrepaired multipliers
            yield proof(*repaired(data, x, z, answer.slacks))

    return _judged(data, tol, near, off, answer.iterations, proofs())


def _answer_of(
    data: ConicData, P: Any, q: Vector, b: Vector, unproved: Answer | None = None
) -> Answer:
    """Return Clarabel's answer for this objective and these sides over the rows and cones of a program.

    The rows are divided by powers of two, which is exact, to have comparable sizes, so that the tolerances
    mean the same for each. After an ``unproved`` answer that the program is infeasible, the variables are in
    units of distant points.
    """
    cones = [cone for cone, _ in data.cones]
    sizes = _row_sizes(data)
    A = scipy.sparse.diags_array(1.0 / sizes) @ data.A
    program = ConeProgram(P, q, A, b / sizes, cones)
    if unproved is None:
        answer = solve_cones(program, _ACCURACY)
    else:
        answer = solve_far_out(program, _ACCURACY, replace(unproved, rows=unproved.rows * sizes))
    return replace(answer, rows=answer.rows / sizes, slacks=answer.slacks * sizes)


def _judged(
    data: ConicData, tol: float, x: Vector, outside: Violation, steps: int, proofs: Iterator[_Proof]
) -> Outcome:
    """Return the outcome of a point with the first bound that suffices, else with the largest bound.

    The last bound has no multipliers: bounds of the variables alone may determine the least value.
    """
    Px = data.P @ x
    fun = float(x @ (0.5 * Px + data.q))
    size = abs(0.5 * float(x @ Px)) + float(np.abs(data.q * x).sum())
    allowed = max(tol * max(size, abs(fun)), NOISE * _typical_value(data))
    length, lower, least = _length(data), -math.inf, math.inf
    for z, bound, charge in _all_proofs(data, x, proofs):
        if not data.P.nnz and not data.q.any():  # every point minimises the objective
            z, charge = 0.0 * z, 0.0
        value = bound.around(x, length)
        if math.isinf(least) or charge - value < least:
            best, lower, least = (z, bound, charge), value, charge - value
        if fun + least <= allowed:
            break
    z, bound, charge = best
    radius = bound.radius(x, length)
    proved = outside.relative <= FEASIBLE and fun + charge - lower <= allowed
    unproved = Status.STOPPED if current_deadline().passed else Status.STALLED
    status = Status.CONVERGED if proved else unproved
    return Outcome(
        status, x, z, fun, Bound(lower, np.zeros(0), x, limit=radius), charge, outside.relative, steps,
        absolute_violation=outside.absolute, unit=max(size, allowed / tol),
    )  # fmt: skip


def _all_proofs(data: ConicData, x: Vector, proofs: Iterator[_Proof]) -> Iterator[_Proof]:
    for proof in proofs:
        yield proof
    z, _, charge = proof
    none = conic_bound(data, x, 0.0 * z)
    if none.flat:
        yield z, none, charge


def _length(data: ConicData) -> float:
    """Return a typical length of the variables, from their units; 1 if the data give none."""
    return float(np.linalg.norm(data.reach_units.known)) or 1.0


def _typical_value(data: ConicData) -> float:
    """Return the sum of the absolute terms of the objective at a point of typical size."""
    x = data.reach_units.known
    return 0.5 * float(x @ (abs(data.P) @ x)) + float(np.abs(data.q) @ x)


def _excluded(data: ConicData, z: Vector, iterations: int) -> Outcome:
    """Return the outcome with the infeasibility that multipliers prove, everywhere or within a radius."""
    n = len(data.q)
    feasibility = ConicData(scipy.sparse.csr_array((n, n)), np.zeros(n), data.A, data.b, data.cones)
    best = Emptiness(0.0, 0.0)
    for trial in without_remnants(z):
        # With equal slacks the weights of the multipliers are proportional to their sizes.
        _, trial = repaired(feasibility, np.zeros(n), trial, np.ones(len(z)))
        found = exclude_cones(data.A, data.b, trial)
        if found.proved:
            return Outcome(Status.INFEASIBLE, np.zeros(n), trial, steps=iterations)
        best = found if found.radius > best.radius else best
    return Outcome(Status.STOPPED, np.zeros(n), z, steps=iterations, certificate=best)


def _row_sizes(data: ConicData) -> Vector:
    """Return the power of two nearest to the largest entry of each row, or of all rows of its cone."""
    largest = abs(data.A).max(axis=1).toarray().ravel() if data.A.nnz else np.zeros(len(data.b))
    together = np.zeros(int(data.groups.max(initial=-1)) + 1)
    np.maximum.at(together, data.groups, largest)
    sizes = together[data.groups]
    return powers_of_two(sizes)
