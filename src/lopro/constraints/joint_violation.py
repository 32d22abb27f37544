"""The violation of several sets: rows are measured in units that all sets determine together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from lopro.certificates import Units, column_units
from lopro.constraints.base import Constraint
from lopro.core.arrays import Array
from lopro.functions import Image

__all__ = ["JointViolation"]


class JointViolation:
    """The relative violation of the worst of several sets, as a function of the point.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.constraints import Polyhedron, Simplex
    >>> from lopro.constraints.joint_violation import JointViolation
    >>> signs = Polyhedron.box(np.zeros(2), np.full(2, np.inf))
    >>> JointViolation([signs, Simplex(2, 10.0)])(np.array([10.0, -1e-9]))
    1e-10
    """

    def __init__(self, members: Sequence[Constraint]) -> None:
        self._members = tuple(members)

    def __call__(self, x: Array) -> float:
        """Return the largest relative violation."""
        return max(self.of(member, x) for member in self._members)

    def of(self, member: Constraint, x: Array, image: Image | None = None) -> float:
        """Return the relative violation of one of the sets, for the image of ``x`` if it is known."""
        return member.violation_in_units(x, image, lambda: self.units)

    @cached_property
    def units(self) -> Units:
        """The units of the columns that all sets determine together; one of them is a polyhedron."""
        rows = [m.rows_and_sides for m in self._members if m.polyhedral]
        size, own = rows[0][0].shape[1], None
        for member in self._members:
            known = None if member.polyhedral else member.column_units()
            if known is not None:
                sizes = np.broadcast_to(np.asarray(known, dtype=np.float64).ravel(), (size,))
                own = sizes if own is None else np.minimum(own, sizes)
        units = column_units(rows, size, own)
        of_matrices = any(m.is_semidefinite for m in self._members)
        return _of_matrices(units, math.isqrt(size)) if of_matrices else units


def _of_matrices(units: Units, n: int) -> Units:
    """Return units in which entries without a unit of their own have ``sqrt(u_ii u_jj)``.

    Entries of positive semidefinite matrices are at most ``sqrt(X_ii X_jj)`` in modulus. So a row that
    fixes an entry to 0 is measured by that size and not by the rounding error of the entry.
    """
    roots = np.sqrt(units.known[:: n + 1])
    pairs = np.where(units.groups >= 0, (roots[:, None] * roots).ravel(), 0.0)
    known = np.where(pairs > 0.0, pairs, units.known)
    return replace(units, known=known, groups=np.where(pairs > 0.0, -1, units.groups))
