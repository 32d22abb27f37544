"""Sparse logistic regression with a weight of the penalty chosen by cross-validation."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.model_selection import check_cv

from lopro.basis_pursuit import sparse_logistic_path
from lopro.basis_pursuit.logistic_regression import LogisticData
from lopro.core.validation import check_count, check_number
from lopro.sklearn._cross_validation import check_share, choose, given_grid, take_fit
from lopro.sklearn.logistic import SparseClassifier, SparseLogisticRegression

__all__ = ["SparseLogisticRegressionCV"]


class SparseLogisticRegressionCV(SparseClassifier):
    """`SparseLogisticRegression` with ``C``, and ``l1_ratio`` if several are given, of least test loss.

    Parameters
    ----------
    Cs : int or array, default=20
        The number of values of C to try, from the largest one for which the solution is zero up to
        ``1 / eps`` times it; or the values.
    l1_ratio : float or list of float, default=1.0
        Shares of the l1 norm to try, in (0, 1].
    eps : float, default=1e-2
        The ratio of the smallest C to the largest.
    fit_intercept, positive, tol
        As in `SparseLogisticRegression`.
    cv : int, splitter or iterable, optional
        As in scikit-learn; five stratified folds by default.

    Attributes
    ----------
    C_, l1_ratio_ : float
        The chosen values.
    Cs_ : ndarray of shape (n_Cs,)
        The values of C tried with ``l1_ratio_``, in ascending order.
    log_loss_path_ : ndarray of shape (n_l1_ratio, n_Cs, n_folds)
        Mean log losses on the test data; without the first axis for a single ``l1_ratio``.
    classes_, coef_, intercept_, dual_gap_, n_iter_, n_features_in_, feature_names_in_
        As in `SparseLogisticRegression`, of the fit to all data.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.sklearn import SparseLogisticRegressionCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 50))
    >>> y = X[:, 3] - X[:, 40] + 0.3 * rng.standard_normal(100) > 0
    >>> model = SparseLogisticRegressionCV(Cs=8).fit(X, y)
    >>> model.log_loss_path_.shape, bool(abs(model.coef_[0, [3, 40]]).min() > 1.0)
    ((8, 5), True)
    """

    def __init__(
        self,
        Cs: Any = 20,
        *,
        l1_ratio: Any = 1.0,
        eps: float = 1e-2,
        fit_intercept: bool = True,
        positive: bool = False,
        tol: float = 1e-6,
        cv: Any = None,
    ) -> None:
        self.Cs = Cs
        self.l1_ratio = l1_ratio
        self.eps = eps
        self.fit_intercept = fit_intercept
        self.positive = positive
        self.tol = tol
        self.cv = cv

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose C, and fit with it to all data.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Real.
        y : array of shape (n_samples,)
            Two classes.
        sample_weight : array of shape (n_samples,), optional
            Weights of the losses, of training and of test data.

        Returns
        -------
        object
            The estimator itself.
        """
        check_number("eps", self.eps, minimum=0.0, maximum=1.0, exclusive=True)
        shares = [
            check_share(share, "LogisticRegression") for share in np.atleast_1d(self.l1_ratio)
        ]
        X, labels, weights = self._checked(X, y, sample_weight)
        folds = list(check_cv(self.cv, labels, classifier=True).split(X, labels))
        grids = [(share, self._grid(X, labels, weights, share)) for share in shares]
        best = choose(partial(self._losses, X, labels, weights), grids, folds, weights)
        self.l1_ratio_, self.C_, self.Cs_ = best.share, best.weight, best.grid
        self.log_loss_path_ = best.losses
        model = SparseLogisticRegression(
            self.C_,
            l1_ratio=self.l1_ratio_,
            fit_intercept=self.fit_intercept,
            positive=self.positive,
            tol=self.tol,
        ).fit(X, labels, weights)
        take_fit(self, model)
        return self

    def _grid(
        self, X: Any, labels: np.ndarray, weights: np.ndarray | None, share: float
    ) -> np.ndarray:
        """Return the values of C to try, in ascending order."""
        given = given_grid("Cs", self.Cs)
        if given is not None:
            return given
        count = check_count("Cs", self.Cs)
        data = LogisticData(X, labels, self.fit_intercept, None, weights, self.positive)
        # If all correlations with the labels are zero, so is the solution for every C.
        most = max(data.largest(), float(np.finfo(X.dtype).tiny) ** 0.5)
        return np.asarray(share / most * np.geomspace(1.0, 1.0 / self.eps, count))

    def _losses(
        self,
        X: Any,
        labels: np.ndarray,
        weights: np.ndarray | None,
        share: float,
        Cs: np.ndarray,
        train: Any,
        test: Any,
    ) -> np.ndarray:
        """Return the mean log losses on some samples after fits to others, one for each C."""
        lams, ridges = self._penalties(Cs, share)
        results = sparse_logistic_path(
            X[train],
            labels[train],
            lams.tolist(),
            ridge=ridges.tolist(),
            intercept=self.fit_intercept,
            sample_weight=None if weights is None else weights[train],
            nonneg=self.positive,
            tol=self.tol,
        )
        scores = [X[test] @ result.x + result.intercept for result in results]
        losses = np.logaddexp(0.0, -labels[test] * np.array(scores))
        return np.average(losses, axis=1, weights=None if weights is None else weights[test])
