"""Earlier points of an iteration with their vectors side by side, so that mixing them is one product.

Mixing twenty vectors one after the other reads and writes memory several times as often as it has to. Vectors
of NumPy are copied to rows of an array when they come; those of other libraries, which may not be written to,
are stacked when that is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from lopro.basis_pursuit.part import Part
from lopro.basis_pursuit.point import Point
from lopro.core.arrays import Array, asarray_like, is_complex, namespace, to_numpy
from lopro.maps.algebra import widened

__all__ = ["History", "HostHistory", "history_for"]

Vector: TypeAlias = "np.ndarray[Any, Any]"


def history_for(like: Array, memory: int) -> History:
    """Return an empty history of points that are like an array."""
    return HostHistory(memory) if isinstance(like, np.ndarray) else History(memory)


class History:
    """Points that may be mixed, in the order in which they came; arrays of any library.

    Each comes with what is left of its fixed-point equation: the gradient less ``alpha`` times a slope of the
    norm. Where a point is zero and the last one is not, that is the slope at the last one: it is the piece
    that points are mixed on.

    Parameters
    ----------
    memory : int
        How many points may be held.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.basis_pursuit.history import History
    >>> from lopro.basis_pursuit.point import Point
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
        self._lefts: list[Array] = []
        self._stacks: dict[str, Array] = {}

    def add(self, point: Point, left: Array, beside: Sequence[Point]) -> None:
        """Hold one more point, with what is left of its equation, beside these earlier ones."""
        self._lefts = [*(self._lefts[self._at(p)] for p in beside), left]
        self.points, self._stacks = [*beside, point], {}

    def _at(self, point: Point) -> int:
        return next(i for i, p in enumerate(self.points) if p is point)

    def gram(self, root: Array | None = None) -> Vector:
        """Return the real products of what is left, of all pairs, where the last point is not zero.

        What is left is multiplied by ``root``, entry by entry.
        """
        xp = namespace(self.points[-1].x)
        (rows,) = xp.nonzero(self.points[-1].active)
        # One call for all of them: on a device it is calls that take time.
        X, G, R = (xp.take(self._stack(name), rows, axis=1) for name in ("x", "g", "left"))
        alphas = asarray_like(self._relative_alphas, abs(G[:1, :1]))
        R = xp.where(X == 0, G - alphas * (G[-1:, :] - R[-1:, :]), R)
        R = widened(R if root is None else R * xp.take(root, rows))
        return np.asarray(to_numpy((xp.conj(R) if is_complex(R) else R) @ R.T).real)

    @property
    def _relative_alphas(self) -> Vector:
        return np.array([[p.alpha / self.points[-1].alpha] for p in self.points])

    def _stack(self, name: str) -> Array:
        if name not in self._stacks:
            parts = self._lefts if name == "left" else [getattr(p, name) for p in self.points]
            self._stacks[name] = namespace(*parts).stack(parts)
        return self._stacks[name]

    def mixed(self, name: str, theta: Vector) -> Array:
        """Return the sum of all vectors of this name (x, r or g) with weights."""
        stack = self._stack(name)
        return asarray_like(theta, stack) @ stack


class HostHistory(History):
    """The same for NumPy's arrays, with places for vectors and their products.

    The slopes of zeros that the last point has left are put in once, when it leaves them.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.basis_pursuit.history import HostHistory
    >>> from lopro.basis_pursuit.point import Point
    >>> history, v = HostHistory(5), np.array([1j, 0.0])
    >>> history.add(Point(v, v, v, 1.0, 0.0), left=3 * v, beside=[])
    >>> history.mixed("x", np.array([2.0])), history.gram()
    (array([0.+2.j, 0.+0.j]), array([[9.]]))
    """

    def __init__(self, memory: int) -> None:
        super().__init__(memory)
        self._places: list[int] = []
        self._rows: dict[str, Vector] = {}  # by name, a row for each place

    def add(self, point: Point, left: Array, beside: Sequence[Point]) -> None:
        vectors = {"x": point.x, "r": point.r, "g": point.g, "left": left}
        if not self._rows:
            dtype = np.result_type(*vectors.values())
            self._rows = {k: np.zeros((self.memory, v.size), dtype) for k, v in vectors.items()}
            self._gathered = _Gathered(np.zeros(left.size, dtype=bool), None)
        places = dict(zip(map(id, self.points), self._places, strict=True))
        kept = [places[id(p)] for p in beside]
        place = next(i for i in range(self.memory) if i not in kept)
        # Weights of places that are not in use are zero; what lies there must be a number.
        empty = {*self._places} - {*kept, place}
        for name, vector in vectors.items():
            self._rows[name][place] = vector
            for i in empty:
                self._rows[name][i] = 0.0
        self._gathered.changed(place, *empty)
        # The gradient is held once.
        g = self._rows["g"][place]
        held = Point(point.x, point.r, g, point.alpha, point.fun, point.everywhere, point.measured)
        self.points, self._places = [*beside, held], [*kept, place]

    def gram(self, root: Array | None = None) -> Vector:
        active, old = self.points[-1].active, self._gathered
        if root is not old.root or (active != old.active).any():
            new = np.flatnonzero(active & ~old.active)
            if new.size:
                self._settle(new)
            self._gathered = _Gathered(active, root)
        gram = self._gathered.products(self._rows["left"][: max(self._places) + 1])
        return gram.take(self._places, axis=0).take(self._places, axis=1)

    def _settle(self, new: Vector) -> None:
        """Correct what is left where the last point has left zero and others have not."""
        at = np.ix_(np.array(self._places), new)
        X, G, R = (self._rows[name][at] for name in ("x", "g", "left"))
        slopes = self._relative_alphas * (G[-1] - R[-1])
        self._rows["left"][at] = np.where(X == 0, G - slopes, R)

    def mixed(self, name: str, theta: Vector) -> Array:
        used = self._rows[name][: max(self._places) + 1]
        real = used.view(used.real.dtype)
        weights = np.zeros(len(used), dtype=real.dtype)
        weights[self._places] = theta
        return (weights @ real).view(used.dtype)

    def on(self, before: Part | None, part: Part) -> HostHistory:
        """Return the same history on a part of the entries; those that are new to it have been zero."""
        found = HostHistory(self.memory)
        for point, place in zip(self.points, self._places, strict=True):
            x, left, whole = point.x, self._rows["left"][place], point.whole
            if before is not None:
                x, left = before.within(x), before.within(left)
            on_part = replace(point, x=part.of(x), g=part.of(whole), everywhere=whole)
            found.add(on_part, part.of(left), found.points)
        return found


class _Gathered:
    """Some entries of all places, and the products of all pairs; what has not changed is not done again."""

    def __init__(self, active: Vector, root: Vector | None) -> None:
        self.active, self.root = active, root
        self._rows = np.flatnonzero(active)
        self._scale = None if root is None else root.take(self._rows)
        self._stale: set[int] | None = None  # places that have changed; None: all
        self._entries = self._gram = np.empty((0, 0))

    def changed(self, *places: int) -> None:
        """Take note that vectors have changed."""
        if self._stale is not None:
            self._stale.update(places)

    def products(self, vectors: Vector) -> Vector:
        """Return the real products of these entries."""
        if self._stale is None or len(vectors) > len(self._entries):
            self._entries, self._stale = self._taken(vectors), set()
            self._gram = self._entries @ self._entries.T
        for place in [place for place in self._stale if place < len(vectors)]:
            self._entries[place] = self._taken(vectors[place : place + 1])
            self._gram[place] = self._gram[:, place] = self._entries @ self._entries[place]
            self._stale.remove(place)
        return self._gram

    def _taken(self, vectors: Vector) -> Vector:
        taken = widened(vectors.take(self._rows, axis=1, mode="clip"))
        if self._scale is not None:
            taken *= self._scale
        # A complex number is a pair: half of the work, and symmetric.
        return np.asarray(taken.view(taken.real.dtype))
