"""Columns that have been read, held for all searches on one matrix: each is read once.

Where the matrix is stored or distributed, a pass over it costs the same whatever it is asked for. So more
columns are fetched than are needed at once, and all that the columns in the pool allow is done before the
next pass.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from lopro.basis_pursuit.columns import Vector
from lopro.core.arrays import Array, from_numpy, namespace, to_numpy
from lopro.maps import Adjoint, Columns, LinearMap
from lopro.maps.algebra import times_for, widened

__all__ = ["Asking", "Pool", "Question", "WholeMatrix", "answered"]

#: Bytes of columns that are held beside those in use.
CAPACITY = 2**29


@dataclass(frozen=True, eq=False)
class Question:
    """What a search asks of the matrix: correlations with a dual point, and columns to be in the pool."""

    dual: Vector | None = None
    columns: Vector | None = None


#: A search as a generator: it yields questions, and is sent the correlations of all columns (or None).
Asking: TypeAlias = Generator[Question, Any, None]


def answered(asking: Asking, pool: Pool | WholeMatrix) -> None:
    """Answer the questions of one search until it has no more."""
    reply: Any = None
    while True:
        try:
            question = asking.send(reply)
        except StopIteration:
            return
        (reply,) = pool.answer([question])


class WholeMatrix:
    """A matrix in memory: a pool that holds all columns, and answers at once.

    Parameters
    ----------
    adjoint : callable
        The correlations of all columns with a dual point.
    """

    def __init__(self, adjoint: Callable[[Vector], Vector]) -> None:
        self._adjoint = adjoint

    def answer(self, questions: Sequence[Question]) -> list[Any]:
        """Answer several questions; columns are there."""
        return [None if q.dual is None else self._adjoint(q.dual) for q in questions]


class Pool:
    """Some columns of a matrix, in its library.

    Parameters
    ----------
    A : LinearMap
        With columns.
    capacity : int
        Bytes to hold; columns in use are never dropped.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.basis_pursuit.pool import Pool, Question
    >>> from lopro.maps import linear_map
    >>> pool = Pool(linear_map(np.array([[1.0, 2.0, 3.0]])))
    >>> pool.answer([Question(dual=np.ones(1), columns=np.array([2, 0]))])
    [array([1., 2., 3.])]
    >>> pool.indices, pool.read(np.array([2]))
    (array([0, 2]), array([[3.]]))
    """

    def __init__(self, A: LinearMap, capacity: int = CAPACITY) -> None:
        self.A = A
        self.indices: Vector = np.empty(0, dtype=np.intp)
        self._place = np.full(A.shape[1], -1, dtype=np.int32)
        self._pieces: list[Array] = []
        self._score = np.zeros(A.shape[1])  # how near to a violation a column was last
        #: Columns to hold, beside those in use if these are many.
        self.most = max(1, capacity // (8 * A.shape[0]))

    def __len__(self) -> int:
        return len(self.indices)

    def __contains__(self, index: int) -> bool:
        return bool(self._place[index] >= 0)

    def answer(self, questions: Sequence[Question]) -> list[Any]:
        """Answer several questions from one pass, where the matrix answers requests together."""
        duals = [q.dual for q in questions if q.dual is not None]
        new = self.lacking(questions)
        requests: list[Any] = [Columns(new)] if new.size else []
        if duals:
            block = duals[0] if len(duals) == 1 else np.stack(duals, axis=1)
            requests.append(Adjoint(from_numpy(block, self.A.like)))
        answers = list(self.A.read(*requests)) if requests else []
        if new.size:
            self._add(new, answers.pop(0))
        pulled = to_numpy(answers[0]).reshape(self.A.shape[1], -1).T if duals else ()
        found = iter(pulled)
        return [None if q.dual is None else next(found) for q in questions]

    def lacking(self, questions: Sequence[Question]) -> Vector:
        """Return the columns that are asked for and not in the pool."""
        asked = [q.columns for q in questions if q.columns is not None]
        indices = np.unique(np.concatenate([np.empty(0, dtype=np.intp), *asked]))
        return np.asarray(indices[self._place[indices] < 0])

    def _add(self, indices: Vector, block: Any) -> None:
        self._place[indices] = np.arange(len(self), len(self) + len(indices))
        self.indices = np.concatenate([self.indices, indices])
        self._pieces.append(block.toarray() if hasattr(block, "toarray") else block)

    def note(self, excess: Vector) -> None:
        """Remember how near to a violation columns are; those far from it are dropped first."""
        self._score = excess

    def room_for(self, count: int, in_use: Vector) -> None:
        """Drop columns that are far from any use, if the pool would grow beyond its capacity."""
        surplus = len(self) + count - max(self.most, 2 * len(in_use))
        # The columns that stay are copied: not for the sake of a few.
        if surplus <= self.most // 20:
            return
        free = np.setdiff1d(self.indices, in_use)
        self._drop(free[np.argsort(self._score[free], kind="stable")[:surplus]])

    def _drop(self, leaving: Vector) -> None:
        """Drop columns; one piece at a time, so that there is never a second copy of all of them."""
        stays = np.isin(self.indices, leaving, invert=True)
        at, kept = 0, []
        for i, piece in enumerate(self._pieces):
            staying = np.flatnonzero(stays[at : at + piece.shape[1]])
            at += piece.shape[1]
            self._pieces[i] = piece if staying.size == piece.shape[1] else _taken(piece, staying)
            del piece
            kept.append(staying.size)
        self._pieces = [piece for piece, size in zip(self._pieces, kept, strict=True) if size]
        self._place[self.indices] = -1
        self.indices = self.indices[stays]
        self._place[self.indices] = np.arange(len(self))

    def read(self, indices: Vector) -> Array:
        """Return columns of the pool, as the columns of a matrix."""
        positions = self._place[indices]
        order = np.argsort(positions, kind="stable")
        at, parts = 0, []
        for piece in self._pieces:
            here = positions[order]
            local = here[(here >= at) & (here < at + piece.shape[1])] - at
            if local.size:
                parts.append(_taken(piece, local))
            at += piece.shape[1]
        whole = namespace(parts[0]).concat(parts, axis=1) if len(parts) > 1 else parts[0]
        back = np.argsort(order, kind="stable")
        return whole if (back[1:] > back[:-1]).all() else _taken(whole, back)

    def adjoint(self, r: Vector) -> Vector:
        """Return the correlations of the columns of the pool, on the host."""
        if not self._pieces:
            return np.empty(0)
        there = from_numpy(r, self._pieces[0])
        times = times_for(there)
        return np.concatenate([to_numpy(times(widened(p).T, there)) for p in self._pieces])


def _taken(block: Array, positions: Vector) -> Array:
    if isinstance(block, np.ndarray):
        # By rows of the transpose, which is in the order of storage where columns were read.
        return np.take(block.T, positions, axis=0).T
    return namespace(block).take(block, from_numpy(positions, block), axis=1)
