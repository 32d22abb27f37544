"""Basis pursuit denoising as a regressor: the sparsest-looking coefficients that explain ``y``."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # parts of it load when first used
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from lopro import bpdn
from lopro.core.validation import check_number, check_unmasked
from lopro.sklearn._least_squares import Regression
from lopro.sklearn._watching import (
    CallbackSupportMixin,
    FitWatcher,
    check_outcome,
    with_callbacks,
)

__all__ = ["BasisPursuitDenoising"]

_ADVICE = "Increase sigma or relative_sigma, tol or max_iter, or scale the features."


class BasisPursuitDenoising(CallbackSupportMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Linear regression by ``min |coef|_1`` subject to ``|X coef + intercept - y| <= sigma``.

    The Lasso asks how much a unit of residual is worth; here one says how large the residual may be,
    which is what is known when the noise is. For every ``sigma`` there is an ``alpha`` with which the Lasso
    finds the same coefficients.

    Parameters
    ----------
    sigma : float, optional
        Bound of the norm of the residual on the training data (not its mean square: it grows with
        the square root of the number of samples). By default `relative_sigma` decides.
    relative_sigma : float, default=0.1
        Without ``sigma``: how much of what the features can explain may stay unexplained, as a ratio of
        norms in (0, 1]. With ``r`` the residual of least squares and ``e`` the part of the centred ``y``
        that least squares explains, ``sigma_ = sqrt(|r|^2 + (relative_sigma |e|)^2)``: attainable on any
        data, in any fold. Where least squares fits exactly, R^2 on the training data is at least
        ``1 - relative_sigma**2``.
    fit_intercept : bool, default=True
        Add a constant, which costs nothing.
    positive : bool, default=False
        Ask for nonnegative coefficients.
    method : Method, optional
        As in `lopro.bpdn`.
    tol : float, default=1e-6
        Relative duality gap to certify. With float32 data, rounding ends progress near 1e-6.
    max_iter : int, optional
        Limit of iterations; none by default.
    warm_start : bool, default=False
        Start from the coefficients of the fit before.
    verbose : int, default=0
        Show progress on the terminal.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
        The coefficients.
    intercept_ : float or ndarray of shape (n_targets,)
        The constant; 0.0 without ``fit_intercept``.
    n_iter_ : int
        Iterations, the largest number where there are several targets.
    dual_gap_ : float or ndarray of shape (n_targets,)
        ``|coef|_1`` is at most this much above the optimum. It is proved, not estimated.
    sigma_ : float or ndarray of shape (n_targets,)
        The bound of the residual that was used.
    n_projections_ : int
        Projections on the residual ball, of all targets.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        return tags

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any) -> BasisPursuitDenoising:
        """Find the coefficients.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Real; float32 stays float32.
        y : array of shape (n_samples,) or (n_samples, n_targets)
            Real.

        Returns
        -------
        BasisPursuitDenoising
            The estimator itself.
        """
        self._check_parameters()
        X, y = self._checked(X, y)
        watcher = FitWatcher(self, X, y)
        A, means = self._centred(X)
        columns = y.reshape(len(y), -1)
        offsets = columns.mean(axis=0) if self.fit_intercept else 0.0 * columns[0]
        starts = self._starts(columns)
        fits = [
            self._fit_target(watcher, A, columns[:, k] - offsets[k], starts[k], (offsets[k], means))
            for k in range(columns.shape[1])
        ]
        self._store(fits, y.ndim == 1)
        watcher.done()
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return ``X coef_ + intercept_``."""
        check_is_fitted(self)
        check_unmasked("X", X)
        X = validate_data(self, X, accept_sparse=True, dtype=_FLOATS, reset=False)
        return np.asarray(X @ self.coef_.T + self.intercept_)

    def _check_parameters(self) -> None:
        if self.sigma is not None:
            check_number("sigma", self.sigma, minimum=0.0)
        relative = check_number("relative_sigma", self.relative_sigma, minimum=0.0, maximum=1.0)
        if relative == 0.0:
            raise ValueError("relative_sigma must be positive; for an exact fit ask for sigma=0")

    def _checked(self, X: Any, y: Any) -> tuple[Any, np.ndarray]:
        _refuse_complex(X, y)
        check_unmasked("X", X)
        check_unmasked("y", y)
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse=["csr", "csc"],
            dtype=_FLOATS,
            multi_output=True,
            y_numeric=True,
        )
        return X, np.asarray(y, dtype=X.dtype)

    def _centred(self, X: Any) -> tuple[Any, np.ndarray]:
        """Return ``X`` less the means of its columns, without filling a sparse one, and the means."""
        if not self.fit_intercept:
            return X, np.zeros(X.shape[1], dtype=X.dtype)
        means = np.asarray(X.mean(axis=0), dtype=X.dtype).reshape(-1)
        if isinstance(X, np.ndarray):
            return X - means, means
        operator = scipy.sparse.linalg.LinearOperator(
            X.shape,
            matvec=lambda x: X @ x - means @ x,
            rmatvec=lambda v: X.T @ v - means * v.sum(),
            dtype=X.dtype,
        )
        return operator, means

    def _starts(self, columns: np.ndarray) -> list[np.ndarray | None]:
        n_targets = columns.shape[1]
        coef = getattr(self, "coef_", None) if self.warm_start else None
        if coef is None or np.atleast_2d(coef).shape != (n_targets, self.n_features_in_):
            return [None] * n_targets
        return [row.astype(columns.dtype) for row in np.atleast_2d(coef)]

    def _fit_target(
        self,
        watcher: FitWatcher,
        X: Any,
        y: np.ndarray,
        x0: np.ndarray | None,
        centre: tuple[float, np.ndarray],
    ) -> dict[str, Any]:
        """Solve for one target; return its attributes."""
        offset, means = centre
        data = Regression.of(X, y, self.positive)
        radius = data.radius(self.sigma, self.relative_sigma)
        used = {"sigma_": float(np.hypot(radius, data.left))}

        def attributes(x: np.ndarray) -> dict[str, Any]:
            return {"coef_": x, "intercept_": float(offset - means @ x)}

        if radius >= data.size:  # 0 is feasible, and nothing is less than 0
            zero = {"dual_gap_": 0.0, "n_iter_": 0, "n_projections_": 0}
            return used | attributes(np.zeros_like(means)) | zero
        result = bpdn(
            data.A,
            data.b,
            radius,
            x0=x0,
            method=self.method,
            nonneg=self.positive,
            tol=self.tol,
            max_iter=self.max_iter,
            callback=watcher.callback(attributes),
            progress=bool(self.verbose),
        )
        check_outcome(result, _ADVICE)
        work = {"n_iter_": result.iterations, "n_projections_": result.counts.projections}
        return used | attributes(result.x) | {"dual_gap_": result.certificate.gap} | work

    def _store(self, fits: list[dict[str, Any]], single: bool) -> None:
        for name in ("coef_", "intercept_", "dual_gap_", "sigma_"):
            values = [fit[name] for fit in fits]
            setattr(self, name, values[0] if single else np.array(values))
        self.n_iter_ = max(fit["n_iter_"] for fit in fits)
        self.n_projections_ = sum(fit["n_projections_"] for fit in fits)


_FLOATS = [np.float64, np.float32]


def _refuse_complex(*parts: Any) -> None:
    if any(getattr(getattr(part, "dtype", None), "kind", "") == "c" for part in parts):
        raise ValueError(
            "Complex data not supported: scikit-learn's estimators are real. "
            "lopro.bpdn solves complex problems."
        )
