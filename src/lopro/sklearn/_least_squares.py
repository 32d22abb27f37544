"""The residual ball of a regression: reduced data, and an attainable radius."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.errors import InfeasibleError

__all__ = ["Regression"]

#: The largest ``rows columns^2`` of a factorisation that precedes a fit: about a second.
_ROTATED = 1e9


@dataclass(frozen=True)
class Regression:
    """``|X x - y|`` up to a constant: ``|X x - y|^2 = |A x - b|^2 + left^2``.

    ``left`` is the norm of the part of the residual that does not depend on ``x``; it is 0 unless the data
    are tall and dense.
    """

    A: Any
    b: np.ndarray
    left: float
    positive: bool

    @staticmethod
    def of(X: Any, y: np.ndarray, positive: bool) -> Regression:
        """Reduce tall dense data to as many rows as their rank; return other data unchanged."""
        tall = isinstance(X, np.ndarray) and X.shape[0] > X.shape[1]
        A, b, left = _rotated(X, y) if tall else (X, y, 0.0)
        return Regression(A, b, left, positive)

    @staticmethod
    def short(X: Any, y: np.ndarray) -> tuple[Any, np.ndarray]:
        """Return data with the same residuals up to a constant, in fewer rows if the reduction is cheap."""
        rows, columns = X.shape
        if rows > columns and rows * columns**2 <= _ROTATED:
            found = Regression.of(X, y, positive=False)
            return found.A, found.b
        return X, y

    @cached_property
    def least(self) -> float:
        """The minimum of ``|A x - b|``, subject to ``x >= 0`` if required."""
        return _least_residual(self.A, self.b, self.positive)

    @property
    def size(self) -> float:
        """The norm of ``b``: for radii not below it ``x = 0`` is optimal."""
        return float(np.linalg.norm(self.b))

    def radius(self, sigma: float | None, relative_sigma: float) -> float:
        """Return the radius for ``A x - b``, from an absolute one or one relative to the explained part."""
        if sigma is None:
            # At a least-squares solution fit and residual are orthogonal, also subject to x >= 0.
            explained = math.sqrt(max(0.0, self.size**2 - self.least**2))
            return math.hypot(self.least, relative_sigma * explained)
        if sigma < self.left:
            raise InfeasibleError(
                f"sigma = {sigma:g} is less than {self.left:g}, the residual of least squares"
            )
        return math.sqrt(sigma**2 - self.left**2)


def _rotated(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Return an equivalent problem with the triangular factor of ``X``, and the constant residual."""
    Q, R, order = scipy.linalg.qr(X, mode="economic", pivoting=True)
    size = np.abs(R.diagonal())
    rank = int((size > size[0] * max(X.shape) * np.finfo(X.dtype).eps).sum())
    A = np.zeros((max(rank, 1), X.shape[1]), dtype=X.dtype)
    b = np.zeros(max(rank, 1), dtype=y.dtype)
    A[:rank, order] = R[:rank]
    b[:rank] = Q[:, :rank].T @ y
    return A, b, float(np.linalg.norm(y - Q[:, :rank] @ b[:rank]))


def _least_residual(A: Any, b: np.ndarray, positive: bool) -> float:
    """Return the residual of a least-squares solution, an upper bound of the least residual."""
    if positive and isinstance(A, np.ndarray):
        residual = float(scipy.optimize.nnls(A, b)[1])
    elif positive:
        bounds = (0.0, np.inf)
        found = scipy.optimize.lsq_linear(A, b, bounds=bounds, tol=1e-12, lsmr_tol="auto")
        residual = math.sqrt(2.0 * found.cost)
    else:
        operator = scipy.sparse.linalg.aslinearoperator(A)
        b = b.astype(np.float64)  # estimates of LSMR overflow in single precision
        x = scipy.sparse.linalg.lsmr(operator, b, atol=1e-12, btol=1e-12, conlim=0.0)[0]
        residual = float(np.linalg.norm(operator.matvec(x) - b))
    # If an exact fit exists, the residual is the accuracy of the solver.
    return residual if residual > 1e-6 * float(np.linalg.norm(b)) else 0.0
