"""Solvers of the penalised LASSO, the elastic net and sparse logistic regression for `benchmarks.lasso`.

Each takes the matrix, the responses or labels, the weight and a tolerance, and returns coefficients.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import lopro

__all__ = ["GAP", "LASSO", "LOGISTIC", "NET", "RIDGE", "Solver"]

#: The required relative gap, which lopro proves.
GAP = 1e-8
#: The ridge of the elastic net relative to lam: scikit-learn's ``l1_ratio=0.9``.
RIDGE = 1.0 / 9.0
Solver = Callable[[Any, Any, float, float], Any]


def _fit(model: Any, A: Any, y: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they warn if they miss their own tolerance
        return model.fit(A, y).coef_


def by_celer(A: Any, y: Any, lam: float, tol: float) -> Any:
    """The LASSO of celer; its alpha is lam over the number of rows."""
    from celer import Lasso

    return _fit(Lasso(lam / len(y), fit_intercept=False, tol=tol, max_iter=1000), A, y)


def by_skglm(A: Any, y: Any, lam: float, tol: float) -> Any:
    """The LASSO of skglm."""
    from skglm import Lasso

    return _fit(Lasso(lam / len(y), fit_intercept=False, tol=tol, max_iter=1000), A, y)


def by_sklearn(A: Any, y: Any, lam: float, tol: float) -> Any:
    """scikit-learn's LASSO."""
    from sklearn.linear_model import Lasso

    model = Lasso(lam / len(y), fit_intercept=False, tol=tol, max_iter=100_000)
    return _fit(model, A, y)


def net_by_sklearn(A: Any, y: Any, lam: float, tol: float) -> Any:
    """scikit-learn's elastic net."""
    from sklearn.linear_model import ElasticNet

    total, share = lam * (1.0 + RIDGE) / len(y), 1.0 / (1.0 + RIDGE)
    model = ElasticNet(total, l1_ratio=share, fit_intercept=False, tol=tol, max_iter=100_000)
    return _fit(model, A, y)


def by_lopro(A: Any, y: Any, lam: float, tol: float) -> Any:
    """`lopro.lasso`, certified."""
    return lopro.lasso(A, y, lam=lam, tol=GAP).x


def net_by_lopro(A: Any, y: Any, lam: float, tol: float) -> Any:
    """`lopro.lasso` with a ridge, certified."""
    return lopro.lasso(A, y, lam=lam, ridge=RIDGE * lam, tol=GAP).x


def logistic_by_celer(A: Any, b: Any, lam: float, tol: float) -> Any:
    """The logistic regression of celer."""
    from celer import LogisticRegression

    return _fit(LogisticRegression(C=1.0 / lam, tol=tol, max_iter=1000), A, b).ravel()


def logistic_by_skglm(A: Any, b: Any, lam: float, tol: float) -> Any:
    """The logistic regression of skglm."""
    from skglm import SparseLogisticRegression

    model = SparseLogisticRegression(lam / len(b), fit_intercept=False, tol=tol, max_iter=1000)
    return _fit(model, A, b).ravel()


def logistic_by_sklearn(A: Any, b: Any, lam: float, tol: float) -> Any:
    """Liblinear by scikit-learn."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(
        C=1.0 / lam,
        l1_ratio=1.0,
        solver="liblinear",
        tol=tol,
        max_iter=100_000,
        fit_intercept=False,
    )
    return _fit(model, A, b).ravel()


def logistic_by_lopro(A: Any, b: Any, lam: float, tol: float) -> Any:
    """`lopro.sparse_logistic`, certified."""
    return lopro.sparse_logistic(A, b, lam, tol=GAP).x


LOGISTIC: dict[str, Solver] = {
    "lopro": logistic_by_lopro,
    "celer": logistic_by_celer,
    "skglm": logistic_by_skglm,
    "liblinear": logistic_by_sklearn,
}
LASSO: dict[str, Solver] = {
    "lopro": by_lopro,
    "celer": by_celer,
    "skglm": by_skglm,
    "sklearn": by_sklearn,
}
NET: dict[str, Solver] = {"lopro": net_by_lopro, "sklearn": net_by_sklearn}
