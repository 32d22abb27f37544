"""Minimising a penalised objective until its slope is small: what all multiplier methods repeat."""

from __future__ import annotations

from collections.abc import Callable

from lopro._util.arrays import Array, norm
from lopro.methods.inner import AcceleratedGradient, Backtracking
from lopro.methods.inner.accelerated import AcceleratedState
from lopro.penalties.penalised import Penalised
from lopro.problem import Problem
from lopro.protocol import Workbench
from lopro.protocol.certificates import solution_radius

__all__ = ["first_stiffness", "minimised", "reach"]


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
        size = reach(bench.counted, state.x, fun)
    accuracy = wanted(fun)
    for _ in range(rounds):
        if state.slope * size <= accuracy or bench.exhausted:
            break
        state = bench.advance(algorithm, F, state, steps)
    return state


def reach(problem: Problem, x: Array, fun: float) -> float:
    """Return how far a solution can be, or a guess of it."""
    radius = solution_radius(problem, fun)
    return 1.0 + norm(x) if radius is None else radius.value


def first_stiffness(bench: Workbench, x: Array) -> float:
    """Return the stiffness at which a violation of the size of ``x`` balances the slope of f."""
    g = bench.objective.subgradient(x)
    length = norm(g)
    if length == 0.0:
        return 1.0
    square = sum(norm(z) ** 2 for z in bench.constraint.image(g / length))
    return length / (1.0 + norm(x)) / square if square > 0.0 else 1.0
