"""The walk that all Frank-Wolfe methods share: a linear minimisation, a direction, a step.

Images ``A x`` of the iterates are combined from those of the vertices, so that an iteration makes one
product for the image of its vertex (single columns, where the vertex is sparse) and one for the gradient.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from lopro.core.arrays import Array, eps, inner, to_numpy
from lopro.functions import Image
from lopro.methods.baselines.frank_wolfe_steps import Ray, StepSize
from lopro.protocol import Candidate, Candidates, Multiplier, Workbench
from lopro.protocol.certificates import feasibility_tolerance

__all__ = ["ActiveSet", "Look", "Move", "Segment", "Walker", "look_around", "take_step", "walk"]


@dataclass(frozen=True, eq=False)
class Move:
    """``d = toward * s - away * v - (toward - away) * x``: towards a vertex, away from one, or both."""

    direction: Array
    image: Image
    longest: float
    toward: float = 1.0
    away: float = 0.0
    origin: int = -1  # the index of v in the active set


class Walker(Protocol):
    """Where the method stands, and which directions it knows."""

    x: Array
    image: Image

    def move(self, f: Any, g: Array, s: Array) -> Move:
        """Return the direction to take when ``s`` minimises ``<g, .>``."""
        ...

    def take(self, move: Move, gamma: float, s: Array) -> None:
        """Make the step."""
        ...

    def gather(self) -> None:
        """Take out the rounding errors of many steps, where that is possible."""
        ...


class Segment:
    """The plain method: always towards the vertex, nothing remembered."""

    def __init__(self, f: Any, x: Array) -> None:
        self.x, self.image = x, f.image(x)

    def move(self, f: Any, g: Array, s: Array) -> Move:
        return Move(s - self.x, _combined(1.0, f.image(s), -1.0, self.image), 1.0)

    def take(self, move: Move, gamma: float, s: Array) -> None:
        self.x = self.x + gamma * move.direction
        self.image = _combined(1.0, self.image, gamma, move.image)

    def gather(self) -> None:
        """Convex combinations do not add up rounding errors: there is nothing to do."""


class ActiveSet:
    """A convex combination of vertices, which knows its vertices and can take weight off them."""

    def __init__(self, f: Any, vertex: Array, *, pairwise: bool) -> None:
        self.pairwise = pairwise
        self.vertices, self.images, self.weights = [vertex], [f.image(vertex)], [1.0]
        self._keys = [_key(vertex)]
        self.x, self.image = vertex, self.images[0]

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
        self.x = self.x + gamma * move.direction
        self.image = _combined(1.0, self.image, gamma, move.image)
        rest = 1.0 - gamma * (move.toward - move.away)
        self.weights = [rest * weight for weight in self.weights]
        self.weights[self._keys.index(_key(s))] += gamma * move.toward
        if move.origin >= 0:
            left = self.weights[move.origin] - gamma * move.away
            self.weights[move.origin] = 0.0 if gamma >= move.longest else left
        self._drop()

    def gather(self) -> None:
        total = sum(self.weights)
        self.weights = [weight / total for weight in self.weights]
        self.x = _weighted(self.weights, self.vertices)
        parts = zip(*self.images, strict=True)
        self.image = tuple(_weighted(self.weights, list(part)) for part in parts)

    def _index(self, f: Any, s: Array) -> int:
        """Return the place of a vertex, which is added with weight 0 if it is new."""
        key = _key(s)
        if key not in self._keys:
            self._keys.append(key)
            self.vertices.append(s)
            self.images.append(f.image(s))
            self.weights.append(0.0)
        return self._keys.index(key)

    def _drop(self) -> None:
        # Weights that rounding has left over move the point by less than its own rounding.
        least = 1e-2 * eps(self.x)
        kept = [i for i, weight in enumerate(self.weights) if weight > least]
        self.vertices, self.images = (
            [self.vertices[i] for i in kept],
            [self.images[i] for i in kept],
        )
        self.weights, self._keys = [self.weights[i] for i in kept], [self._keys[i] for i in kept]


@dataclass(frozen=True, eq=False)
class Look:
    """What one gradient and one linear minimisation say about a point."""

    value: float
    g: Array
    s: Array
    gap: float  # <g, x - s>, at least f(x) - f_*
    resolution: float  # a gap below this is rounding error


def look_around(f: Any, c: Any, walker: Walker) -> Look:
    """Take the gradient at the point and minimise it over the set."""
    value, slope = f.linearize_at(walker.image)
    g = slope()
    s = c.linear_minimizer(g)
    at_x, at_s = inner(g, walker.x), inner(g, s)
    resolution = 8.0 * eps(walker.x) * (abs(at_x) + abs(at_s))
    return Look(value, g, s, at_x - at_s, resolution)


def take_step(f: Any, walker: Walker, seen: Look, rule: StepSize, t: int) -> float:
    """Go along the walker's direction as far as the rule says; return the step size."""
    move = walker.move(f, seen.g, seen.s)
    square, slope = inner(move.direction, move.direction), inner(seen.g, move.direction)
    gamma = 0.0
    if square > 0.0 and slope < 0.0:
        ray = Ray(f, walker.image, move.image, seen.value, slope, square, move.longest, t)
        gamma = rule.size(ray)
    walker.take(move, gamma, seen.s)
    return gamma


def walk(bench: Workbench, walker: Walker, rule: StepSize, report: int) -> Candidates:
    """Step until the dual gap is small, with an epoch for the driver every ``report`` iterations."""
    f, c, t = bench.objective, bench.constraint, 0
    while True:
        seen = look_around(f, c, walker)
        if seen.gap <= max(bench.target.gap(seen.value), seen.resolution):
            yield candidate_at(bench, walker)
            if seen.gap <= seen.resolution:
                return
        elif t > 0 and t % report == 0:
            yield candidate_at(bench, walker)
        take_step(f, walker, seen, rule, t)
        t += 1
        if not bench.tick():
            yield candidate_at(bench, walker)
            return


def candidate_at(bench: Workbench, walker: Walker) -> Candidate:
    """Return the point as an epoch: feasible already, and its dual gap as a multiplier."""
    walker.gather()
    x = walker.x
    with bench.observe():
        inequality = bench.constraint.support_inequality(bench.objective.subgradient(x))
    return Candidate(x, Multiplier(inequality))


def feasible_or_vertex(bench: Workbench, x: Array) -> Array:
    """Return ``x`` if it is feasible, else the vertex that its gradient points to: no projection."""
    with bench.observe():
        inside = bench.constraint.violation(x) <= feasibility_tolerance(x)
    return x if inside else first_vertex(bench, x)


def first_vertex(bench: Workbench, x: Array) -> Array:
    """Return the vertex that the gradient at ``x`` points to: one gradient, one linear minimisation."""
    return bench.constraint.linear_minimizer(bench.objective.subgradient(x))


def _combined(a: float, left: Image, b: float, right: Image) -> Image:
    return tuple(a * u + b * v for u, v in zip(left, right, strict=True))


def _weighted(weights: list[float], arrays: list[Array]) -> Array:
    total = weights[0] * arrays[0]
    for weight, array in zip(weights[1:], arrays[1:], strict=True):
        total = total + weight * array
    return total


def _key(vertex: Array) -> bytes:
    """Return what two copies of one vertex have in common, up to the last digits of a solver."""
    host = to_numpy(vertex)
    scale = float(np.abs(host).max(initial=0.0)) or 1.0
    digits = 4 if eps(vertex) > 1e-10 else 9
    return bytes((np.round(host / scale, digits) + 0.0).tobytes())
