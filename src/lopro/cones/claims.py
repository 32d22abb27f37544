"""What points and multipliers of conic programs may claim: violations, emptiness, rays."""

from __future__ import annotations

import math

import numpy as np
import scipy  # parts of it load when first used

from lopro.certificates import NOISE, REMNANTS, Emptiness, Units, Violation, of_rows
from lopro.certificates.emptiness import is_rounding
from lopro.certificates.violation import magnitudes
from lopro.cones.bound import ConicData
from lopro.cones.cones import Nonnegative, Zero
from lopro.core.real_vectors import Vector
from lopro.linalg.rounding import adjoint_product, dot, length

__all__ = ["emptiness", "falling_ray", "violation"]


def violation(data: ConicData, x: Vector, units: Units | None = None) -> Violation:
    """Return how far slacks are outside of their cones: rows one by one, other cones by their own rows."""
    slack = data.b - data.A @ x
    worst, start = Violation(), 0
    for (cone, size), own in zip(data.cones, data.blocks(slack), strict=True):
        rows = slice(start, start + size)
        start += size
        if isinstance(cone, Zero | Nonnegative):
            excess = np.abs(own) if isinstance(cone, Zero) else -own
            found = of_rows(data.A[rows], x, excess, data.b[rows], lambda: units or data.units)
        else:
            distance = cone.outside(own)
            compared = _size_of_cone(data, rows, x, units or data.units) if distance > 0.0 else 1.0
            found = Violation(distance / compared, distance)
        worst = worst.and_also(found)
    return worst


def _size_of_cone(data: ConicData, rows: slice, x: Vector, units: Units) -> float:
    """Return what the rows of a cone compare, together."""
    A, b = data.A[rows], data.b[rows]
    w = np.abs(x) if b.any() else np.maximum(np.abs(x), units.at(x))
    return float(np.linalg.norm(magnitudes(A, np.arange(len(b)), w) + np.abs(b))) or math.inf


def emptiness(data: ConicData, z: Vector) -> Emptiness:
    """Return what multipliers in the dual cone prove: for feasible x, ``<A'z, x> <= b'z``."""
    residual, error = adjoint_product(data.A, z)
    support = dot(data.b, z).upper()
    sizes = np.asarray(abs(data.A).T @ np.abs(z))
    longest = int(np.diff(scipy.sparse.csc_array(data.A).indptr).max(initial=1))
    return Emptiness(-support, length(residual, error), is_rounding(residual, sizes, longest))


def falling_ray(data: ConicData, x: Vector) -> Vector | None:
    """Return a direction near ``x`` along which the objective falls: ``-Ax`` in the cones, ``Px = 0``."""
    flat = ConicData(data.P, data.q, data.A, 0.0 * data.b, data.cones)
    alone = Units.given(np.zeros(len(x)))
    largest = float(np.abs(x).max(initial=0.0))
    if not (math.isfinite(largest) and largest > 0.0):
        return None
    for share in REMNANTS:
        ray = np.where(np.abs(x) > share * largest, x, 0.0) / largest
        bend, sizes = data.P @ ray, abs(data.P) @ np.abs(ray)
        inside = violation(flat, ray, alone).relative <= NOISE
        if dot(data.q, ray).upper() < 0.0 and inside and is_rounding(bend, sizes, len(ray)):
            return ray
    return None
