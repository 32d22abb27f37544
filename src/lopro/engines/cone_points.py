"""Points of conic programs: violations, corrections, the charge for a violation, and rays of descent."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.certificates import FEASIBLE, NOISE, Units, VariableBounds, Violation, of_rows
from lopro.certificates.emptiness import is_rounding, without_remnants
from lopro.certificates.sides import magnitudes
from lopro.certificates.violation import ball_size, units_of_entries
from lopro.core.real_vectors import Vector
from lopro.engines.cone_bound import ConicData
from lopro.engines.cones import Cone, Nonnegative, PSDTriangle, SecondOrder, Zero
from lopro.engines.exponentials import Exponentials
from lopro.linalg.rounding import EPS, dot
from lopro.linalg.sparse import sparse_factors

__all__ = ["falling_ray", "lowered", "made_feasible", "violation", "violation_charge"]

#: The most corrections; each includes the cones that the last one has left. With none 3 of 9 conic programs
#: of ``python -m benchmarks.constants engines`` are not certified, with 80 the same as with 8.
_ROUNDS = 8
#: The violation at which corrections end: one that is just allowed may be charged as much as the whole gap.
_ENOUGH = 1e-2 * FEASIBLE


def violation(data: ConicData, x: Vector, units: Units | None = None) -> Violation:
    """Return the violation of the cones by the slacks, relative to the terms of their own rows."""
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
            found = Violation(_of_matrix(cone, own, sizes.of(cone, rows)), distance)
        elif isinstance(cone, Exponentials):
            found = Violation(cone.relative(own, sizes.of(cone, rows)), distance)
        elif isinstance(cone, SecondOrder):
            found = Violation(_of_balls(own, sizes.of(cone, rows), cone.size), distance)
        worst = worst.and_also(found)
    return worst


def _of_matrix(cone: PSDTriangle, slack: Vector, sizes: Vector) -> float:
    """Return minus the least eigenvalue, or 0, of a matrix in the units of its own entries."""
    d = units_of_entries(cone.matrix(sizes))
    return max(0.0, -float(np.linalg.eigvalsh(cone.matrix(slack) / d[:, None] / d)[0]))


def _of_balls(slack: Vector, sizes: Vector, size: int) -> float:
    """Return the largest violation of cones ``|u| <= t``, each relative to its t, as for a ball."""
    parts = slack.reshape(-1, size)
    over = np.linalg.norm(parts[:, 1:], axis=1) - parts[:, 0]
    out = np.flatnonzero(over > 0.0)
    own = sizes.reshape(-1, size)[out]
    lengths = np.linalg.norm(own[:, 1:], axis=1).tolist()
    units = [
        ball_size(radius, length, lambda length=length: length) or math.inf  # type: ignore[misc]
        for radius, length in zip(own[:, 0].tolist(), lengths, strict=True)
    ]
    return float((over[out] / units).max(initial=0.0))


class _Sizes:
    """The magnitudes that violations of a cone are relative to, computed once for all rows."""

    def __init__(self, data: ConicData, x: Vector, units: Units | None) -> None:
        self._data, self._x, self._units = data, x, units

    def of(self, cone: Cone, rows: slice) -> Vector:
        """Return the sizes of the rows of a cone, with units for groups of rows whose sides are all 0."""
        nonzero = cone.sizes(np.abs(self._data.b[rows])) > 0.0
        if nonzero.all():
            return self._own[rows]
        return np.where(nonzero, self._own[rows], self._at_least[rows])

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
    """Return a direction of descent near ``x``, with ``-Ax`` in the cones and ``Px = 0``, or None."""
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


def violation_charge(data: ConicData, x: Vector, z: Vector) -> float:
    """Return the charge for a violation: multipliers times violations.

    The value of the point may be below the optimal one by this amount.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> from lopro.engines.cone_bound import ConicData
    >>> from lopro.engines.cones import Nonnegative
    >>> from lopro.engines.cone_points import violation_charge
    >>> I = scipy.sparse.eye_array(1, format="csr")
    >>> data = ConicData(0.0 * I, np.ones(1), -I, np.array([-2.0]), [(Nonnegative(1), 1)])  # v >= 2
    >>> round(violation_charge(data, np.array([1.5]), np.array([3.0])), 12)
    1.5
    """
    missed = np.abs(_missed(data, x))
    return float(np.abs(z) @ missed) * (1.0 + (len(z) + 8) * EPS)


def _missed(data: ConicData, x: Vector) -> Vector:
    """Return the correction that moves the slacks into their cones."""
    slack = np.asarray(data.b - data.A @ x)
    missed, start = np.zeros(len(slack)), 0
    for cone, size in data.cones:
        rows = slice(start, start + size)
        start += size
        if cone.outside(slack[rows]) > 0.0:
            missed[rows] = cone.into(slack[rows]) - slack[rows]
    return missed


def made_feasible(data: ConicData, x: Vector) -> tuple[Vector, Violation]:
    """Return a point near ``x`` with a smaller violation, if there is one, and its violation.

    Each step is the shortest that satisfies the linearised equations and violated cones, with each variable
    measured in its unit or its own size.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> from lopro.engines.cone_bound import ConicData
    >>> from lopro.engines.cones import SecondOrder, Zero
    >>> from lopro.engines.cone_points import made_feasible
    >>> A = scipy.sparse.csr_array([[1.0, 1.0]])
    >>> data = ConicData(scipy.sparse.csr_array((2, 2)), np.ones(2), A, np.ones(1), [(Zero(1), 1)])
    >>> x, outside = made_feasible(data, np.array([0.5, 0.5 + 1e-6]))
    >>> float(x.sum().round(12)), outside.relative <= 1e-9
    (1.0, True)
    """
    best, least = x, violation(data, x)
    if least.relative <= FEASIBLE or not np.isfinite(least.relative):
        return x, least
    box = _own_bounds(data)
    x = np.clip(x, box.lower, box.upper)
    used = np.concatenate(
        [np.full(size, isinstance(cone, Zero)) for cone, size in data.cones] or [np.zeros(0, bool)]
    )
    for _ in range(_ROUNDS):
        now = violation(data, x)
        if now.relative < least.relative:
            best, least = x, now
        if now.relative <= _ENOUGH:
            break
        missed = _missed(data, x)
        used = used | _whole_cones(data, missed != 0.0)
        room = np.maximum(np.abs(x), data.units.at(x))
        room = np.minimum(room, np.minimum(x - box.lower, box.upper - x))
        step = _step(data, room, _tangents(data, x, used), missed)
        if step is None:
            break
        x = np.clip(x - step, box.lower, box.upper)
    return best, least


def lowered(data: ConicData, x: Vector) -> Vector:
    """Return the point with variables that have a cost and only bound others at their least values.

    An engine returns ``t`` of ``|u| <= t`` above ``|u|`` by its accuracy, which is large relative to a value
    of 0.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> from lopro.engines.cone_bound import ConicData
    >>> from lopro.engines.cones import SecondOrder
    >>> from lopro.engines.cone_points import lowered
    >>> A, cones = -scipy.sparse.eye_array(3, format="csr"), [(SecondOrder(3), 3)]
    >>> data = ConicData(0.0 * A, np.array([1.0, 0.0, 0.0]), A, np.zeros(3), cones)
    >>> lowered(data, np.array([5.001, 3.0, 4.0]))
    array([5., 3., 4.])
    """
    A = scipy.sparse.csc_array(data.A)
    room, tops = _room_above(data, x)
    owner = np.repeat(np.arange(A.shape[1]), np.diff(A.indptr))
    moves = (data.q > 0.0) & (np.asarray(abs(data.P).sum(axis=0)).ravel() == 0.0)
    moves[owner[(A.data > 0.0) | ~tops[A.indices]]] = False
    # Two variables in one row would use its slack twice.
    entries = moves[owner] & (A.data < 0.0)
    shared = np.bincount(A.indices[entries], minlength=len(room)) > 1
    moves[owner[entries & shared[A.indices]]] = False
    entries &= moves[owner]
    step = np.full(A.shape[1], np.inf)
    np.minimum.at(step, owner[entries], room[A.indices[entries]] / -A.data[entries])
    return x - np.where(np.isfinite(step), np.maximum(step, 0.0), 0.0)


def _room_above(data: ConicData, x: Vector) -> tuple[Vector, Vector]:
    """Return the distance of rows from the boundary of their cones, and the rows that may be lowered."""
    room, tops, start = np.zeros(len(data.b)), np.zeros(len(data.b), bool), 0
    slack = np.asarray(data.b - data.A @ x)
    for cone, size in data.cones:
        rows = slice(start, start + size)
        if isinstance(cone, Nonnegative):
            room[rows], tops[rows] = slack[rows], True
        elif isinstance(cone, SecondOrder):
            parts, own = slack[rows].reshape(-1, cone.size), slice(start, start + size, cone.size)
            room[own], tops[own] = parts[:, 0] - np.linalg.norm(parts[:, 1:], axis=1), True
        start += size
    return room, tops


def _own_bounds(data: ConicData) -> VariableBounds:
    """Return the bounds of variables from rows with a single entry."""
    (A, lower, upper), n = data.linear_rows[0], len(data.q)
    single = np.flatnonzero(np.diff(scipy.sparse.csr_array(A).indptr) == 1)
    whole = VariableBounds(np.full(n, -np.inf), np.full(n, np.inf))
    return whole.implied([(scipy.sparse.csr_array(A)[single], lower[single], upper[single])])


def _whole_cones(data: ConicData, rows: Vector) -> Vector:
    """Mark all rows of each cone that has a marked row; of inequalities only the marked rows."""
    marked, start = rows.copy(), 0
    for cone, size in data.cones:
        within = slice(start, start + size)
        marked[within] = cone.sizes(rows[within].astype(np.float64)) > 0.0
        start += size
    return marked


def _tangents(data: ConicData, x: Vector, used: Vector) -> Any:
    """Return the combinations of used rows that a step changes, as a sparse matrix.

    For cones with a smooth boundary that is the normal of the boundary near the current point.
    """
    slack, start, parts = data.b - data.A @ x, 0, []
    for cone, size in data.cones:
        within = used[start : start + size]
        part = scipy.sparse.eye_array(size, format="csr")[np.flatnonzero(within)]
        if isinstance(cone, Exponentials) and within.any():
            part = cone.tangents(slack[start : start + size])
        elif isinstance(cone, SecondOrder):
            part = cone.tangents(slack[start : start + size], within)
        parts.append(part)
        start += size
    return scipy.sparse.block_diag(parts, format="csr")


def _step(data: ConicData, room: Vector, tangents: Any, missed: Vector) -> Vector | None:
    """Return the step of least ``|step / room|`` that changes the slacks by the missing amounts."""
    A = tangents @ data.A
    scaled = scipy.sparse.csr_array(A @ scipy.sparse.diags_array(room))
    sizes = np.sqrt(np.asarray(scaled.multiply(scaled).sum(axis=1)).ravel())
    sizes = np.where(sizes > 0.0, sizes, 1.0)
    B = scipy.sparse.diags_array(1.0 / sizes) @ scaled
    n, m = B.shape[1], B.shape[0]
    # The rows have unit length; a shift of 64 roundings prevents a division by zero for dependent rows.
    K = scipy.sparse.block_array(
        [[scipy.sparse.eye_array(n), B.T], [B, -64.0 * EPS * scipy.sparse.eye_array(m)]],
        format="csc",
    )
    factors = sparse_factors(K)
    if factors is None:
        return None
    y = factors.solve(np.concatenate([np.zeros(n), (tangents @ missed) / sizes]))[:n]
    return np.asarray(room * y) if np.isfinite(y).all() else None
