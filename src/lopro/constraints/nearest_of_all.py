"""Projections on intersections, by the method that fits the members."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property

import numpy as np

from lopro.constraints.base import Constraint
from lopro.constraints.joint_violation import JointViolation
from lopro.constraints.matrix_rows import matrix_rows
from lopro.constraints.polyhedron import Box
from lopro.constraints.residual_ball import ResidualBall
from lopro.constraints.rows import LinearRows
from lopro.core.arrays import (
    Array,
    asarray_like,
    eps,
    is_complex,
    is_single,
)
from lopro.core.deadline import EIGH, current_deadline
from lopro.core.real_vectors import Vector, from_real_vector, to_real_vector
from lopro.engines.cones import ConeRows
from lopro.errors import InfeasibleError, ProjectionError
from lopro.newton.sdp.nearest import NearestProblem
from lopro.projections.conic import project_conic
from lopro.projections.cuts import Cut, project_by_cuts
from lopro.projections.dykstra import dykstra
from lopro.projections.empty_ball import nonnegative_residual_exceeds
from lopro.projections.halfspaces import HalfSpaces
from lopro.projections.newton import Equation, polish
from lopro.projections.polyhedron import project_polyhedron
from lopro.projections.psd import symmetric_part

__all__ = ["NearestOfAll"]

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
        """Project single precision as double, unless that copies a large matrix: rounding adds up."""
        if not isinstance(x, np.ndarray) or not is_single(x) or self._widened is None:
            return self._nearest(x)
        try:
            return asarray_like(self._widened._nearest(x.astype(np.result_type(x, np.float64))), x)
        except (InfeasibleError, ProjectionError):
            # A ball in single precision may be empty by its rounding alone, which proves nothing: it is
            # computed again in its own precision.
            if not any(isinstance(m, ResidualBall) for m in self._members):
                raise
            return self._nearest(x)

    @cached_property
    def _widened(self) -> NearestOfAll | None:
        """The same with matrices in double precision; None where one of them is large or not at hand."""
        members = [m.as_matrix.in_double for m in self._members]
        known = [m for m in members if m is not None]
        return NearestOfAll(known, self._symmetric) if len(known) == len(members) else None

    def _nearest(self, x: Array) -> Array:
        """Project by the first method that gets there; each of them ends with a check or an error."""
        if self._matrices is not None and not is_complex(x):
            z = self._project_by_dual(x, self._matrices)
            if z is not None and self._violation(z) <= max(1e-9, 1e2 * eps(z)):
                return z
        if self._conic is not None and not is_complex(x):
            with suppress(ProjectionError):
                z = from_real_vector(
                    self._project_by_newton(to_real_vector(x), self._conic, eps(x)), x
                )
                if self._violation(z) <= max(1e-9, 1e2 * eps(z)):
                    return z  # inactive constraints are satisfied as well
        if self._excludes_signs:
            raise InfeasibleError(
                "no x >= 0 has |A x - y| <= sigma: the residual of nonnegative least squares proves it"
            )
        if self._all_rows is not None and not is_complex(x):
            with suppress(ProjectionError, InfeasibleError):
                z = from_real_vector(project_polyhedron(to_real_vector(x), self._all_rows), x)
                if self._violation(z) <= max(1e-9, 1e2 * eps(z)):
                    return z
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

    @cached_property
    def _all_rows(self) -> HalfSpaces | None:
        """The rows of all members where balls are equations with small matrices and the rest polyhedra.

        Alternation of equations and signs takes thousands of cycles where equations are nearly dependent.
        """
        rows = [m.as_halfspaces for m in self._ordered]
        known = [r for r in rows if r is not None]
        return HalfSpaces.stacked(known) if len(known) == len(rows) else None

    @cached_property
    def _excludes_signs(self) -> bool:
        """Whether this is a residual ball that is proved to have no point with ``x >= 0``."""
        balls = [m for m in self._members if isinstance(m, ResidualBall)]
        orthants = [m for m in self._members if isinstance(m, Box) and m.is_orthant]
        if len(balls) != 1 or len(orthants) != 1 or is_complex(balls[0].y):
            return False
        return nonnegative_residual_exceeds(balls[0].A, balls[0].y, balls[0].sigma)

    @cached_property
    def _matrices(self) -> NearestProblem | None:
        """Return the problem of the nearest matrix if the members are a semidefinite cone and rows."""
        rows = matrix_rows(self._members)
        return None if rows is None else rows.nearest()

    def _project_by_dual(self, x: Array, problem: NearestProblem) -> Array | None:
        """Return the nearest matrix by Newton's method on the dual; None where that does not get there."""
        deadline = current_deadline()
        deadline.need(EIGH * problem.size**3)
        G = to_real_vector(x).reshape(problem.size, problem.size)
        found = problem.solve(0.5 * (G + G.T), stopped=lambda: deadline.passed)
        deadline.check()
        if found.emptiness is not None:
            raise InfeasibleError(found.emptiness, found.y)
        return asarray_like(found.X, x) if found.solved else None

    def _project_by_newton(self, x: Vector, conic: list[ConeRows], unit: float) -> Vector:
        """Find the active constraints by a conic solver, and the point by Newton's method."""
        nearest, slacks, multipliers = project_conic(x, conic, unit)
        equations: list[Equation] = []
        triples = zip(self._ordered, slacks, multipliers, strict=True)
        for member, slack, multiplier in triples:
            equations += member.boundary(nearest, slack, multiplier)
        z = polish(x, nearest, equations)
        if z is None:
            raise ProjectionError("Newton's method did not settle on the active set")
        return z

    def _made_feasible(self, z: Array) -> Array:
        """Take out the last of the violation by projecting on the members in turn.

        Each member measures its violation in units of its own, and the smallest unit may be below the
        accuracy of the projection. These moves are no longer than that accuracy, so that the distance to
        the projection stays of that size.
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
        """The members, as matrices where possible; curved sets last, as they measure violations finest."""
        members = [m.as_matrix for m in self._members]
        return sorted(members, key=lambda m: not isinstance(m, LinearRows))

    @cached_property
    def _conic(self) -> list[ConeRows] | None:
        """The members as rows of a conic program, where every one of them is known to be conic."""
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
                # Cuts are rounded to single precision: that they contradict each other proves nothing.
                raise ProjectionError(f"in single precision, {error}") from error
            raise
        return self._point(v, x)

    def _point(self, v: Vector, x: Array) -> Array:
        """Return the point of a real vector; asymmetry by rounding is removed."""
        z = from_real_vector(v, x)
        return symmetric_part(z) if self._symmetric else z
