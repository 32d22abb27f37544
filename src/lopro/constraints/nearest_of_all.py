"""Projections on intersections, by the method that fits the members."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property

import numpy as np

from lopro.constraints.base import Constraint
from lopro.constraints.joint_violation import JointViolation
from lopro.constraints.matrix_rows import matrix_rows
from lopro.constraints.residual_ball import ResidualBall
from lopro.core.arrays import Array, asarray_like, eps, is_complex, is_single
from lopro.core.deadline import EIGH, current_deadline
from lopro.core.real_vectors import Vector, from_real_vector, to_real_vector
from lopro.engines.cones import ConeRows
from lopro.errors import InfeasibleError, ProjectionError
from lopro.newton.sdp.nearest import NearestProblem
from lopro.projections.conic import project_conic
from lopro.projections.cuts import Cut, project_by_cuts
from lopro.projections.dykstra import dykstra
from lopro.projections.halfspaces import HalfSpaces
from lopro.projections.newton import polish
from lopro.projections.polyhedron import project_polyhedron
from lopro.projections.psd import symmetric_part

__all__ = ["NearestOfAll", "stacked_rows"]

#: Limit of the cycles of Dykstra's method, and of those that remove a remaining violation. `python -m
#: benchmarks.constants constraints`: a tenth takes 0.9 times the calls, because cuts take over earlier where
#: Dykstra's method fails; ten times as many change nothing.
_MAX_CYCLES = 1000


class NearestOfAll:
    """Projections on the intersection of some sets, which are not all polyhedra.

    Parameters
    ----------
    members : sequence of Constraint
        The sets.
    symmetric : bool
        Whether points are symmetric (Hermitian) matrices.

    Examples
    --------
    >>> import numpy as np, lopro.constraints as lc
    >>> from lopro.constraints.nearest_of_all import NearestOfAll
    >>> ball = lc.ResidualBall(np.eye(2), np.zeros(2), 1.0)
    >>> half = lc.Polyhedron(np.array([[1.0, 0.0]]), np.array([0.0]))
    >>> NearestOfAll([ball, half], symmetric=False)(np.array([3.0, 4.0])).round(9) + 0.0
    array([0., 1.])
    """

    def __init__(self, members: Sequence[Constraint], symmetric: bool) -> None:
        self._members, self._symmetric = members, symmetric
        self._violation = JointViolation(members)

    def __call__(self, x: Array) -> Array:
        return self._made_feasible(self._in_double(x))

    def _in_double(self, x: Array) -> Array:
        """Project in double precision, unless that copies a large matrix: rounding errors accumulate."""
        if not isinstance(x, np.ndarray) or not is_single(x) or self._widened is None:
            return self._nearest(x)
        try:
            return asarray_like(self._widened._nearest(x.astype(np.result_type(x, np.float64))), x)
        except (InfeasibleError, ProjectionError):
            # Rounding to single precision can make a ball empty, which proves nothing about the data: the
            # projection is then computed in single precision.
            if not any(isinstance(m, ResidualBall) for m in self._members):
                raise
            return self._nearest(x)

    @cached_property
    def _widened(self) -> NearestOfAll | None:
        """The same sets in double precision; None where a matrix is large or not in memory."""
        members = [m.as_matrix.in_double for m in self._members]
        known = [m for m in members if m is not None]
        return NearestOfAll(known, self._symmetric) if len(known) == len(members) else None

    def _nearest(self, x: Array) -> Array:
        """Project by the first method that applies and whose point satisfies all sets."""
        z = self._first_feasible(x, self._by_dual, self._by_active_set)
        if z is None and self._excludes_orthant:
            raise InfeasibleError(
                "no x >= 0 has |A x - y| <= sigma: the residual of nonnegative least squares proves it"
            )
        if z is None:
            z = self._first_feasible(x, self._by_rows)
        return self._by_members(x) if z is None else z

    def _first_feasible(self, x: Array, *methods: Callable[[Array], Array | None]) -> Array | None:
        """Return the first result that satisfies all sets; None for complex points."""
        for method in () if is_complex(x) else methods:
            z = method(x)
            if z is not None and self._violation(z) <= max(1e-9, 1e2 * eps(z)):
                return z
        return None

    def _by_members(self, x: Array) -> Array:
        """Project by Dykstra's method on the members, or by cuts."""
        failed: ProjectionError | None = None
        if any(m.cuts_by_slopes(x) for m in self._members):
            # One outer approximation for all members, instead of cuts within the cycles of Dykstra's method.
            try:
                return self.by_cuts(x)
            except ProjectionError as error:
                failed = error
        projectors = [m.projector() for m in self._ordered]
        try:
            return dykstra(x, projectors, violation=self._violation, max_cycles=_MAX_CYCLES)
        except ProjectionError:
            if failed is not None:
                raise failed from None
            return self.by_cuts(x)

    def _by_dual(self, x: Array) -> Array | None:
        """Project on a semidefinite cone with rows by Newton's method on the dual; None where it fails."""
        problem = self._matrices
        if problem is None:
            return None
        deadline = current_deadline()
        deadline.need(EIGH * problem.size**3)
        G = to_real_vector(x).reshape(problem.size, problem.size)
        found = problem.solve(0.5 * (G + G.T), stopped=lambda: deadline.passed)
        deadline.check()
        if found.emptiness is not None:
            raise InfeasibleError(found.emptiness, found.y)
        return asarray_like(found.X, x) if found.solved else None

    @cached_property
    def _matrices(self) -> NearestProblem | None:
        """The problem of the nearest matrix if the members are a semidefinite cone and rows."""
        rows = matrix_rows(self._members)
        return None if rows is None else rows.nearest()

    def _by_active_set(self, x: Array) -> Array | None:
        """Project by Newton's method on the active set that a conic solver finds; None where that fails."""
        if self._conic is None:
            return None
        v, equations = to_real_vector(x), []
        with suppress(ProjectionError):
            nearest, slacks, multipliers = project_conic(v, self._conic, eps(x))
            for member, slack, u in zip(self._ordered, slacks, multipliers, strict=True):
                equations += member.boundary(nearest, slack, u)
            z = polish(v, nearest, equations)
            return None if z is None else from_real_vector(z, x)
        return None

    def _by_rows(self, x: Array) -> Array | None:
        """Project on equations with small matrices and polyhedra as one polyhedron; None where that fails.

        Alternating projections on equations and on signs take thousands of cycles where equations are nearly
        dependent.
        """
        if self._all_rows is None:
            return None
        with suppress(ProjectionError, InfeasibleError):
            return from_real_vector(project_polyhedron(to_real_vector(x), self._all_rows), x)
        return None

    @cached_property
    def _excludes_orthant(self) -> bool:
        """Whether one member is ``x >= 0`` and another one is proved not to meet it."""
        return any(m.is_orthant for m in self._members) and any(
            m.excludes_orthant() for m in self._members
        )

    @cached_property
    def _all_rows(self) -> HalfSpaces | None:
        """The half-spaces of all members, where all have some."""
        return stacked_rows(self._ordered)

    def _made_feasible(self, z: Array) -> Array:
        """Remove a remaining violation by projecting on the members in turn.

        Each member measures its violation in units of its own, the smallest of which may be below the
        accuracy of the projection. The moves are no longer than that accuracy, so that the error of the
        projection keeps its order of magnitude.
        """
        tolerance = max(1e-10, 1e2 * eps(z))
        for _ in range(_MAX_CYCLES):
            current_deadline().check()
            left = self._violation(z)
            if left <= tolerance:
                return z
            for member in self._members:
                if member.violation(z) > 0.0:
                    z = member.project(z)
        raise ProjectionError(
            f"the projection on the intersection leaves a relative violation of {left:.3g}"
        )

    @cached_property
    def _ordered(self) -> list[Constraint]:
        """The members, with matrices where possible; curved sets last, whose violations are the finest."""
        members = [m.as_matrix for m in self._members]
        return sorted(members, key=lambda m: not m.polyhedral)

    @cached_property
    def _conic(self) -> list[ConeRows] | None:
        """The members as rows of a cone program, where all have this form."""
        rows = [m.cone_rows for m in self._ordered]
        known = [r for r in rows if r is not None]
        return known if len(known) == len(rows) else None

    def by_cuts(self, x: Array) -> Array:
        """Project by an outer approximation with supporting half-spaces."""

        def oracle(v: Vector) -> list[Cut]:
            z = self._point(v, x)
            return [cut for m in self._ordered for cut in m.cuts(v, z)]

        try:
            v = project_by_cuts(to_real_vector(x), oracle, tol=max(1e-12, 4.0 * eps(x)))
        except InfeasibleError as error:
            if is_single(x):
                # Cuts are rounded to single precision, so that a contradiction between them proves nothing.
                raise ProjectionError(f"in single precision, {error}") from error
            raise
        return self._point(v, x)

    def _point(self, v: Vector, x: Array) -> Array:
        """Return the point of a real vector; an asymmetry caused by rounding is removed."""
        z = from_real_vector(v, x)
        return symmetric_part(z) if self._symmetric else z


def stacked_rows(members: Sequence[Constraint]) -> HalfSpaces | None:
    """Return the half-spaces of all members together; None if one of them has none."""
    rows = [m.as_halfspaces for m in members]
    known = [r for r in rows if r is not None]
    return HalfSpaces.stacked(known) if len(known) == len(rows) else None
