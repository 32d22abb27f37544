"""What points of conic programs may claim: violations and rays."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from lopro.certificates import NOISE, Units, Violation, of_rows
from lopro.certificates.emptiness import is_rounding, without_remnants
from lopro.certificates.violation import magnitudes, matrix_units
from lopro.cones.bound import ConicData
from lopro.cones.cones import Nonnegative, PSDTriangle, Zero, triangle
from lopro.core.real_vectors import Vector
from lopro.linalg.rounding import dot

__all__ = ["falling_ray", "violation"]


def violation(data: ConicData, x: Vector, units: Units | None = None) -> Violation:
    """Return how far slacks are outside of their cones: rows one by one, matrices by their diagonals."""
    slack = data.b - data.A @ x
    worst, start, sizes = Violation(), 0, _Sizes(data, x, units)
    for (cone, size), own in zip(data.cones, data.blocks(slack), strict=True):
        rows = slice(start, start + size)
        start += size
        if isinstance(cone, Zero | Nonnegative):
            excess = np.abs(own) if isinstance(cone, Zero) else -own
            found = of_rows(data.A[rows], x, excess, data.b[rows], lambda: units or data.units)
        elif (distance := cone.outside(own)) == 0.0:
            continue
        elif isinstance(cone, PSDTriangle):
            found = Violation(_of_matrix(cone, own, sizes.of(rows)), distance)
        else:
            compared = float(np.linalg.norm(sizes.of(rows))) or math.inf
            found = Violation(distance / compared, distance)
        worst = worst.and_also(found)
    return worst


def _of_matrix(cone: PSDTriangle, slack: Vector, sizes: Vector) -> float:
    """Return by how much a matrix is not semidefinite, in units of what the rows of its diagonal compare."""
    i, j = triangle(cone.order)
    d = matrix_units(sizes[i == j], float(sizes.max()))
    return max(0.0, -float(np.linalg.eigvalsh(cone.matrix(slack) / (d[:, None] * d))[0]))


class _Sizes:
    """What the rows of a cone compare, together; products with all rows are made once."""

    def __init__(self, data: ConicData, x: Vector, units: Units | None) -> None:
        self._data, self._x, self._units = data, x, units

    def of(self, rows: slice) -> Vector:
        """Return the sizes of some rows."""
        return (self._own if self._data.b[rows].any() else self._at_least)[rows]

    @cached_property
    def _own(self) -> Vector:
        return self._products(np.abs(self._x)) + np.abs(self._data.b)

    @cached_property
    def _at_least(self) -> Vector:
        units = self._units or self._data.units
        return self._products(np.maximum(np.abs(self._x), units.at(self._x)))

    def _products(self, w: Vector) -> Vector:
        return magnitudes(self._data.A, np.arange(len(self._data.b)), w)


def falling_ray(data: ConicData, x: Vector) -> Vector | None:
    """Return a direction near ``x`` along which the objective falls: ``-Ax`` in the cones, ``Px = 0``."""
    flat = ConicData(data.P, data.q, data.A, 0.0 * data.b, data.cones)
    alone = Units.given(np.zeros(len(x)))
    largest = float(np.abs(x).max(initial=0.0))
    if not (math.isfinite(largest) and largest > 0.0):
        return None
    for trial in without_remnants(x):
        ray: Vector = trial / largest
        bend, sizes = data.P @ ray, abs(data.P) @ np.abs(ray)
        inside = violation(flat, ray, alone).relative <= NOISE
        if dot(data.q, ray).upper() < 0.0 and inside and is_rounding(bend, sizes, len(ray)):
            return ray
    return None
