"""Columns in use where the matrix is: on its device, in its precision, their Gram matrix in double precision.

What is as long as the number of columns or of rows (signs, coefficients, residuals) is NumPy's, in double
precision, on the host: a few hundred kilobytes a round. The columns, their Gram matrix and its factor, where
the work is, stay on the device. Data in single precision are widened a piece at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lopro.basis_pursuit.rough_support import RoughColumns, RoughRestricted
from lopro.basis_pursuit.signed_support import ColumnSet, Restricted, Vector, _Face
from lopro.core.arrays import Array, from_numpy, is_single, namespace, to_numpy
from lopro.core.cholesky_there import factor_there
from lopro.core.deadline import current_deadline
from lopro.maps import LinearMap, NumPyMap, SparseMap
from lopro.maps.algebra import times_for, widened

__all__ = ["ColumnsInPlace", "RestrictedInPlace", "restricted_problem"]

#: Columns of which less than this share of their squares is left are dependent on others.
_DEPENDENT = 1e3 * float(np.finfo(np.float64).eps)
#: Columns that are held together, and widened at a time: few calls for a device, and no copy of all of them.
_PIECE = 1024
#: Rows and columns from which on Gram matrices and factors take longer than what surrounds them.
_MANY = 500


def restricted_problem(
    A: LinearMap, like: Array, y: Vector, weights: Vector, sigma: float, nonneg: bool
) -> Restricted:
    """Return the problem on no columns of a map yet, for points of the library and precision of ``like``."""
    # Sparse columns are few numbers: those of single precision are held in double precision.
    in_place = not isinstance(like, np.ndarray) or is_single(like)
    if in_place and not isinstance(A, SparseMap):
        return RestrictedInPlace(ColumnsInPlace(like, y, weights), sigma, nonneg)
    if isinstance(A, NumPyMap) and min(A.shape) >= _MANY and sigma > 0.0:
        return RoughRestricted(RoughColumns(y, weights), sigma, nonneg)
    return Restricted(ColumnSet(y, weights), sigma, nonneg)


class ColumnsInPlace(ColumnSet):
    """Some columns of a matrix and their Gram matrix, in the library and on the device of ``like``."""

    def __init__(self, like: Array, y: Vector, weights: Vector) -> None:
        super().__init__(y, weights)
        self._like = widened(like)
        self._single = is_single(like)
        self._times = times_for(like)
        self._gram: Array = from_numpy(np.empty((0, 0)), self._like)

    @property
    def gram(self) -> Vector:
        """``A'A`` of the columns, on the host: for the rare case that they are dependent."""
        return to_numpy(self._gram)

    @gram.setter
    def gram(self, gram: Any) -> None:
        self._gram = gram

    def gram_of(self, positions: Vector) -> Array:
        """Return the Gram matrix of some of the columns, where it is."""
        return self._taken(self._taken(self._gram, positions, 0), positions, 1)

    def _taken(self, block: Array, positions: Vector, axis: int) -> Array:
        return namespace(block).take(block, from_numpy(positions, block), axis=axis)

    def extend(
        self, indices: Vector, read: Callable[[Vector], Array], correlations: Vector
    ) -> None:
        there, own = from_numpy(self.y, self._like), [np.empty(0)]
        for start in range(0, len(indices), _PIECE):
            new = read(indices[start : start + _PIECE])
            self._append(new)
            if self._single:
                own.append(to_numpy(self._times(widened(new).T, there)))
        if self._single:
            # Those of all columns may be sums in single precision.
            correlations = np.concatenate(own)
        self.indices = np.concatenate([self.indices, indices])
        self.weights = self._all_weights[self.indices]
        self.correlations = np.concatenate([self.correlations, correlations])

    def _append(self, new: Array) -> None:
        """Take in a piece: the Gram matrix grows by a border."""
        xp, wide = namespace(self._like), widened(new)
        corner = self._times(wide.T, wide)
        if self._pieces:
            beside = xp.concat(
                [self._times(wide.T, widened(piece)) for piece in self._pieces], axis=1
            )
            upper = xp.concat([self._gram, beside.T], axis=1)
            corner = xp.concat([upper, xp.concat([beside, corner], axis=1)], axis=0)
        self._gram = corner
        self._pieces.append(new)
        self._join_small_pieces()

    def _join_small_pieces(self) -> None:
        """Put neighbours together as long as they are small: each piece is a call of its own in products."""
        joined: list[Array] = []
        for piece in self._pieces:
            if joined and joined[-1].shape[1] + piece.shape[1] <= _PIECE:
                piece = namespace(piece).concat([joined.pop(), piece], axis=1)
            joined.append(piece)
        self._pieces = joined

    def keep(self, wanted: Vector) -> None:
        kept = np.flatnonzero(wanted)
        self._gram = self.gram_of(kept)
        for i, (at, piece) in enumerate(self._placed()):
            if not wanted[at].all():
                self._pieces[i] = self._taken(piece, np.flatnonzero(wanted[at]), 1)
        self._pieces = [piece for piece in self._pieces if piece.shape[1] > 0]
        self._join_small_pieces()
        self.indices, self.weights = self.indices[kept], self.weights[kept]
        self.correlations = self.correlations[kept]

    def forward(self, x: Vector) -> Vector:
        there = from_numpy(x, self._like)
        parts = [self._times(widened(piece), there[at]) for at, piece in self._placed()]
        return to_numpy(sum(parts[1:], start=parts[0])) if parts else np.zeros_like(self.y)

    def adjoint(self, r: Vector) -> Vector:
        there = from_numpy(r, self._like)
        parts = [self._times(widened(piece).T, there) for piece in self._pieces]
        xp = namespace(self._like)
        return to_numpy(xp.concat(parts)) if parts else np.empty_like(self.correlations)

    def gram_times(self, x: Vector) -> Vector:
        """Return ``A'A x`` for coefficients of all columns of the set."""
        return to_numpy(self._times(self._gram, from_numpy(x, self._like)))


class RestrictedInPlace(Restricted):
    """The problem on columns that are on a device: the factor is made there as well."""

    columns: ColumnsInPlace

    def _slope(self, x: Vector) -> Vector:
        return np.asarray(self.columns.correlations - self.columns.gram_times(x))

    def _face(self, signs: Vector) -> _Face:
        c, S = self.columns, np.flatnonzero(signs)
        G = c.gram_of(S)
        if S.size == 0 or isinstance(G, np.ndarray):
            return super()._face(signs)
        current_deadline().check()
        factor = factor_there(G)
        if factor is None or factor.loses(_DEPENDENT):
            return super()._face(signs)  # dependent columns are told apart on the host
        solve = factor.solve
        solved = solve(np.stack([c.correlations[S], c.weights[S] * signs[S]], axis=1))
        return _Face(signs, S, solved[:, 0], solved[:, 1], solve)
