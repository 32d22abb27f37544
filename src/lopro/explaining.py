"""A description of the methods that `lopro.solve` would use."""

from __future__ import annotations

from lopro.methods import Auto
from lopro.problem import Problem

__all__ = ["explain"]


def explain(problem: Problem) -> str:
    """Return the methods that `lopro.solve` would use, in order, with reasons and costs; nothing is solved.

    Parameters
    ----------
    problem : Problem
        The problem; it is not solved.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> f = lopro.objectives.LeastSquares(np.eye(2), np.ones(2))
    >>> half = lopro.constraints.Polyhedron([[1.0, 1.0]], [1.0])
    >>> print(lopro.explain(lopro.Problem(f, half)))  # doctest: +ELLIPSIS
    minimise LeastSquares over Polyhedron(1 rows, form=MaxForm()), 2 unknowns
    1. ProgramEngines(engines=('piqp',)): it is a dense quadratic program; about 12 iterations of piqp, ...
    2. NewtonMultipliers(): f has second derivatives and the set is given by rows; about ...
    3. ProgramEngines(): the same program, by all engines in turn; about 12 iterations of piqp, ...
    4. MultiplierMethod(steps=25, patience=60): the set is {x : M x in Q} with a cheap projection on Q; ...
    """
    if not isinstance(problem, Problem):
        raise TypeError(f"problem must be a lopro.Problem, got {problem!r}")
    size = "" if problem.shape is None else f", {'x'.join(map(str, problem.shape))} unknowns"
    name = type(problem.objective).__name__
    lines = [f"minimise {name} over {problem.constraint!r}{size}"]
    for place, fit in enumerate(Auto().choices(problem), start=1):
        plan = getattr(fit.method, "plan", None)
        more = "" if plan is None else f"; {plan(problem)}"
        lines.append(f"{place}. {fit}{more}")
    return "\n".join(lines)
