"""The cones of conic programs, and rows whose slack lies in one of them.

The multipliers of a solver are in the dual cone only up to its tolerance. A lower bound requires them to be
inside, so every cone that describes a set has a map into its dual cone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.real_vectors import Vector

__all__ = [
    "Cone",
    "ConeRows",
    "Nonnegative",
    "PSDTriangle",
    "SecondOrder",
    "Zero",
    "active_cone",
    "ball_rows",
    "halfspace_rows",
    "triangle",
]


_EPS = float(np.finfo(np.float64).eps)


class Cone(Protocol):
    """A cone, or a product of equal ones."""

    @property
    def rows(self) -> int:
        """The number of rows whose slacks are in it."""
        ...

    def into(self, z: Vector) -> Vector:
        """Return a point of the cone near ``z``."""
        ...

    def into_dual(self, z: Vector) -> Vector:
        """Return a point near ``z`` that is in the dual cone, rounding included."""
        ...

    def sizes(self, z: Vector) -> Vector:
        """Return for each entry its modulus, or the norm of the vector or matrix that it belongs to."""
        ...

    def outside(self, z: Vector) -> float:
        """Return the largest violation by an entry, a norm, an eigenvalue or a triple of ``z``; 0 inside."""
        ...


@dataclass(frozen=True)
class _Entrywise:
    """A product of equal one-dimensional cones."""

    size: int

    @property
    def rows(self) -> int:
        return self.size

    def sizes(self, z: Vector) -> Vector:
        return np.abs(z)


@dataclass(frozen=True)
class Zero(_Entrywise):
    """The cone that contains only zero: its rows are equations.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.engines.cones import Zero
    >>> Zero(1).into_dual(np.array([-3.0]))
    array([-3.])
    """

    def outside(self, z: Vector) -> float:
        return float(np.abs(z).max(initial=0.0))

    def into(self, z: Vector) -> Vector:
        return 0.0 * z

    def into_dual(self, z: Vector) -> Vector:
        return z


@dataclass(frozen=True)
class Nonnegative(_Entrywise):
    """The nonnegative orthant: its rows are inequalities.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.engines.cones import Nonnegative
    >>> Nonnegative(2).into_dual(np.array([-1e-9, 2.0]))
    array([0., 2.])
    """

    def outside(self, z: Vector) -> float:
        return max(0.0, -float(z.min(initial=0.0)))

    def into_dual(self, z: Vector) -> Vector:
        return np.maximum(z, 0.0)

    into = into_dual  # the cone is its own dual


@dataclass(frozen=True)
class SecondOrder:
    """A product of ``count`` cones ``|u| <= t`` of vectors ``(t, u)`` with ``size`` entries.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.engines.cones import SecondOrder
    >>> SecondOrder(3).into_dual(np.array([1.0, 3.0, 4.0]))
    array([5., 3., 4.])
    >>> SecondOrder(3, count=4).rows
    12
    """

    size: int
    count: int = 1

    @property
    def rows(self) -> int:
        return self.count * self.size

    def outside(self, z: Vector) -> float:
        parts = np.array(z).reshape(self.count, self.size)
        excess = np.linalg.norm(parts[:, 1:], axis=1) - parts[:, 0]
        return max(0.0, float(excess.max(initial=0.0)))

    def into_dual(self, z: Vector) -> Vector:
        inside: Vector = np.array(z).reshape(self.count, self.size)
        longest = np.linalg.norm(inside[:, 1:], axis=1) * (1.0 + 2.0 * self.size * _EPS)
        inside[:, 0] = np.maximum(inside[:, 0], longest)
        return inside.ravel()

    into = into_dual  # the cone is its own dual

    def tangents(self, z: Vector, used: Vector) -> scipy.sparse.csr_array:
        """Return the linearisations ``t - v'u / |v|`` of ``t - |u|`` at ``z = (t, v)`` as rows.

        There is one row for each cone with a used row: fixing all entries of the cone could contradict other
        rows.
        """
        cones = np.flatnonzero(used.reshape(self.count, self.size).any(axis=1))
        v = z.reshape(self.count, self.size)[cones, 1:]
        lengths = np.linalg.norm(v, axis=1, keepdims=True)
        normals = np.hstack([np.ones((len(cones), 1)), -v / np.where(lengths > 0.0, lengths, 1.0)])
        columns = (cones[:, None] * self.size + np.arange(self.size)).ravel()
        ends = np.arange(len(cones) + 1) * self.size
        shape = len(cones), self.rows
        return scipy.sparse.csr_array((normals.ravel(), columns, ends), shape)

    def sizes(self, z: Vector) -> Vector:
        lengths = np.linalg.norm(z.reshape(self.count, self.size), axis=1)
        return np.repeat(lengths, self.size)


@dataclass(frozen=True)
class PSDTriangle:
    """Positive semidefinite matrices as vectors of their upper triangles, off-diagonal entries times sqrt(2).

    The order of the entries is that of `triangle`.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.engines.cones import PSDTriangle
    >>> PSDTriangle(2).into_dual(np.array([1.0, 0.0, -1e-9])).round(12)
    array([1., 0., 0.])
    """

    order: int

    @property
    def rows(self) -> int:
        return self.order * (self.order + 1) // 2

    def matrix(self, z: Vector) -> Vector:
        """Return the symmetric matrix of a triangle."""
        i, j = triangle(self.order)
        X = np.zeros((self.order, self.order))
        X[i, j] = X[j, i] = z / np.where(i == j, 1.0, np.sqrt(2.0))
        return X

    def outside(self, z: Vector) -> float:
        return max(0.0, -float(np.linalg.eigvalsh(self.matrix(z))[0])) if self.order else 0.0

    def into_dual(self, z: Vector) -> Vector:
        i, j = triangle(self.order)
        values, vectors = np.linalg.eigh(self.matrix(z))
        # Rounding of the product may leave an eigenvalue below zero by less than this shift.
        shift = 16.0 * self.order * _EPS * float(np.abs(values).max(initial=0.0))
        if values.min(initial=math.inf) >= shift:
            return z
        psd = (vectors * (np.maximum(values, 0.0) + shift)) @ vectors.T
        inside: Vector = psd[i, j] * np.where(i == j, 1.0, np.sqrt(2.0))
        return inside

    into = into_dual  # the cone is its own dual

    def sizes(self, z: Vector) -> Vector:
        return np.full(len(z), np.linalg.norm(z))


@dataclass(frozen=True, eq=False)
class ConeRows:
    """The set of points ``z`` with ``rows z + s = bounds`` for an ``s`` in a cone.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.engines.cones import ConeRows
    >>> from lopro.engines.cones import Nonnegative
    >>> ConeRows(np.array([[1.0, 1.0]]), np.array([3.0]), Nonnegative(1)).cone
    Nonnegative(size=1)
    """

    rows: Any
    bounds: Vector
    cone: Cone


def triangle(order: int) -> tuple[Any, Any]:
    """Return the row and column indices of the entries of an upper triangle, column by column.

    Examples
    --------
    >>> from lopro.engines.cones import triangle
    >>> [indices.tolist() for indices in triangle(2)]
    [[0, 0, 1], [0, 1, 1]]
    """
    column, row = np.tril_indices(order)
    return row, column


def halfspace_rows(normals: Any, bounds: Vector) -> ConeRows:
    """Return the cone rows of ``normals z <= bounds``.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.engines.cones import halfspace_rows
    >>> halfspace_rows(np.eye(2), np.zeros(2)).cone
    Nonnegative(size=2)
    """
    return ConeRows(scipy.sparse.csc_matrix(normals), bounds, Nonnegative(len(bounds)))


def ball_rows(A: Any, y: Vector, sigma: float) -> ConeRows:
    """Return the cone rows of ``|A z - y| <= sigma``.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.engines.cones import ball_rows
    >>> ball_rows(np.eye(2), np.zeros(2), 1.0).bounds
    array([1., 0., 0.])
    """
    top = scipy.sparse.csc_matrix((1, A.shape[1]))
    rows = scipy.sparse.vstack([top, scipy.sparse.csc_matrix(A)])
    return ConeRows(rows, np.concatenate([[sigma], y]), SecondOrder(len(y) + 1))


def active_cone(slack: Vector, multiplier: Vector) -> bool:
    """Whether a solver's slack of a second-order cone is on the boundary rather than in the interior.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.engines.cones import active_cone
    >>> active_cone(np.array([1.0, 1.0]), np.array([2.0, -2.0]))
    True
    """
    return bool(np.linalg.norm(multiplier[1:]) > slack[0] - np.linalg.norm(slack[1:]))
