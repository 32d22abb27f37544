"""Further applications for every array library: the penalised l1 family, groups, fixed correlations."""

from __future__ import annotations

from typing import Any

import numpy as np
from support.array_calls import NEARLY, SPARSE, Case, Y, answer_of, called

import lopro

#: The first two of three variables.
PAIR = np.array([[False, True, False], [True, False, False], [False, False, False]])


def penalised() -> dict[str, Case]:
    """Return the l1 family in its penalised forms."""
    groups, weights = np.arange(40) // 4, np.linspace(0.5, 2.0, 40)
    forms: dict[str, dict[str, Any]] = {
        "lasso, elastic net": {"ridge": 0.5},
        "lasso, nonneg": {"nonneg": True},
        "lasso, groups": {"groups": groups},
        "lasso, square root": {"square_root": True},
    }
    cases = {
        name: called(
            lambda of, tol, **o: lopro.lasso(of(SPARSE), of(Y), lam=0.4, tol=tol, **o), **form
        )
        for name, form in forms.items()
    }
    return cases | {
        "lasso, weights": Case(
            lambda of, tol: answer_of(
                lopro.lasso(of(SPARSE), of(Y), lam=1.0, weights=of(weights), tol=tol)
            )
        ),
        "lasso_path": Case(
            lambda of, tol: answer_of(list(lopro.lasso_path(of(SPARSE), of(Y), [2.0, 1.0], tol=tol)))
        ),
        "sparse_logistic": Case(
            lambda of, tol: answer_of(
                lopro.sparse_logistic(of(SPARSE), of(np.sign(Y)), 0.5, intercept=True, tol=tol)
            )
        ),
        "nearest_correlation, fixed": Case(
            lambda of, tol: answer_of(
                lopro.nearest_correlation(of(NEARLY), of([1.0, 2.0, 3.0]), PAIR, tol=tol)
            )
        ),
        "bpdn, groups": called(
            lambda of, tol, **o: lopro.bpdn(of(SPARSE), of(Y), 0.5, groups=groups, tol=tol, **o)
        ),
    }  # fmt: skip
