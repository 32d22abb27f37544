"""What `lopro.solve` would do with a problem, in words."""

from __future__ import annotations

from lopro.methods import Auto
from lopro.problem import Problem

__all__ = ["explain"]


def explain(problem: Problem) -> str:
    """Say which method `lopro.solve` would use, why, and what it would try next; nothing is solved.

    Parameters
    ----------
    problem : Problem
        What would be solved.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> f = lopro.objectives.LeastSquares(np.eye(2), np.ones(2))
    >>> half = lopro.constraints.Polyhedron([[1.0, 1.0]], [1.0])
    >>> print(lopro.explain(lopro.Problem(f, half)))
    minimise LeastSquares over Polyhedron(1 rows, form=MaxForm()), 2 unknowns
    1. NewtonMultipliers(): f has second derivatives at hand and the set is given by rows
    2. InteriorPoint(accuracy=1e-11): it has a small conic form
    3. MultiplierMethod(steps=25, patience=60): the set is given by a linear map into an easy set
    """
    if not isinstance(problem, Problem):
        raise TypeError(f"problem must be a lopro.Problem, got {problem!r}")
    size = "" if problem.shape is None else f", {'x'.join(map(str, problem.shape))} unknowns"
    name = type(problem.objective).__name__
    lines = [f"minimise {name} over {problem.constraint!r}{size}"]
    for place, choice in enumerate(Auto().choices(problem), start=1):
        plan = getattr(choice.method, "plan", None)
        more = "" if plan is None else f"; {plan(problem)}"
        lines.append(f"{place}. {choice.method!r}: {choice.reason}{more}")
    return "\n".join(lines)
