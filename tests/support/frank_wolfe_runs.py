"""Problems for Frank-Wolfe methods whose curvature is known, and runs that keep every iterate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
from support.theorem_checks import Recorded

import lopro
from lopro.constraints import Box, Constraint, L1Ball, Polyhedron, Simplex, Spectrahedron
from lopro.objectives import SquaredDistance
from lopro.problem import Problem

ROTATION = np.linalg.qr(np.random.default_rng(3).standard_normal((4, 4)))[0]


@dataclass(frozen=True)
class Case:
    """The nearest point of a set: ``f = |x - z|^2 / 2`` has ``L = mu = 1`` and ``C_f = diam^2``."""

    name: str
    build: Callable[[], Constraint]
    z: Any
    square_of_diameter: float
    start: Any  # feasible
    limits: Callable[[Any], list[Any]]  # for CVXPY

    def problem(self) -> Problem:
        return Problem(SquaredDistance(self.z), self.build())

    def optimum(self) -> float:
        """The optimal value, from CVXPY with Clarabel."""
        square = self.z.ndim == 2
        v = cp.Variable(self.z.shape, PSD=True) if square else cp.Variable(self.z.shape)
        objective = cp.Minimize(0.5 * cp.sum_squares(v - self.z))
        return float(cp.Problem(objective, self.limits(v)).solve(cp.CLARABEL))

    def __str__(self) -> str:
        return self.name


Z = np.array([0.9, -0.7, 0.5, 0.45])
MATRIX = np.diag(Z) + 0.2 * np.cos(np.add.outer(np.arange(4.0), np.arange(4.0)))
ROWS = np.vstack([ROTATION, -ROTATION])

CASES = [
    Case("l1-ball", lambda: L1Ball(4), Z, 4.0, np.zeros(4), lambda v: [cp.norm1(v) <= 1]),
    Case(
        "simplex",
        lambda: Simplex(4),
        Z,
        2.0,
        np.full(4, 0.25),
        lambda v: [v >= 0, cp.sum(v) == 1],
    ),
    Case(
        "box",
        lambda: Box(-0.5 * np.ones(4), 0.5 * np.ones(4)),
        Z,
        4.0,
        np.zeros(4),
        lambda v: [v <= 0.5, v >= -0.5],
    ),
    Case(
        "spectrahedron",
        lambda: Spectrahedron(4),
        MATRIX,
        2.0,
        np.eye(4) / 4.0,
        lambda v: [cp.trace(v) <= 1],
    ),
    Case(
        "polyhedron",
        lambda: Polyhedron(ROWS, np.full(8, 0.5)),
        Z,
        4.0,
        np.zeros(4),
        lambda v: [ROWS @ v <= 0.5],
    ),
]


def values_along(problem: Problem, method: Any, T: int, start: Any = None) -> list[float]:
    """Return ``f(x_1) ... f(x_T)`` of a method that reports every iteration.

    Where the run ends early, because its gap is nothing but rounding, the last value stands for the rest.
    """
    recorded = Recorded(method)
    lopro.solve(problem, start, recorded, tol=0, max_iter=T)
    found = [float(problem.objective.value(seen.x)) for seen in recorded.seen]
    return (found + [found[-1]] * T)[:T]


def count_linear_minimizations(constraint: Constraint) -> Callable[[], int]:
    """Wrap ``linear_minimizer`` of this object, and return a function that returns the calls."""
    minimizer, calls = constraint.linear_minimizer, [0]

    def counting(direction: Any) -> Any:
        calls[0] += 1
        return minimizer(direction)

    constraint.linear_minimizer = counting  # type: ignore[method-assign]
    return lambda: calls[0]
