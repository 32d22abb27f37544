"""The iteration that all Frank-Wolfe methods share: linear minimisation, direction, step size, step.

Images ``A x`` of the iterates are combined from those of the vertices, so that an iteration takes one product
for the image of its vertex (with single columns if the vertex is sparse) and one for the gradient.
"""

from __future__ import annotations

import functools
import operator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.arrays import Array, eps, inner, to_numpy
from lopro.errors import MissingCapabilityError
from lopro.functions import Image
from lopro.problem import Problem
from lopro.protocol import Candidate, Candidates, Multiplier, Workbench

__all__ = [
    "ActiveSet",
    "LineSearch",
    "OpenLoop",
    "PointWithImage",
    "ShortStep",
    "dual_gap",
    "iterate",
    "take_step",
]


@dataclass(frozen=True, eq=False)
class Ray:
    """The points ``x + gamma d`` with ``0 <= gamma <= longest``, given by their images."""

    f: Any
    image: Image
    image_direction: Image
    value: float  # f(x)
    slope: float  # <grad f(x), d>, negative
    square: float  # |d|^2
    longest: float
    t: int  # number of steps before

    def value_at(self, gamma: float) -> float:
        """Return ``f(x + gamma d)`` without a product with any matrix."""
        pairs = zip(self.image, self.image_direction, strict=True)
        step = float(gamma)  # NumPy scalars do not multiply arrays of every library
        return float(self.f.linearize_at(tuple(a + step * b for a, b in pairs))[0])


class StepSize(Protocol):
    """A rule for the step size."""

    def check(self, problem: Problem) -> None:
        """Raise `MissingCapabilityError` if the rule needs a constant that is not known."""
        ...

    def size(self, ray: Ray) -> float:
        """Return ``gamma``."""
        ...


@dataclass(frozen=True)
class OpenLoop:
    """``2 / (t + 2)``: needs no constant and no value of f."""

    def check(self, problem: Problem) -> None:
        """Accept every problem."""

    def size(self, ray: Ray) -> float:
        return min(ray.longest, 2.0 / (ray.t + 2))


@dataclass(frozen=True)
class ShortStep:
    """``<-grad, d> / (L |d|^2)``: the minimiser of the quadratic bound, for the known smoothness ``L``."""

    def check(self, problem: Problem) -> None:
        if problem.objective.smoothness() is None:
            raise MissingCapabilityError(
                f"ShortStep needs the smoothness constant L of the objective, and "
                f"{type(problem.objective).__name__} has none; use LineSearch() or OpenLoop()"
            )

    def size(self, ray: Ray) -> float:
        curvature = ray.f.smoothness().value * ray.square
        return min(ray.longest, -ray.slope / curvature) if curvature > 0.0 else ray.longest


@dataclass(frozen=True)
class LineSearch:
    """The minimiser along the direction, from values at combined images, without products.

    If f is quadratic along ``d``, the parabola through two values and the slope is exact, which a third value
    verifies; otherwise Brent's method is used. The values are taken at ``x + d/2`` and ``x + d`` even if the
    step must be shorter, because their differences on a tiny step would be rounding error.
    """

    def check(self, problem: Problem) -> None:
        """Accept every problem."""

    def size(self, ray: Ray) -> float:
        # The differences to the tangent at x + d and x + d/2, nonnegative for a convex f.
        bend = ray.value_at(1.0) - ray.value - ray.slope
        half = ray.value_at(0.5) - ray.value - 0.5 * ray.slope
        # About 45 units of rounding of the values; a larger difference than 1e-9 means that f is not
        # quadratic.
        rounding = 1e-14 * (abs(ray.value) + abs(ray.slope))
        if abs(4.0 * half - bend) <= 1e-9 * abs(bend) + 8.0 * rounding:
            return min(ray.longest, -ray.slope / (2.0 * bend)) if bend > rounding else ray.longest
        limits, options = (0.0, ray.longest), {"xatol": 1e-12 * ray.longest}
        found = scipy.optimize.minimize_scalar(
            ray.value_at, bounds=limits, method="bounded", options=options
        )
        return min((float(found.x), ray.longest), key=ray.value_at)


@dataclass(frozen=True, eq=False)
class Move:
    """``d = toward * s - away * v - (toward - away) * x``: towards a vertex, away from one, or both."""

    direction: Array
    image: Image
    longest: float
    toward: float = 1.0
    away: float = 0.0
    origin: int = -1  # index of v in the active set


class PointWithImage:
    """The iterate of the plain method with its image; every step goes towards a vertex."""

    def __init__(self, f: Any, x: Array) -> None:
        self.x, self.image = x, f.image(x)

    def move(self, f: Any, g: Array, s: Array) -> Move:
        """Return the direction of the step, where ``s`` minimises ``<g, .>``."""
        return Move(s - self.x, _combined(1.0, f.image(s), -1.0, self.image), 1.0)

    def take(self, move: Move, gamma: float, s: Array) -> None:
        """Make the step."""
        self.x = self.x + gamma * move.direction
        self.image = _combined(1.0, self.image, gamma, move.image)

    def recompute(self) -> None:
        """Remove accumulated rounding errors; convex combinations of two points have none."""


class ActiveSet(PointWithImage):
    """The iterate as a convex combination of stored vertices, from which weight can be removed."""

    def __init__(self, f: Any, vertex: Array, *, pairwise: bool) -> None:
        super().__init__(f, vertex)
        self.pairwise = pairwise
        self.vertices, self.images, self.weights = [vertex], [self.image], [1.0]
        self._keys = [_key(vertex)]

    def move(self, f: Any, g: Array, s: Array) -> Move:
        new = self._index(f, s)
        worst = max(range(len(self.weights)), key=lambda i: inner(g, self.vertices[i]))
        s, image_s = self.vertices[new], self.images[new]
        v, image_v, weight = self.vertices[worst], self.images[worst], self.weights[worst]
        if self.pairwise:
            image = _combined(1.0, image_s, -1.0, image_v)
            return Move(s - v, image, weight, away=1.0, origin=worst)
        if inner(g, self.x - s) >= inner(g, v - self.x) or weight >= 1.0:
            return Move(s - self.x, _combined(1.0, image_s, -1.0, self.image), 1.0)
        image = _combined(1.0, self.image, -1.0, image_v)
        return Move(self.x - v, image, weight / (1.0 - weight), 0.0, 1.0, worst)

    def take(self, move: Move, gamma: float, s: Array) -> None:
        super().take(move, gamma, s)
        rest = 1.0 - gamma * (move.toward - move.away)
        self.weights = [rest * weight for weight in self.weights]
        self.weights[self._keys.index(_key(s))] += gamma * move.toward
        if move.origin >= 0:
            left = self.weights[move.origin] - gamma * move.away
            self.weights[move.origin] = 0.0 if gamma >= move.longest else left
        self._drop()

    def recompute(self) -> None:
        """Recompute the iterate from its vertices, without the rounding errors of many steps."""
        total = sum(self.weights)
        self.weights = [weight / total for weight in self.weights]
        self.x = _weighted(self.weights, self.vertices)
        parts = zip(*self.images, strict=True)
        self.image = tuple(_weighted(self.weights, list(part)) for part in parts)

    def _index(self, f: Any, s: Array) -> int:
        """Return the index of a vertex; a new one is added with weight 0."""
        key = _key(s)
        if key not in self._keys:
            self._keys.append(key)
            self.vertices.append(s)
            self.images.append(f.image(s))
            self.weights.append(0.0)
        return self._keys.index(key)

    def _drop(self) -> None:
        # Vertices of smaller weights change the point by less than its rounding error.
        least = 1e-2 * eps(self.x)
        kept = [i for i, weight in enumerate(self.weights) if weight > least]
        self.vertices = [self.vertices[i] for i in kept]
        self.images = [self.images[i] for i in kept]
        self.weights = [self.weights[i] for i in kept]
        self._keys = [self._keys[i] for i in kept]


@dataclass(frozen=True, eq=False)
class DualGap:
    """Gradient, minimising vertex and dual gap at a point."""

    value: float
    g: Array
    s: Array
    gap: float  # <g, x - s>, at least f(x) - f_*
    resolution: float  # rounding error of the gap


def dual_gap(f: Any, c: Any, point: PointWithImage) -> DualGap:
    """Compute the gradient at the point and minimise its inner product over the set."""
    value, slope = f.linearize_at(point.image)
    g = slope()
    s = c.linear_minimizer(g)
    at_x, at_s = inner(g, point.x), inner(g, s)
    resolution = 8.0 * eps(point.x) * (abs(at_x) + abs(at_s))
    return DualGap(value, g, s, at_x - at_s, resolution)


def take_step(f: Any, point: PointWithImage, seen: DualGap, rule: StepSize, t: int) -> float:
    """Make a step along the direction of the point; return its size."""
    move = point.move(f, seen.g, seen.s)
    square, slope = inner(move.direction, move.direction), inner(seen.g, move.direction)
    gamma = 0.0
    if square > 0.0 and slope < 0.0:
        ray = Ray(f, point.image, move.image, seen.value, slope, square, move.longest, t)
        gamma = rule.size(ray)
    point.take(move, gamma, seen.s)
    return gamma


def iterate(bench: Workbench, point: PointWithImage, rule: StepSize, report: int) -> Candidates:
    """Step until the dual gap is small; yield a candidate every ``report`` iterations."""
    f, c, t = bench.objective, bench.constraint, 0
    while True:
        seen = dual_gap(f, c, point)
        if seen.gap <= max(bench.target.gap(seen.value), seen.resolution):
            yield candidate_at(bench, point)
            if seen.gap <= seen.resolution:
                return
        elif t > 0 and t % report == 0:
            yield candidate_at(bench, point)
        take_step(f, point, seen, rule, t)
        t += 1
        if not bench.tick():
            yield candidate_at(bench, point)
            return


def candidate_at(bench: Workbench, point: PointWithImage) -> Candidate:
    """Return the point, which is feasible, with its dual gap as a multiplier."""
    point.recompute()
    x = point.x
    with bench.observe():
        inequality = bench.constraint.support_inequality(bench.objective.subgradient(x))
    return Candidate(x, Multiplier(inequality))


def _combined(a: float, left: Image, b: float, right: Image) -> Image:
    return tuple(a * u + b * v for u, v in zip(left, right, strict=True))


def _weighted(weights: list[float], arrays: list[Array]) -> Array:
    products = (weight * array for weight, array in zip(weights, arrays, strict=True))
    return functools.reduce(operator.add, products)


def _key(vertex: Array) -> bytes:
    """Return a key that is the same for equal vertices: their entries to 9 digits (4 in single precision)."""
    host = to_numpy(vertex)
    scale = float(np.abs(host).max(initial=0.0)) or 1.0
    digits = 4 if eps(vertex) > 1e-10 else 9
    return bytes((np.round(host / scale, digits) + 0.0).tobytes())
