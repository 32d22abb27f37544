"""Basis pursuit denoising as a regressor: coefficients of least l1 norm with a bounded residual."""

from __future__ import annotations

from typing import Any

import numpy as np

from lopro.basis_pursuit import bpdn
from lopro.core.validation import check_number
from lopro.driver.result import Result
from lopro.sklearn._least_squares import Regression
from lopro.sklearn._linear import Centred, SparseLinearRegressor

__all__ = ["BasisPursuitDenoising"]


class BasisPursuitDenoising(SparseLinearRegressor):
    """Linear regression by ``min |coef|_1`` subject to ``|X coef + intercept - y| <= sigma``.

    The Lasso weights the norm against the residual; here a bound of the residual is given, which follows
    from the size of the noise. For every ``sigma`` there is an ``alpha`` for which the Lasso has the same
    solution.

    Parameters
    ----------
    sigma : float, optional
        Bound of the norm of the residual on the training data (not its mean square: it grows with
        the square root of the number of samples). By default it follows from `relative_sigma`.
    relative_sigma : float, default=0.1
        Without ``sigma``: the share, in (0, 1] and as a ratio of norms, of the part explained by least
        squares that may remain unexplained. With the residual ``r`` of least squares and the part ``e`` of
        the centred ``y`` that it explains, ``sigma_ = sqrt(|r|^2 + (relative_sigma |e|)^2)``, which is
        attainable for any data. If least squares fits exactly, R^2 on the training data is at least
        ``1 - relative_sigma**2``.
    fit_intercept : bool, default=True
        Add a constant, which is not penalised.
    positive : bool, default=False
        Require nonnegative coefficients.
    method : Method, optional
        As in `lopro.bpdn`.
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
    n_iter_ : int
        Number of iterations; the largest one of several targets.
    dual_gap_ : float or ndarray of shape (n_targets,)
        ``|coef|_1`` is at most this much above the optimum. It is proved, not estimated.
    sigma_ : float or ndarray of shape (n_targets,)
        The bound of the residual that was used.
    n_projections_ : int
        Projections on the residual ball, of all targets.
    n_features_in_, feature_names_in_
        As in all estimators of scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.sklearn import BasisPursuitDenoising
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((30, 100))
    >>> y = X[:, 3] - 2 * X[:, 70] + 5.0
    >>> model = BasisPursuitDenoising(sigma=0.01).fit(X, y)
    >>> np.flatnonzero(model.coef_), round(model.intercept_, 2)
    (array([ 3, 70]), 5.0)
    >>> bool(model.dual_gap_ <= 1e-6 * abs(model.coef_).sum())
    True
    """

    _advice = "Increase sigma or relative_sigma, tol or max_iter, or scale the features."

    def __init__(
        self,
        sigma: float | None = None,
        *,
        relative_sigma: float = 0.1,
        fit_intercept: bool = True,
        positive: bool = False,
        method: Any = None,
        tol: float = 1e-6,
        max_iter: int | None = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.sigma = sigma
        self.relative_sigma = relative_sigma
        self.fit_intercept = fit_intercept
        self.positive = positive
        self.method = method
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.verbose = verbose

    def _check_parameters(self) -> None:
        if self.sigma is not None:
            check_number("sigma", self.sigma, minimum=0.0)
        relative = check_number("relative_sigma", self.relative_sigma, minimum=0.0, maximum=1.0)
        if relative == 0.0:
            raise ValueError("relative_sigma must be positive; for an exact fit use sigma=0")

    def _solve(self, data: Centred, y: np.ndarray, **options: Any) -> tuple[Result, dict[str, Any]]:
        short = Regression.of(data.A, y, self.positive)
        radius = short.radius(self.sigma, self.relative_sigma)
        result = bpdn(short.A, short.b, radius, method=self.method, **options)
        return result, {
            "sigma_": float(np.hypot(radius, short.left)),
            "dual_gap_": result.certificate.gap,
            "n_projections_": result.counts.projections,
        }
