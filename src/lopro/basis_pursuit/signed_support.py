"""Basis pursuit denoising on a few columns, by Newton's method on signs.

On a set of columns with known signs ``s`` the solution of ``min w'|x| s.t. |A x - y| <= sigma`` is explicit:
``x = p - alpha q`` with ``p = G^-1 A'y``, ``q = G^-1 (w s)``, ``G = A'A``, and ``alpha`` from the norm of the
residual ``(y - A p) + alpha A q``. A step solves for it, drops columns whose sign has flipped and takes in
those that correlate too much with the residual: the semismooth Newton method. It is fast and may cycle; where
it does, the solution says that it has not settled, and a method that cannot fail has to take over.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.deadline import current_deadline
from lopro.errors import StalledError
from lopro.maps.algebra import dense, gram_of

__all__ = [
    "ColumnSet",
    "Restricted",
    "Solution",
    "cholesky_routines",
    "compress",
    "join_last",
    "largest",
    "room_for",
    "submatrix",
]

Vector: TypeAlias = "np.ndarray[Any, Any]"

_PIECE = 256  # columns that are held together
_SMALL = 2**15  # entries of columns that are put together
_IDLE = 1e-9  # of the largest coefficient; what is below is zero where alpha is
_LEAST_ALPHA = 1e-9  # relative; below it correlations with the residual are rounding
_SHORT = 1e-5  # relative; below it what is divided by alpha is corrected, even where it only guides


@functools.cache
def cholesky_routines(dtype: str) -> tuple[Any, Any, Any, Any]:
    """Return LAPACK's potrf, potrs, pstrf and posv for a type: a look-up takes as long as a small factor."""
    names = ("potrf", "potrs", "pstrf", "posv")
    return tuple(scipy.linalg.get_lapack_funcs(names, dtype=np.dtype(dtype)))


class ColumnSet:
    """Some columns of a matrix, their Gram matrix and their correlations with ``y``, real or complex.

    ``y`` may be several right-hand sides, the columns of an array. Columns are held in pieces, sparse ones
    where they come sparse, and the Gram matrix exactly, so that memory is what the columns take.
    """

    def __init__(self, y: Vector, weights: Vector) -> None:
        self.y = y
        self._all_weights = weights
        self.indices = np.empty(0, dtype=np.intp)
        self.weights = np.empty(0, dtype=weights.dtype)
        self.correlations = np.empty((0, *y.shape[1:]), dtype=y.dtype)
        #: ``A^H A`` of the columns.
        self.gram = np.empty((0, 0), dtype=y.dtype)
        self._pieces: list[Any] = []  # columns in the order of the indices
        self._most = (self.correlations, 0.0)

    @property
    def most(self) -> float:
        """The largest correlation with ``y`` in units of the weights; asked for often, and kept."""
        of, most = self._most
        if of is not self.correlations:
            most = float((np.abs(self.correlations) / self.weights).max(initial=0.0))
            self._most = (self.correlations, most)
        return most

    def __len__(self) -> int:
        return len(self.indices)

    def extend(
        self, indices: Vector, read: Callable[[Vector], Vector], correlations: Vector
    ) -> None:
        """Take in more columns; ``read`` returns those asked for as the columns of a matrix."""
        n, total = len(self), len(self) + len(indices)
        gram = np.empty((total, total), dtype=self.gram.dtype)
        gram[:n, :n] = self.gram
        self.gram = gram
        for start in range(n, total, _PIECE):
            stop = min(start + _PIECE, total)
            self._take_in(read(indices[start - n : stop - n]), start)
        self.indices = np.concatenate([self.indices, indices])
        self.weights = self._all_weights[self.indices]
        self.correlations = np.concatenate([self.correlations, correlations])

    def _take_in(self, new: Any, start: int) -> None:
        """Hold another piece and fill in the border of the Gram matrix that belongs to it."""
        stop, products = start + new.shape[1], self._hold(new)
        for (at, _), product in zip(self._placed(), products, strict=True):
            self.gram[start:stop, at] = product
        self.gram[:start, start:stop] = self.gram[start:stop, :start].conj().T
        self._join_small_pieces()

    def _join_small_pieces(self) -> None:
        """Put the last piece to the one before if both are small: each is a call of its own in products."""
        join_last(self._pieces)

    def _hold(self, new: Any) -> list[Vector]:
        """Hold another piece; return its products with all pieces."""
        self._pieces.append(new)
        return [dense(gram_of(new, piece)) for piece in self._pieces]

    def keep(self, wanted: Vector) -> None:
        """Forget the columns that are not wanted."""
        kept = np.flatnonzero(wanted)
        self.gram = submatrix(self.gram, kept)
        compress(self._pieces, wanted)
        self.indices, self.weights = self.indices[kept], self.weights[kept]
        self.correlations = self.correlations[kept]

    def _placed(self) -> Iterator[tuple[slice, Any]]:
        """Yield the pieces, each with the places of its columns."""
        at = 0
        for piece in self._pieces:
            yield slice(at, at + piece.shape[1]), piece
            at += piece.shape[1]

    def toarray(self) -> Vector:
        """Return the columns side by side."""
        return np.concatenate([dense(piece) for piece in self._pieces], axis=1)

    def forward(self, x: Vector) -> Vector:
        """Return ``A x`` for coefficients of all columns of the set."""
        return self.images(x)[0]

    def images(self, *vectors: Vector) -> list[Vector]:
        """Return ``A x`` for several vectors; each piece comes from memory once."""
        images = [np.zeros_like(self.y) for _ in vectors]
        for at, piece in self._placed():
            for image, x in zip(images, vectors, strict=True):
                image += piece @ x[at]
        return images

    def adjoint(self, r: Vector) -> Vector:
        """Return ``A^H r`` for all columns of the set."""
        pulled = np.empty_like(self.correlations)
        for at, piece in self._placed():
            pulled[at] = piece.conj().T @ r
        return pulled


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
class _Face:
    """A set of signs with what is needed to solve on it: ``p``, ``q`` and a factor of the Gram matrix."""

    signs: Vector
    support: Vector
    p: Vector
    q: Vector
    solve: Callable[[Vector], Vector]


@dataclass(frozen=True)
class Restricted:
    """The problem on a column set."""

    columns: ColumnSet
    sigma: float
    nonneg: bool = False

    def solve(self, signs: Vector, floor: float, steps: int) -> Solution:
        """Solve with ``alpha >= floor``, starting from the signs of an earlier solution."""
        seen: set[bytes] = set()
        face = self._face(signs)
        for step in range(steps):
            x, alpha = self._stationary(face, floor)
            signs = self._next_signs(face.signs, x, self._slope(x), alpha)
            if signs is face.signs:
                return self._finished(face, signs, floor, settled=True)
            key = face.signs.tobytes()
            if key in seen or step == steps - 1:
                break
            seen.add(key)
            del face  # its factor makes room for the next one
            face = self._face(signs)
        return self._finished(face, signs, floor, settled=False)

    def _next_signs(self, signs: Vector, x: Vector, slope: Vector, alpha: float) -> Vector:
        """Return the signs that a point and its correlations suggest; ``signs`` itself if they agree."""
        slack = self._slack(slope, alpha)
        flipped = (signs != 0.0) & (x * signs <= 0.0)
        wanted = np.flatnonzero((signs == 0.0) & (slack > 0.0))
        if not flipped.any() and not wanted.size:
            return signs
        signs = np.where(flipped, 0.0, signs)
        # Too many newcomers at once lead astray.
        newcomers = wanted[largest(slack[wanted], room_for(signs, len(self.columns.y), 4))]
        signs[newcomers] = np.sign(slope[newcomers])
        return signs

    def _slope(self, x: Vector) -> Vector:
        """Return ``A'(y - A x)`` on the column set."""
        return np.asarray(self.columns.correlations - self.columns.gram @ x)

    def _slack(self, slope: Vector, alpha: float) -> Vector:
        """Return by how much each correlation exceeds what its weight allows, less what is rounding."""
        size = (slope if self.nonneg else np.abs(slope)) / self.columns.weights
        rounding = 8.0 * float(np.finfo(slope.dtype).eps) * self.most
        return np.asarray(size - (1.0 + 1e-10) * alpha - rounding)

    @property
    def most(self) -> float:
        """The largest correlation with ``y`` in units of the weights: alpha at x = 0."""
        return self.columns.most

    def _face(self, signs: Vector) -> _Face:
        """Factor the Gram matrix of the columns with a sign; dependent ones lose theirs."""
        c = self.columns
        S = np.flatnonzero(signs)
        if S.size == 0:
            return self._no_face(signs)
        current_deadline().need(S.size**3 / 3.0)
        G = submatrix(c.gram, S)
        potrf, potrs, pstrf, _ = cholesky_routines(G.dtype.char)
        smallest = 1e3 * np.finfo(G.dtype).eps * G.diagonal()
        # G is symmetric, and its transpose is in the order LAPACK wants: nothing is copied.
        factor, info = potrf(G.T, lower=True, overwrite_a=True, clean=False)
        if info != 0 or (np.diagonal(factor) ** 2 <= smallest).any():
            # Dependent columns: pivoting finds a largest independent set, the others step back.
            G = submatrix(c.gram, S)
            _, pivots, rank, _ = pstrf(G, lower=True, tol=float(smallest.max(initial=0.0)))
            signs = signs.copy()
            signs[S[pivots[rank:] - 1]] = 0.0
            S = np.flatnonzero(signs)
            if S.size == 0:
                return self._no_face(signs)
            factor, info = potrf(submatrix(c.gram, S), lower=True, clean=False)
            if info != 0:
                raise StalledError("the Gram matrix of independent columns is not definite")
        right = np.stack([c.correlations[S], c.weights[S] * signs[S]], axis=1)
        solved, _ = potrs(factor, right, lower=True)
        return _Face(
            signs, S, solved[:, 0], solved[:, 1], lambda right: potrs(factor, right, lower=True)[0]
        )

    def _no_face(self, signs: Vector) -> _Face:
        """Return the face that is the origin."""
        empty = np.empty(0, dtype=self.columns.y.dtype)
        return _Face(signs, np.flatnonzero(signs), empty, empty, lambda right: right)

    def _stationary(self, face: _Face, floor: float) -> tuple[Vector, float]:
        """Return the point for these signs and its alpha."""
        c, S = self.columns, face.support
        x = np.zeros(len(c), dtype=c.y.dtype)
        square = float(c.y @ c.y - c.correlations[S] @ face.p)  # |y - A p|^2
        slope = float((c.weights[S] * face.signs[S]) @ face.q)
        room = self.sigma**2 - square
        alpha = math.sqrt(max(room, 0.0) / slope) if slope > 0.0 else 0.0
        # Of equations nothing is left but rounding, whatever its sign.
        if self.sigma == 0.0 or room < 0.0 or alpha < floor:
            alpha = max(floor, _LEAST_ALPHA * self.most)
        x[S] = face.p - alpha * face.q
        return x, alpha

    def _finished(self, face: _Face, signs: Vector, floor: float, *, settled: bool) -> Solution:
        """Compute the point once more with explicit residuals: ``|y|^2 - b'p`` loses digits to sigma.

        ``signs`` is where a next solve should start; the point belongs to the face.
        """
        c, S = self.columns, face.support
        P = self._refined(face, face.p) if settled else self._on_columns(S, face.p)
        Q = self._on_columns(S, face.q)
        rest, tail = c.y - c.forward(P), c.forward(Q)
        end = self._end_of_path(face, P) if self.sigma == 0.0 else None
        if end is not None:
            P, rest = end
            alpha, reached = 0.0, True
        else:
            alpha, reached = self._alpha(rest, tail, floor)
        residual = rest + alpha * tail
        dual = residual / alpha if alpha > 0.0 else tail
        if settled or alpha <= _SHORT * self.most:
            # Dividing a short residual magnifies its rounding: restore A'dual = w s on the support.
            correction = (c.weights * face.signs - c.adjoint(dual))[S]
            dual = dual + c.forward(self._on_columns(S, face.solve(correction)))
        return Solution(P - alpha * Q, signs, alpha, residual, dual, reached, settled)

    def _on_columns(self, support: Vector, values: Vector) -> Vector:
        """Return coefficients of all columns that have these values on a support."""
        x = np.zeros(len(self.columns), dtype=self.columns.y.dtype)
        x[support] = values
        return x

    def _refined(self, face: _Face, p: Vector) -> Vector:
        """Return the least-squares coefficients after a step of iterative refinement."""
        c, S = self.columns, face.support
        P = self._on_columns(S, p)
        P[S] += face.solve(c.adjoint(c.y - c.forward(P))[S])
        return P

    def _end_of_path(self, face: _Face, P: Vector) -> tuple[Vector, Vector] | None:
        """Return the coefficients at ``alpha = 0`` and their residual, where the equations are met there.

        Equations are met by as many columns as there are rows, whichever they are: this is the end of the
        path only if the signs are those that lead to it. Columns whose coefficient vanishes there are idle:
        they support the dual point, and what rounding makes of their zero has no sign.
        """
        c, S = self.columns, face.support
        size = float(np.linalg.norm(c.y))
        close = max(1e-12, 1e3 * float(np.finfo(c.y.dtype).eps))
        idle = np.abs(P[S]) <= _IDLE * float(np.abs(P[S]).max(initial=0.0))
        if not bool((idle | (P[S] * face.signs[S] > 0.0)).all()):
            return None
        if idle.any():
            signs = face.signs.copy()
            signs[S[idle]] = 0.0
            face = self._face(signs)
            P = self._refined(face, face.p)
        P = P + self._on_columns(
            face.support, face.solve(c.adjoint(c.y - c.forward(P))[face.support])
        )
        rest = c.y - c.forward(P)
        return (P, rest) if float(np.linalg.norm(rest)) <= close * size else None

    def _alpha(self, rest: Vector, tail: Vector, floor: float) -> tuple[float, bool]:
        """Return alpha at or above the floor, and whether it makes the residual as short as sigma."""
        size = float(np.linalg.norm(self.columns.y))
        # A hair inside the ball, so that the point is feasible in floating point as well.
        inside = self.sigma * (1.0 - 1e-12) - 4.0 * float(np.finfo(rest.dtype).eps) * size
        alpha = _root(rest, tail, max(inside, 0.0))
        if alpha is not None and alpha >= floor:
            return alpha, True
        return max(floor, _LEAST_ALPHA * self.most), False


def submatrix(matrix: Vector, positions: Vector) -> Vector:
    """Return the rows and columns at some positions; columns first, then whole rows, is the quickest way."""
    return matrix.take(positions, axis=1).take(positions, axis=0)


def join_last(pieces: list[Any]) -> None:
    """Put the last two pieces together if they are small, so that it takes no time."""
    if len(pieces) < 2 or scipy.sparse.issparse(pieces[-1]) or scipy.sparse.issparse(pieces[-2]):
        return
    rows, columns = pieces[-1].shape
    if rows * (columns + pieces[-2].shape[1]) <= _SMALL:
        last = pieces.pop()
        pieces[-1] = np.concatenate([pieces[-1], last], axis=1)


def compress(pieces: list[Any], wanted: Vector) -> None:
    """Leave the columns that are wanted, piece by piece: there is never a second copy of all columns."""
    at = 0
    for i, piece in enumerate(pieces):
        mask = wanted[at : at + piece.shape[1]]
        at += piece.shape[1]
        if not mask.all():
            pieces[i] = piece[:, mask]
        del piece
    pieces[:] = [piece for piece in pieces if piece.shape[1] > 0]


def room_for(signs: Vector, rows: int, part: int) -> int:
    """Return how many columns may join those with a sign: a part of them, and fewer as rows run out.

    More columns than rows are dependent, and which of them have to leave would be chance.
    """
    n = int(np.count_nonzero(signs))
    return min(max(10, n // part), max(1, (rows - n) // 2))


def largest(sizes: Vector, count: int) -> Vector:
    """Return the positions of the ``count`` largest entries, in no order."""
    if count >= len(sizes):
        return np.arange(len(sizes))
    return np.argpartition(-sizes, count)[:count]


def _root(rest: Vector, tail: Vector, sigma: float) -> float | None:
    """Return the ``alpha >= 0`` with ``|rest + alpha tail| = sigma``; None if there is none."""
    a, b = float(tail @ tail), float(rest @ tail)
    c = (float(np.linalg.norm(rest)) - sigma) * (float(np.linalg.norm(rest)) + sigma)
    if a == 0.0 or b * b - a * c < 0.0 or c > 0.0:
        return None
    return (math.sqrt(b * b - a * c) - b) / a
