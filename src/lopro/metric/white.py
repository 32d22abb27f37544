r"""Whitened coordinates, in which ``sum_e z_e z_e'`` is the identity, on all or on the largest features.

Without the norm the problem is invariant under invertible maps of the features. In coordinates in which
``sum_e z_e z_e'`` is the identity it is best conditioned, and features in which no pair differs drop out.

With the norm these coordinates serve repairs of dual points (`LargeFeatures`) if some features are so large
that the norm is negligible for them. In the units of such features the box of ``Y`` is smaller than the
rounding errors of ``M(w)``, and to repair a slack that is not quite psd would cost the whole bound. On these
features (the set ``L``) ``Y`` is set to zero, at negligible cost, and the slack is repaired by ``M1`` itself
(M2.4 of the theory): with ``S + s B`` psd for ``B = M1`` on ``L`` and ``diag(M1)`` on the rest, ``kappa (w -
s 1)`` is dual feasible for ``kappa <= tau / (max|Y| + s m)``, where ``m`` is the largest absolute entry of
``M1 - B``. Between ``L`` and the rest ``Y`` is projected on the span of the differences of samples: outside
of this span the slack has to vanish.

Figures at constants are iterations of ``python -m benchmarks.constants metric`` with a tenth of the value and
with ten times it, relative to those with the value; "lost" means that a fit is not certified in 20 s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lopro.core.arrays import Array, from_numpy, to_numpy
from lopro.core.deadline import EIGH, current_deadline
from lopro.core.diagonals import inverse_roots
from lopro.metric.loss import PairLoss

__all__ = ["RANK_TOLERANCE", "LargeFeatures", "White", "blocks", "white_pairs"]

Indices = np.ndarray[Any, np.dtype[np.int64]]

#: Eigenvalues of ``M1`` below this share of the largest count as rounding error: 1.00, 1.00.
RANK_TOLERANCE = 1e-13
#: The norm is negligible for features of size ``s`` if ``tau / s^2`` is below this share of the targets:
#: 1.00, 1.00. Without the sets ``L`` rank-deficient samples in widely different units have no useful bound.
NEGLIGIBLE = 1e-4
#: The largest number of sets ``L``: 1.00, 1.00.
MOST = 4


@dataclass(frozen=True)
class White:
    """The pairs in whitened coordinates: samples ``x`` are ``x T`` here, and ``A`` stands for ``T A T'``."""

    loss: PairLoss
    #: ``T``, of shape (d, k), in NumPy.
    T: Array
    #: The left inverse of ``T``, of shape (k, d).
    inverse: Array

    def back(self, A: Array) -> Array:
        """Return a matrix in whitened coordinates in those of the features."""
        A = self.T @ A @ self.T.T
        return 0.5 * (A + A.T)

    def forth(self, A: Array) -> Array:
        """Return a matrix of the features in whitened coordinates, less parts that no distance depends on."""
        A = self.inverse @ A @ self.inverse.T
        return 0.5 * (A + A.T)

    def multiplier_back(self, S: Array) -> Array:
        """Return a multiplier of the features: inner products with `back` of matrices are preserved."""
        return self.inverse.T @ S @ self.inverse


def white_pairs(loss: PairLoss, diagonal: Array) -> White | None:
    """Return the pairs in coordinates in which ``M1``, which has this diagonal, is the identity, or None.

    They are computed from the samples instead of ``M1``: in squares, rounding would hide directions in which
    samples differ clearly and which may separate the classes.

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
    # Samples in different connected components may differ in directions on which no distance depends.
    seen = values > RANK_TOLERANCE * values[-1]
    if not seen.any():
        return None
    roots, vectors = np.sqrt(values[seen]), vectors[:, seen]
    T = sizes[:, None] * (V.T / lengths) @ (vectors / roots)
    present = sizes > 0.0
    lengthened = V * np.where(present, 1.0 / np.where(present, sizes, 1.0), 0.0)
    inverse = (roots[:, None] * vectors.T) @ (lengths[:, None] * lengthened)
    white = loss.with_samples(from_numpy(U @ (vectors / roots), loss.X))
    return White(white, T, inverse)


@dataclass(frozen=True)
class LargeFeatures:
    """The pairs in coordinates in which the matrix ``B`` of a repair is the identity."""

    loss: PairLoss
    large: Indices
    white: White
    #: The other features, which come last in these coordinates, multiplied by ``roots``.
    rest: Indices
    roots: Array
    #: The largest absolute entry of ``M1 - B``.
    largest: float

    def slack(self, Y: Array, w: Array) -> tuple[Array, float]:
        """Return ``Y - M(w)`` in these coordinates, and the largest absolute entry of the projected ``Y``."""
        S = -self.loss.adjoint(w)
        if len(self.rest) == 0:
            return S, 0.0
        Y = to_numpy(Y)
        inside = Y[np.ix_(self.rest, self.rest)]
        seen = self.white.T.T @ Y[np.ix_(self.large, self.rest)]
        first, padded = len(seen), np.zeros(S.shape)
        padded[first:, first:] = self.roots[:, None] * inside * self.roots
        padded[:first, first:] = seen * self.roots
        padded[first:, :first] = padded[:first, first:].T
        most = max(np.abs(inside).max(), np.abs(self.white.inverse.T @ seen).max())
        return S + from_numpy(padded, S), float(most)


def blocks(loss: PairLoss, tau: float, M1: Array, diagonal: Array) -> tuple[LargeFeatures, ...]:
    """Return the repairs to try: sets ``L`` of the largest features, which end at large gaps of sizes."""
    off = np.abs(to_numpy(M1))
    np.fill_diagonal(off, 0.0)
    squares = to_numpy(diagonal)
    present = np.flatnonzero(squares > 0.0)
    order = present[np.argsort(-squares[present])]
    n = loss.count
    size_of_targets = loss.target_size / n
    count = int(np.sum(tau * n / squares[order] < NEGLIGIBLE * size_of_targets))
    found = []
    for size in _cuts(np.log(squares[order]), count):
        block = _block(loss, np.sort(order[:size]), np.sort(order[size:]), squares, off)
        found += [] if block is None else [block]
    return tuple(found)


def _cuts(logs: np.ndarray[Any, Any], count: int) -> list[int]:
    """Return candidate sizes of ``L``, at most ``count``: those at the largest gaps of the sorted sizes."""
    if count == 0:
        return []
    jumps = np.append(logs[:-1] - logs[1:], np.inf)[:count]
    return sorted((np.argsort(-jumps, kind="stable")[:MOST] + 1).tolist())


def _block(
    loss: PairLoss,
    large: Indices,
    rest: Indices,
    squares: np.ndarray[Any, Any],
    off: np.ndarray[Any, Any],
) -> LargeFeatures | None:
    X = to_numpy(loss.X).astype(np.float64)
    white = white_pairs(loss.with_samples(np.ascontiguousarray(X[:, large])), squares[large])
    if white is None:
        return None
    roots = 1.0 / np.sqrt(squares[rest])
    samples = np.hstack([white.loss.X, X[:, rest] * roots])
    lacking = off.copy()
    lacking[np.ix_(large, large)] = 0.0
    joined = loss.with_samples(from_numpy(samples, loss.X))
    return LargeFeatures(joined, large, white, rest, roots, float(lacking.max(initial=0.0)))
