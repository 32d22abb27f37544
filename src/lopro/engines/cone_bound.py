"""Lower bounds of conic programs from multipliers, with the rounding of their own arithmetic.

For ``min 1/2 v'Pv + q'v`` over ``b - Av in K`` and multipliers ``z`` in the dual cone, every feasible ``v``
and every centre ``v_0`` satisfy ``objective(v) >= L(v_0) + <r, v - v_0>`` with the Lagrangian
``L = 1/2 v'Pv + q'v + z'(Av - b)`` and its slope ``r = P v_0 + q + A'z``. Centre and multipliers are free, so
both are moved until the slope is little more than rounding; the rest costs its norm times the distance.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.certificates import Bound, Units, VariableBounds, column_units, reach_units
from lopro.certificates.bound import bound_over_rows, sharpened
from lopro.certificates.units import curvature_units
from lopro.core.deadline import current_deadline
from lopro.core.real_vectors import Vector
from lopro.engines.cones import Cone, Nonnegative, SecondOrder, Zero
from lopro.engines.exponentials import Exponentials
from lopro.linalg.rounding import Enclosure, Estimate, adjoint_product, dot, product
from lopro.linalg.sparse import sparse_factors

__all__ = ["ConicData", "conic_bound", "repaired"]

#: The most rounds of moving centre and multipliers (2 to 9 on the programs of CBLIB).
_ROUNDS = 12
#: Another round follows if multipliers left the cones, or the slope fell below this share of the last one. A
#: tenth and ten times as much prove the same in ``python -m benchmarks.constants engines``, also below.
_FALL = 0.9
#: The least weight with which a multiplier moves, relative to the largest, and the shift of the diagonal: the
#: weight is far above the shift, so that slopes which only multipliers of small weight cancel are removed.
_LEAST_WEIGHT = 1e-8
_SHIFT = 1e-14


@dataclass(frozen=True, eq=False)
class ConicData:
    """A conic program as matrices: ``min 1/2 v'Pv + q'v`` over ``b - Av in K``.

    Attributes
    ----------
    P, A : scipy.sparse matrices
        All of ``P``, not only a triangle.
    q, b : arrays
        The linear part and the right-hand side.
    cones : sequence of (Cone, int)
        The cones, in the order of the rows, with their numbers of rows.
    """

    P: Any
    q: Vector
    A: Any
    b: Vector
    cones: Sequence[tuple[Cone, int]]

    def merged(self) -> ConicData:
        """Return the program with neighbouring second-order cones of one size as one block of cones.

        Examples
        --------
        >>> import numpy as np, scipy.sparse
        >>> from lopro.engines.cone_bound import ConicData
        >>> from lopro.engines.cones import SecondOrder
        >>> A = scipy.sparse.csr_array((6, 2))
        >>> cones = [(SecondOrder(3), 3), (SecondOrder(3), 3)]
        >>> ConicData(A[:2], np.zeros(2), A, np.zeros(6), cones).merged().cones
        [(SecondOrder(size=3, count=2), 6)]
        """
        cones: list[tuple[Cone, int]] = []
        for (cone, size), run in itertools.groupby(self.cones):
            count = len(list(run))
            if isinstance(cone, SecondOrder):
                cones.append((SecondOrder(cone.size, count * cone.count), count * size))
            else:
                cones += [(cone, size)] * count
        return replace(self, cones=cones)

    @cached_property
    def units(self) -> Units:
        """The units of the variables."""
        return column_units([(self.A, self.b)], len(self.q))

    @cached_property
    def linear_rows(self) -> list[tuple[Any, Vector, Vector]]:
        """Rows ``lower <= A v <= upper`` that all points satisfy: equations, inequalities, tops of cones."""
        lower, upper, start = np.full(len(self.b), -np.inf), np.full(len(self.b), np.inf), 0
        for cone, size in self.cones:
            if isinstance(cone, Zero):
                lower[start : start + size] = self.b[start : start + size]
            if isinstance(cone, Zero | Nonnegative | SecondOrder):
                each = 1 if isinstance(cone, Zero | Nonnegative) else max(cone.size, 1)
                upper[start : start + size : each] = self.b[start : start + size : each]
            elif isinstance(cone, Exponentials):
                own = start + np.flatnonzero(np.arange(size) % 3)
                upper[own] = self.b[own]
            start += size
        return [(self.A, lower, upper)]

    @cached_property
    def box(self) -> VariableBounds:
        """Bounds of the variables that follow from these rows."""
        whole = np.full(len(self.q), -np.inf), np.full(len(self.q), np.inf)
        return VariableBounds(*whole).implied(self.linear_rows)

    @cached_property
    def groups(self) -> Vector:
        """The number of the group of each row: of one cone, or of one triple; other rows are alone."""
        found, last = [np.zeros(0, np.intp)], 0
        for cone, size in self.cones:
            each = {Zero: 1, Nonnegative: 1, Exponentials: 3}.get(type(cone), max(size, 1))
            each = cone.size if isinstance(cone, SecondOrder) else each
            found.append(last + np.arange(size) // each)
            last += -(-size // each)
        return np.concatenate(found)

    @cached_property
    def reach_units(self) -> Units:
        """The units of the variables in which solutions are far; the rows of a cone are of one unit."""
        A, alone = scipy.sparse.csr_array(self.A), np.bincount(self.groups)[self.groups] == 1
        blocks = [(A[alone], self.b[alone])]
        others = np.flatnonzero(~alone)
        if len(others):
            used, owner = np.unique(self.groups[others], return_inverse=True)
            shape = len(used), len(self.b)
            sums = scipy.sparse.csr_array((np.ones(len(others)), (owner, others)), shape)
            norms = np.sqrt(sums @ A.multiply(A)), np.sqrt(sums @ (self.b * self.b))
            blocks.append((norms[0].tocsr(), norms[1]))
        return reach_units(blocks, len(self.q), curvature_units(self.P.diagonal(), self.q))

    def blocks(self, z: Vector) -> list[Vector]:
        """Return the rows of each cone apart."""
        ends = itertools.accumulate((size for _, size in self.cones), initial=0)
        return [z[start:end] for start, end in itertools.pairwise(ends)]

    @cached_property
    def _row_norms(self) -> Vector:
        """The norm of the change of the Lagrangian's slope per unit of the multiplier of each row."""
        A = scipy.sparse.csr_array(self.A)
        return np.asarray(np.sqrt(A.multiply(A).sum(axis=1))).ravel()

    def inside(self, z: Vector) -> Vector:
        """Return multipliers in the dual cones near ``z``."""
        pairs = zip(self.cones, self.blocks(z), strict=True)
        costs = self.blocks(self._row_norms)
        parts = [
            cone.into_dual(part, cost) if isinstance(cone, Exponentials) else cone.into_dual(part)
            for ((cone, _), part), cost in zip(pairs, costs, strict=True)
        ]
        return np.concatenate(parts) if parts else np.zeros(0)


def conic_bound(data: ConicData, v: Vector, z: Vector) -> Bound:
    """Return the bound of multipliers in the dual cone, with the rounding of its evaluation subtracted.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> from lopro.engines.cone_bound import ConicData, conic_bound
    >>> from lopro.engines.cones import Nonnegative
    >>> I = scipy.sparse.eye_array(1, format="csr")
    >>> data = ConicData(I, np.zeros(1), -I, np.array([-2.0]), [(Nonnegative(1), 1)])  # v >= 2
    >>> bound = conic_bound(data, np.array([2.0]), np.array([2.0]))
    >>> round(bound.value, 12), bound.slope < 1e-14
    (2.0, True)
    """
    Pv, P_error = product(data.P, v)
    Az, A_error = adjoint_product(data.A, z)
    eps = np.finfo(np.float64).eps
    sizes = np.abs(Pv) + np.abs(data.q) + np.abs(Az)
    error = (P_error + A_error + 2.0 * eps * sizes) * (1.0 + 8.0 * eps)
    half = 0.5 * Pv + data.q + Az
    value = dot(half, v, error) - dot(data.b, z)
    smooth = Enclosure(dot(data.q, v), data.q, np.zeros(len(v)))
    if data.P.nnz:
        own = (P_error + eps * np.abs(Pv + data.q)) * (1.0 + 8.0 * eps)
        smooth = Enclosure(Estimate(0.0), Pv + data.q, own)
    at = sharpened(value, smooth, [(data.A, z)])
    whole = VariableBounds(np.full(len(v), -np.inf), np.full(len(v), np.inf))
    objective = None if data.P.nnz else smooth
    rows = data.box, lambda: data.linear_rows
    return bound_over_rows(at, v, whole, *rows, data.reach_units, objective)


def repaired(data: ConicData, v: Vector, z: Vector, slack: Vector) -> tuple[Vector, Vector]:
    """Return a centre and multipliers in the dual cones for which the slope of the Lagrangian is small.

    Parameters
    ----------
    data : ConicData
        The program.
    v, z, slack : arrays
        The answer of a solver: multipliers of rows with a small slack have a large weight.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> from lopro.engines.cone_bound import ConicData, conic_bound, repaired
    >>> from lopro.engines.cones import Nonnegative
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
    further = 1.0
    for _ in range(_ROUNDS):
        current_deadline().check()
        r = data.P @ v + data.q + data.A.T @ z
        dv, dz = correct(r)
        v, z = v - dv, z - dz
        inside = data.inside(z)
        excess = inside - z
        # The step that moved z into the cone is a vector of the cone: a longer step stays inside, and leaves
        # a margin for the next correction. Plain alternating projections take many rounds or do not converge.
        further = 2.0 * further
        z = inside + further * excess
        now = _slope(data, v, z)
        settled = not excess.any() and not now < _FALL * least
        if now < least:
            best, least = (v, z), now
        if settled:
            break
    return best


def _slope(data: ConicData, v: Vector, z: Vector) -> float:
    return float(np.linalg.norm(data.P @ v + data.q + data.A.T @ z))


def _weights(data: ConicData, z: Vector, slack: Vector) -> Vector:
    """Return the weight of each multiplier: its size over its slack, the same for all rows of a cone."""
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
    """Return the map from a slope to the weighted changes of centre and multipliers that remove it.

    For the rows B of A and P and their weights W it solves ``B' W B y = r`` through ``[[e, B'], [B, -1/W]]``,
    whose factors stay sparse where single rows are full.
    """
    n, m = len(data.q), len(data.b)
    # The weights are scaled to at most 1, so that pivots of the lower block are at least 1.
    B, w = scipy.sparse.csr_array(data.A), weights / float(weights.max(initial=0.0) or 1.0)
    own, P = _diagonal(B, w), scipy.sparse.csr_array(data.P)
    curvature = float(_diagonal(P, np.ones(n)).max(initial=0.0))
    if curvature > 0.0:
        B = scipy.sparse.vstack([B, P], format="csr")
        w = np.concatenate([w, np.full(n, (float(own.max(initial=0.0)) or 1.0) / curvature)])
        own = _diagonal(B, w)
    # The shift is relative to each column, so that slopes which only small weights can cancel are not lost.
    above = scipy.sparse.diags_array(_SHIFT * np.where(own > 0.0, own, 1.0))
    K = scipy.sparse.block_array(
        [[above, B.T], [B, -scipy.sparse.diags_array(1.0 / w)]], format="csc"
    )
    symmetric = {"SymmetricMode": True}
    factors = sparse_factors(
        K, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=symmetric
    )
    if factors is None:
        return None

    def correct(r: Vector) -> tuple[Vector, Vector]:
        rhs = np.concatenate([r, np.zeros(len(w))])
        y = factors.solve(rhs)
        # One step of refinement: the matrix spans many orders of magnitude.
        y = y + factors.solve(rhs - K @ y)
        return (y[n + m :] if curvature > 0.0 else np.zeros(n)), y[n : n + m]

    return correct


def _diagonal(B: Any, weights: Vector) -> Vector:
    """Return the diagonal of ``B' W B``."""
    return np.asarray(B.multiply(B).T @ weights) if B.nnz else np.zeros(B.shape[1])
