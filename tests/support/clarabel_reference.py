"""Optimal values of random problems by CVXPY with Clarabel."""

from __future__ import annotations

import warnings

from support.random_models import Case


def reference(case: Case) -> float:
    """Return the optimal value by Clarabel, to its highest accuracy."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "solution may be inaccurate": we require 1e-10
        case.twin.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    assert case.twin.value is not None, f"{case.name}: Clarabel found no solution"
    return float(case.twin.value)
