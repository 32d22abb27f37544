"""Common code of sparse linear regressions: centred and weighted data, one target at a time, attributes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy  # parts of it load when first used
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from lopro.core.validation import check_unmasked
from lopro.driver.result import Result
from lopro.sklearn._watching import (
    FLOATS,
    CallbackSupportMixin,
    FitWatcher,
    check_outcome,
    with_callbacks,
)

__all__ = ["Centred", "SparseLinearRegressor", "refuse_complex"]


@dataclass(frozen=True, eq=False)
class Centred:
    """Rows of ``X`` and entries of ``y`` less their (weighted) means, times the roots of the weights."""

    X: Any
    y: np.ndarray
    fit_intercept: bool
    sample_weight: np.ndarray | None = None

    @property
    def total(self) -> float:
        """The sum of the weights; the number of samples without."""
        return float(len(self.y) if self.sample_weight is None else self.sample_weight.sum())

    @cached_property
    def roots(self) -> np.ndarray | None:
        """The roots of the weights."""
        return None if self.sample_weight is None else np.sqrt(self.sample_weight)

    def _mean(self, values: Any) -> np.ndarray:
        if self.sample_weight is None:
            mean = values.mean(axis=0)
        else:
            mean = (values.T @ self.sample_weight) / self.total
        return np.asarray(mean, dtype=self.X.dtype).reshape(-1)

    @cached_property
    def means(self) -> np.ndarray:
        """The means of the features; zero without an intercept."""
        if not self.fit_intercept:
            return np.zeros(self.X.shape[1], dtype=self.X.dtype)
        return self._mean(self.X)

    @cached_property
    def offsets(self) -> np.ndarray:
        """The means of the targets; zero without an intercept."""
        columns = self.y.reshape(len(self.y), -1)
        return self._mean(columns) if self.fit_intercept else 0.0 * columns[0]

    @cached_property
    def A(self) -> Any:
        """The centred and weighted features; of sparse ones an operator, without filling them in."""
        if scipy.sparse.issparse(self.X) and self.fit_intercept:
            return _CentredSparse(self.X, self.means, self.roots)
        if scipy.sparse.issparse(self.X):
            weighted = self.roots is not None
            return scipy.sparse.diags_array(self.roots) @ self.X if weighted else self.X
        centred = self.X - self.means if self.fit_intercept else self.X
        return centred if self.roots is None else self.roots[:, None] * centred

    def target(self, k: int) -> np.ndarray:
        """Return one centred and weighted target."""
        centred = self.y.reshape(len(self.y), -1)[:, k] - self.offsets[k]
        return np.asarray(centred if self.roots is None else self.roots * centred)


class _CentredSparse(scipy.sparse.linalg.LinearOperator):  # type: ignore[misc]
    """``diag(roots) (X - 1 means')`` of a sparse ``X``, by products and columns."""

    def __init__(self, X: Any, means: np.ndarray, roots: np.ndarray | None) -> None:
        super().__init__(X.dtype, X.shape)
        self._X, self._means = X.tocsc(), means
        self._roots = np.ones(X.shape[0], dtype=X.dtype) if roots is None else roots
        self.nbytes = self._X.data.nbytes

    def _matvec(self, x: Any) -> np.ndarray:
        x = np.ravel(x)
        return np.asarray(self._roots * (self._X @ x - self._means @ x))

    def _rmatvec(self, v: Any) -> np.ndarray:
        weighted = self._roots * np.ravel(v)
        return np.asarray(self._X.T @ weighted - self._means * weighted.sum())

    def columns(self, indices: Any) -> np.ndarray:
        """Return columns, dense."""
        return np.asarray(
            self._roots[:, None] * (self._X[:, indices].toarray() - self._means[indices])
        )


class SparseLinearRegressor(CallbackSupportMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A linear model with few nonzero coefficients; subclasses solve for one target of centred data."""

    #: Advice in the warning about an answer that is not certified.
    _advice = "Increase alpha, tol or max_iter, or scale the features."

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        return tags

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the coefficients.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Real; float32 stays float32.
        y : array of shape (n_samples,) or (n_samples, n_targets)
            Real.
        sample_weight : array of shape (n_samples,), optional
            Weights of the squared residuals.

        Returns
        -------
        object
            The estimator itself.
        """
        self._check_parameters()
        X, y, weights = self._checked(X, y, sample_weight)
        watcher = FitWatcher(self, X, y)
        data = Centred(X, y, self.fit_intercept, weights)
        starts = self._starts(y.reshape(len(y), -1))
        fits = [self._fit_target(watcher, data, k, start) for k, start in enumerate(starts)]
        self._store(fits, y.ndim == 1)
        watcher.done()
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return ``X coef_ + intercept_``."""
        check_is_fitted(self)
        check_unmasked("X", X)
        X = validate_data(self, X, accept_sparse=True, dtype=FLOATS, reset=False)
        return np.asarray(X @ self.coef_.T + self.intercept_)

    def _check_parameters(self) -> None:
        raise NotImplementedError

    def _fit_target(
        self, watcher: FitWatcher, data: Centred, k: int, x0: np.ndarray | None
    ) -> dict[str, Any]:
        """Solve for one target; return its attributes."""
        means, offset = data.means, data.offsets[k]

        def attributes(x: np.ndarray) -> dict[str, Any]:
            return {"coef_": x, "intercept_": float(offset - means @ x)}

        result, others = self._solve(
            data,
            data.target(k),
            x0=x0,
            nonneg=self.positive,
            tol=self.tol,
            max_iter=self.max_iter,
            callback=watcher.callback(attributes),
            progress=bool(self.verbose),
        )
        check_outcome(result, self._advice)
        return attributes(result.x) | {"n_iter_": result.iterations} | others

    def _solve(self, data: Centred, y: np.ndarray, **options: Any) -> tuple[Result, dict[str, Any]]:
        """Return the solution for one centred target, and the attributes of this model alone."""
        raise NotImplementedError

    def _checked(self, X: Any, y: Any, weights: Any) -> tuple[Any, np.ndarray, np.ndarray | None]:
        refuse_complex(X, y)
        check_unmasked("X", X)
        check_unmasked("y", y)
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse=["csr", "csc"],
            dtype=FLOATS,
            multi_output=True,
            y_numeric=True,
        )
        if weights is not None:
            weights = _check_sample_weight(weights, X, dtype=X.dtype, ensure_non_negative=True)
        return X, np.asarray(y, dtype=X.dtype), weights

    def _starts(self, columns: np.ndarray) -> list[np.ndarray | None]:
        n_targets = columns.shape[1]
        coef = getattr(self, "coef_", None) if getattr(self, "warm_start", False) else None
        if coef is None or np.atleast_2d(coef).shape != (n_targets, self.n_features_in_):
            return [None] * n_targets
        return [row.astype(columns.dtype) for row in np.atleast_2d(coef)]

    def _store(self, fits: list[dict[str, Any]], single: bool) -> None:
        """Set the attributes: the largest number of iterations, the sum of projections, arrays of others."""
        for name in fits[0]:
            values = [fit[name] for fit in fits]
            if name in ("n_iter_", "n_projections_"):
                total: Any = max(values) if name == "n_iter_" else sum(values)
                setattr(self, name, total)
            else:
                setattr(self, name, values[0] if single else np.array(values))


def refuse_complex(*parts: Any) -> None:
    """Raise for complex data, as scikit-learn requires."""
    if any(getattr(getattr(part, "dtype", None), "kind", "") == "c" for part in parts):
        raise ValueError(
            "Complex data not supported: scikit-learn's estimators are real. "
            "lopro.bpdn solves complex problems."
        )
