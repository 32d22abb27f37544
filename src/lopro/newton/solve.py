"""Solve a composite problem and prove the answer, or prove that it has no solution."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence

from lopro.certificates import FEASIBLE, DescentRay, Emptiness, begins_a_ray
from lopro.certificates.certificate import Outcome, Status
from lopro.core.deadline import OutOfTime
from lopro.linalg.dense import Array
from lopro.newton.bounds import (
    lower_bound,
    made_feasible,
    relative_violation,
    violation_charge,
    within_bounds,
)
from lopro.newton.bounds.lower import reach_units
from lopro.newton.equilibrated import Equilibrated
from lopro.newton.inner import UnboundedBelow
from lopro.newton.multipliers import OuterIterate, Settings, iterate, never
from lopro.newton.problem import Composite
from lopro.newton.quadratic_form import QuadraticForm
from lopro.newton.rays import descent_ray, farkas_multipliers
from lopro.newton.systems import SingularSystem

__all__ = ["Outcome", "Status", "outcomes", "prove", "solve"]

#: Refinements solve an inner problem to rounding, with penalties too small to amplify it.
_REFINING = Settings(stiffness=1.0, growth=1.0, inner=0.0, max_steps=50)
#: Maximum number of refinements: 0 takes 9 % fewer steps in ``python -m benchmarks.constants newton``, 40
#: 16 % more.
_REFINEMENTS = 4
#: Outer steps after which certificates of emptiness and unboundedness are computed, which is expensive.
_CHECKS = frozenset(2**k for k in range(1, 20))


def _outcome(
    problem: Composite, x: Array, v: Sequence[Array], convexity: float, status: Status, steps: int
) -> Outcome:
    bound = lower_bound(problem, x, v, convexity)
    # Clipping satisfies bounds of variables exactly.
    x = within_bounds(problem, x)
    charge = violation_charge(problem, x, v)
    violation = relative_violation(problem, x)
    return Outcome(status, x, tuple(v), problem.value(x), bound, charge, violation, steps)


def solve(
    problem: Composite,
    tol: float = 1e-6,
    feasibility: float = FEASIBLE,
    scale: float = 0.0,
    length: float = 0.0,
    x0: Array | None = None,
    multipliers0: Sequence[Array] | None = None,
    settings: Settings | None = None,
    stopped: Callable[[], bool] = never,
) -> Outcome:
    """Minimise until the gap is proved.

    Parameters
    ----------
    problem : Composite
        The problem.
    tol : float
        The gap to prove, relative to the value.
    feasibility : float
        The relative violation that is allowed.
    scale : float
        The least value that the gap is relative to; optimal values of zero require one.
    length : float
        A typical norm of x: the least length that the radius of a bound is compared with (`FARTHER`).
    x0, multipliers0 : arrays, optional
        The starting point.
    settings : Settings, optional
        Constants of the method.
    stopped : callable
        Returns whether time is up.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.functions.atoms import Interval, Linear
    >>> from lopro.functions.term import Term
    >>> from lopro.maps import linear_map
    >>> from lopro.newton import Composite, solve
    >>> triangle = Interval([0.0, 0.0, -np.inf], [np.inf, np.inf, 1.0])
    >>> A = linear_map([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> cost = Term(Linear(np.array([-1.0, -2.0])))
    >>> outcome = solve(Composite.of([cost, Term(triangle, A)], 2))
    >>> outcome.status.name, round(outcome.fun, 6), (outcome.x.round(6) + 0.0).tolist()
    ('CONVERGED', -2.0, [0.0, 1.0])
    """
    last: Outcome | None = None
    for last in outcomes(
        problem, tol, feasibility, scale, length, x0, multipliers0, settings, stopped
    ):
        if last.status is not Status.STOPPED:
            return last
    if last is None:
        raise OutOfTime("stopped before the first step")
    return last


def outcomes(
    problem: Composite,
    tol: float = 1e-6,
    feasibility: float = FEASIBLE,
    scale: float = 0.0,
    length: float = 0.0,
    x0: Array | None = None,
    multipliers0: Sequence[Array] | None = None,
    settings: Settings | None = None,
    stopped: Callable[[], bool] = never,
) -> Iterator[Outcome]:
    """Yield an outcome with a proof whenever the iterates are nearly optimal, and the last one at the end.

    The parameters are those of `solve`. The caller stops at an outcome that suffices.
    """
    scaled = Equilibrated.of(problem)
    if scaled is not None:
        start = None if x0 is None else x0 / scaled.sizes
        first = None if multipliers0 is None else scaled.multipliers(multipliers0)
        rest = settings, stopped
        yield from map(
            scaled.back,
            outcomes(scaled.problem, tol, feasibility, scale, length, start, first, *rest),
        )
        return
    accuracy = tol, feasibility, scale, length
    states = iterate(problem, x0, multipliers0, settings, stopped)
    yield from _outcomes_of(problem, states, accuracy, stopped)


def _outcomes_of(
    problem: Composite,
    states: Iterator[OuterIterate],
    accuracy: tuple[float, float, float, float],
    stopped: Callable[[], bool],
) -> Iterator[Outcome]:
    """Yield the outcomes of iterates in the units of the problem."""
    _, feasibility, *_ = accuracy
    convexity: float | None = None
    before: OuterIterate | None = None
    state: OuterIterate | None = None
    excluded: Outcome | None = None
    yielded = False
    for rounds, state in enumerate(states):
        yielded = state.violation <= feasibility and state.stationarity <= math.sqrt(feasibility)
        if yielded:
            convexity = problem.smooth.strong_convexity() if convexity is None else convexity
            x, v = state.point.x, state.multipliers
            outcome = prove(problem, x, v, *accuracy, convexity, stopped)
            yield dataclasses.replace(outcome, steps=state.steps + outcome.steps)
        elif before is not None and rounds in _CHECKS:
            claim = _without_solution(problem, before, state, feasibility)
            if claim is not None and claim.status is not Status.STOPPED:
                yield claim
            excluded = claim or excluded
        before = state
    if state is not None and not yielded:
        x, v = state.point.x, state.multipliers
        last = _outcome(problem, x, v, convexity or 0.0, Status.STOPPED, state.steps)
        if excluded is not None and excluded.certificate is not None:
            last = _with(last, excluded.certificate, excluded.ray)
        yield last


def prove(
    problem: Composite,
    x: Array,
    multipliers: Sequence[Array],
    tol: float = 1e-6,
    feasibility: float = FEASIBLE,
    scale: float = 0.0,
    length: float = 0.0,
    convexity: float | None = None,
    stopped: Callable[[], bool] = never,
) -> Outcome:
    """Return the outcome that a point and multipliers prove, refined where necessary.

    A refinement minimises the augmented Lagrangian to rounding. The gradient of the Lagrangian is then
    rounding, too, in the range of the active rows and of the Hessian of ``f``.

    Parameters
    ----------
    problem : Composite
        The problem.
    x, multipliers : arrays
        An approximate solution, of any method or engine.
    tol, feasibility, scale, length : float
        The relative gap and violation to reach, the least value that the gap is relative to, and the least
        length that distances are relative to.
    convexity : float, optional
        A proved constant of strong convexity; computed if it is None.
    stopped : callable
        Returns whether time is up.
    """
    mu = problem.smooth.strong_convexity() if convexity is None else convexity
    best: Outcome | None = None
    for point, u, steps in _candidates(problem, x, multipliers, stopped):
        now = _outcome(problem, point, u, mu, Status.STOPPED, steps)
        if now.violation > feasibility:
            now = _corrected(problem, now, feasibility)
        if best is not None and best.violation <= feasibility:
            now = _at_better_point(problem, now, best)
        best = now if best is None or now.better(best, feasibility, length) else best
        if best.proves(tol, feasibility, scale, length):
            return dataclasses.replace(best, status=Status.CONVERGED)
        # The proof with the given multipliers does not depend on units, but refinements compare norms.
        scaled = Equilibrated.of(problem) if steps == 0 else None
        if scaled is not None:
            start, v = x / scaled.sizes, scaled.multipliers(multipliers)
            rest = tol, feasibility, scale, length, None, stopped
            refined = scaled.back(prove(scaled.problem, start, v, *rest))
            if refined.better(best, feasibility, length):
                return refined
    assert best is not None
    return best


def _candidates(
    problem: Composite, x: Array, multipliers: Sequence[Array], stopped: Callable[[], bool]
) -> Iterator[tuple[Array, Sequence[Array], int]]:
    """Yield the given point, multipliers of 0 (bounds may suffice for a linear f), then refinements."""
    yield x, multipliers, 0
    f = problem.smooth
    if isinstance(f, QuadraticForm) and f.P is None and not problem.norms:
        yield x, [0.0 * v for v in multipliers], 0
    try:
        refining = iterate(problem, x, multipliers, _REFINING, stopped)
        for _, refined in zip(range(_REFINEMENTS), refining, strict=False):
            yield refined.point.x, refined.multipliers, refined.steps
    except (SingularSystem, UnboundedBelow, OutOfTime):
        return  # what has been proved so far remains


def _corrected(problem: Composite, outcome: Outcome, feasibility: float) -> Outcome:
    """Return the outcome with a point of smaller violation; bound and multipliers remain."""
    x = made_feasible(problem, outcome.x, feasibility)
    return dataclasses.replace(
        outcome,
        x=x,
        fun=problem.value(x),
        charge=violation_charge(problem, x, outcome.multipliers),
        violation=relative_violation(problem, x),
    )


def _at_better_point(problem: Composite, now: Outcome, other: Outcome) -> Outcome:
    """Return the outcome with the point of the other if its value is lower: a bound holds for all points."""
    charge = violation_charge(problem, other.x, now.multipliers)
    if other.fun + charge >= now.fun + now.charge:
        return now
    return dataclasses.replace(
        now, x=other.x, fun=other.fun, charge=charge, violation=other.violation
    )


def _without_solution(
    problem: Composite, before: OuterIterate, after: OuterIterate, feasibility: float
) -> Outcome | None:
    """Return an outcome that proves the problem infeasible or unbounded; None if there is none.

    The status is STOPPED if the set is proved to be empty only within a radius.
    """
    x, v = after.point.x, after.multipliers
    if after.violation > 0.5 * before.violation > 0.0:
        farkas = farkas_multipliers(problem, before.multipliers, v)
        if farkas is not None and farkas[1].radius > 0.0:
            y, emptiness = farkas
            status = Status.INFEASIBLE if emptiness.proved else Status.STOPPED
            return _with(_outcome(problem, x, v, 0.0, status, after.steps), emptiness, y)
    if after.stationarity > 0.5 * before.stationarity > 0.0:
        ray = descent_ray(problem, before, after)
        if ray is not None and ray[1].proved:
            outcome = _outcome(problem, x, v, 0.0, Status.UNBOUNDED, after.steps)
            outcome = _corrected(problem, outcome, feasibility)
            if begins_a_ray(outcome.violation, outcome.x, reach_units(problem)):
                return _with(outcome, ray[1], ray[0])
    return None


def _with(outcome: Outcome, certificate: Emptiness | DescentRay, ray: object) -> Outcome:
    return dataclasses.replace(outcome, certificate=certificate, ray=ray)
