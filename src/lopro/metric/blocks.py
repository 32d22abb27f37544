r"""Repairs of dual points where some features are so large that the norm hardly matters to them.

In the units of such features the box of ``Y`` is smaller than the rounding of ``M(w)``, and a slack that is
not quite psd could only be repaired at the price of the whole bound. For them (the set ``L``) ``Y`` is given
up, which costs hardly anything, and the slack is repaired by ``M1`` itself (M2.4 of the theory): with
``S + s B`` psd for ``B = M1`` on ``L`` and ``diag(M1)`` on the rest, ``kappa (w - s 1)`` is dual feasible for
``kappa <= tau / (max|Y| + s m)``, where ``m`` is the largest entry of ``M1`` that ``B`` lacks. Between ``L``
and the rest ``Y`` keeps what differences of samples see of it: on what they do not see the slack has to
vanish.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lopro.core.arrays import Array, from_numpy, to_numpy
from lopro.metric.loss import PairLoss
from lopro.metric.white import White, white_pairs

__all__ = ["Block", "blocks"]

#: The norm hardly matters to features of size ``s`` if ``tau / s^2`` is below this share of the targets.
NEGLIGIBLE = 1e-4
#: So many sets ``L`` are tried at most.
MOST = 4

Indices = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class Block:
    """The pairs in coordinates in which ``B`` is the identity."""

    loss: PairLoss
    large: Indices
    white: White
    #: The other features come last in these coordinates, multiplied by these roots.
    rest: Indices
    roots: Array
    #: The largest entry off the diagonal of ``M1`` that ``B`` lacks.
    largest: float

    def slack(self, Y: Array, w: Array) -> tuple[Array, float]:
        """Return ``Y - M(w)`` in these coordinates, and the largest entry of the ``Y`` that was taken."""
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


def blocks(loss: PairLoss, tau: float, M1: Array, diagonal: Array) -> tuple[Block, ...]:
    """Return the repairs worth trying: the sets ``L`` of the largest features, cut where sizes jump."""
    off = np.abs(to_numpy(M1))
    np.fill_diagonal(off, 0.0)
    squares = to_numpy(diagonal)
    alive = np.flatnonzero(squares > 0.0)
    order = alive[np.argsort(-squares[alive])]
    n = loss.count
    wished = loss.target_size / n
    count = int(np.sum(tau * n / squares[order] < NEGLIGIBLE * wished))
    found = []
    for size in _cuts(np.log(squares[order]), count):
        block = _block(loss, np.sort(order[:size]), np.sort(order[size:]), squares, off)
        found += [] if block is None else [block]
    return tuple(found)


def _cuts(logs: np.ndarray[Any, Any], count: int) -> list[int]:
    """Return how many of the features, in falling order, may be in ``L``: where the sizes fall most."""
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
) -> Block | None:
    X = to_numpy(loss.X).astype(np.float64)
    white = white_pairs(loss.with_samples(np.ascontiguousarray(X[:, large])), squares[large])
    if white is None:
        return None
    roots = 1.0 / np.sqrt(squares[rest])
    samples = np.hstack([white.loss.X, X[:, rest] * roots])
    lacking = off.copy()
    lacking[np.ix_(large, large)] = 0.0
    joined = loss.with_samples(from_numpy(samples, loss.X))
    return Block(joined, large, white, rest, roots, float(lacking.max(initial=0.0)))
