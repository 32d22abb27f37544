"""Proofs by multipliers that rows and cones have no common point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.certificates import exclude_cones
from lopro.core.deadline import current_deadline
from lopro.core.real_vectors import Vector
from lopro.engines.cones import ConeRows, Nonnegative

__all__ = ["cones_exclude"]

_EPS = float(np.finfo(np.float64).eps)
#: Multipliers of inequalities below this share of the largest count as zeros: solvers leave about 1e-8 there.
#: `python -m benchmarks.constants projections`: a tenth and ten times as much change nothing.
_NEGLIGIBLE = 1e-7


def cones_exclude(
    members: Sequence[ConeRows],
    multipliers: Sequence[Vector],
    unit: float = _EPS,
    noise: float = 0.0,
) -> bool:
    """Whether multipliers prove that no ``x`` has ``bounds - rows x`` in every cone.

    For ``z`` in the dual cones such an ``x`` satisfies ``<z, bounds> >= <rows' z, x>``. So it suffices that
    ``rows' z`` vanishes, up to the rounding of the product, and that ``<z, bounds>`` is negative by more
    than rounding. Since multipliers of a solver have a limited accuracy, they are first moved to the
    nearest ones with ``rows' z = 0``. ``unit`` is the rounding unit of the data: bounds in single precision
    often contradict each other by that amount. ``noise`` is the relative error of rows that were computed.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.engines.cones import halfspace_rows
    >>> from lopro.projections.emptiness import cones_exclude
    >>> apart = halfspace_rows(
    ...     np.array([[1.0], [-1.0]]), np.array([1.0, -2.0])
    ... )  # x <= 1 and x >= 2
    >>> cones_exclude([apart], [np.array([1.0, 1.0 + 1e-9])])
    True
    >>> touching = halfspace_rows(np.array([[1.0], [-1.0]]), np.array([1.0, -1.0]))
    >>> cones_exclude([touching], [np.array([1.0, 1.0 + 1e-9])])
    False
    """
    rows = scipy.sparse.csr_array(scipy.sparse.vstack([m.rows for m in members]))
    bounds = np.concatenate([m.bounds for m in members])
    if not all(np.isfinite(z).all() for z in multipliers):
        return False
    z = _inside(members, np.concatenate(list(multipliers)))
    for _ in range(2):
        z = _inside(members, _balanced(rows, z))
    return exclude_cones(rows, bounds, z, noise, unit).proved


def _inside(members: Sequence[ConeRows], z: Vector) -> Vector:
    """Return ``z`` moved into the dual cones, with small multipliers of inequalities set to zero."""
    parts = np.split(z, np.cumsum([len(m.bounds) for m in members])[:-1])
    largest = float(np.abs(z).max(initial=0.0))
    inside = []
    for member, part in zip(members, parts, strict=True):
        if isinstance(member.cone, Nonnegative):
            part = np.where(part > _NEGLIGIBLE * largest, part, 0.0)
        inside.append(member.cone.into_dual(part))
    return np.concatenate(inside)


def _balanced(rows: Any, z: Vector) -> Vector:
    """Return the nearest vector with the same zeros and ``rows' z = 0``."""
    used = np.flatnonzero(z)
    if used.size == 0:
        return z
    M = rows[used]
    current_deadline().need(8.0 * M.shape[0] * M.shape[1] * min(M.shape))
    moved = z.copy()
    # Without a cutoff rows that are parallel up to rounding would receive the whole correction.
    moved[used] -= np.linalg.lstsq(M.T.toarray(), rows.T @ z, rcond=64.0 * _EPS)[0]
    return moved
