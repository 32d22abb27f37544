"""Sets as second-order methods take them: intervals and balls of linear images."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import TypeAlias

import numpy as np

from lopro.constraints.affine import Affine
from lopro.constraints.base import Constraint
from lopro.constraints.box import Box
from lopro.constraints.polyhedron import Polyhedron
from lopro.constraints.residual_ball import ResidualBall
from lopro.constraints.simplex import Simplex
from lopro.errors import MissingCapabilityError
from lopro.methods.second_order.form_data import MapOrNone, host, matrix_or_operator
from lopro.newton.arrays import Array, Image
from lopro.newton.maps import OnDevice, Operator
from lopro.newton.parts import Ball, Interval

__all__ = ["Rows", "Set", "by_members", "by_program", "by_sets", "rows_of", "sets_of"]

#: A set and the map whose values lie in it; None is the identity.
Set: TypeAlias = tuple[Interval | Ball, MapOrNone]
#: The same for intervals of maps whose entries are at hand.
Rows: TypeAlias = tuple[Interval, MapOrNone]


def sets_of(constraint: Constraint) -> list[Set]:
    """Return a set, or the members of an intersection, as sets of linear images.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from lopro.methods.second_order.form_sets import sets_of
    >>> [(ball, D)] = sets_of(lopro.constraints.ResidualBall([[1.0, 2.0]], [4.0], sigma=0.5))
    >>> ball.center, ball.radius, D
    (array([4.]), 0.5, array([[1., 2.]]))
    """
    return [found for member in constraint.members() for found in _sets(member)]


def rows_of(constraint: Constraint) -> list[Rows]:
    """Return a set, or the members of an intersection, as intervals of matrices.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from lopro.methods.second_order.form_sets import rows_of
    >>> [(interval, D)] = rows_of(lopro.constraints.Polyhedron([[1.0, 2.0]], [4.0]))
    >>> interval.lower, interval.upper, D
    (array([-inf]), array([4.]), array([[1., 2.]]))
    """
    found: list[Rows] = []
    for part, D in sets_of(constraint):
        if not isinstance(part, Interval) or isinstance(D, OnDevice | Operator):
            raise MissingCapabilityError(f"the constraint {constraint!r} is not given by rows")
        found.append((part, D))
    return found


def by_members(constraint: Constraint, multipliers: Sequence[Array]) -> Image:
    """Return the multipliers of `sets_of`, one array for each member: a simplex is two of those sets."""
    left, found = list(multipliers), []
    for member in constraint.members():
        v = left.pop(0)
        found.append(v + left.pop(0) if isinstance(member, Simplex) else v)
    return tuple(found)


def by_program(constraint: Constraint, multipliers: Sequence[Array]) -> Image:
    """Return the multipliers of all rows and of the box of a quadratic program, one array for each member."""
    rows, box = multipliers
    found, start = [], 0
    for part, D in rows_of(constraint):
        if D is None:
            # The box is the intersection of all bounds: the first that is as tight pays for it.
            tightest = _box(constraint)
            here = np.where(box > 0.0, part.upper == tightest[1], part.lower == tightest[0])
            found.append(np.where(here, box, 0.0))
            box = np.where(here, 0.0, box)
        else:
            found.append(rows[start : start + part.size])
            start += part.size
    return by_members(constraint, found)


def _box(constraint: Constraint) -> tuple[Array, Array]:
    """Return the largest lower and the smallest upper bounds of single variables."""
    bounds = [part for part, D in rows_of(constraint) if D is None]
    lower = np.maximum.reduce([part.lower for part in bounds])
    return lower, np.minimum.reduce([part.upper for part in bounds])


def by_sets(constraint: Constraint, multipliers: Sequence[Array]) -> list[Array]:
    """Return multipliers of the members as those of `sets_of`: the inverse of `by_members`."""
    found: list[Array] = []
    for member, v in zip(constraint.members(), multipliers, strict=True):
        if isinstance(member, Simplex):
            # The total is what positive entries pay, the largest multiplier; the others pay less.
            found += [v - v.max(), np.array([v.max()])]
        else:
            found.append(v)
    return found


@singledispatch
def _sets(set_: Constraint) -> list[Set]:
    raise MissingCapabilityError(f"the constraint {set_!r} is not given by rows or balls")


@_sets.register
def _(set_: Polyhedron) -> list[Set]:
    return [(Interval(upper=host(set_.b)), matrix_or_operator(set_.C))]


@_sets.register
def _(set_: Box) -> list[Set]:
    return [(Interval(host(set_.lower), host(set_.upper)), None)]


@_sets.register
def _(set_: Affine) -> list[Set]:
    return [(Interval(host(set_.lower), host(set_.upper)), matrix_or_operator(set_.M))]


@_sets.register
def _(set_: Simplex) -> list[Set]:
    total = Interval([set_.total if set_.equality else -np.inf], [set_.total])
    return [(Interval(0.0, np.inf, set_.dim), None), (total, np.ones((1, set_.dim)))]


@_sets.register
def _(set_: ResidualBall) -> list[Set]:
    y, A = host(set_.y), matrix_or_operator(set_.A)
    return [(Ball(y, set_.sigma) if set_.sigma > 0.0 else Interval(y, y), A)]
