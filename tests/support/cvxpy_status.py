"""The status and the certificate of a problem through the CVXPY interface."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np

import lopro.cvxpy

INF = np.inf


def by_cvxpy(objective: Any, constraints: list[Any]) -> tuple[str, Any]:
    """Solve and return the status and the certificate."""
    problem = cp.Problem(cp.Minimize(objective), constraints)
    problem.solve(solver=lopro.cvxpy.Lopro())
    return problem.status, problem.solver_stats.extra_stats
