"""The iterates of a fixed-point iteration that may be mixed, on every array library."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lopro.basis_pursuit.columns.pieces import Vector
from lopro.core.arrays import (
    Array,
    asarray_like,
    inner,
    is_complex,
    namespace,
    norm,
    to_numpy,
)
from lopro.maps.algebra import widened

__all__ = ["History", "Point", "true_count"]


def true_count(mask: Array) -> int:
    """Return the number of true entries."""
    if isinstance(mask, np.ndarray):
        return int(np.count_nonzero(mask))
    return int(namespace(mask).count_nonzero(mask))


@dataclass(frozen=True, eq=False)
class Point:
    """An iterate with its residual and correlations.

    Numbers that are used repeatedly are cached: each is a device-to-host transfer.
    """

    x: Array
    r: Array  # y - A x
    g: Array  # A^H r
    alpha: float
    fun: float  # f(x)
    measured: bool = False  # whether r was computed from x by a product, not from other residuals

    @cached_property
    def active(self) -> Array:
        """The support of x."""
        return self.x != 0

    @cached_property
    def nonzeros(self) -> int:
        """The number of nonzero entries."""
        return true_count(self.active)

    @cached_property
    def square(self) -> float:
        """The square of the length of the residual."""
        return inner(self.r, self.r)

    @cached_property
    def length(self) -> float:
        """The length of the residual."""
        return math.sqrt(self.square) if 1e-20 < self.square < 1e30 else norm(self.r)

    def differs(self, others: list[Point]) -> list[int]:
        """Return for each of the others the number of entries that are zero in only one of the two."""
        if not others or isinstance(self.x, np.ndarray):
            return [true_count(self.active ^ other.active) for other in others]
        # One device-to-host transfer for all numbers.
        xp = namespace(self.active)
        apart = xp.stack([other.active for other in others]) ^ self.active
        return [int(n) for n in to_numpy(xp.count_nonzero(apart, axis=1))]


class History:
    """Points that may be mixed, in the order in which they were added; arrays of any library.

    Each has the residual of its fixed-point equation: the gradient less ``alpha`` times a subgradient of the
    norm. Where a point is zero and the last one is not, that is the subgradient at the last one: points are
    mixed on its affine piece.

    Vectors are held side by side, so that mixing them is one product: to add twenty vectors one after the
    other reads and writes memory several times as often. Vectors of NumPy are copied to rows of an array when
    they are added; those of other libraries, which may be immutable, are stacked.

    Parameters
    ----------
    memory : int
        The number of points that may be held.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.basis_pursuit.operators.history import History, Point
    >>> history = History(5)
    >>> for size in (1.0, 2.0):
    ...     v = np.full(2, size)
    ...     history.add(Point(v, v, v, 1.0, 0.0), left=3 * v, beside=history.points)
    >>> history.mixed("x", np.array([0.5, 0.5])), history.gram()
    (array([1.5, 1.5]), array([[18., 36.],
           [36., 72.]]))
    """

    def __init__(self, memory: int) -> None:
        self.memory = memory
        self.points: list[Point] = []
        self._lefts: list[Array] = []  # residuals of the fixed-point equation
        self._stacks: dict[str, Array] = {}
        self._places: list[int] = []  # of the points, rows of the stacks on the host

    def add(self, point: Point, left: Array, beside: Sequence[Point]) -> None:
        """Add a point with its fixed-point residual; of the earlier points, keep those in ``beside``."""
        kept = [next(i for i, p in enumerate(self.points) if p is q) for q in beside]
        self._lefts = [*(self._lefts[i] for i in kept), left]
        self.points = [*beside, point]
        if isinstance(point.x, np.ndarray):
            self._copy(point, left, [self._places[i] for i in kept])
        else:
            self._stacks = {}

    def _copy(self, point: Point, left: Vector, kept: list[int]) -> None:
        """Copy the vectors of the last point to a free row."""
        vectors = {"x": point.x, "r": point.r, "g": point.g, "left": left}
        if not self._stacks:
            dtype = np.result_type(*vectors.values())
            self._stacks = {k: np.zeros((self.memory, v.size), dtype) for k, v in vectors.items()}
        place = next(i for i in range(self.memory) if i not in kept)
        # Unused rows have weight 0 and must be finite.
        empty = {*self._places} - {*kept, place}
        for name, vector in vectors.items():
            self._stacks[name][place] = vector
            for i in empty:
                self._stacks[name][i] = 0.0
        self._places = [*kept, place]

    def _stack(self, name: str) -> Array:
        if name not in self._stacks:
            parts = self._lefts if name == "left" else [getattr(p, name) for p in self.points]
            self._stacks[name] = namespace(*parts).stack(parts)
        return self._stacks[name]

    def _entries(self, name: str, rows: Array) -> Array:
        """Return some entries of a vector of all points."""
        stack = self._stack(name)
        taken = namespace(stack).take(stack, rows, axis=1)
        return taken[self._places] if self._places else taken

    def gram(self, root: Array | None = None) -> Vector:
        """Return the real inner products of all pairs of residuals on the support of the last point.

        Residuals are multiplied by ``root``, entry by entry.
        """
        xp, last = namespace(self.points[-1].x), self.points[-1]
        (rows,) = xp.nonzero(last.active)
        R = self._on_piece(rows)
        R = widened(R if root is None else R * xp.take(root, rows))
        return np.asarray(to_numpy((xp.conj(R) if is_complex(R) else R) @ R.T).real)

    def _on_piece(self, rows: Array) -> Array:
        """Return entries of the residuals; those of zeros with the subgradient at the last point."""
        X, G, R = (self._entries(name, rows) for name in ("x", "g", "left"))
        ratios = np.array([[p.alpha / self.points[-1].alpha] for p in self.points])
        slopes = asarray_like(ratios, abs(G[:1, :])) * (G[-1:, :] - R[-1:, :])
        return namespace(X).where(X == 0, G - slopes, R)

    def mixed(self, name: str, theta: Vector) -> Array:
        """Return the weighted sum of a vector (x, r or g) of all points."""
        stack = self._stack(name)
        if not self._places:
            return asarray_like(theta, stack) @ stack
        used = stack[: max(self._places) + 1]
        real = used.view(used.real.dtype)
        weights = np.zeros(len(used), dtype=real.dtype)
        weights[self._places] = theta
        return (weights @ real).view(used.dtype)
