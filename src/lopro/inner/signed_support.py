"""Basis pursuit denoising on a few columns, by Newton's method on signs.

On a set of columns with known signs ``s`` the solution of ``min w'|x| s.t. |A x - y| <= sigma`` is explicit:
``x = p - alpha q`` with ``p = G^-1 A'y``, ``q = G^-1 (w s)``, ``G = A'A``, and ``alpha`` from the norm of the
residual ``(y - A p) + alpha A q``. A step solves for it, drops columns whose sign has flipped and takes in
those that correlate too much with the residual: the semismooth Newton method. It is fast and may cycle; where
it does, the solution says that it has not settled, and a method that cannot fail has to take over.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy.linalg import get_lapack_funcs

__all__ = ["ColumnSet", "Restricted", "Solution"]

Vector: TypeAlias = "np.ndarray[Any, Any]"

_NEWTON_STEPS = 30
_PIECE = 128  # columns that are moved at a time
_LEAST_ALPHA = 1e-9  # relative; below it correlations with the residual are rounding


class ColumnSet:
    """Some columns of a matrix, their Gram matrix and their correlations with ``y``; grows in place."""

    def __init__(self, y: Vector, weights: Vector) -> None:
        self.y = y
        self._all_weights = weights
        self.indices = np.empty(0, dtype=np.intp)
        self.weights = np.empty(0, dtype=y.dtype)
        self.correlations = np.empty(0, dtype=y.dtype)
        self._columns = np.empty((0, len(y)), dtype=y.dtype)
        self._gram = np.empty((0, 0), dtype=y.dtype)

    def __len__(self) -> int:
        return len(self.indices)

    def extend(
        self, indices: Vector, read: Callable[[Vector], Vector], correlations: Vector
    ) -> None:
        """Take in more columns; ``read`` returns those asked for as the columns of a matrix."""
        n, total = len(self), len(self) + len(indices)
        self._reserve(total)
        for start in range(n, total, _PIECE):  # in pieces: no second copy of many columns
            stop = min(start + _PIECE, total)
            self._columns[start:stop] = read(indices[start - n : stop - n]).T
            self._gram[start:stop, :stop] = self._columns[start:stop] @ self._columns[:stop].T
            self._gram[:start, start:stop] = self._gram[start:stop, :start].T
        self.indices = np.concatenate([self.indices, indices])
        self.weights = self._all_weights[self.indices]
        self.correlations = np.concatenate([self.correlations, correlations])

    def _reserve(self, total: int) -> None:
        """Make room at once for as many columns as there are rows: memory counts when it is touched."""
        capacity, n = len(self._columns), len(self)
        if total <= capacity:
            return
        capacity = max(2 * total, len(self.y))
        columns = np.empty((capacity, len(self.y)), dtype=self.y.dtype)
        gram = np.empty((capacity, capacity), dtype=self.y.dtype)
        columns[:n], gram[:n, :n] = self._columns[:n], self.gram
        self._columns, self._gram = columns, gram

    def keep(self, wanted: Vector) -> None:
        """Forget the columns that are not wanted."""
        kept = np.flatnonzero(wanted)
        n = len(kept)
        self._gram[:n, :n] = self._gram[np.ix_(kept, kept)]
        for start in range(0, n, _PIECE):
            stop = min(start + _PIECE, n)
            self._columns[start:stop] = self._columns[kept[start:stop]]
        self.indices, self.weights = self.indices[kept], self.weights[kept]
        self.correlations = self.correlations[kept]

    @property
    def gram(self) -> Vector:
        """``A'A`` of the columns."""
        return self._gram[: len(self), : len(self)]

    def forward(self, x: Vector) -> Vector:
        """Return ``A x`` for coefficients of all columns of the set."""
        return x @ self._columns[: len(self)]

    def adjoint(self, r: Vector) -> Vector:
        """Return ``A'r`` for all columns of the set."""
        return self._columns[: len(self)] @ r


@dataclass(frozen=True)
class Solution:
    """Coefficients on the column set, with the residual and the multiplier that go with them."""

    x: Vector
    signs: Vector
    alpha: float
    residual: Vector  # y - A x
    dual: Vector  # residual / alpha; its limit where alpha = 0
    reached: bool  # whether the residual is as short as sigma
    settled: bool  # whether signs and correlations agree on the whole column set


@dataclass(frozen=True)
class Restricted:
    """The problem on a column set."""

    columns: ColumnSet
    sigma: float
    nonneg: bool = False

    def solve(self, signs: Vector, floor: float, steps: int = _NEWTON_STEPS) -> Solution:
        """Solve with ``alpha >= floor``, starting from the signs of an earlier solution."""
        signs = signs.copy()
        seen: set[bytes] = set()
        for step in range(steps):
            x, alpha = self._stationary(signs, floor)
            slack = self._slack(x, alpha)
            flipped = (signs != 0.0) & (x * signs <= 0.0)
            wanted = (signs == 0.0) & (slack > 0.0)
            if not flipped.any() and not wanted.any():
                return self._finished(signs, floor, settled=True)
            key = signs.tobytes()
            if key in seen or step == steps - 1:
                break
            seen.add(key)
            signs[flipped] = 0.0
            # Too many newcomers at once lead astray: take those that want it most.
            chosen = np.flatnonzero(wanted)
            limit = max(10, int(np.count_nonzero(signs)) // 4)
            if len(chosen) > limit:
                chosen = chosen[np.argpartition(-slack[chosen], limit)[:limit]]
            signs[chosen] = self._sign_of_slope(x)[chosen]
        return self._finished(signs, floor, settled=False)

    def _slope(self, x: Vector) -> Vector:
        """Return ``A'(y - A x)`` on the column set."""
        return np.asarray(self.columns.correlations - self.columns.gram @ x)

    def _sign_of_slope(self, x: Vector) -> Vector:
        return np.sign(self._slope(x))

    def _slack(self, x: Vector, alpha: float) -> Vector:
        """Return by how much each correlation exceeds what its weight allows, less what is rounding."""
        slope = self._slope(x)
        size = (slope if self.nonneg else np.abs(slope)) / self.columns.weights
        rounding = 8.0 * float(np.finfo(slope.dtype).eps) * self.most
        return size - (1.0 + 1e-10) * alpha - rounding

    @property
    def most(self) -> float:
        """The largest correlation with ``y`` in units of the weights: alpha at x = 0."""
        c = self.columns
        return float((np.abs(c.correlations) / c.weights).max(initial=0.0))

    def _pq(self, signs: Vector) -> tuple[Vector, Vector, Vector, Any]:
        """Return the support, ``p``, ``q`` and the factor; dependent columns lose their sign."""
        c = self.columns
        S = np.flatnonzero(signs)
        if S.size == 0:
            empty = np.empty(0, dtype=c.y.dtype)
            return S, empty, empty, (None, lambda factor, right, lower: (right, 0))
        G = c.gram[np.ix_(S, S)]
        potrf, potrs, pstrf = get_lapack_funcs(("potrf", "potrs", "pstrf"), (G,))
        smallest = 1e3 * np.finfo(G.dtype).eps * G.diagonal()
        # G is symmetric, and its transpose is in the order LAPACK wants: nothing is copied.
        factor, info = potrf(G.T, lower=True, overwrite_a=True, clean=False)
        if info != 0 or (np.diagonal(factor) ** 2 <= smallest).any():
            # Dependent columns: pivoting finds a largest independent set, the others step back.
            G = c.gram[np.ix_(S, S)]
            _, pivots, rank, _ = pstrf(G, lower=True, tol=float(smallest.max(initial=0.0)))
            signs[S[pivots[rank:] - 1]] = 0.0
            S = np.flatnonzero(signs)
            factor, info = potrf(c.gram[np.ix_(S, S)], lower=True, clean=False)
            if info != 0:
                raise np.linalg.LinAlgError(
                    "the Gram matrix of independent columns is not definite"
                )
        right = np.stack([c.correlations[S], c.weights[S] * signs[S]], axis=1)
        solved, _ = potrs(factor, right, lower=True)
        return S, solved[:, 0], solved[:, 1], (factor, potrs)

    def _stationary(self, signs: Vector, floor: float) -> tuple[Vector, float]:
        """Return the point for these signs and its alpha."""
        c = self.columns
        S, p, q, _ = self._pq(signs)
        x = np.zeros(len(c), dtype=c.y.dtype)
        square = float(c.y @ c.y - c.correlations[S] @ p)  # |y - A p|^2
        slope = float((c.weights[S] * signs[S]) @ q)
        room = self.sigma**2 - square
        alpha = math.sqrt(max(room, 0.0) / slope) if slope > 0.0 else 0.0
        reached = room >= 0.0 and alpha >= floor
        alpha = alpha if reached else max(floor, _LEAST_ALPHA * self.most)
        x[S] = p - alpha * q
        return x, alpha

    def _finished(self, signs: Vector, floor: float, *, settled: bool) -> Solution:
        """Compute the point once more with explicit residuals: ``|y|^2 - b'p`` loses digits to sigma."""
        c = self.columns
        S, p, q, (factor, potrs) = self._pq(signs)
        P, Q = np.zeros(len(c), dtype=c.y.dtype), np.zeros(len(c), dtype=c.y.dtype)
        Q[S] = q
        for _ in range(2):  # the second pass is a step of iterative refinement
            P[S] = p
            rest = c.y - c.forward(P)
            p = p + potrs(factor, c.adjoint(rest)[S], lower=True)[0]
        tail = c.forward(Q)
        # A hair inside the ball, so that the point is feasible in floating point as well.
        inside = self.sigma * (1.0 - 1e-12) - 4.0 * np.finfo(c.y.dtype).eps * float(
            np.linalg.norm(c.y)
        )
        alpha = _root(rest, tail, max(inside, 0.0))
        exact = self.sigma == 0.0 and float(np.linalg.norm(rest)) <= 1e-10 * float(
            np.linalg.norm(c.y)
        )
        reached = exact or (alpha is not None and alpha >= floor)
        if exact:
            alpha = 0.0
        elif not reached or alpha is None:
            alpha = max(floor, _LEAST_ALPHA * self.most)
        residual = rest + alpha * tail
        dual = residual / alpha if alpha > 0.0 else tail
        # Dividing a short residual magnifies its rounding: restore A'dual = w s on the support.
        correction = np.zeros(len(c), dtype=c.y.dtype)
        off = (c.weights * signs - c.adjoint(dual))[S]
        correction[S] = potrs(factor, off, lower=True)[0]
        dual = dual + c.forward(correction)
        return Solution(P - alpha * Q, signs, alpha, residual, dual, reached, settled)


def _root(rest: Vector, tail: Vector, sigma: float) -> float | None:
    """Return the ``alpha >= 0`` with ``|rest + alpha tail| = sigma``; None if there is none."""
    a, b = float(tail @ tail), float(rest @ tail)
    c = (float(np.linalg.norm(rest)) - sigma) * (float(np.linalg.norm(rest)) + sigma)
    if a == 0.0 or b * b - a * c < 0.0 or c > 0.0:
        return None
    return (math.sqrt(b * b - a * c) - b) / a
