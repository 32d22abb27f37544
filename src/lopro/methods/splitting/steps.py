"""The iteration of ADMM, with one penalty for each term."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lopro.core.arrays import Array, norm, to_numpy
from lopro.core.vectors import diagonal_direction
from lopro.methods.splitting.base import balancing_factor
from lopro.methods.splitting.parts import Images, SplitTerms
from lopro.methods.splitting.settings import SETTINGS

__all__ = ["ADMMState", "advance", "balanced", "first_state", "softened"]


@dataclass(frozen=True, eq=False)
class ADMMState:
    """The state: x, its images, their proxes z, and the scaled multipliers u (multipliers over penalties)."""

    x: Array
    images: Images
    z: Images
    u: Images
    rho: tuple[float, ...]
    #: Tolerance of the linear system, and the weighted change of each prox in the last step.
    tolerance: float
    moved: tuple[float, ...]
    steps: int = 0

    @property
    def multipliers(self) -> Images:
        """The multiplier of each term: a subgradient at its prox."""
        return tuple(r * u for r, u in zip(self.rho, self.u, strict=True))

    def in_double(self) -> ADMMState:
        """Return the same state in NumPy arrays of doubles."""
        images, z, u = (tuple(_double(a) for a in each) for each in (self.images, self.z, self.u))
        return replace(self, x=_double(self.x), images=images, z=z, u=u)


def _double(values: Array) -> Array:
    return np.asarray(to_numpy(values), dtype=np.float64)


def first_state(parts: SplitTerms, x: Array, unit: float) -> ADMMState:
    """Return the state at a start, with penalties in the units of the terms."""
    images = parts.images(x)
    rho = _first_penalties(parts, x, unit)
    z = tuple(t.prox(w, 1.0 / r) for t, w, r in zip(parts.split, images, rho, strict=True))
    none = tuple(0.0 * w for w in images)
    return ADMMState(x, images, z, none, rho, math.inf, (math.inf,) * len(z))


def advance(parts: SplitTerms, state: ADMMState, relaxation: float) -> ADMMState:
    """Make one step: solve a linear system, take the prox of every term, and update the multipliers."""
    rho = state.rho
    # The right-hand side is the residual of the system at the current point.
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
    return ADMMState(x, images, tuple(z), tuple(u), rho, tolerance, moved, state.steps + 1)


def softened(state: ADMMState) -> ADMMState:
    """Return the state with smaller penalties and the same multipliers."""
    share = SETTINGS.softening
    return _with_penalties(state, [share * r for r in state.rho])


def balanced(parts: SplitTerms, state: ADMMState) -> ADMMState:
    """Return the state with penalties that balance the relative residuals of every term."""
    found = []
    for i, term in enumerate(parts.split):
        r, w, z = state.rho[i], state.images[i], state.z[i]
        centre = term.offset_beside(z)
        primal = _ratio(norm(w - z), max(norm(w - centre), norm(z - centre)))
        dual = _ratio(state.moved[i], norm(r * state.u[i]))
        found.append(r * balancing_factor(primal, dual))
    return _with_penalties(state, found)


def _with_penalties(state: ADMMState, rho: Sequence[float]) -> ADMMState:
    """Return the state with other penalties and the same multipliers."""
    u = tuple((old / new) * v for old, new, v in zip(state.rho, rho, state.u, strict=True))
    return replace(state, rho=tuple(rho), u=u)


def _ratio(size: float, scale: float) -> float:
    return size / scale if scale > 0.0 else 0.0


def _first_penalties(parts: SplitTerms, x: Array, unit: float) -> tuple[float, ...]:
    """Return ratios of typical multipliers to images; those of sets balance the slopes of the other terms."""
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


def _typical_point(parts: SplitTerms, x: Array, unit: float) -> Array:
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
