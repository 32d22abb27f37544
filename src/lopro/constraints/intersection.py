"""The intersection of several constraints, described by the largest of their functions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property

from lopro.constraints.base import Constraint, ValidInequality
from lopro.constraints.joint_violation import JointViolation
from lopro.constraints.nearest_of_all import NearestOfAll, stacked_rows
from lopro.constraints.on_symmetric import on_symmetric
from lopro.core.arrays import Array, copy, widest
from lopro.core.real_vectors import from_real_vector, to_real_vector
from lopro.errors import InfeasibleError
from lopro.functions import Ball, Constant, Image, Linearization
from lopro.functions.term import Term
from lopro.projections.halfspaces import HalfSpaces
from lopro.projections.polyhedron import project_polyhedron, raise_if_empty

__all__ = ["Intersection"]


class Intersection(Constraint):
    """The points that satisfy every one of several constraints: ``c = max_i c_i``.

    Parameters
    ----------
    *constraints : Constraint
        The members; intersections among them are replaced by their members.
    rho : float, optional
        A regularity constant of the intersection: the constants of the members do not determine it.

    Notes
    -----
    Polyhedra alone are stacked and projected on as one. For polyhedra and residual balls a conic solver
    determines the active constraints and Newton's method the point; for rows on positive semidefinite
    matrices Newton's method solves the dual. Otherwise Dykstra's method runs on the projections of the
    members and, where these meet at too small an angle, outer approximation by supporting half-spaces.
    Each method ends with a check of the point or an error.

    Beside a cone of matrices, rows are replaced by their symmetric parts, and bounds of the entries
    ``(i, j)`` and ``(j, i)`` are merged: the set is the same, and subgradients are symmetric.

    Examples
    --------
    >>> import numpy as np, lopro.constraints as lc
    >>> ball = lc.ResidualBall(np.eye(2), np.zeros(2), 1.0, lc.ResidualNorm())
    >>> half = lc.Polyhedron(np.array([[1.0, 0.0]]), np.array([0.0]))
    >>> both = lc.Intersection(ball, half)
    >>> both.value(np.array([3.0, 4.0]))
    4.0
    >>> both.project(np.array([3.0, 4.0])).round(9) + 0.0
    array([0., 1.])
    """

    def __init__(self, *constraints: Constraint, rho: float | None = None) -> None:
        for i, member in enumerate(constraints):
            if not isinstance(member, Constraint):
                raise TypeError(f"member {i} must be a lopro Constraint, got {member!r}")
        if not constraints:
            raise ValueError("an Intersection needs at least one constraint")
        members = [m for c in constraints for m in c.members()]
        #: Whether points are symmetric (Hermitian) matrices.
        self._symmetric = any(m.is_semidefinite for m in members)
        if self._symmetric:
            members = [on_symmetric(m) for m in members]
        self._members = tuple(members)
        shapes = {m.shape for m in self._members if m.shape is not None}
        if len(shapes) > 1:
            raise ValueError(f"the members have points of different shapes: {sorted(shapes)}")
        self.shape = next(iter(shapes), None)
        self.like = widest([m.like for m in self._members if m.like is not None])
        self.image_length = sum(m.image_length for m in self._members)
        self._rho = None if rho is None else Constant.given("rho", rho)
        if self._rho is not None and self._rho.value == 0.0:
            raise ValueError("rho must be positive, got 0")

    def __repr__(self) -> str:
        return f"Intersection{self._members!r}"

    @property
    def terms(self) -> tuple[Term, ...]:
        return tuple(term for member in self._members for term in member.terms)

    def members(self) -> tuple[Constraint, ...]:
        return self._members

    def followed(self) -> Constraint:
        members = [m.followed() for m in self._members]
        if all(a is b for a, b in zip(members, self._members, strict=True)):
            return self
        return Intersection(*members, rho=None if self._rho is None else self._rho.value)

    # The function.

    def value(self, x: Array) -> float:
        return max(m.value(x) for m in self._members)

    def subgradient(self, x: Array) -> Array:
        return self._largest(x).subgradient(x)

    def _largest(self, x: Array) -> Constraint:
        return max(self._members, key=lambda m: m.value(x))

    def image(self, x: Array) -> Image:
        return tuple(part for m in self._members for part in m.image(x))

    def shares(self, image: Image) -> Iterator[tuple[Constraint, Image]]:
        """Yield the members with their parts of an image."""
        at = 0
        for m in self._members:
            yield m, image[at : at + m.image_length]
            at += m.image_length

    def linearize_at(self, image: Image) -> Linearization:
        return max((m.linearize_at(part) for m, part in self.shares(image)), key=lambda p: p[0])

    def lipschitz(self, ball: Ball | None = None) -> Constant | None:
        return _largest_constant([m.lipschitz(ball) for m in self._members], every=True)

    def infimum(self) -> Constant | None:
        return _largest_constant([m.infimum() for m in self._members], every=False)

    def regularity(self) -> Constant | None:
        return self._rho

    # The geometry of the set.

    def radius(self) -> Constant | None:
        known = [r for m in self._members if (r := m.radius()) is not None]
        return min(known, key=lambda r: r.value, default=None)

    def violation(self, x: Array) -> float:
        return self._joint(x)

    def violation_at(self, x: Array, image: Image) -> float:
        return max(self._joint.of(m, x, part) for m, part in self.shares(image))

    def absolute_violation(self, x: Array) -> float:
        return max(m.absolute_violation(x) for m in self._members)

    @cached_property
    def _joint(self) -> JointViolation:
        return JointViolation(self._members)

    def typical_size(self) -> float | None:
        known = [size for m in self._members if (size := m.typical_size()) is not None]
        return min(known, default=None)

    def column_units(self) -> Array | float | None:
        return self._joint.units.known if self._has_rows else self.typical_size()

    def relative_units(self) -> Array | None:
        return self._joint.units.relative() if self._has_rows else None

    @property
    def _has_rows(self) -> bool:
        return any(m.polyhedral for m in self._members)

    def infeasibility(self) -> str | None:
        for m in self._members:
            message = m.infeasibility()
            if message is not None:
                return message
        if self._stacked is None:
            return None
        try:
            raise_if_empty(self._stacked)
        except InfeasibleError as error:
            return str(error)
        return None

    @cached_property
    def _stacked(self) -> HalfSpaces | None:
        """The rows of all members where all are polyhedra; None otherwise."""
        if not all(m.polyhedral for m in self._members):
            return None
        return stacked_rows(self._members)

    def valid_inequality(self, x: Array, weight: float) -> ValidInequality:
        values = [m.value(x) for m in self._members]
        largest = values.index(max(values))
        found = self._members[largest].valid_inequality(x, weight)
        if found.dual is None:
            return found
        # The multipliers of the other members are zero.
        dual: Image = ()
        for i, m in enumerate(self._members):
            dual += found.dual if i == largest else tuple(0.0 * part for part in m.image(x))
        return ValidInequality(found.direction, found.support, dual)

    def project(self, x: Array) -> Array:
        if len(self._members) == 1:
            return self._members[0].project(x)
        if self._stacked is not None:
            v = project_polyhedron(to_real_vector(x), self._stacked)
            return from_real_vector(v, x)
        if self.value(x) <= 0.0:
            return copy(x)
        return self._nearest(x)

    @cached_property
    def _nearest(self) -> NearestOfAll:
        return NearestOfAll(self._members, self._symmetric)


def _largest_constant(constants: list[Constant | None], *, every: bool) -> Constant | None:
    """Return the largest finite constant; None where one is not known and ``every`` one is required."""
    known = [c for c in constants if c is not None]
    if not known or (every and len(known) < len(constants)):
        return None
    largest = max(known, key=lambda c: c.value)
    return largest if math.isfinite(largest.value) else None
