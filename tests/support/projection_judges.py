"""Independent judges of a projection: none of them uses the code it judges.

A candidate ``p`` for the projection of ``x`` is judged by feasibility, by the variational inequality
``<x - p, z - p> <= 0`` against feasible points ``z`` made by the test, and by leaving points
of the set unchanged. Slow reference implementations and outside solvers are in the test files of the sets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import cvxpy as cp
import numpy as np

Point = Any


def inner(a: Point, b: Point) -> float:
    return float(np.vdot(a, b).real)


def size(*points: Point) -> float:
    return 1.0 + sum(float(np.linalg.norm(p)) for p in points)


def assert_optimal(x: Point, p: Point, feasible: Iterable[Point], tol: float = 1e-10) -> None:
    """Judge by the variational inequality; its scale is the product of the two lengths."""
    for z in feasible:
        excess = inner(x - p, z - p)
        assert excess <= tol * size(x, p) * size(z, p), (excess, size(x, p), size(z, p))


def assert_stands_still(project: Callable[[Point], Point], z: Point, tol: float) -> None:
    """Judge by a point of the set: interior points (``tol=0``) must come back as they are."""
    moved = float(np.linalg.norm(project(z) - z))
    assert moved <= tol * size(z), moved


def assert_agrees_with_outside(x: Point, p: Point, variable: Any, limits: list[Any]) -> None:
    """Judge by CVXPY with Clarabel, which minimises the squared distance to a gap of 1e-8.

    That is an error of 1e-4 in its point; distances can be compared more finely.
    """
    cp.Problem(cp.Minimize(cp.sum_squares(variable - x)), limits).solve(cp.CLARABEL)
    z = variable.value
    assert np.linalg.norm(p - z) <= 2e-4 * size(x)
    assert np.linalg.norm(x - p) <= np.linalg.norm(x - z) + 1e-6 * size(x)


def farthest_feasible(inside: Callable[[Point], bool], z: Point, u: Point) -> Point | None:
    """Return the last point of the set on the ray from ``z`` along ``u``, by bisection."""
    low, high = 0.0, 1.0
    while inside(z + high * u):
        low, high = high, 2.0 * high
        if high > 1e6:
            return None
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if inside(z + middle * u) else (low, middle)
    return z + low * u
