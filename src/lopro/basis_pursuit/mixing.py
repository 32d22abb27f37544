"""Mixing earlier iterates of a piecewise affine fixed-point map so that the residual is least.

This is Anderson's acceleration with a parameter. Where the pieces do not change, mixing points with
weights ``theta`` (which sum to 1) mixes everything that depends on them in an affine way: residuals of the
data, gradients, fixed-point residuals ``rho`` and the parameter ``alpha``. So the small problem

    min |sum theta_j rho_j|   s.t.  sum theta_j = 1,  sum theta_j alpha_j = alpha

names the best point for a parameter that no iterate has had yet, and no product with a matrix is needed for
its residual. On one piece this is the minimal residual method in the Krylov space of the points.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from lopro._util.arrays import (
    Array,
    asarray_like,
    eps,
    inner,
    inners,
    is_complex,
    namespace,
    norm,
    to_numpy,
)
from lopro.maps.algebra import widened

__all__ = ["Blend", "Mixture", "Point", "how_many"]

Vector: TypeAlias = "np.ndarray[Any, Any]"

_SMALL = 8_000  # entries of points that are copied side by side


def how_many(mask: Array) -> int:
    """Return how many entries are true."""
    if isinstance(mask, np.ndarray):
        return int(np.count_nonzero(mask))
    return int(namespace(mask).count_nonzero(mask))


@dataclass(frozen=True, eq=False)
class Point:
    """An iterate with what has been computed of it."""

    x: Array
    r: Array  # y - A x
    g: Array  # A^H r
    rho: Array  # what is left of the fixed-point equation
    alpha: float
    fun: float  # f(x)

    # Numbers that are asked for again and again: each has to come from the device.

    @cached_property
    def active(self) -> Array:
        """Where x is not zero."""
        return self.x != 0

    @cached_property
    def nonzeros(self) -> int:
        """How many entries are not zero."""
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
        # All numbers in one journey from the device.
        xp = namespace(self.active)
        apart = xp.stack([other.active for other in others]) ^ self.active
        return [int(n) for n in to_numpy(xp.count_nonzero(apart, axis=1))]


def _solved(system: Vector, right: Vector) -> Vector:
    """Return a solution; the nearest to one where the system is singular, zero where it is not finite."""
    if not np.isfinite(system).all():
        return 0.0 * right  # squares have left the range of numbers
    try:
        return np.linalg.solve(system, right)
    except np.linalg.LinAlgError:
        # Residuals so different that the conditions read the same: weights that come nearest to both.
        return np.asarray(np.linalg.lstsq(system, right, rcond=None)[0])


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
    points : list of Point
        The last one says which entries count: those where it is not zero.

    Examples
    --------
    A map of one variable with fixed point 3 for ``alpha = 1``; two points find it.

    >>> import numpy as np
    >>> from lopro.basis_pursuit.mixing import Blend, Point
    >>> def point(x):
    ...     x = np.array([x])
    ...     return Point(x, 5 - x, 5 - x, 3 - x, 1.0, 0.0)
    >>> Blend([point(1.0), point(2.5)]).at(1.0).x.round(6)
    array([3.])
    """

    def __init__(self, points: list[Point]) -> None:
        self.points, self._stacks = points, dict[str, Array]()
        self._found: Mixture | None = None
        xp = namespace(points[-1].rho)
        (rows,) = xp.nonzero(points[-1].active)
        parts = [p.rho for p in points]
        if isinstance(parts[-1], np.ndarray):
            R = _rows_of(parts, rows)
        else:  # one call for all of them: on a device it is calls that take time
            R = xp.take(xp.stack(parts), rows, axis=1)
        R = widened(R)  # squares leave the range of single precision
        gram = _real_gram(R)
        # Residuals differ by orders of magnitude: with unit columns the regularisation is a relative one.
        sizes = np.diag(gram)
        self._scale = 1.0 / np.sqrt(np.maximum(sizes, 1e-20 * float(sizes.max()) or 1.0))
        self._gram = gram * np.outer(self._scale, self._scale)
        self._regularisation = max(1e-12, 10.0 * eps(points[-1].x))
        self._alpha = points[-1].alpha
        self._alphas = np.array([p.alpha for p in points]) / self._alpha

    @property
    def _spread(self) -> bool:
        """Whether the points differ in the parameter, so that its influence can be told."""
        return bool(np.ptp(self._alphas) > 1e-9)

    def _solve(self, *ratios: float) -> list[Vector]:
        """Return the weights for the parameters that are so many times the last one."""
        rows, values = [self._scale], [[1.0] * len(ratios)]
        if self._spread:
            rows.append((self._alphas - 1.0) * self._scale)
            values.append([ratio - 1.0 for ratio in ratios])
        sizes = np.array([[float(np.linalg.norm(row))] for row in rows])
        conditions, wanted = np.stack(rows) / sizes, np.array(values) / sizes
        # The least square under conditions, and their multipliers, from one system.
        n, m = len(self.points), len(rows)
        system, right = np.zeros((n + m, n + m)), np.zeros((n + m, len(ratios)))
        system[:n, :n] = self._gram
        system.flat[: n * (n + m) : n + m + 1] += self._regularisation
        system[n:, :n], system[:n, n:], right[n:] = conditions, conditions.T, wanted
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
        at = self._mixed("r", theta)
        return at, self._mixed("r", slope) if self._spread else 0.0 * at

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
        """Return the best mixture for this parameter; the one that was asked for last is kept."""
        if self._found is None or self._found.alpha != alpha:
            self._found = self._mixture(alpha)
        return self._found

    def _mixture(self, alpha: float) -> Mixture:
        theta, further = self._weights(alpha), alpha / self._alpha - 1.0
        at, change = self._residuals
        r = at + further * change
        x, g = self._mixed("x", theta), self._mixed("g", theta)
        # The residual is the sum of two mixtures: what cancels between them has been rounded as well.
        moduli = abs(self._line[0]) + abs(further) * abs(self._line[1])
        mixed = sum(float(t) * p.length for t, p in zip(moduli, self.points, strict=True))
        length = norm(r)
        return Mixture(x, r, g, alpha, length, mixed / length if length > 0.0 else math.inf)

    def gradient(self, alpha: float) -> Array:
        """Return the gradient of the best mixture for this parameter, without the rest of it."""
        return self._mixed("g", self._weights(alpha))

    def _weights(self, alpha: float) -> Vector:
        at, slope = self._line
        return at + (alpha / self._alpha - 1.0) * slope

    @cached_property
    def _support(self) -> Vector:
        """Where any of the points is not zero."""
        union = self.points[0].active.copy()
        for point in self.points[1:]:
            union |= point.active
        return np.flatnonzero(union)

    def _mixed(self, name: str, theta: Vector) -> Array:
        x = self.points[0].x
        on_host = isinstance(x, np.ndarray)
        if not on_host or x.size <= _SMALL:  # one product instead of many short sums
            if name not in self._stacks:
                parts = [getattr(p, name) for p in self.points]
                self._stacks[name] = namespace(*parts).stack(parts)
            stack = self._stacks[name]
            if on_host:
                return np.asarray(theta.astype(stack.real.dtype) @ stack)
            return asarray_like(theta, stack) @ stack
        parts = [getattr(p, name) for p in self.points]
        if name == "x" and self._support.size < x.size // 2:
            total = np.zeros(x.size, dtype=parts[-1].dtype)
            total[self._support] = theta.astype(parts[-1].real.dtype) @ _rows_of(
                parts, self._support
            )
            return total
        # A Python number does not widen single precision.
        total, term = float(theta[0]) * parts[0], np.empty_like(parts[-1])
        for weight, part in zip(theta[1:], parts[1:], strict=True):
            total += np.multiply(part, float(weight), out=term)
        return total


def _rows_of(parts: list[Vector], rows: Vector) -> Vector:
    """Return some entries of vectors, side by side."""
    found = np.empty((len(parts), rows.size), dtype=np.result_type(*parts))
    for row, part in zip(found, parts, strict=True):
        row[:] = np.take(part, rows)
    return found


def _real_gram(R: Array) -> Vector:
    """Return the real parts of the products of all pairs of rows."""
    if isinstance(R, np.ndarray):
        parts = R.view(R.real.dtype)  # a complex number is a pair: half of the work, and symmetric
        return np.asarray(parts @ parts.T)
    return np.asarray(to_numpy((namespace(R).conj(R) if is_complex(R) else R) @ R.T).real)
