"""The initial factor for the completion of a multiplier, from the multiplier on some features.

Figures at constants are iterations of ``python -m benchmarks.constants metric`` with a tenth of the value and
with ten times it, relative to those with the value; "lost" means that a fit is not certified in 20 s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from lopro.core.deadline import EIGH, current_deadline

__all__ = ["KnownSlack", "first_factor"]

Matrix: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"


#: Regularisation of the fit to the known slack, relative to its largest eigenvalue: 1.00, 1.00.
RIDGE = 1e-2


@dataclass(frozen=True)
class KnownSlack:
    """A multiplier ``S`` of the cone on some features."""

    features: np.ndarray[Any, np.dtype[np.int64]]
    S: Matrix

    def same_features(self, other: KnownSlack) -> bool:
        """Whether both are for the same features in the same order."""
        return np.array_equal(self.features, other.features)


def first_factor(X: Matrix, LX: Matrix, slack: Matrix, units: Matrix, known: KnownSlack) -> Matrix:
    """Return ``B`` with ``B'B`` close to the known multiplier on its features, and to ``-M`` elsewhere.

    Off the diagonal ``B'B`` has to approximate ``-M``, whose positive part is ``P'P``. With ``S = E'E`` on
    the known features ``F``, the other columns are ``L p_i`` with the linear map ``L`` for which ``E'L P_F``
    is the best fit to ``P_F'P_F``; rows are added for the residual of the fit. Columns are shortened to the
    length that their slack allows.

    Parameters
    ----------
    X, LX : arrays of shape (N, d)
        Factors of ``M = X' LX``.
    slack : array of shape (d,)
        The largest squared length of each column.
    units : array of shape (d,)
        Features are divided by them, so that all have equal weight in the fit.
    known : KnownSlack
        The multiplier on some features.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.metric.first_factor import KnownSlack, first_factor
    >>> from lopro.metric.loss import PairLoss
    >>> loss = PairLoss(np.array([[0.0, 0.0], [1.0, 2.0]]), ([0], [1]), [1.0])
    >>> factors, known = loss.factors(-np.ones(1)), KnownSlack(np.array([0]), np.eye(1))
    >>> B = first_factor(*factors, np.array([1.0, 4.0]), np.ones(2), known)
    >>> (B.T @ B).round(1)  # -M, and on the first feature what is known
    array([[1., 2.],
           [2., 4.]])
    """
    F = known.features
    P = _positive_factor(X / units, LX / units)
    values, vectors = np.linalg.eigh(0.5 * (known.S + known.S.T) / np.outer(units[F], units[F]))
    values = np.maximum(values, 0.0)
    E = np.sqrt(values)[:, None] * vectors.T
    ridge = max(RIDGE * float(values[-1]), 1e-300)
    L = (E @ P[:, F].T) / (values + ridge)[:, None]
    left, directions = np.linalg.eigh(np.eye(len(P)) - L.T @ L)
    rows = left > 0.0
    more = np.sqrt(left[rows])[:, None] * (directions[:, rows].T @ P)
    B = np.vstack([L @ P, more])
    lengths, most = np.square(B).sum(axis=0), np.maximum(slack, 0.0) / units**2
    B *= np.sqrt(np.minimum(1.0, most / np.where(lengths > 0.0, lengths, 1.0)))
    B[:, F] = np.vstack([E, np.zeros((len(more), len(F)))])
    return np.asarray(B * units)


def _positive_factor(X: Matrix, LX: Matrix) -> Matrix:
    """Return ``P`` with ``P'P`` the positive part of ``-X' LX``, computed on the span of the samples."""
    N, d = X.shape
    current_deadline().need(EIGH * min(N, d) ** 3 + 4.0 * N * d * min(N, d))
    Q = np.linalg.qr(X.T)[0]
    small = -(X @ Q).T @ (LX @ Q)
    values, vectors = np.linalg.eigh(0.5 * (small + small.T))
    kept = values > 1e-10 * max(float(values[-1]), 0.0)
    return np.asarray(np.sqrt(values[kept])[:, None] * (Q @ vectors[:, kept]).T)
