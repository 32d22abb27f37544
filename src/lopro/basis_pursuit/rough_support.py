"""Newton's method on signs, on columns whose Gram matrix is in single precision: in half of the time.

A rough factor of the Gram matrix loses nothing where residuals are exact. At a point ``x`` on a support with
residual ``r``, correlations ``g = A'r`` and multiplier ``a``, the solution for signs ``s`` is
``x + u - (alpha - a) q`` with ``G u = g - a w s`` and ``G q = w s``. Where signs stay, ``u`` is what rounding
has left, and the next step removes it, as iterative refinement does. So residuals and correlations are
computed with the columns in double precision, and only the two solves are rough. Where columns are so close
to each other that this does not converge, the Gram matrix is computed again in double precision.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lopro.basis_pursuit.signed_support import (
    ColumnSet,
    Restricted,
    Solution,
    Vector,
    cholesky_routines,
    compress,
    join_last,
    submatrix,
)
from lopro.core.deadline import current_deadline

__all__ = ["RoughColumns", "RoughRestricted"]

_EPS = float(np.finfo(np.float32).eps)
_DEPENDENT = 1e3 * _EPS  # the share of a column's square that others must leave
_USUAL = (1e-6, 1e6)  # sizes of entries whose squares and sums single precision holds
_REFINED = 1e-11  # of alpha: what correlations on the support may be off in the end
_ROUNDING = 64.0 * float(np.finfo(np.float64).eps)
_PROGRESS = 0.5  # a refinement that gains less does not converge


class RoughColumns(ColumnSet):
    """Columns in double precision, their Gram matrix in single precision until `sharpen` is called."""

    def __init__(self, y: Vector, weights: Vector) -> None:
        super().__init__(y, weights)
        self.rough = True
        self.gram = self.gram.astype(np.float32)
        self._copies: list[Any] = []  # of the pieces, scaled, in single precision
        self._scale = 1.0  # a power of two

    def _hold(self, new: Vector) -> list[Vector]:
        if not self.rough:
            return super()._hold(new)
        if not self._pieces:
            self._scale = _scale_for(new)
        self._pieces.append(new)
        scaled = new if self._scale == 1.0 else self._scale * new
        with np.errstate(over="ignore", invalid="ignore"):  # the factor will tell
            self._copies.append(scaled.astype(np.float32))
            return [self._copies[-1].T @ copy for copy in self._copies]

    def _join_small_pieces(self) -> None:
        join_last(self._copies)
        super()._join_small_pieces()

    def keep(self, wanted: Vector) -> None:
        compress(self._copies, wanted)
        super().keep(wanted)

    def sharpen(self) -> None:
        """Compute the Gram matrix in double precision, now and for what is to come."""
        if self.rough:
            self.rough = False
            self._copies = []
            self.gram = np.empty((len(self), len(self)))
            pieces, self._pieces, start = self._pieces, [], 0
            for piece in pieces:
                current_deadline().check()
                self._take_in(piece, start)
                start += piece.shape[1]

    def gram_times(self, rows: Vector, columns: Vector, x: Vector) -> Vector:
        """Return a block of the Gram matrix times a vector, roughly."""
        block = self.gram[np.ix_(rows, columns)].astype(np.float64)
        return np.asarray(block @ x) / self._scale**2

    def factor(self, support: Vector) -> Callable[[Vector], Vector] | None:
        """Return a rough solver for the Gram matrix of some columns; None if they are too close."""
        if support.size == 0:
            return lambda right: right
        current_deadline().need(support.size**3 / 3.0)
        G = submatrix(self.gram, support)
        potrf, potrs, *_ = cholesky_routines(G.dtype.char)
        least = _DEPENDENT * G.diagonal()
        # G is symmetric, and its transpose is in the order LAPACK wants: nothing is copied.
        factor, info = potrf(G.T, lower=True, overwrite_a=True, clean=False)
        # Written so that what is not a number counts as too close.
        if info != 0 or not bool((np.diagonal(factor) ** 2 > least).all()):
            return None
        square = self._scale**2

        def solve(right: Vector) -> Vector:
            # In units of their sizes: single precision has a short range.
            size = np.abs(right).max(axis=0)
            size = np.where(size > 0.0, size, 1.0)
            solved, _ = potrs(factor, (right / size).astype(np.float32), lower=True)
            return np.asarray(solved.astype(np.float64) * (size * square))

        return solve


def _scale_for(block: Vector) -> float:
    """Return a power of two that brings the entries of a block to a usual size."""
    peak = float(np.abs(block).max(initial=0.0))
    if peak == 0.0 or _USUAL[0] < peak < _USUAL[1]:
        return 1.0
    return math.ldexp(1.0, -math.frexp(peak)[1])


@dataclass(frozen=True)
class _Point:
    """Coefficients on the column set, and what belongs to them."""

    x: Vector
    residual: Vector
    pulled: Vector  # the correlations of the columns with the residual
    alpha: float = 0.0
    reached: bool = False


@dataclass(frozen=True)
class _RoughFace:
    """A set of signs and a rough solver for the Gram matrix of its support."""

    signs: Vector
    support: Vector
    pull: Vector  # weights times signs on the support
    solve: Callable[[Vector], Vector]


class RoughRestricted(Restricted):
    """The problem on columns with a rough Gram matrix."""

    columns: RoughColumns

    def solve(self, signs: Vector, floor: float, steps: int) -> Solution:
        if self.columns.rough:
            found = self._solve_roughly(signs, floor, steps)
            if found is not None:
                return found
            self.columns.sharpen()
        return super().solve(signs, floor, steps)

    def _solve_roughly(self, signs: Vector, floor: float, steps: int) -> Solution | None:
        """Solve as `Restricted` does; None where the Gram matrix is too rough for that."""
        c = self.columns
        point = _Point(np.zeros(len(c)), c.y, c.correlations)
        face, seen, error, settled = None, set[bytes](), math.inf, False
        for _ in range(steps):
            if face is None or signs is not face.signs:
                key = signs.tobytes()
                if key in seen:
                    return None
                seen.add(key)
                face = None  # its factor makes room for the next one
                face = self._rough_face(signs)
                if face is None:
                    return None
            point = self._moved(point, face, floor)
            # The next step would move by this much; without it a small coefficient may seem to flip.
            x = point.x + self._on_columns(face.support, face.solve(self._lack(point, face)))
            signs = self._next_signs(face.signs, x, point.pulled, point.alpha)
            if signs is not face.signs:
                error = math.inf
                continue
            before, error = error, self._error(point, face)
            settled = error <= _REFINED * point.alpha + _ROUNDING * self._most_of(point.residual)
            if settled:
                break
            if not error <= _PROGRESS * before:
                return None
        return self._solution(point, signs, settled) if point.alpha > 0.0 else None

    def _rough_face(self, signs: Vector) -> _RoughFace | None:
        """Factor the Gram matrix of the columns with a sign; None if they are too close to each other."""
        c, S = self.columns, np.flatnonzero(signs)
        solve = c.factor(S)
        if solve is None:
            return None
        return _RoughFace(signs, S, c.weights[S] * signs[S], solve)

    def _moved(self, point: _Point, face: _RoughFace, floor: float) -> _Point:
        """Return the solution for the signs of a face, as it looks from a point."""
        c, S, x = self.columns, face.support, point.x
        outside = np.flatnonzero((face.signs == 0.0) & (x != 0.0))
        lack = self._lack(point, face)
        if outside.size:
            lack += c.gram_times(S, outside, x[outside])
        solved = face.solve(np.stack([lack, face.pull], axis=1))
        step, q = self._on_columns(S, solved[:, 0]), self._on_columns(S, solved[:, 1])
        step[outside] = -x[outside]
        image, tail = c.images(step, q)
        rest = point.residual - image - point.alpha * tail
        alpha, reached = self._alpha(rest, tail, floor)
        residual = rest + alpha * tail
        x = x + step - (alpha - point.alpha) * q
        return _Point(x, residual, c.adjoint(residual), alpha, reached)

    def _most_of(self, residual: Vector) -> float:
        """Return about the largest correlation that a residual of this length can have."""
        y = self.columns.y
        return self.most * float(np.linalg.norm(residual) / np.linalg.norm(y))

    def _lack(self, point: _Point, face: _RoughFace) -> Vector:
        """Return by how much correlations on the support differ from what they should be."""
        return point.pulled[face.support] - point.alpha * face.pull

    def _error(self, point: _Point, face: _RoughFace) -> float:
        """Return the largest of these differences in units of the weights, as alpha is."""
        lack = np.abs(self._lack(point, face))
        return float((lack / self.columns.weights[face.support]).max(initial=0.0))

    def _solution(self, point: _Point, signs: Vector, settled: bool) -> Solution:
        """Return a point as a solution.

        The residual of a settled one is computed anew, free of the rounding of the steps that led there. For
        the dual point the other one is better: its correlations on the support have been refined.
        """
        residual, dual = point.residual, point.residual / point.alpha
        if settled:
            residual = self.columns.y - self.columns.forward(point.x)
        return Solution(point.x, signs, point.alpha, residual, dual, point.reached, settled)
