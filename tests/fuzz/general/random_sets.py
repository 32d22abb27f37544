"""Random sets around a point that is known to be in them. Frozen, like every generator here."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuzz.general.balls import L1Ball, ResidualBall
from fuzz.general.sets import Array, Box, Polyhedron, Set, Simplex

__all__ = ["bounded_set", "empty_pair", "flat_set", "point_set", "thin_set", "unbounded_set"]

Rng = np.random.Generator


def _none(n: int) -> tuple[Array, Array]:
    return np.zeros((0, n)), np.zeros(0)


def _rows(rng: Rng, k: int, n: int) -> Array:
    way = rng.integers(0, 4)
    if way == 0:
        return rng.integers(-3, 4, (k, n)).astype(float)
    C = rng.standard_normal((k, n))
    if way == 1:
        C *= rng.random((k, n)) < 0.4
    if way == 2 and rng.random() < 0.5:
        C *= 10.0 ** rng.uniform(-5.0, 5.0, (k, 1))
    return C


def polyhedron(rng: Rng, p: Array, bounded: bool) -> Polyhedron:
    """Half-spaces around ``p``; now and then with zero rows, repeated rows, rows in odd units."""
    n = len(p)
    C = _rows(rng, int(rng.integers(1, 2 * n + 4)), n)
    if rng.random() < 0.2:
        C = np.vstack([C, C[:1], 2.0 * C[:1]])
    if rng.random() < 0.1:
        C = np.vstack([C, np.zeros((1, n))])
    lengths = np.linalg.norm(C, axis=1)
    b = C @ p + np.where(lengths > 0, lengths, 1.0) * rng.exponential(size=len(C)) + 1e-3 * lengths
    if bounded:
        reach = rng.uniform(0.5, 5.0)
        C = np.vstack([C, np.eye(n), -np.eye(n)])
        b = np.concatenate([b, p + reach, reach - p])
    form = str(rng.choice(["", "", "", "lc.MaxForm()", "lc.NormForm()"]))
    return Polyhedron(C, b, *_none(n), form=form, sparse=bool(rng.random() < 0.15))


def box(rng: Rng, p: Array, bounded: bool) -> Box:
    """Bounds on either side of ``p``."""
    n = len(p)
    lower, upper = p - rng.uniform(0.1, 3.0, n), p + rng.uniform(0.1, 3.0, n)
    if not bounded:
        lower[rng.random(n) < 0.4] = -np.inf
        upper[rng.random(n) < 0.4] = np.inf
        lower[0] = p[0] - 1.0  # at least one bound is there
    return Box(lower, upper)


def ball(rng: Rng, p: Array, bounded: bool) -> ResidualBall:
    """A residual ball with ``p`` inside."""
    n = len(p)
    m = int(rng.integers(n, 2 * n + 2)) if bounded else int(rng.integers(1, n + 1))
    A = rng.standard_normal((m, n))
    if rng.random() < 0.2:
        A *= 10.0 ** rng.uniform(-3.0, 3.0, (1, n))
    noise = rng.standard_normal(m) * rng.uniform(0.01, 1.0)
    sigma = float(np.linalg.norm(noise)) * rng.uniform(1.1, 3.0)
    # No radius is known of callables and operators, so sets that have to be bounded use neither.
    forms = ["", "norm", "sparse"] if bounded else ["", "norm", "operator", "callable", "kinked"]
    form = str(rng.choice(forms))
    return ResidualBall(A, A @ p + noise, sigma, form=form)


def bounded_set(rng: Rng, p: Array, balls: bool = True) -> Set:
    """A bounded set with ``p`` inside; simplices where ``p`` is positive."""
    ways = ["polyhedron", "polyhedron", "box", "l1"] + ["ball"] * balls
    way = rng.choice(ways + ["simplex"] * 2 * bool((p > 0).all()))
    if way == "polyhedron":
        return polyhedron(rng, p, True)
    if way == "box":
        return box(rng, p, True)
    if way == "ball":
        return ball(rng, p, True)
    if way == "l1":
        return L1Ball(len(p), float(np.abs(p).sum()) * rng.uniform(1.05, 2.0) + 0.1)
    equality = bool(rng.random() < 0.6)
    return Simplex(len(p), float(p.sum()) * (1.0 if equality else rng.uniform(1.05, 2.0)), equality)


def unbounded_set(rng: Rng, p: Array) -> Set:
    """A set around ``p`` that need not be bounded."""
    maker: Any = (polyhedron, polyhedron, box, ball)[rng.integers(0, 4)]
    found: Set = maker(rng, p, False)
    return found


def flat_set(rng: Rng, p: Array) -> Set:
    """A set without interior: equations that hold at ``p``, whose entries are integers."""
    n = len(p)
    k = int(rng.integers(1, max(2, n)))
    E = rng.integers(-3, 4, (k, n)).astype(float)
    if rng.random() < 0.3:
        E = np.vstack([E, E[:1] * 2.0])
    if rng.random() < 0.2:
        return ResidualBall(E, E @ p, 0.0)
    reach = float(rng.integers(1, 6))
    C, b = np.vstack([np.eye(n), -np.eye(n)]), np.concatenate([p + reach, reach - p])
    return Polyhedron(C, b, E, E @ p)


def point_set(rng: Rng, p: Array) -> Set:
    """The set of the single point ``p``, in several forms."""
    n, way = len(p), rng.integers(0, 3)
    if way == 0:
        return Box(p.copy(), p.copy())
    if way == 1:
        return Polyhedron(*_none(n), np.eye(n), p.copy())
    # A corner: n half-spaces through p, and one that excludes the rest of their cone.
    return Polyhedron(np.vstack([np.eye(n), -np.ones((1, n))]), np.append(p, -p.sum()), *_none(n))


def thin_set(rng: Rng, p: Array) -> Set:
    """A slab around ``p`` that is nearly flat, or touches it."""
    n = len(p)
    c = rng.integers(-3, 4, n).astype(float)
    c[0] = 1.0
    width = float(2.0 ** -rng.integers(10, 40))
    rows = np.vstack([c, -c, np.eye(n), -np.eye(n)])
    b = np.concatenate([[c @ p + width, -(c @ p) + width], p + 2.0, 2.0 - p])
    return Polyhedron(rows, b, *_none(n))


def empty_pair(rng: Rng, p: Array) -> tuple[Set, ...]:
    """Return sets that have no point in common."""
    n, margin = len(p), float(10.0 ** rng.uniform(-4.0, 1.0))
    c = rng.standard_normal(n)
    c /= np.linalg.norm(c)
    here, there = float(c @ p), float(c @ p) + margin
    way = rng.integers(0, 4)
    if way == 0:
        return (Polyhedron(np.vstack([c, -c]), np.array([here, -there]), *_none(n)),)
    if way == 1:
        wall = Polyhedron(-c[None, :], np.array([-there]), *_none(n))
        return wall, ResidualBall(np.eye(n), p, margin * rng.uniform(0.2, 0.9))
    if way == 2:
        A = rng.standard_normal((n + 3, n))
        y = rng.standard_normal(n + 3)
        misfit = float(np.linalg.norm(A @ np.linalg.lstsq(A, y, rcond=None)[0] - y))
        return (ResidualBall(A, y, misfit * rng.uniform(0.0, 0.99)),)
    return Box(p - 1.0, p + 1.0), Box(p + 1.0 + margin, p + 3.0 + margin)
