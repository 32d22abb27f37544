"""Lower bounds of conic programs from multipliers, with the rounding of their own arithmetic.

For ``min 1/2 v'Pv + q'v`` over ``b - Av in K`` and multipliers ``z`` in the dual cone, every feasible ``v``
and every centre ``v_0`` satisfy ``objective(v) >= L(v_0) + <r, v - v_0>`` with the Lagrangian
``L = 1/2 v'Pv + q'v + z'(Av - b)`` and its slope ``r = P v_0 + q + A'z``. Centre and multipliers are free, so
both are moved until little but rounding is left of the slope; what is left costs its norm times the distance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.certificates import Bound, Units, column_units, reach_units
from lopro.certificates.units import curvature_units
from lopro.cones.cones import Nonnegative, SetCone, Zero
from lopro.core.deadline import current_deadline
from lopro.core.real_vectors import Vector
from lopro.linalg.rounding import Estimate, adjoint_product, dot, product
from lopro.linalg.sparse import affords_gram, sparse_factors

__all__ = ["ConicData", "conic_bound", "repaired"]

#: Rounds of moving centre and multipliers, and the fall of the slope below which the next is not tried.
_ROUNDS = 30
_FALL = 0.9
#: Multipliers move with weights between these, relative to the largest.
_LEAST_WEIGHT = 1e-14


@dataclass(frozen=True, eq=False)
class ConicData:
    """A conic program as matrices: ``min 1/2 v'Pv + q'v`` over ``b - Av in K``.

    Attributes
    ----------
    P, A : scipy.sparse matrices
        All of ``P``, not only a triangle.
    q, b : arrays
        The linear part and the right-hand side.
    cones : sequence of (SetCone, int)
        The cones, in the order of the rows, with their numbers of rows.
    """

    P: Any
    q: Vector
    A: Any
    b: Vector
    cones: Sequence[tuple[SetCone, int]]

    @cached_property
    def units(self) -> Units:
        """The units of the variables."""
        return column_units([(self.A, self.b)], len(self.q))

    @cached_property
    def reach_units(self) -> Units:
        """The units of the variables in which solutions are far; the rows of a cone are of one unit."""
        blocks, start = [], 0
        for (cone, size), b in zip(self.cones, self.blocks(self.b), strict=True):
            rows = self.A[start : start + size]
            start += size
            if not isinstance(cone, Zero | Nonnegative):
                rows, b = _column_norms(rows)[None, :], np.array([np.linalg.norm(b)])
            blocks.append((rows, b))
        return reach_units(blocks, len(self.q), curvature_units(self.P.diagonal(), self.q))

    def blocks(self, z: Vector) -> list[Vector]:
        """Return the rows of each cone apart."""
        return np.split(z, np.cumsum([size for _, size in self.cones])[:-1])

    def inside(self, z: Vector) -> Vector:
        """Return multipliers in the dual cones near ``z``."""
        pairs = zip(self.cones, self.blocks(z), strict=True)
        parts = [cone.into_dual(part) for (cone, _), part in pairs]
        return np.concatenate(parts) if parts else np.zeros(0)


def _column_norms(A: Any) -> Vector:
    squares = np.asarray(A.multiply(A).sum(axis=0), dtype=np.float64)
    return np.asarray(np.sqrt(squares).ravel())


def conic_bound(data: ConicData, v: Vector, z: Vector) -> Bound:
    """Return what multipliers in the dual cone prove, less the rounding of its evaluation.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> from lopro.cones.bound import ConicData, conic_bound
    >>> from lopro.cones.cones import Nonnegative
    >>> I = scipy.sparse.eye_array(1, format="csr")
    >>> data = ConicData(I, np.zeros(1), -I, np.array([-2.0]), [(Nonnegative(1), 1)])  # v >= 2
    >>> bound = conic_bound(data, np.array([2.0]), np.array([2.0]))
    >>> round(bound.value, 12), bound.slope < 1e-14
    (2.0, True)
    """
    Pv, P_error = product(data.P, v)
    Az, A_error = adjoint_product(data.A, z)
    slope = Pv + data.q + Az
    eps = np.finfo(np.float64).eps
    sizes = np.abs(Pv) + np.abs(data.q) + np.abs(Az)
    error = (P_error + A_error + 2.0 * eps * sizes) * (1.0 + 8.0 * eps)
    half = 0.5 * Pv + data.q + Az
    value = dot(half, v, error) - dot(data.b, z)
    return Bound((value + Estimate(0.0)).lower(), np.abs(slope) + error, v, data.reach_units)


def repaired(data: ConicData, v: Vector, z: Vector, slack: Vector) -> tuple[Vector, Vector]:
    """Return a centre and multipliers in the dual cones whose Lagrangian is as flat as can be had.

    Parameters
    ----------
    data : ConicData
        The program.
    v, z, slack : arrays
        What a solver has found: multipliers of rows with little slack move more easily.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> from lopro.cones.bound import ConicData, conic_bound, repaired
    >>> from lopro.cones.cones import Nonnegative
    >>> I = scipy.sparse.eye_array(2, format="csr")
    >>> data = ConicData(0.0 * I, np.ones(2), -I, -np.ones(2), [(Nonnegative(2), 2)])
    >>> v, z = repaired(data, np.ones(2), np.array([1.0, 1.0 + 1e-6]), np.zeros(2))
    >>> conic_bound(data, v, z).slope < 1e-14
    True
    """
    z = data.inside(z)
    best = v, z
    least = _slope(data, v, z)
    correct = _corrector(data, _weights(data, z, slack))
    if correct is None:
        return best
    for _ in range(_ROUNDS):
        current_deadline().check()
        r = data.P @ v + data.q + data.A.T @ z
        dv, dz = correct(r)
        v, z = v - dv, data.inside(z - dz)
        now = _slope(data, v, z)
        if now < least:
            best = v, z
        if not now < _FALL * least:
            break
        least = now
    return best


def _slope(data: ConicData, v: Vector, z: Vector) -> float:
    return float(np.linalg.norm(data.P @ v + data.q + data.A.T @ z))


def _weights(data: ConicData, z: Vector, slack: Vector) -> Vector:
    """Return how easily each multiplier moves: its size over its slack, one number for a whole cone."""
    found = []
    floor = 1e-14 * (float(np.abs(slack).max(initial=0.0)) or 1.0)
    for (cone, _), part, own in zip(data.cones, data.blocks(z), data.blocks(slack), strict=True):
        if isinstance(cone, Zero):
            found.append(np.full(len(part), np.inf))
        else:
            found.append(cone.sizes(part) / np.maximum(cone.sizes(own), floor))
    weights = np.concatenate(found) if found else np.zeros(0)
    finite = weights[np.isfinite(weights)]
    largest = float(finite.max(initial=1.0))
    return np.clip(
        np.where(np.isfinite(weights), weights, largest), _LEAST_WEIGHT * largest, largest
    )


def _corrector(data: ConicData, weights: Vector) -> Any:
    """Return what maps a slope to the changes of centre and multipliers that remove it, weighted."""
    scaled = scipy.sparse.csr_array(scipy.sparse.diags_array(np.sqrt(weights)) @ data.A)
    if not affords_gram(scaled.T.tocsr()):
        return None
    normal = (scaled.T @ scaled).tocsc()
    curvature = (data.P @ data.P).tocsc()
    size = max(float(abs(normal).max()) if normal.nnz else 0.0, 1e-300)
    own = float(abs(curvature).max()) if curvature.nnz else 0.0
    factor = size / own if own > 0.0 else 0.0
    total = normal + factor * curvature
    total = total + 1e-14 * size * scipy.sparse.eye_array(len(data.q), format="csc")
    factors = sparse_factors(total.tocsc())
    if factors is None:
        return None

    def correct(r: Vector) -> tuple[Vector, Vector]:
        y = factors.solve(r)
        # One step of refinement: the matrix spans many orders of magnitude.
        y = y + factors.solve(r - total @ y)
        return factor * (data.P @ y), weights * (data.A @ y)

    return correct
