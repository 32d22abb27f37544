"""Minimising a penalised objective until its slope is small: what all multiplier methods repeat."""

from __future__ import annotations

import math
from collections.abc import Callable

from lopro.constraints import Constraint
from lopro.core.arrays import Array, diagonal_direction, eps, norm
from lopro.errors import MissingCapabilityError
from lopro.methods.inner import AcceleratedGradient, Backtracking
from lopro.methods.inner.accelerated import AcceleratedState
from lopro.penalties.penalised import Penalised
from lopro.problem import Problem
from lopro.protocol import Workbench
from lopro.protocol.certificates import solution_radius

#: Rounding errors of a gradient, in units of rounding of its terms.
_ROUNDINGS = 4.0
#: Looks in a row without a smaller slope, after which gradients are taken to be noise (differences of values
#: in double precision are, from 1e-8 on): of 25 steps each, far more than a restart takes to come down.
_PATIENCE = 40

__all__ = ["check_penalties", "first_stiffness", "minimised", "reach"]


def check_penalties(problem: Problem, method: str) -> None:
    """Raise unless the objective and every member of the constraint can be penalised as these methods do."""
    AcceleratedGradient().check(problem)
    for member in problem.constraint.members():
        if not (member.smooth or member.has_image_set):
            raise MissingCapabilityError(
                f"{method} needs constraints that are smooth or of the form M x in Q; "
                f"{member!r} is neither. Use lopro.LoPGD()"
            )


def minimised(
    bench: Workbench,
    F: Penalised,
    x: Array,
    L: float | None,
    wanted: Callable[[float], float],
    *,
    steps: int,
    rounds: int = 200,
) -> AcceleratedState:
    """Minimise ``F`` until its slope, times the size of a solution, is below what is wanted.

    Parameters
    ----------
    bench, F, x, L
        Where to run, what to minimise, from where, with which first smoothness constant.
    wanted : callable
        The accuracy for an objective value ``f(x)``, in units of the objective.
    steps, rounds : int
        Steps between two looks, and how many looks there may be.
    """
    algorithm = AcceleratedGradient(step_rule=Backtracking(L), restart=True)
    state: AcceleratedState = bench.minimize(algorithm, F, x, steps)
    with bench.observe():
        fun = float(bench.objective.value(state.x))
        size = reach(bench, state.x, fun)
    accuracy = wanted(fun)
    least, idle = math.inf, 0
    for _ in range(rounds):
        # A slope is a difference of gradients of about L |x|, and known no better than their rounding.
        rounding = _ROUNDINGS * eps(state.x) * state.L * norm(state.x)
        if state.slope * size <= accuracy or state.slope <= rounding or bench.exhausted:
            break
        idle = 0 if state.slope < least else idle + 1
        least = min(least, state.slope)
        if idle > _PATIENCE:
            break
        state = bench.advance(algorithm, F, state, steps)
    return state


def reach(bench: Workbench, x: Array, fun: float) -> float:
    """Return how far a solution can be, or a guess of it."""
    radius = solution_radius(bench.counted, fun)
    return bench.unit + norm(x) if radius is None else radius.value


def first_stiffness(bench: Workbench, x: Array) -> tuple[float, ...]:
    """Return, for each member, the stiffness at which a violation of the size of ``x`` balances f's slope."""
    size = bench.unit + norm(x)
    slope, direction = _slope_near(bench, x, size)
    if slope == 0.0:
        return (1.0,) * len(bench.constraint.members())
    return tuple(
        slope / size / gain if (gain := _squared_gain(member, x, direction, size)) > 0.0 else 1.0
        for member in bench.constraint.members()
    )


def _slope_near(bench: Workbench, x: Array, size: float) -> tuple[float, Array]:
    """Return the slope of f at ``x``, or near it where it vanishes there, and its direction."""
    for point in (x, x + size * diagonal_direction(x)):
        g = bench.objective.subgradient(point)
        length = norm(g)
        if length > 0.0:
            return length, g / length
    return 0.0, diagonal_direction(x)


def _squared_gain(member: Constraint, x: Array, direction: Array, size: float) -> float:
    """Return how much a unit step changes what the penalty of this member squares: ``M x``, or ``c(x)``."""
    if member.has_image_set:
        return sum(norm(z) ** 2 for z in member.image(direction))
    slope = norm(member.subgradient(x))
    if slope == 0.0:
        slope = norm(member.subgradient(x + size * direction))
    return slope**2
