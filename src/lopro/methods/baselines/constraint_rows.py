"""A constraint as a list of functions ``c_i`` that can be evaluated one by one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lopro.constraints import Constraint, NormForm, Polyhedron
from lopro.core.arrays import Array, Vector
from lopro.core.counting import count
from lopro.functions import Ball

__all__ = ["Rows"]


class _PolyhedronRows:
    """The rows of a polyhedron; one costs O(d)."""

    def __init__(self, polyhedron: Polyhedron) -> None:
        self.polyhedron = polyhedron
        self.count = int(polyhedron.C.shape[0])

    def values(self, indices: Any, x: Array) -> Vector:
        return self.polyhedron.row_values(indices, x)

    def subgradient(self, i: int, x: Array) -> Array:
        return self.polyhedron.row(i, x)

    def lipschitz(self, ball: Ball) -> Vector | None:
        return self.polyhedron.row_norms


class _Member:
    """A constraint that is one function."""

    count = 1

    def __init__(self, constraint: Constraint) -> None:
        self.constraint = constraint

    def values(self, indices: Any, x: Array) -> Vector:
        count("rows", len(indices))
        return np.full(len(indices), self.constraint.value(x)) if len(indices) else np.zeros(0)

    def subgradient(self, i: int, x: Array) -> Array:
        return self.constraint.subgradient(x)

    def lipschitz(self, ball: Ball) -> Vector | None:
        constant = self.constraint.lipschitz(ball)
        return None if constant is None else np.array([constant.value])


class Rows:
    """The functions ``c_i`` of a constraint: rows of polyhedra, members of intersections.

    Parameters
    ----------
    constraint : Constraint
        Polyhedra in an intersection are split into rows if their function is the largest row, because the
        regularity constant of the intersection refers to the functions of its members.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from lopro.methods.baselines.constraint_rows import Rows
    >>> rows = Rows(lopro.constraints.Polyhedron(np.eye(3), np.zeros(3)))
    >>> rows.count, rows.values(np.array([0, 2]), np.array([1.0, 2.0, 3.0]))
    (3, array([1., 3.]))
    """

    def __init__(self, constraint: Constraint) -> None:
        members = constraint.members()
        alone = len(members) == 1
        self._parts = [
            _PolyhedronRows(m)
            if isinstance(m, Polyhedron) and (alone or not isinstance(m.form, NormForm))
            else _Member(m)
            for m in members
        ]
        #: Largest ratio of the constraint's function to the largest ``c_i``: ``sqrt(m)`` for a norm of m
        #: rows.
        self.shortfall = 1.0
        one = members[0]
        if alone and isinstance(one, Polyhedron) and isinstance(one.form, NormForm):
            self.shortfall = math.sqrt(one.C.shape[0])
        self._starts = np.cumsum([0] + [part.count for part in self._parts])

    @property
    def count(self) -> int:
        """The number of functions."""
        return int(self._starts[-1])

    def values(self, indices: Any, x: Array) -> Vector:
        """Return ``c_i(x)`` for some ``i``; each is counted as one row."""
        if len(self._parts) == 1:
            return self._parts[0].values(indices, x)
        found = np.zeros(len(indices))
        for part, start in zip(self._parts, self._starts, strict=False):
            mine = (indices >= start) & (indices < start + part.count)
            if mine.any():
                found[mine] = part.values(indices[mine] - start, x)
        return found

    def subgradient(self, i: int, x: Array) -> Array:
        """Return a subgradient of ``c_i``; it is counted with its value."""
        which = int(np.searchsorted(self._starts, i, side="right")) - 1
        return self._parts[which].subgradient(i - int(self._starts[which]), x)

    def lipschitz(self, ball: Ball) -> Vector | None:
        """Return a Lipschitz constant of each ``c_i`` on the ball, or None if one is not known."""
        found = [part.lipschitz(ball) for part in self._parts]
        known = [constants for constants in found if constants is not None]
        return np.concatenate(known) if len(known) == len(found) else None
