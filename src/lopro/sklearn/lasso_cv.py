"""The LASSO and the elastic net with a weight of the penalty chosen by cross-validation."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.model_selection import check_cv
from sklearn.utils.validation import column_or_1d

from lopro.basis_pursuit import lasso_path
from lopro.core.validation import check_count, check_number
from lopro.sklearn._cross_validation import check_share, choose, given_grid, take_fit
from lopro.sklearn._least_squares import Regression
from lopro.sklearn._linear import Centred, SparseLinearRegressor
from lopro.sklearn.lasso import ElasticNet

__all__ = ["ElasticNetCV", "LassoCV"]


class ElasticNetCV(SparseLinearRegressor):
    """`ElasticNet` with ``alpha``, and ``l1_ratio`` if several are given, of least mean test error.

    Parameters
    ----------
    l1_ratio : float or list of float, default=0.5
        Shares of the l1 norm to try, in (0, 1].
    eps : float, default=1e-3
        The ratio of the smallest weight to the largest.
    alphas : int or array, default=100
        The number of weights to try, from the least one for which the solution is zero down to ``eps`` times
        it; or the weights.
    fit_intercept, positive, tol
        As in `ElasticNet`.
    cv : int, splitter or iterable, optional
        As in scikit-learn; five folds by default.

    Attributes
    ----------
    alpha_, l1_ratio_ : float
        The chosen values.
    alphas_ : ndarray of shape (n_alphas,)
        The weights tried with the chosen ``l1_ratio``.
    mse_path_ : ndarray of shape (n_l1_ratios, n_alphas, n_folds)
        Mean squared errors on the test data; without the first axis for a single ``l1_ratio``.
    coef_, intercept_, dual_gap_, n_iter_, n_features_in_, feature_names_in_
        As in `ElasticNet`, of the fit to all data.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.sklearn import ElasticNetCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 100))
    >>> y = X[:, 3] - 2 * X[:, 70] + 0.1 * rng.standard_normal(60)
    >>> model = ElasticNetCV(l1_ratio=[0.5, 0.99], alphas=10).fit(X, y)
    >>> model.l1_ratio_, model.mse_path_.shape
    (0.99, (2, 10, 5))
    """

    def __init__(
        self,
        *,
        l1_ratio: Any = 0.5,
        eps: float = 1e-3,
        alphas: Any = 100,
        fit_intercept: bool = True,
        positive: bool = False,
        tol: float = 1e-6,
        cv: Any = None,
    ) -> None:
        self.l1_ratio = l1_ratio
        self.eps = eps
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.positive = positive
        self.tol = tol
        self.cv = cv

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags

    @property
    def _ratios(self) -> list[float]:
        return [float(share) for share in np.atleast_1d(self.l1_ratio)]

    def _check_parameters(self) -> None:
        check_number("eps", self.eps, minimum=0.0, maximum=1.0, exclusive=True)
        for share in self._ratios:
            check_share(share, "RidgeCV")

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose the weight of the penalty, and fit with it to all data.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Real.
        y : array of shape (n_samples,)
            Real.
        sample_weight : array of shape (n_samples,), optional
            Weights of the squared residuals, of training and of test data.

        Returns
        -------
        object
            The estimator itself.
        """
        self._check_parameters()
        X, y, weights = self._checked(X, y, sample_weight)
        y = column_or_1d(y, warn=True)
        folds = list(check_cv(self.cv).split(X, y))
        data = Centred(X, y, self.fit_intercept, weights)
        grids = [(share, self._grid(data, share)) for share in self._ratios]
        best = choose(partial(self._errors, data), grids, folds, weights)
        self.l1_ratio_, self.alpha_, self.alphas_ = best.share, best.weight, best.grid
        self.mse_path_ = best.losses
        self._refit(X, y, weights)
        return self

    def _refit(self, X: Any, y: np.ndarray, weights: np.ndarray | None) -> None:
        model = ElasticNet(
            self.alpha_,
            l1_ratio=self.l1_ratio_,
            fit_intercept=self.fit_intercept,
            positive=self.positive,
            tol=self.tol,
        ).fit(X, y, weights)
        take_fit(self, model)

    def _grid(self, data: Centred, share: float) -> np.ndarray:
        """Return the weights to try in descending order."""
        given = given_grid("alphas", self.alphas)
        if given is not None:
            return given[::-1]
        count, y = check_count("alphas", self.alphas), data.target(0)
        A = data.A
        pulled = A.rmatvec(y) if hasattr(A, "rmatvec") else A.T @ y
        most = float((pulled if self.positive else np.abs(pulled)).max()) / (share * data.total)
        # If all correlations with y are zero, so is the solution for every weight.
        most = max(most, float(np.finfo(data.X.dtype).tiny) ** 0.5)
        return np.asarray(most * np.geomspace(1.0, self.eps, count))

    def _errors(
        self, data: Centred, share: float, alphas: np.ndarray, train: Any, test: Any
    ) -> np.ndarray:
        """Return the mean squared errors on some samples after fits to others, one for each weight."""
        weights = data.sample_weight
        some = Centred(
            data.X[train],
            data.y[train],
            self.fit_intercept,
            None if weights is None else weights[train],
        )
        penalty, errors = some.total * alphas, np.empty(len(alphas))
        results = lasso_path(
            *Regression.short(some.A, some.target(0)),
            (share * penalty).tolist(),
            ridge=((1.0 - share) * penalty).tolist(),
            nonneg=self.positive,
            tol=self.tol,
        )
        for i, result in enumerate(results):
            intercept = some.offsets[0] - some.means @ result.x
            squares = (data.X[test] @ result.x + intercept - data.y[test]) ** 2
            errors[i] = np.average(squares, weights=None if weights is None else weights[test])
        return errors


class LassoCV(ElasticNetCV):
    """`Lasso` with the ``alpha`` of least mean test error.

    Parameters
    ----------
    eps, alphas, fit_intercept, positive, tol, cv
        As in `ElasticNetCV`.

    Attributes
    ----------
    alpha_, alphas_, mse_path_, coef_, intercept_, dual_gap_, n_iter_, n_features_in_, feature_names_in_
        As in `ElasticNetCV`.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.sklearn import LassoCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 100))
    >>> y = X[:, 3] - 2 * X[:, 70] + 0.1 * rng.standard_normal(60)
    >>> model = LassoCV(alphas=20).fit(X, y)
    >>> np.flatnonzero(np.abs(model.coef_) > 0.1), model.mse_path_.shape
    (array([ 3, 70]), (20, 5))
    """

    def __init__(
        self,
        *,
        eps: float = 1e-3,
        alphas: Any = 100,
        fit_intercept: bool = True,
        positive: bool = False,
        tol: float = 1e-6,
        cv: Any = None,
    ) -> None:
        super().__init__(
            eps=eps, alphas=alphas, fit_intercept=fit_intercept, positive=positive, tol=tol, cv=cv
        )
        del self.l1_ratio

    @property
    def _ratios(self) -> list[float]:
        return [1.0]
