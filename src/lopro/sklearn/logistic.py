"""Sparse logistic regression as a classifier, with the parameters of scikit-learn and a proved gap."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy  # parts of it load when first used
from sklearn.base import BaseEstimator
from sklearn.linear_model._base import LinearClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from lopro.basis_pursuit import sparse_logistic
from lopro.core.validation import check_number, check_unmasked
from lopro.sklearn._cross_validation import check_share
from lopro.sklearn._linear import refuse_complex
from lopro.sklearn._watching import (
    FLOATS,
    CallbackSupportMixin,
    FitWatcher,
    check_outcome,
    with_callbacks,
)

__all__ = ["SparseClassifier", "SparseLogisticRegression"]

_ADVICE = "Decrease C, increase tol or max_iter, or scale the features."


class SparseClassifier(CallbackSupportMixin, LinearClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier of two classes by a sparse linear score; subclasses fit it."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = False
        return tags

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities of the two classes, one row for each sample."""
        check_is_fitted(self)
        above = scipy.special.expit(self.decision_function(X))
        return np.stack([1.0 - above, above], axis=1)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithms of the probabilities."""
        check_is_fitted(self)
        score = self.decision_function(X)
        return np.stack([scipy.special.log_expit(-score), scipy.special.log_expit(score)], axis=1)

    def _checked(self, X: Any, y: Any, weights: Any) -> tuple[Any, np.ndarray, np.ndarray | None]:
        """Return checked samples, labels of -1 and 1, and weights; set ``classes_``."""
        refuse_complex(X)
        check_unmasked("X", X)
        X, y = validate_data(self, X, y, accept_sparse=["csr", "csc"], dtype=FLOATS)
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y")
        self.classes_ = np.unique(y)
        if len(self.classes_) > 2:
            raise ValueError(
                f"Only binary classification is supported. The type of the target is {kind}; "
                "wrap the estimator in sklearn.multiclass.OneVsRestClassifier."
            )
        used = y
        if weights is not None:
            weights = _check_sample_weight(weights, X, dtype=X.dtype, ensure_non_negative=True)
            used = y[weights > 0.0]
        if len(np.unique(used)) < 2:
            raise ValueError(
                "y needs samples of two classes with positive weights, got one class only"
            )
        return X, np.where(y == self.classes_[1], 1.0, -1.0), weights

    def _penalties(self, C: Any, share: float) -> tuple[Any, Any]:
        """Return the weights of the l1 norm and of the squared norm for a value of C."""
        return share / C, (1.0 - share) / C


class SparseLogisticRegression(SparseClassifier):
    """Logistic regression of two classes with an l1 and possibly a squared l2 penalty.

    Minimises ``C sum_i log(1 + exp(-b_i (x_i coef + intercept))) + l1_ratio |coef|_1
    + (1 - l1_ratio) |coef|^2 / 2`` for labels ``b_i`` of -1 and 1, as scikit-learn's ``LogisticRegression``
    does. The intercept is not penalised.

    Parameters
    ----------
    C : float, default=1.0
        Inverse weight of the penalty, positive.
    l1_ratio : float, default=1.0
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
    classes_ : ndarray of shape (2,)
        The classes; positive scores belong to the second one.
    coef_ : ndarray of shape (1, n_features)
        The coefficients.
    intercept_ : ndarray of shape (1,)
        The constant; 0 without ``fit_intercept``.
    dual_gap_ : float
        The objective is at most this much above the optimum. It is proved, not estimated.
    n_iter_ : int
        Iterations.
    n_features_in_, feature_names_in_
        As in all estimators of scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.sklearn import SparseLogisticRegression
    >>> X = np.random.default_rng(0).standard_normal((60, 100))
    >>> y = np.where(X[:, 3] - X[:, 70] > 0, "high", "low")
    >>> model = SparseLogisticRegression(C=0.2).fit(X, y)
    >>> model.coef_[0, [3, 70]].round(1), model.predict(X[:2]), bool(model.dual_gap_ < 1e-5)
    (array([-1.4,  0.7]), array(['high', 'low'], dtype='<U4'), True)
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        l1_ratio: float = 1.0,
        fit_intercept: bool = True,
        positive: bool = False,
        tol: float = 1e-6,
        max_iter: int | None = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.positive = positive
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.verbose = verbose

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the coefficients.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Real; float32 stays float32.
        y : array of shape (n_samples,)
            Two classes.
        sample_weight : array of shape (n_samples,), optional
            Weights of the losses.

        Returns
        -------
        object
            The estimator itself.
        """
        C = check_number("C", self.C, minimum=0.0, exclusive=True)
        share = check_share(self.l1_ratio, "LogisticRegression")
        X, labels, weights = self._checked(X, y, sample_weight)
        watcher = FitWatcher(self, X, y)
        lam, ridge = self._penalties(C, share)
        result = sparse_logistic(
            X,
            labels,
            lam,
            ridge=ridge,
            intercept=self.fit_intercept,
            sample_weight=weights,
            nonneg=self.positive,
            x0=self._start(X),
            tol=self.tol,
            max_iter=self.max_iter,
            callback=watcher.callback(self._attributes),
            progress=bool(self.verbose),
        )
        check_outcome(result, _ADVICE)
        constant = [result.intercept] if self.fit_intercept else []
        for name, value in self._attributes(np.append(result.x, constant)).items():
            setattr(self, name, value.astype(X.dtype))
        self.dual_gap_ = C * result.certificate.gap
        self.n_iter_ = result.iterations
        watcher.done()
        return self

    def _attributes(self, x: np.ndarray) -> dict[str, Any]:
        """Return the fitted attributes for coefficients, of which the last one is the intercept, if any."""
        if not self.fit_intercept:
            return {"coef_": x[None, :], "intercept_": np.zeros(1, dtype=x.dtype)}
        return {"coef_": x[None, :-1], "intercept_": x[-1:]}

    def _start(self, X: Any) -> np.ndarray | None:
        coef = getattr(self, "coef_", None) if self.warm_start else None
        if coef is None or coef.shape != (1, X.shape[1]):
            return None
        own = self.intercept_ if self.fit_intercept else []
        return np.append(coef[0], own).astype(X.dtype)
