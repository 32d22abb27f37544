"""The columns of a working set where the matrix is: on its device, in its precision, in its library."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lopro.basis_pursuit.columns import SETTINGS, ColumnSet, Solver, Vector
from lopro.core.arrays import Array, from_numpy, is_single, namespace, to_numpy
from lopro.core.deadline import current_deadline
from lopro.core.device_cholesky import device_factor
from lopro.maps import LinearMap, NumPyMap, SparseMap
from lopro.maps.algebra import times_for, widened

__all__ = ["DeviceColumns", "column_set"]

#: Columns of one array, widened at a time: few calls for a device, and no wide copy of all of them.
_PIECE = 1024
#: Rows and columns from which on a Gram matrix in single precision pays; the support decides. `bpdn` on one
#: thread, double and single: 253 and 285 ms for 700 x 3000; 44 and 54 for 1000 x 5000 with 100 nonzeros, 256
#: and 220 with 200; 1.34 and 0.83 s for 2000 x 8000 with 0.3 of the noise as sigma; 0.99 and 0.78 s for
#: 4000 x 20000.
_SINGLE_FROM = 1000


def column_set(A: LinearMap, like: Array, y: Vector, weights: Vector, equations: bool) -> ColumnSet:
    """Return a set of no columns yet, for a map and points of the library and precision of ``like``.

    Equations have no residual that could correct a Gram matrix in single precision. Sparse columns are few
    numbers: those of single precision are held in double precision.
    """
    other = not isinstance(like, np.ndarray) or is_single(like)
    if other and not isinstance(A, SparseMap):
        return DeviceColumns(like, y, weights)
    single = isinstance(A, NumPyMap) and min(A.shape) >= _SINGLE_FROM and not equations
    return ColumnSet(y, weights, single=single)


class DeviceColumns(ColumnSet):
    """Some columns of a real matrix and their Gram matrix, in the library and on the device of ``like``.

    Columns in single precision are widened a piece at a time; the Gram matrix is in double precision.
    """

    def __init__(self, like: Array, y: Vector, weights: Vector) -> None:
        super().__init__(y, weights)
        self._like = widened(like)
        self._data_single = is_single(like)
        self._times = times_for(like)
        self.gram = from_numpy(np.empty((0, 0)), self._like)

    @property
    def host_gram(self) -> Vector:
        return to_numpy(self.gram)

    def _gram_of(self, positions: Vector) -> Array:
        """Return the Gram matrix of some of the columns, on the device."""
        return self._taken(self._taken(self.gram, positions, 0), positions, 1)

    def _taken(self, block: Array, positions: Vector, axis: int) -> Array:
        return namespace(block).take(block, from_numpy(positions, block), axis=axis)

    def extend(
        self, indices: Vector, read: Callable[[Vector], Array], correlations: Vector
    ) -> None:
        there, own = from_numpy(self.y, self._like), [np.empty(0)]
        for start in range(0, len(indices), _PIECE):
            new = read(indices[start : start + _PIECE])
            self._append(new, len(self) + start)
            if self._data_single:
                own.append(to_numpy(self._times(widened(new).T, there)))
        if self._data_single:
            # Those of all columns may be sums in single precision.
            correlations = np.concatenate(own)
        self._add_indices(indices, correlations)

    def _append(self, new: Array, start: int) -> None:
        """Hold a piece: the Gram matrix grows by a border."""
        xp, wide = namespace(self._like), widened(new)
        corner = self._times(wide.T, wide)
        if self._pieces:
            beside = xp.concat(
                [self._times(wide.T, widened(piece)) for piece in self._pieces], axis=1
            )
            upper = xp.concat([self.gram, beside.T], axis=1)
            corner = xp.concat([upper, xp.concat([beside, corner], axis=1)], axis=0)
        self.gram = corner
        self._pieces.append(new)
        self._join_small_pieces()

    def _join_small_pieces(self) -> None:
        """Copy neighbours into one as long as they are small: each piece is a call of its own in products."""
        joined: list[Array] = []
        for piece in self._pieces:
            if joined and joined[-1].shape[1] + piece.shape[1] <= _PIECE:
                piece = namespace(piece).concat([joined.pop(), piece], axis=1)
            joined.append(piece)
        self._pieces = joined

    def keep(self, stays: Vector) -> None:
        kept = np.flatnonzero(stays)
        self.gram = self._gram_of(kept)
        for i, (at, piece) in enumerate(self._placed()):
            if not stays[at].all():
                self._pieces[i] = self._taken(piece, np.flatnonzero(stays[at]), 1)
        self._pieces = [piece for piece in self._pieces if piece.shape[1] > 0]
        self._join_small_pieces()
        self._keep_indices(kept)

    def forward(self, x: Vector) -> Vector:
        there = from_numpy(x, self._like)
        parts = [self._times(widened(piece), there[at, ...]) for at, piece in self._placed()]
        if not parts:
            return np.zeros((len(self.y), *x.shape[1:]))
        return to_numpy(sum(parts[1:], start=parts[0]))

    def adjoint(self, r: Vector) -> Vector:
        there = from_numpy(r, self._like)
        parts = [self._times(widened(piece).T, there) for piece in self._pieces]
        xp = namespace(self._like)
        return to_numpy(xp.concat(parts)) if parts else np.empty_like(self.correlations)

    def factor(self, support: Vector) -> Solver | None:
        """Return a solver; None where columns are dependent, or the library has no factor."""
        if support.size == 0 or isinstance(self.gram, np.ndarray):
            return super().factor(support)
        current_deadline().check()
        there = self._gram_of(support)
        if self.ridge > 0.0:
            there = there + from_numpy(self.ridge * np.eye(support.size), there)
        found = device_factor(there)
        dependent = SETTINGS.dependent * float(np.finfo(np.float64).eps)
        return None if found is None or found.loses(dependent) else found.solve
