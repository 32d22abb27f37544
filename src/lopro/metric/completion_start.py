"""Where the completion of a multiplier begins: from what is known on some features to all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from lopro.core.arrays import Array, to_numpy
from lopro.core.deadline import EIGH, current_deadline
from lopro.metric.loss import PairLoss

__all__ = ["KnownSlack", "first_factor"]

Matrix: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"

#: Regularisation of the fit to what is known, next to its largest eigenvalue: the columns keep their lengths.
RIDGE = 1e-2
#: Directions of which the fit explains all but this part get no row of their own.
UNEXPLAINED = 0.1


@dataclass(frozen=True)
class KnownSlack:
    """A multiplier of the cone on some features."""

    features: np.ndarray[Any, np.dtype[np.int64]]
    S: Matrix

    def same_features(self, other: KnownSlack) -> bool:
        """Whether it speaks of the same features in the same order."""
        return np.array_equal(self.features, other.features)


def first_factor(loss: PairLoss, M: Array, slack: Array, roots: Array, known: KnownSlack) -> Matrix:
    """Return ``B`` with ``B'B`` near what is known on its features, and near ``-M`` elsewhere.

    Off the diagonal, ``-M`` is what ``B'B`` has to be near to. It is ``P'P`` but for its few negative
    eigenvalues. With ``S = E'E`` on the known features ``F``, the columns outside are taken as ``L p_i`` with
    the linear map that makes ``E'L P_F`` the best fit to ``P_F'P_F``, and rows are added for what it does not
    explain. No column is longer than its slack allows.

    Parameters
    ----------
    loss : PairLoss
        The pairs.
    M : array of shape (d, d)
        ``M(w)``, without the trace.
    slack : array of shape (d,)
        The squared length that columns may have.
    roots : array of shape (d,)
        Features are divided by them: in these units all of them count the same.
    known : KnownSlack
        The multiplier on some features.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.metric.completion_start import KnownSlack, first_factor
    >>> from lopro.metric.loss import PairLoss
    >>> loss = PairLoss(np.array([[0.0, 0.0], [1.0, 2.0]]), ([0], [1]), [1.0])
    >>> M, known = -loss.adjoint(np.ones(1)), KnownSlack(np.array([0]), np.eye(1))
    >>> B = first_factor(loss, M, np.array([1.0, 4.0]), np.ones(2), known)
    >>> (B.T @ B).round(1)  # nearly -M, and on the first feature what is known
    array([[1. , 2. ],
           [2. , 3.9]])
    """
    F, units = known.features, to_numpy(roots)
    P = _positive_factor(loss, to_numpy(M), units)
    values, vectors = np.linalg.eigh(0.5 * (known.S + known.S.T) / np.outer(units[F], units[F]))
    values = np.maximum(values, 0.0)
    E = np.sqrt(values)[:, None] * vectors.T
    ridge = max(RIDGE * float(values[-1]), 1e-300)
    L = (E @ P[:, F].T) / (values + ridge)[:, None]
    left, directions = np.linalg.eigh(np.eye(len(P)) - L.T @ L)
    rows = left > UNEXPLAINED
    more = np.sqrt(left[rows])[:, None] * (directions[:, rows].T @ P)
    B = np.vstack([L @ P, more])
    lengths, most = np.square(B).sum(axis=0), np.maximum(to_numpy(slack), 0.0) / units**2
    B *= np.sqrt(np.minimum(1.0, most / np.where(lengths > 0.0, lengths, 1.0)))
    B[:, F] = np.vstack([E, np.zeros((len(more), len(F)))])
    return np.asarray(B * units)


def _positive_factor(loss: PairLoss, M: Matrix, units: Matrix) -> Matrix:
    """Return ``P`` with ``P'P`` the positive part of ``-M`` in these units.

    ``M`` lives on the span of the samples, which is the smaller space where they are few.
    """
    N, d = loss.X.shape
    current_deadline().need(EIGH * min(N, d) ** 3 + 4.0 * d * d * min(N, d))
    M = M / units[:, None] / units
    if d <= N:
        values, vectors = np.linalg.eigh(-M)
    else:
        X = to_numpy(loss.X).astype(np.float64)
        Q = np.linalg.qr(((X - X.mean(axis=0)) / units).T)[0]
        values, small = np.linalg.eigh(-Q.T @ (M @ Q))
        vectors = Q @ small
    kept = values > 1e-10 * max(float(values[-1]), 0.0)
    return np.asarray(np.sqrt(values[kept])[:, None] * vectors[:, kept].T)
