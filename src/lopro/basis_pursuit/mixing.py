"""Anderson acceleration of a piecewise affine fixed-point map that depends on a parameter.

Earlier iterates are mixed so that the residual is least. Where the pieces do not change, mixing points with
weights ``theta`` (which sum to 1) mixes everything that depends on them in an affine way: residuals of the
data, gradients, fixed-point residuals ``rho`` and the parameter ``alpha``. So the small problem

    min |sum theta_j rho_j|   s.t.  sum theta_j = 1,  sum theta_j alpha_j = alpha

gives the best point for a parameter that no iterate has had yet, and no product with a matrix is needed for
its residual. On one piece this is the minimal residual method in the Krylov space of the points.

Earlier iterates are held with their vectors side by side, so that mixing them is one product: to mix twenty
vectors one after the other reads and writes memory several times as often. Vectors of NumPy are copied to
rows of an array when they come; those of other libraries, which may not be written to, are stacked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy  # parts of it load when first used

from lopro.basis_pursuit.pieces import Vector
from lopro.core.arrays import (
    Array,
    asarray_like,
    eps,
    inner,
    is_complex,
    namespace,
    norm,
    to_numpy,
)
from lopro.core.vectors import inners
from lopro.maps.algebra import widened

__all__ = ["Blend", "History", "Mixture", "Point", "how_many"]


def how_many(mask: Array) -> int:
    """Return how many entries are true."""
    if isinstance(mask, np.ndarray):
        return int(np.count_nonzero(mask))
    return int(namespace(mask).count_nonzero(mask))


@dataclass(frozen=True, eq=False)
class Point:
    """An iterate with what has been computed of it.

    Numbers that are used repeatedly are kept: each is a device-to-host transfer.
    """

    x: Array
    r: Array  # y - A x
    g: Array  # A^H r
    alpha: float
    fun: float  # f(x)
    measured: bool = False  # whether r comes of a product with x, and not of sums of residuals

    @cached_property
    def active(self) -> Array:
        """The support of x."""
        return self.x != 0

    @cached_property
    def nonzeros(self) -> int:
        """The number of nonzero entries."""
        return how_many(self.active)

    @cached_property
    def square(self) -> float:
        """The square of the length of the residual."""
        return inner(self.r, self.r)

    @cached_property
    def length(self) -> float:
        """The length of the residual."""
        return math.sqrt(self.square) if 1e-20 < self.square < 1e30 else norm(self.r)

    def differs(self, others: list[Point]) -> list[int]:
        """Return for each of them in how many places it is zero and this one is not, or the reverse."""
        if not others or isinstance(self.x, np.ndarray):
            return [how_many(self.active ^ other.active) for other in others]
        # One device-to-host transfer for all numbers.
        xp = namespace(self.active)
        apart = xp.stack([other.active for other in others]) ^ self.active
        return [int(n) for n in to_numpy(xp.count_nonzero(apart, axis=1))]


class History:
    """Points that may be mixed, in the order in which they came; arrays of any library.

    Each comes with the residual of its fixed-point equation: the gradient less ``alpha`` times a slope of the
    norm. Where a point is zero and the last one is not, that is the slope at the last one: it is the piece
    that points are mixed on.

    Parameters
    ----------
    memory : int
        How many points may be held.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.basis_pursuit.mixing import History, Point
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
        """Hold one more point, with the residual of its equation, beside these earlier ones."""
        kept = [next(i for i, p in enumerate(self.points) if p is q) for q in beside]
        self._lefts = [*(self._lefts[i] for i in kept), left]
        self.points = [*beside, point]
        if isinstance(point.x, np.ndarray):
            self._copy(point, left, [self._places[i] for i in kept])
        else:
            self._stacks = {}

    def _copy(self, point: Point, left: Vector, kept: list[int]) -> None:
        """Copy the vectors of the last point to a row that none of the others is in."""
        vectors = {"x": point.x, "r": point.r, "g": point.g, "left": left}
        if not self._stacks:
            dtype = np.result_type(*vectors.values())
            self._stacks = {k: np.zeros((self.memory, v.size), dtype) for k, v in vectors.items()}
        place = next(i for i in range(self.memory) if i not in kept)
        # Rows that are not in use have a weight of zero; what lies there must be a number.
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
        """Return some entries of the vectors of all points."""
        stack = self._stack(name)
        taken = namespace(stack).take(stack, rows, axis=1)
        return taken[self._places] if self._places else taken

    def gram(self, root: Array | None = None) -> Vector:
        """Return the real products of all pairs of residuals, where the last point is not zero.

        Residuals are multiplied by ``root``, entry by entry.
        """
        xp, last = namespace(self.points[-1].x), self.points[-1]
        (rows,) = xp.nonzero(last.active)
        R = self._on_piece(rows)
        R = widened(R if root is None else R * xp.take(root, rows))
        return np.asarray(to_numpy((xp.conj(R) if is_complex(R) else R) @ R.T).real)

    def _on_piece(self, rows: Array) -> Array:
        """Return entries of the residuals; those of zeros with the slope at the last point."""
        X, G, R = (self._entries(name, rows) for name in ("x", "g", "left"))
        ratios = np.array([[p.alpha / self.points[-1].alpha] for p in self.points])
        slopes = asarray_like(ratios, abs(G[:1, :])) * (G[-1:, :] - R[-1:, :])
        return namespace(X).where(X == 0, G - slopes, R)

    def mixed(self, name: str, theta: Vector) -> Array:
        """Return the sum of all vectors of this name (x, r or g) with weights."""
        stack = self._stack(name)
        if not self._places:
            return asarray_like(theta, stack) @ stack
        used = stack[: max(self._places) + 1]
        real = used.view(used.real.dtype)
        weights = np.zeros(len(used), dtype=real.dtype)
        weights[self._places] = theta
        return (weights @ real).view(used.dtype)


def _solved(system: Vector, right: Vector) -> Vector:
    """Return a solution; the nearest to one where the system is singular, zero where it is not finite."""
    if not math.isfinite(float(system.sum())):
        return 0.0 * right  # squares have left the range of numbers
    # Called as it is: what surrounds it elsewhere takes longer than to solve twenty equations.
    _, _, solution, singular = scipy.linalg.lapack.dgesv(system, right)
    if singular:
        # Residuals so different that the conditions read the same: weights that come nearest to both.
        solution = np.linalg.lstsq(system, right, rcond=None)[0]
    return np.asarray(solution)


def _summing_to_one(weights: Vector) -> Vector:
    """Correct what rounding has left of the first condition; the last point alone where that is nothing."""
    total = float(weights.sum())
    if total != 0.0 and math.isfinite(total):
        return weights / total
    alone = np.zeros_like(weights)
    alone[-1] = 1.0
    return alone


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """An affine combination of points: residual and gradient come without a product."""

    x: Array
    r: Array
    g: Array
    alpha: float
    length: float  # of r
    #: How much longer than ``r`` the residuals are that were mixed, with the moduli of their weights: by so
    #: much rounding errors of the gradients have grown.
    growth: float

    @staticmethod
    def of(point: Point) -> Mixture:
        """Return the mixture that is one point."""
        return Mixture(point.x, point.r, point.g, point.alpha, point.length, 1.0)


class Blend:
    """The weights of the best mixture of some points, as a function of the parameter.

    Parameters
    ----------
    history : History
        The last of its points says which entries count: those where it is not zero.
    root : array, optional
        Fixed-point residuals are measured with these factors.

    Examples
    --------
    A map of one variable with fixed point 3 for ``alpha = 1``; two points find it.

    >>> import numpy as np
    >>> from lopro.basis_pursuit.mixing import History, Point
    >>> from lopro.basis_pursuit.mixing import Blend
    >>> history = History(2)
    >>> for x in np.array([[1.0], [2.5]]):
    ...     history.add(Point(x, 5 - x, 5 - x, 1.0, 0.0), left=3 - x, beside=history.points)
    >>> Blend(history).at(1.0).x.round(6)
    array([3.])
    """

    def __init__(self, history: History, root: Array | None = None) -> None:
        self.history, points = history, history.points
        self._found: Mixture | None = None
        gram = history.gram(root)
        # Residuals differ by orders of magnitude: with unit columns the regularisation is a relative one.
        sizes = np.diag(gram)
        self._scale = 1.0 / np.sqrt(np.maximum(sizes, 1e-20 * float(sizes.max()) or 1.0))
        self._gram = gram * self._scale[:, None] * self._scale
        self._regularisation = max(1e-12, 10.0 * eps(points[-1].x))
        self._alpha = points[-1].alpha
        alphas = [p.alpha / self._alpha for p in points]
        self._alphas = np.array(alphas)
        #: Whether the points differ in the parameter, so that its influence can be measured.
        self._spread = max(alphas) - min(alphas) > 1e-9

    def _solve(self, *ratios: float) -> list[Vector]:
        """Return the weights for the parameters that are so many times the last one."""
        conditions = [(self._scale, [1.0] * len(ratios))]
        if self._spread:
            changes = [ratio - 1.0 for ratio in ratios]
            conditions.append(((self._alphas - 1.0) * self._scale, changes))
        # The least square under conditions, and their multipliers, from one system.
        n, size = len(self._scale), len(self._scale) + len(conditions)
        system, right = np.zeros((size, size)), np.zeros((size, len(ratios)))
        system[:n, :n] = self._gram
        system.flat[: n * size : size + 1] += self._regularisation
        for i, (row, values) in enumerate(conditions, n):
            unit = 1.0 / norm(row)
            system[i, :n] = system[:n, i] = unit * row
            right[i] = [unit * value for value in values]
        theta = _solved(system, right)[:n] * self._scale[:, None]
        return [_summing_to_one(column) for column in theta.T]

    @cached_property
    def _line(self) -> tuple[Vector, Vector]:
        """Weights at the last parameter, and their derivative in its relative change."""
        theta, *further = self._solve(1.0, 1.1) if self._spread else self._solve(1.0)
        return theta, 10.0 * (further[0] - theta) if further else 0.0 * theta

    @property
    def left(self) -> float:
        """The length of the mixed fixed-point residual at the last parameter."""
        theta = self._line[0] / self._scale
        return math.sqrt(max(0.0, float(theta @ self._gram @ theta)))

    @cached_property
    def _residuals(self) -> tuple[Array, Array]:
        """The residual of the best mixture at the last parameter, and its derivative."""
        theta, slope = self._line
        at = self.history.mixed("r", theta)
        return at, self.history.mixed("r", slope) if self._spread else 0.0 * at

    def root(self, length: float) -> float | None:
        """Return the parameter at which the mixed residual has this length, or None."""
        if not self._spread:
            return None
        at, change = self._residuals
        a, b, square = inners((change, change), (change, at), (at, at))
        c = square - length * length  # a power would round with the units
        if a <= 0.0 or b * b < a * c:
            return None
        # The residual grows with the parameter where it matters: the larger root.
        return self._alpha * (1.0 + (math.sqrt(b * b - a * c) - b) / a)

    def at(self, alpha: float) -> Mixture:
        """Return the best mixture for this parameter; the last one is kept."""
        if self._found is None or self._found.alpha != alpha:
            self._found = self._mixture(alpha)
        return self._found

    def _mixture(self, alpha: float) -> Mixture:
        theta, further = self._weights(alpha), alpha / self._alpha - 1.0
        at, change = self._residuals
        r = at + further * change
        x, g = self.history.mixed("x", theta), self.history.mixed("g", theta)
        # The residual is the sum of two mixtures: what cancels between them has been rounded as well.
        moduli = abs(self._line[0]) + abs(further) * abs(self._line[1])
        mixed = float(moduli @ [p.length for p in self.history.points])
        length = norm(r)
        growth = mixed / length if length > 0.0 else math.inf
        return Mixture(x, r, g, alpha, length, growth)

    def gradient(self, alpha: float) -> Array:
        """Return the gradient of the best mixture for this parameter, without the rest of it."""
        return self.history.mixed("g", self._weights(alpha))

    def _weights(self, alpha: float) -> Vector:
        at, slope = self._line
        return at + (alpha / self._alpha - 1.0) * slope
