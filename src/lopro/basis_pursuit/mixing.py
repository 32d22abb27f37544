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
    is_complex,
    namespace,
    norm,
    to_numpy,
)
from lopro.maps.algebra import widened

__all__ = ["Blend", "Mixture", "Point", "how_many"]

Vector: TypeAlias = "np.ndarray[Any, Any]"


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

    def differs(self, other: Point) -> int:
        """Return in how many places only one of two points is zero."""
        return how_many(self.active ^ other.active)


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
        self.points = points
        xp = namespace(points[-1].rho)
        (rows,) = xp.nonzero(points[-1].active)
        # Squares leave the range of single precision.
        R = widened(xp.stack([xp.take(p.rho, rows, axis=0) for p in points]))
        gram = np.asarray(to_numpy((xp.conj(R) if is_complex(R) else R) @ R.T).real)
        # Residuals differ by orders of magnitude: with unit columns the regularisation is a relative one.
        sizes = np.diag(gram)
        self._scale = 1.0 / np.sqrt(np.maximum(sizes, 1e-20 * sizes.max() + 1e-300))
        self._gram = gram * np.outer(self._scale, self._scale)
        self._regularisation = max(1e-12, 10.0 * eps(points[-1].x))
        self._alpha = points[-1].alpha
        self._alphas = np.array([p.alpha for p in points]) / self._alpha

    @property
    def _spread(self) -> bool:
        """Whether the points differ in the parameter, so that its influence can be told."""
        return bool(np.ptp(self._alphas) > 1e-9)

    def _solve(self, ratio: float) -> Vector:
        """Return the weights for the parameter ``ratio`` times the last one."""
        rows, values = [self._scale], [1.0]
        if self._spread:
            rows, values = [*rows, (self._alphas - 1.0) * self._scale], [1.0, ratio - 1.0]
        sizes = [float(np.linalg.norm(row)) for row in rows]
        conditions = np.stack([row / size for row, size in zip(rows, sizes, strict=True)])
        wanted = np.array([value / size for value, size in zip(values, sizes, strict=True)])
        U, s, Vh = np.linalg.svd(conditions)
        rank = int(np.count_nonzero(s > 1e-9 * s[0]))
        theta = Vh[:rank].T @ ((U[:, :rank].T @ wanted) / s[:rank])
        free = Vh[rank:].T
        if free.shape[1]:
            reduced = free.T @ self._gram @ free + self._regularisation * np.eye(free.shape[1])
            theta = theta - free @ np.linalg.solve(reduced, free.T @ (self._gram @ theta))
        theta = theta * self._scale
        weights: Vector = theta / theta.sum()  # what rounding has left of the first condition
        return weights

    @cached_property
    def _line(self) -> tuple[Vector, Vector]:
        """Weights at the last parameter, and their derivative in its relative change."""
        theta = self._solve(1.0)
        if not self._spread:
            return theta, 0.0 * theta
        return theta, 10.0 * (self._solve(1.1) - theta)

    @property
    def left(self) -> float:
        """The length of the mixed fixed-point residual at the last parameter."""
        theta = self._line[0] / self._scale
        return math.sqrt(max(0.0, float(theta @ self._gram @ theta)))

    def root(self, length: float) -> float | None:
        """Return the parameter at which the mixed residual has this length, or None."""
        if not self._spread:
            return None
        theta, slope = self._line
        at, change = self._mixed("r", theta), self._mixed("r", slope)
        a, b = inner(change, change), inner(change, at)
        c = inner(at, at) - length * length  # a power would round with the units
        if a <= 0.0 or b * b < a * c:
            return None
        # The residual grows with the parameter where it matters: the larger root.
        return self._alpha * (1.0 + (math.sqrt(b * b - a * c) - b) / a)

    def at(self, alpha: float) -> Mixture:
        """Return the best mixture for this parameter."""
        at, slope = self._line
        theta = at + (alpha / self._alpha - 1.0) * slope
        x, r, g = (self._mixed(name, theta) for name in ("x", "r", "g"))
        mixed = sum(abs(float(t)) * p.length for t, p in zip(theta, self.points, strict=True))
        length = norm(r)
        return Mixture(x, r, g, alpha, length, mixed / length if length > 0.0 else math.inf)

    def _mixed(self, name: str, theta: Vector) -> Array:
        parts = [getattr(point, name) for point in self.points]
        if not isinstance(parts[0], np.ndarray):
            block = namespace(*parts).stack(
                parts
            )  # one product instead of two calls for each point
            return asarray_like(theta, block) @ block
        total: Vector = 0.0 * parts[0]
        for weight, part in zip(theta, parts, strict=True):
            # A Python number does not widen single precision.
            total += float(weight) * part
        return total
