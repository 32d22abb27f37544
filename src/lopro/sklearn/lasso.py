"""The LASSO and the elastic net as regressors, with the parameters of scikit-learn and a proved gap."""

from __future__ import annotations

from typing import Any

import numpy as np

from lopro.basis_pursuit import lasso
from lopro.core.validation import check_number
from lopro.driver.result import Result
from lopro.sklearn._cross_validation import check_share
from lopro.sklearn._least_squares import Regression
from lopro.sklearn._linear import Centred, SparseLinearRegressor

__all__ = ["ElasticNet", "Lasso"]


class ElasticNet(SparseLinearRegressor):
    """Linear regression with an l1 and a squared l2 penalty of the coefficients.

    Minimises ``|y - X coef - intercept|^2 / (2 n) + alpha (l1_ratio |coef|_1 + (1 - l1_ratio) |coef|^2 / 2)``
    with ``n`` samples, as ``sklearn.linear_model.ElasticNet`` does.

    Parameters
    ----------
    alpha : float, default=1.0
        Weight of the penalty, positive.
    l1_ratio : float, default=0.5
        Share of the l1 norm, in (0, 1].
    fit_intercept : bool, default=True
        Add a constant, which is not penalised.
    positive : bool, default=False
        Require nonnegative coefficients.
    tol : float, default=1e-6
        Certified relative gap to reach, as in `lopro.solve`. With float32 data, rounding limits it to about
        1e-6.
    max_iter : int, optional
        Limit of iterations; none by default.
    warm_start : bool, default=False
        Start from the coefficients of the previous fit.
    verbose : int, default=0
        Show progress on the terminal.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
        The coefficients.
    intercept_ : float or ndarray of shape (n_targets,)
        The constant; 0.0 without ``fit_intercept``.
    dual_gap_ : float or ndarray of shape (n_targets,)
        The objective is at most this much above the optimum. It is proved, not estimated.
    n_iter_ : int
        Number of iterations; the largest one of several targets.
    n_features_in_, feature_names_in_
        As in all estimators of scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.sklearn import ElasticNet
    >>> X = np.random.default_rng(0).standard_normal((30, 100))
    >>> model = ElasticNet(alpha=0.1, l1_ratio=0.9).fit(X, X[:, 3] - 2 * X[:, 70] + 5.0)
    >>> np.flatnonzero(np.abs(model.coef_) > 0.5), bool(model.dual_gap_ < 1e-6)
    (array([ 3, 70]), True)
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        l1_ratio: float = 0.5,
        fit_intercept: bool = True,
        positive: bool = False,
        tol: float = 1e-6,
        max_iter: int | None = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.positive = positive
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.verbose = verbose

    def _check_parameters(self) -> None:
        check_number("alpha", self.alpha, minimum=0.0, exclusive=True)
        check_share(self._l1_ratio, "Ridge")

    @property
    def _l1_ratio(self) -> float:
        return self.l1_ratio

    def _solve(self, data: Centred, y: np.ndarray, **options: Any) -> tuple[Result, dict[str, Any]]:
        A, b = Regression.short(data.A, y)
        weight, share = data.total * self.alpha, self._l1_ratio
        result = lasso(A, b, lam=weight * share, ridge=weight * (1.0 - share), **options)
        return result, {"dual_gap_": result.certificate.gap / data.total}


class Lasso(ElasticNet):
    """Linear regression with an l1 penalty: ``|y - X coef - intercept|^2 / (2 n) + alpha |coef|_1``.

    As ``sklearn.linear_model.Lasso``, with ``n`` samples; `lopro.lasso` has ``lam = n alpha``.

    Parameters
    ----------
    alpha : float, default=1.0
        Weight of the penalty, positive.
    fit_intercept, positive, tol, max_iter, warm_start, verbose
        As in `ElasticNet`.

    Attributes
    ----------
    coef_, intercept_, dual_gap_, n_iter_, n_features_in_, feature_names_in_
        As in `ElasticNet`.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.sklearn import Lasso
    >>> X = np.random.default_rng(0).standard_normal((30, 100))
    >>> model = Lasso(alpha=0.1).fit(X, X[:, 3] - 2 * X[:, 70] + 5.0)
    >>> np.flatnonzero(model.coef_), bool(model.dual_gap_ < 1e-6)
    (array([ 3, 70]), True)
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        fit_intercept: bool = True,
        positive: bool = False,
        tol: float = 1e-6,
        max_iter: int | None = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            alpha,
            fit_intercept=fit_intercept,
            positive=positive,
            tol=tol,
            max_iter=max_iter,
            warm_start=warm_start,
            verbose=verbose,
        )
        del self.l1_ratio

    @property
    def _l1_ratio(self) -> float:
        return 1.0
