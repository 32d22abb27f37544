"""Balls and second-order cones: sets whose projection moves along one direction."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lopro.newton.arrays import EPS, Array, norm
from lopro.newton.parts.base import Steps
from lopro.newton.parts.complements import MaskAndRows

__all__ = ["Ball", "SecondOrderCone"]


class Ball:
    """The indicator function of ``|z - center| <= radius``.

    Outside, with ``n`` the unit vector from the centre and ``r`` the distance, ``J = radius/r (I - nn')``.

    Parameters
    ----------
    center : array
        The centre.
    radius : float
        Not negative.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.newton.parts import Ball
    >>> ball = Ball(np.array([1.0, 0.0]), 2.0)
    >>> ball.prox(np.array([5.0, 0.0]), 1.0), ball.conjugate(np.array([3.0, 4.0]))
    (array([3., 0.]), 13.0)
    """

    separable = False
    steepness = 0.0

    def __init__(self, center: Any, radius: float) -> None:
        self.center: Array = np.asarray(center, dtype=np.float64)
        self.radius = float(radius)
        if not 0.0 <= self.radius < math.inf:
            raise ValueError(f"radius must be a number that is not negative, got {radius}")
        self.size = len(self.center)

    def value(self, z: Array) -> float:
        return 0.0 if norm(z - self.center) <= self.radius else math.inf

    def prox(self, w: Array, steps: Steps) -> Array:
        away = w - self.center
        distance = norm(away)
        if distance <= self.radius:
            return w
        return np.asarray(self.center + (self.radius / distance) * away)

    def complement(self, w: Array, steps: Steps) -> MaskAndRows:
        away = w - self.center
        distance = norm(away)
        # A point stands for an equation: active even where w happens to hit it.
        outside = distance > self.radius or self.radius == 0.0
        share = self.radius / distance if outside and distance > 0.0 else 0.0
        normal = away / distance if distance > 0.0 else away
        values = np.full(self.size, 1.0 - share if outside else 0.0)
        return MaskAndRows(values, normal[None, :], np.array([share]))

    def conjugate(self, v: Array) -> float:
        return float(v @ self.center) + self.radius * norm(v)

    def into_domain(self, v: Array) -> Array:
        return v

    def violation(self, z: Array) -> Array:
        return np.asarray(max(0.0, norm(z - self.center) - self.radius))


class SecondOrderCone:
    """The indicator function of ``|(z_1, ..., z_k)| <= z_0``, after an offset: ``z + offset`` in the cone.

    With ``z + offset = (t, y)``, ``n = y/|y|`` and ``tau = t/|y|`` between -1 and 1, ``I - J`` has the
    eigenvalue 1 along ``(1, -n)``, 0 along ``(1, n)`` and ``(1 - tau)/2`` on what is normal to both.

    Parameters
    ----------
    offset : array
        Zeros for the cone itself.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.newton.parts import SecondOrderCone
    >>> cone = SecondOrderCone(np.zeros(3))
    >>> cone.prox(np.array([0.0, 3.0, 4.0]), 1.0)
    array([2.5, 1.5, 2. ])
    """

    separable = False
    steepness = 0.0

    def __init__(self, offset: Any) -> None:
        self.offset: Array = np.asarray(offset, dtype=np.float64)
        self.size = len(self.offset)
        if self.size < 2:
            raise ValueError(f"offset: two entries or more are needed, got {self.size}")

    def _parts(self, z: Array) -> tuple[float, Array, float]:
        moved = z + self.offset
        return float(moved[0]), moved[1:], norm(moved[1:])

    def value(self, z: Array) -> float:
        t, _, length = self._parts(z)
        return 0.0 if length <= t else math.inf

    def prox(self, w: Array, steps: Steps) -> Array:
        t, y, length = self._parts(w)
        if length <= t:
            return w
        if length <= -t:
            return -self.offset
        height = 0.5 * (t + length)
        return np.concatenate([[height], (height / length) * y]) - self.offset

    def complement(self, w: Array, steps: Steps) -> MaskAndRows:
        t, y, length = self._parts(w)
        rows = np.zeros((2, self.size))
        if length <= t or length <= -t:
            return MaskAndRows(np.full(self.size, 0.0 if length <= t else 1.0), rows, np.zeros(2))
        share = 0.5 * (1.0 - t / length)
        rows[0, 0], rows[0, 1:] = math.sqrt(0.5), -math.sqrt(0.5) / length * y
        rows[1, 1:] = y / length
        values = np.full(self.size, share)
        values[0] = 0.0
        return MaskAndRows(values, rows, np.array([1.0, -share]))

    def conjugate(self, v: Array) -> float:
        return -float(v @ self.offset) if norm(v[1:]) <= -float(v[0]) else math.inf

    def into_domain(self, v: Array) -> Array:
        # The polar cone; a little farther in than the rounding of a norm.
        least = norm(v[1:]) * (1.0 + (self.size + 8) * EPS)
        return np.concatenate([[min(float(v[0]), -least)], v[1:]])

    def violation(self, z: Array) -> Array:
        t, _, length = self._parts(z)
        return np.asarray(norm(z - self.prox(z, 1.0)) if length > t else 0.0)
