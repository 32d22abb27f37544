"""Problems of the kernels as a user of lopro would write them, and `lopro.solve` as a peer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lopro
from lopro.newton import Composite
from lopro.newton.parts import Interval
from lopro.newton.smooth import LeastSquares, Linear, Logistic, Smooth, SquaredDistance, Sum

__all__ = ["as_problem", "by_lopro"]


def as_problem(composite: Composite) -> lopro.Problem:
    """Return an objective over rows and bounds in the classes of lopro."""
    sets: list[lopro.constraints.Constraint] = []
    for term in composite.terms:
        assert isinstance(term.part, Interval)
        lower, upper = term.part.lower, term.part.upper
        M = getattr(term.D, "M", None)
        box = M is None
        sets.append(
            lopro.constraints.Box(lower, upper)
            if box
            else lopro.constraints.Affine(M, lower, upper)
        )
    constraint = sets[0] if len(sets) == 1 else lopro.constraints.Intersection(*sets)
    return lopro.Problem(objective(composite.smooth), constraint)


def objective(f: Smooth) -> lopro.objectives.Objective:
    """Return a smooth part as an objective."""
    if isinstance(f, Sum):
        return lopro.objectives.Sum(*(objective(part) for part in f.parts))
    if isinstance(f, LeastSquares):
        return lopro.objectives.LeastSquares(f.B, f.b)
    if isinstance(f, Linear):
        return lopro.objectives.Linear(f.q)
    if isinstance(f, Logistic):
        mean = lopro.objectives.Logistic(f.map.M, f.labels)  # type: ignore[attr-defined]
        return lopro.objectives.Scaled(float(f.weights[0]) * len(f.labels), mean)
    if isinstance(f, SquaredDistance):
        distance = lopro.objectives.SquaredDistance(f.center)
        return lopro.objectives.Scaled(float(f.weights[0]), distance)
    raise TypeError(f"no objective for {type(f).__name__}")


def by_lopro(make: Callable[[], Composite], tol: float) -> Callable[[], Any]:
    """Return `lopro.solve` as a peer: posing the problem is part of the work."""

    def run() -> Any:
        result = lopro.solve(as_problem(make()), tol=tol, time_limit=60.0)
        return result.x, result.multipliers

    return run
