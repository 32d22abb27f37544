"""Coordinates in which the pairs are white: what a metric without the norm is learned in.

Without the norm any invertible map of the features leaves the problem as it is. In coordinates in which
``sum_e z_e z_e'`` is the identity it is as well conditioned as it can be, and features in which no pair
differs are gone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lopro.core.arrays import Array, from_numpy, to_numpy
from lopro.core.deadline import EIGH, current_deadline
from lopro.core.diagonals import inverse_roots
from lopro.metric.loss import PairLoss

__all__ = ["White", "white_pairs"]

#: Directions in which the squares of the pairs' differences are this small count as rounding.
_RANK_TOLERANCE = 1e-13


@dataclass(frozen=True)
class White:
    """The pairs in white coordinates: samples ``x`` became ``x T``, and a matrix ``A`` is ``T A T'`` here."""

    loss: PairLoss
    #: ``T``, of shape (d, k), in NumPy.
    T: Array
    #: Its inverse from the left, of shape (k, d).
    inverse: Array

    def back(self, A: Array) -> Array:
        """Return a matrix of the white coordinates in those of the features."""
        A = self.T @ A @ self.T.T
        return 0.5 * (A + A.T)

    def forth(self, A: Array) -> Array:
        """Return a matrix of the features in white coordinates; what no pair sees is lost."""
        A = self.inverse @ A @ self.inverse.T
        return 0.5 * (A + A.T)

    def multiplier_back(self, S: Array) -> Array:
        """Return a multiplier: its inner product with `back` is the one it had with the matrix."""
        return self.inverse.T @ S @ self.inverse


def white_pairs(loss: PairLoss, diagonal: Array) -> White | None:
    """Return the pairs in coordinates in which ``M1``, of this diagonal, is the identity, or None.

    They come from the samples, not from ``M1``: in squares, rounding would hide directions in which samples
    differ clearly and which may separate the classes.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.metric.loss import PairLoss
    >>> from lopro.metric.white import white_pairs
    >>> loss = PairLoss.from_differences(np.array([[3.0, 0.0], [0.0, 1e-3]]), [0.0, 2.0])
    >>> white = white_pairs(loss, np.array([9.0, 1e-6]))
    >>> white.loss.adjoint(np.ones(2)).round(12) + 0.0
    array([[1., 0.],
           [0., 1.]])
    """
    sizes = to_numpy(inverse_roots(diagonal))
    X = to_numpy(loss.X).astype(np.float64) * sizes
    current_deadline().need(EIGH * max(X.shape) * float(min(X.shape)) ** 2)
    X -= X.mean(axis=0)
    U, lengths, V = np.linalg.svd(X, full_matrices=False)
    if lengths[0] == 0.0:
        return None
    clear = lengths > max(X.shape) * np.finfo(float).eps * lengths[0]
    U, lengths, V = U[:, clear], lengths[clear], V[clear]
    inside = loss.with_samples(from_numpy(U, loss.X))
    values, vectors = np.linalg.eigh(to_numpy(inside.adjoint(inside.ones())))
    # Samples that no chain of pairs connects may differ in ways that no pair sees.
    seen = values > _RANK_TOLERANCE * values[-1]
    if not seen.any():
        return None
    roots, vectors = np.sqrt(values[seen]), vectors[:, seen]
    T = sizes[:, None] * (V.T / lengths) @ (vectors / roots)
    present = sizes > 0.0
    lengthened = V * np.where(present, 1.0 / np.where(present, sizes, 1.0), 0.0)
    inverse = (roots[:, None] * vectors.T) @ (lengths[:, None] * lengthened)
    white = loss.with_samples(from_numpy(U @ (vectors / roots), loss.X))
    return White(white, T, inverse)
