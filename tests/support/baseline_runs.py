"""For the tests of baselines: a counted run, and the comparison of its points with a bound."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
from support.known_problem import Known
from support.theorem_checks import Recorded, Seen, count_projections, size

import lopro


@dataclass
class Ran:
    """A run to the end, with the projections that an independent counter saw."""

    result: lopro.Result
    epochs: list[Seen]
    projections: int

    @property
    def x(self) -> Any:
        """The point of the last epoch: what the method returns, not the best the driver has seen."""
        return self.epochs[-1].x


def run(known: Known, method: Any, x0: Any = None, **budget: Any) -> Ran:
    """Run the method; ledger and independent counter must agree."""
    calls = count_projections(known.constraint)
    recorded = Recorded(method)
    budget = {"tol": 0} | budget
    start = known.x0 if x0 is None else x0
    result = lopro.solve(known.problem, start, recorded, **budget)
    del known.constraint.project  # the counter; the class has the original
    assert result.counts.projections == calls()
    return Ran(result, recorded.seen, calls())


def gap(known: Known, x: Any) -> float:
    """Return ``f(x) - f_*``; a point outside the set counts as infinitely bad."""
    outside = known.constraint.value(x) > 1e-11 * (1.0 + size(x))
    return math.inf if outside else known.gap(x)


def referee(d: int, objective: Any, constraints: Any) -> tuple[float, np.ndarray]:
    """Return the optimal value and a solution of a problem in d variables, by an interior point solver."""
    x = cp.Variable(d)
    problem = cp.Problem(cp.Minimize(objective(x)), constraints(x))
    problem.solve(solver="CLARABEL")
    return float(problem.value), np.asarray(x.value)
