"""The iteration of alternating directions with one penalty for each term."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lopro.core.arrays import Array, diagonal_direction, norm, to_numpy
from lopro.methods.splitting.parts import Images, Parts

__all__ = ["Settings", "State", "advance", "balanced", "first_state", "softened"]


@dataclass(frozen=True)
class Settings:
    """Settings of the iteration.

    Measured on total variation over a residual ball, 128 x 128, a Gaussian blur of two pixels, noise of 1 %:
    steps, products and the value after them, beside an optimum of 263.62.
    """

    #: Products of one linear system at most.
    products: int = 30
    #: Residual of a linear system, relative to the change of the last step. With 0.1 and 400 steps 1,490
    #: products and the value 263.677; with ten products a step 4,390 and 263.676.
    accuracy: float = 0.1
    #: The factor by which a penalty changes at most, to make both relative residuals of its term equal.
    change: float = 5.0
    #: Penalties for a bound, as a share of those for a point: small ones make multipliers that are nearly
    #: stationary. After 400 steps 50 more with a share of 0.3, 0.1, 0.03 and 0.01 prove 262.31, 262.36,
    #: 263.15 and 263.57; with 1 it is 262.30.
    softening: float = 0.01


SETTINGS = Settings()


@dataclass(frozen=True, eq=False)
class State:
    """The state: the point, its images, their proxes, and multipliers over penalties."""

    x: Array
    images: Images
    z: Images
    u: Images
    rho: tuple[float, ...]
    #: Tolerance of the linear system, and the movement of the proxes in the last step.
    tolerance: float
    moved: tuple[float, ...]
    steps: int = 0

    @property
    def multipliers(self) -> Images:
        """One subgradient for each term, at its prox."""
        return tuple(r * u for r, u in zip(self.rho, self.u, strict=True))

    def in_double(self) -> State:
        """Return the same state in NumPy arrays of doubles."""
        images, z, u = (tuple(_double(a) for a in each) for each in (self.images, self.z, self.u))
        return replace(self, x=_double(self.x), images=images, z=z, u=u)


def _double(values: Array) -> Array:
    return np.asarray(to_numpy(values), dtype=np.float64)


def first_state(parts: Parts, x: Array, unit: float) -> State:
    """Return the state at a start, with penalties in the units of the terms."""
    images = parts.images(x)
    rho = _first_penalties(parts, x, unit)
    z = tuple(t.prox(w, 1.0 / r) for t, w, r in zip(parts.split, images, rho, strict=True))
    none = tuple(0.0 * w for w in images)
    return State(x, images, z, none, rho, math.inf, (math.inf,) * len(z))


def advance(parts: Parts, state: State, relaxation: float) -> State:
    """Return the state one step later: a linear system, a prox of every term, new multipliers."""
    rho = state.rho
    # The residual of the system at the current point.
    gaps = [r * (z - u - w) for r, z, u, w in zip(rho, state.z, state.u, state.images, strict=True)]
    rhs = parts.pullback(gaps) - parts.gradient(state.x)
    size = norm(rhs)
    accuracy = min(SETTINGS.accuracy, state.tolerance / size) if size > 0.0 else 1.0
    dx, _ = parts.solve(rho, rhs, accuracy, SETTINGS.products)
    x = state.x + dx
    images = parts.images(x)
    z, u, changes = [], [], []
    for term, r, w, last, v in zip(parts.split, rho, images, state.z, state.u, strict=True):
        shifted = relaxation * w + (1.0 - relaxation) * last + v
        new = term.prox(shifted, 1.0 / r)
        z.append(new)
        u.append(shifted - new)
        changes.append(r * (new - last))
    tolerance = SETTINGS.accuracy * norm(parts.pullback(changes))
    moved = tuple(norm(c) for c in changes)
    return State(x, images, tuple(z), tuple(u), rho, tolerance, moved, state.steps + 1)


def softened(state: State) -> State:
    """Return the state with smaller penalties and the same multipliers."""
    share = SETTINGS.softening
    return _with_penalties(state, [share * r for r in state.rho])


def balanced(parts: Parts, state: State) -> State:
    """Return the state with penalties that bring primal and dual residuals of every term to one size."""
    found = []
    for i, term in enumerate(parts.split):
        r, w, z = state.rho[i], state.images[i], state.z[i]
        centre = term.offset_beside(z)
        primal = _ratio(norm(w - z), max(norm(w - centre), norm(z - centre)))
        dual = _ratio(state.moved[i], norm(r * state.u[i]))
        if not (primal > 0.0 and dual > 0.0):
            found.append(r)
            continue
        factor = math.sqrt(primal / dual)
        found.append(r * min(max(factor, 1.0 / SETTINGS.change), SETTINGS.change))
    return _with_penalties(state, found)


def _with_penalties(state: State, rho: Sequence[float]) -> State:
    u = tuple((old / new) * v for old, new, v in zip(state.rho, rho, state.u, strict=True))
    return replace(state, rho=tuple(rho), u=u)


def _ratio(size: float, scale: float) -> float:
    return size / scale if scale > 0.0 else 0.0


def _first_penalties(parts: Parts, x: Array, unit: float) -> tuple[float, ...]:
    """Return multipliers over images of typical size; those of sets balance the slopes of the others."""
    point = _typical_point(parts, x, unit)
    images = parts.images(point)
    slopes = [None if t.is_set else t.slope(w) for t, w in zip(parts.split, images, strict=True)]
    force = [0.0 * w if v is None else v for v, w in zip(slopes, images, strict=True)]
    pull = norm(parts.pullback(force) + parts.gradient(point)) or 1.0
    rho = []
    for term, w, slope in zip(parts.split, images, slopes, strict=True):
        size = norm(w) or unit
        if slope is not None:
            rho.append((norm(slope) or pull) / size)
            continue
        # The size of the set, measured from the centre of a ball.
        inside = norm(term.prox(w, 1.0) - term.offset_beside(w))
        back = norm(w if term.is_identity else term.pullback(w))
        rho.append(pull * size / (back or size) / max(inside, 1e-3 * size))
    return tuple(rho)


def _typical_point(parts: Parts, x: Array, unit: float) -> Array:
    """Return a point of typical length along the adjoints of the data, or the start if it is not zero."""
    if norm(x) > 0.0:
        return x
    direction = 0.0 * x
    for term in (*parts.quadratic, *parts.split):
        if term.offset is not None:
            b = term.offset_beside(x)
            direction = direction + (b if term.is_identity else parts._shaped(term.D.adjoint(b)))
    length = norm(direction)
    return (unit / length) * direction if length > 0.0 else unit * diagonal_direction(x)
