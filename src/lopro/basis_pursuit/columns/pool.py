"""Columns that have been read from a matrix that is expensive to read, shared by all searches on it.

A pass over a stored or distributed matrix costs about the same for any request. So more columns are fetched
than are needed at once, and the searches do everything that the columns of the pool allow before the next
pass.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from lopro.basis_pursuit.columns.pieces import Pieces, Vector, take_columns
from lopro.core.arrays import Array, from_numpy, namespace, to_numpy
from lopro.maps import Adjoint, Columns, LinearMap
from lopro.maps.algebra import times_for, widened

__all__ = ["CAPACITY", "PassRequest", "PassRequests", "Pool"]

#: Bytes of the columns that a pool holds, 512 MiB; more where those in use take more than half of it.
CAPACITY = 2**29


@dataclass(frozen=True, eq=False)
class PassRequest:
    """A request for the next pass: the correlations with a dual point, and columns for the pool."""

    dual: Vector | None = None
    columns: Vector | None = None


#: A search as a generator: it yields requests, and is sent the correlations of all columns (or None).
PassRequests: TypeAlias = Generator[PassRequest, Any, None]


class Pool:
    """Columns that have been read, in the library of their matrix.

    Parameters
    ----------
    A : LinearMap
        With columns.
    capacity : int
        Bytes to hold; columns in use are never dropped.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.basis_pursuit.columns.pool import Pool, PassRequest
    >>> from lopro.maps import linear_map
    >>> pool = Pool(linear_map(np.array([[1.0, 2.0, 3.0]])))
    >>> pool.answer([PassRequest(dual=np.ones(1), columns=np.array([2, 0]))])
    [array([1., 2., 3.])]
    >>> pool.indices, pool.read(np.array([2]))
    (array([0, 2]), array([[3.]]))
    """

    def __init__(self, A: LinearMap, capacity: int = CAPACITY) -> None:
        self.A = A
        self.indices: Vector = np.empty(0, dtype=np.intp)
        self._place = np.full(A.shape[1], -1, dtype=np.int32)
        self._pieces = Pieces()
        self._excess = np.zeros(A.shape[1])  # the last known correlations in units of the weights
        #: The number of columns to hold; twice those in use if that is more.
        self.most = max(1, capacity // (8 * A.shape[0]))

    def __len__(self) -> int:
        return len(self.indices)

    def __contains__(self, index: int) -> bool:
        return bool(self._place[index] >= 0)

    def answer(self, requests: Sequence[PassRequest]) -> list[Any]:
        """Answer several requests from one pass, where the matrix answers requests together."""
        duals = [q.dual for q in requests if q.dual is not None]
        new = self.lacking(requests)
        reads: list[Any] = [Columns(new)] if new.size else []
        if duals:
            block = duals[0] if len(duals) == 1 else np.stack(duals, axis=1)
            reads.append(Adjoint(from_numpy(block, self.A.like)))
        answers = list(self.A.read(*reads)) if reads else []
        if new.size:
            self._add(new, answers.pop(0))
        pulled = to_numpy(answers[0]).reshape(self.A.shape[1], -1).T if duals else ()
        found = iter(pulled)
        return [None if q.dual is None else next(found) for q in requests]

    def lacking(self, requests: Sequence[PassRequest]) -> Vector:
        """Return the requested columns that are not in the pool."""
        chosen = [q.columns for q in requests if q.columns is not None]
        indices = np.unique(np.concatenate([np.empty(0, dtype=np.intp), *chosen]))
        return np.asarray(indices[self._place[indices] < 0])

    def _add(self, indices: Vector, block: Any) -> None:
        self._place[indices] = np.arange(len(self), len(self) + len(indices))
        self.indices = np.concatenate([self.indices, indices])
        self._pieces.append(block.toarray() if hasattr(block, "toarray") else block)

    def note(self, excess: Vector) -> None:
        """Store the correlations of all columns in units of the weights: the smallest are dropped first."""
        self._excess = excess

    def room_for(self, count: int, in_use: Vector) -> None:
        """Drop unused columns with small correlations if the pool would exceed its capacity."""
        surplus = len(self) + count - max(self.most, 2 * len(in_use))
        # Dropping copies the columns that stay: at least a twentieth of the capacity goes at a time.
        if surplus <= self.most // 20:
            return
        free = np.setdiff1d(self.indices, in_use)
        self._drop(free[np.argsort(self._excess[free], kind="stable")[:surplus]])

    def _drop(self, leaving: Vector) -> None:
        stays = np.isin(self.indices, leaving, invert=True)
        self._pieces.keep(stays)
        self._place[self.indices] = -1
        self.indices = self.indices[stays]
        self._place[self.indices] = np.arange(len(self))

    def read(self, indices: Vector) -> Array:
        """Return columns of the pool, as the columns of a matrix."""
        positions = self._place[indices]
        order = np.argsort(positions, kind="stable")
        here, parts = positions[order], []
        for at, piece in self._pieces.placed():
            local = here[(here >= at.start) & (here < at.stop)] - at.start
            if local.size:
                parts.append(take_columns(piece, local))
        whole = namespace(parts[0]).concat(parts, axis=1) if len(parts) > 1 else parts[0]
        back = np.argsort(order, kind="stable")
        return whole if (back[1:] > back[:-1]).all() else take_columns(whole, back)

    def adjoint(self, r: Vector) -> Vector:
        """Return the correlations of the columns of the pool, on the host."""
        if not self._pieces:
            return np.empty(0)
        there = from_numpy(r, self._pieces[0])
        times = times_for(there)
        return np.concatenate([to_numpy(times(widened(p).T, there)) for p in self._pieces])
