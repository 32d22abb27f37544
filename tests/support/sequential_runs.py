"""For the tests of penalty and multiplier methods: problems, multipliers, reference solutions."""

from __future__ import annotations

from typing import Any

import numpy as np
from support.clarabel_reference import reference
from support.known_problem import Known, Vector
from support.random_models import cases
from support.theorem_checks import Recorded, Seen
from support.theory_problems import t3, t4, t6_ellipsoid

import lopro

#: Problems whose set is the inverse image of a ball or a half-line under a map of full row rank.
KNOWN = [t3, t4, t6_ellipsoid]

#: Random problems that are quickly solved by first-order methods.
FRIENDLY = (
    "l1/wide_ball/",
    "lasso/polyhedron/",
    "lasso/tall_ball/",
    "quadratic/box/",
    "distance/polyhedron/",
    "distance/tall_ball/",
    "distance/box/",
    "ridge_logistic/box/",
    "linear/box/",
    "matrix_distance/cone/",
)


def image_multiplier(known: Known) -> Vector:
    """Return the multiplier of ``M x in Q``: the only ``u`` with ``M'u`` equal to minus the slope of f."""
    matrix = getattr(known.constraint, "A", None) or known.constraint.C  # type: ignore[attr-defined]
    M = np.asarray(matrix.toarray())
    if known.name == "T3":
        return np.array([known.zeta])
    slope = known.objective.subgradient(known.solution)
    return np.linalg.solve(M @ M.T, -M @ slope)


def staged(known: Known, method: Any) -> list[Seen]:
    """Run all stages and return their epochs."""
    recorded = Recorded(method)
    lopro.solve(known.problem, known.x0, recorded, tol=0.0)
    return recorded.seen


def agreement(
    method: Any, *, tol: float, names: tuple[str, ...] = FRIENDLY, max_iter: int = 60_000
) -> tuple[float, int]:
    """Return the worst relative error against CVXPY with Clarabel, and over how many problems."""
    worst, count = 0.0, 0
    for case in cases(0):
        if not case.name.startswith(names):
            continue
        best = reference(case)
        result = lopro.solve(case.problem, method=method, tol=tol, max_iter=max_iter)
        scale = max(1.0, abs(best))
        assert result.certificate.violation <= 1e-9
        assert result.certificate.lower_bound <= best + 1e-7 * scale
        worst, count = max(worst, abs(result.fun - best) / scale), count + 1
    return worst, count
