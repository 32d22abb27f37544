"""Exponential cones: distances of triples from them, and maps into them and their duals.

The cone is the closure of the triples ``(x, y, z)`` with ``y > 0`` and ``y exp(x / y) <= z``, which adds
those with ``x <= 0``, ``y = 0`` and ``z >= 0``. Its dual is the closure of the triples ``(u, v, w)`` with
``u < 0`` and ``-u exp(v / u - 1) <= w``, which adds those with ``u = 0`` and ``v, w >= 0``: the inner product
with ``(t, 1, exp(t))`` is ``u t + v + w exp(t)``, least where ``exp(t) = -u / w``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.real_vectors import Vector

__all__ = ["Exponentials"]

_EPS = float(np.finfo(np.float64).eps)
#: Exponents are cut off here: exp(700) = 1e304 neither overflows nor does its inverse underflow.
_FAR = 700.0


@dataclass(frozen=True)
class Exponentials:
    """Several cones ``y exp(x / y) <= z`` of triples ``(x, y, z)``: logistic losses, entropies.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.engines.exponentials import Exponentials
    >>> cones = Exponentials(count=4)
    >>> cones.rows
    12
    >>> cone = Exponentials(1)
    >>> cone.outside(np.array([0.0, 1.0, 0.5])), cone.outside(np.array([0.0, 1.0, 1.5]))
    (0.5, 0.0)
    >>> cone.into_dual(np.array([-1.0, -1.0, 0.0])).round(6)
    array([-1., -1.,  1.])
    """

    count: int

    @property
    def rows(self) -> int:
        return 3 * self.count

    def into(self, z: Vector) -> Vector:
        """Return a point of the cones near ``z``: each triple is changed by the smallest of three moves."""
        moves = self._moves(z)
        least = np.abs(moves).max(axis=2).argmin(axis=0)
        return np.asarray(z + moves[least, np.arange(self.count)].ravel())

    def outside(self, z: Vector) -> float:
        """Return the largest change of an entry that brings all triples into their cones by these moves."""
        return float(np.abs(self._moves(z)).max(axis=2).min(axis=0).max(initial=0.0))

    def relative(self, z: Vector, sizes: Vector) -> float:
        """Return the same with the change of each entry relative to its own size.

        The entry z is compared with a multiple of y, so the sizes of both count for it.
        """
        moves, own = np.abs(self._moves(z)), sizes.reshape(self.count, 3)
        own = own + own[:, 1:2] * np.array([0.0, 0.0, 1.0])
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.where(moves > 0.0, moves / own, 0.0)
        return float(shares.max(axis=2).min(axis=0).max(initial=0.0))

    def _moves(self, triples: Vector) -> Vector:
        """Return three changes of each triple that lead into the cone, infinite if impossible.

        They raise z, lower x, or set y to zero and the others to the right signs.
        """
        x, y, z = triples.reshape(self.count, 3).T
        with np.errstate(all="ignore"):
            above = np.where(y > 0.0, np.maximum(y * np.exp(x / y) - z, 0.0), np.inf)
            known = (y > 0.0) & (z > 0.0)
            before = np.where(known, np.minimum(y * np.log(z / y) - x, 0.0), -np.inf)
        none = np.zeros(self.count)
        face = np.minimum(x, 0.0) - x, -y, np.maximum(z, 0.0) - z
        found = [(none, none, above), (before, none, none), face]
        moves = np.stack([np.stack(each, axis=1) for each in found])
        return np.where(np.isnan(moves), np.inf, moves)

    def into_dual(self, z: Vector, costs: Vector | None = None) -> Vector:
        """Return a point near ``z`` in the dual cones, rounding included.

        The change of each triple is in the dual cone as well. ``costs`` of changing each entry by 1 determine
        whether v or w is raised; all are 1 by default.
        """
        price = np.ones(self.rows) if costs is None else costs
        _, of_v, of_w = price.reshape(self.count, 3).T
        u, v, w = np.array(z, dtype=np.float64).reshape(self.count, 3).T
        # (-1, 0, 1/e) is in the dual cone: a multiple of it makes u zero.
        w = np.where(u > 0.0, w + u * np.exp(-1.0) * (1.0 + 8.0 * _EPS), w)
        u = np.minimum(u, 0.0)
        top, higher = _least_w(u, v, w), _least_v(u, v, w)
        with np.errstate(invalid="ignore"):
            raised = of_w * (top - w)
            by_w = raised <= of_v * (higher[0] - v) + of_w * (higher[1] - w)
        by_w &= top - w <= np.abs(u) + np.abs(v) + np.abs(w)  # exponentials may be anything
        v, w = np.where(by_w, v, higher[0]), np.where(by_w, top, higher[1])
        flat = u == 0.0
        v, w = np.where(flat, np.maximum(v, 0.0), v), np.where(flat, np.maximum(w, 0.0), w)
        return np.stack([u, v, w], axis=1).ravel()

    def sizes(self, z: Vector) -> Vector:
        return np.repeat(np.linalg.norm(z.reshape(self.count, 3), axis=1), 3)

    def tangents(self, z: Vector) -> scipy.sparse.csr_array:
        """Return the normals of the boundaries near ``z``, one row for each cone."""
        x, y, _ = z.reshape(self.count, 3).T
        with np.errstate(all="ignore"):
            t = x / y
            slope = np.minimum(np.exp(np.minimum(t, _FAR)), np.exp(_FAR))
            rows = np.stack([-slope, (t - 1.0) * slope, np.ones(self.count)], axis=1)
        moved = (self.into(z) - z).reshape(self.count, 3)
        smooth = (y > 0.0) & np.isfinite(rows).all(axis=1)
        rows = np.where(smooth[:, None], rows, moved)
        for order in (np.inf, 2):  # squares of the entries may overflow
            lengths = np.linalg.norm(rows, order, axis=1, keepdims=True)
            rows = rows / np.where(lengths > 0.0, lengths, 1.0)
        ends = 3 * np.arange(self.count + 1)
        return scipy.sparse.csr_array(
            (rows.ravel(), np.arange(self.rows), ends), (self.count, self.rows)
        )


def _least_w(u: Vector, v: Vector, w: Vector) -> Vector:
    """Return w, or the least one beside u < 0 and v, rounded up; infinite where that overflows."""
    with np.errstate(all="ignore"):
        ratio = np.where(u < 0.0, v / u, 0.0)
        rounding = 1.0 + (16.0 + 4.0 * np.abs(ratio)) * _EPS
        least = -u * np.exp(np.maximum(ratio - 1.0, -_FAR)) * rounding
    return np.where(np.isnan(least), np.inf, np.maximum(w, least))


def _least_v(u: Vector, v: Vector, w: Vector) -> tuple[Vector, Vector]:
    """Return v, or the least one beside u < 0 and w, rounded up; with w, which has to be positive."""
    w = np.where(w > 0.0, w, -u)
    with np.errstate(all="ignore"):
        log = np.where(u < 0.0, np.log(w / -u), 0.0)
        least = u * (1.0 + log) - u * (16.0 + 4.0 * np.abs(log)) * _EPS
    return np.where(np.isnan(least), np.inf, np.maximum(v, least)), w
