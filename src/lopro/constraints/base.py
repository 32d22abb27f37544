"""The constraint protocol: ``c(x) <= 0`` with its slope, its regularity, and its projection."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from lopro.certificates import Units
from lopro.constraints.valid_inequality import ValidInequality
from lopro.core.arrays import Array, inner, norm
from lopro.core.real_vectors import Vector, to_real_vector
from lopro.engines.cones import ConeRows
from lopro.errors import MissingCapabilityError
from lopro.functions import Constant, Function, Image
from lopro.functions.atoms import Opaque
from lopro.functions.term import Term
from lopro.projections.cuts import Cut
from lopro.projections.halfspaces import HalfSpaces
from lopro.projections.newton import Equation

__all__ = ["Constraint", "ValidInequality"]

#: Distance of a projection, relative to the points, below which their difference is not used as the normal
#: of a cut: at this distance ten of its 16 digits are left.
_NEARBY = 1e-6


class Constraint(Function):
    """The set ``{x : c(x) <= 0}`` of a convex function ``c``.

    Subclasses define ``value`` (this is ``c``), ``subgradient`` and ``project``. Optional abilities
    are declared by attributes:

    ``smooth``
        ``c`` is differentiable with a locally Lipschitz gradient, except perhaps at its minimisers in the
        interior of the set, where every penalty is constant.
    ``has_image_set``
        the set is ``{x : M x in Q}`` with a set ``Q`` that is easy to project on; then ``image``,
        ``project_image``, ``pullback`` and ``support_image`` describe ``M`` and ``Q``.
    ``has_linear_minimizer``
        the set is bounded and there is a ``linear_minimizer``, which is all that Frank-Wolfe methods require.
    ``has_vertices``
        the set is the convex hull of finitely many points, and ``linear_minimizer`` returns these.
    """

    smooth: bool = False
    has_image_set: bool = False
    has_vertices: bool = False
    #: Whether the points are positive semidefinite matrices.
    is_semidefinite: bool = False
    #: Whether the set has real points only.
    real_only: bool = False
    #: Whether the set is given by rows with bounds (`LinearRows`), which `rows_and_sides` returns.
    polyhedral: bool = False
    #: Whether values of c may be smaller than c: bounds must not compare them at several points.
    approximate: bool = False

    @property
    def terms(self) -> tuple[Term, ...]:
        """The set as terms ``D x - b in Q``; one opaque term where nothing else is known."""
        return (Term(Opaque(self, is_set=True)),)

    def conic_form(self, complex_points: bool = False) -> list[ConeRows]:
        """Return the set as rows of cones on the real vector of a point."""
        raise MissingCapabilityError(
            f"the constraint {self!r} has no conic form: define the method conic_form, or use lopro.Auto(), "
            "which does not need one"
        )

    def project(self, x: Array) -> Array:
        """Return the nearest point of the set."""
        raise NotImplementedError

    def projector(self) -> Callable[[Array], Array]:
        """Return the projection for a sequence of nearby points: it may reuse work from earlier ones."""
        return self.project

    def followed(self) -> Constraint:
        """Return the same set with a cheaper function for many nearby points, whose values may be too small.

        It reuses work from earlier points, so that each run requires its own. The set itself is returned
        where no function is cheaper.
        """
        return self

    @property
    def projects_in_closed_form(self) -> bool:
        """Whether `project` is a formula that costs no more than a few passes over the point."""
        return False

    @property
    def has_linear_minimizer(self) -> bool:
        """Whether linear functions can be minimised over the set."""
        return False

    def linear_minimizer(self, direction: Array) -> Array:
        """Return a point of the set with the least ``<direction, z>``; where has_linear_minimizer."""
        raise NotImplementedError

    def support_inequality(self, direction: Array) -> ValidInequality:
        """Return the inequality ``<-direction, z> <= -min <direction, .>``; where has_linear_minimizer."""
        reached = inner(direction, self.linear_minimizer(direction))
        return ValidInequality(-direction, -reached)

    def violation(self, x: Array) -> float:
        """Return the relative violation of the constraint at ``x``; 0 for a feasible point.

        For rows, balls and matrices it is relative to their own data (`lopro.certificates.violation`). The
        default, for functions of unknown structure, is the first-order distance ``c / |g|`` divided by
        ``|x|``, or by `typical_size` where that is larger. It must not depend on the units of ``x`` and
        ``c``.
        """
        c = self.value(x)
        if c <= 0.0:
            return 0.0
        slope, size = norm(self.subgradient(x)), max(norm(x), self.typical_size() or 0.0)
        return c / (slope * size) if slope * size > 0.0 else float("inf")

    def violation_at(self, x: Array, image: Image) -> float:
        """Return `violation` for a known image of ``x``; override both to save the product."""
        return self.violation(x)

    def violation_in_units(
        self, x: Array, image: Image | None, units: Callable[[], Units]
    ) -> float:
        """Return `violation`, that of rows in units of the columns which several sets determine together.

        ``image`` is that of ``x`` if it is known.
        """
        return self.violation(x) if image is None else self.violation_at(x, image)

    def absolute_violation(self, x: Array) -> float:
        """Return the violation at ``x`` in the units of ``c``, or of the row that is violated most."""
        return max(0.0, float(self.value(x)))

    def column_units(self) -> Array | float | None:
        """Return a unit for each entry of ``x``, or one for all; None if the set has none."""
        return self.typical_size()

    def relative_units(self) -> Array | None:
        """Return units of the entries up to a common factor, the largest 1; None if all units are equal."""
        return None

    @property
    def sizes_for_free(self) -> bool:
        """Whether `typical_size` needs no product with large data or with an operator."""
        return all(m.sizes_for_free for m in self.members() if m is not self)

    def typical_size(self) -> float | None:
        """Return a length that is typical of the points of the set, or None, as for a cone.

        It only sets the scale of first steps and tolerances, so it need not be exact; but it must scale
        with the units of ``x`` and be cheap.
        """
        return None

    def infeasibility(self) -> str | None:
        """Return why the set is empty, if that follows from its data at little cost; else None."""
        return None

    def regularity(self) -> Constant | None:
        """Return rho of eq. (3): ``dist(x, Omega) <= [c(x)]_+ / rho`` for every x, or None."""
        return None

    def infimum(self) -> Constant | None:
        """Return a lower bound of ``c`` over all points (P2 needs it), or None."""
        return None

    def radius(self) -> Constant | None:
        """Return ``R`` with ``|z| <= R`` for every feasible ``z``, or None if there is none."""
        return None

    def members(self) -> tuple[Constraint, ...]:
        """Return the sets whose intersection this is."""
        return (self,)

    def valid_inequality(self, x: Array, weight: float) -> ValidInequality:
        """Return ``weight`` times the linearised constraint at ``x``: valid by convexity of c."""
        g = self.subgradient(x)
        return ValidInequality(weight * g, weight * (inner(g, x) - self.value(x)))

    # The set as {x : M x in Q}, where has_image_set.

    def project_image(self, image: Image) -> Image:
        """Return the projection of ``image`` on ``Q``."""
        raise NotImplementedError

    def pullback(self, dual: Image) -> Array:
        """Return ``M' dual``."""
        raise NotImplementedError

    def into_domain(self, dual: Image) -> Image:
        """Return a dual near this one at which the support function is finite in spite of rounding."""
        return dual

    def support_image(self, dual: Image) -> float:
        """Return ``sup {<dual, q> : q in Q}`` for a ``dual`` that is normal to ``Q`` somewhere."""
        raise NotImplementedError

    # Descriptions that projections on intersections use (`lopro.constraints.nearest_of_all`).

    @property
    def as_matrix(self) -> Constraint:
        """The same set with a matrix in place of an operator with few columns, at one product for each."""
        return self

    @property
    def in_double(self) -> Constraint | None:
        """The same set in double precision; None where a large matrix would be copied."""
        return self

    @property
    def cone_rows(self) -> ConeRows | None:
        """The set as rows of a cone program; None where it has no such form."""
        return None

    @property
    def as_halfspaces(self) -> HalfSpaces | None:
        """The set as half-spaces, two for each equation; None for curved sets and for large matrices."""
        return None

    @property
    def rows_and_sides(self) -> tuple[Any, Any]:
        """``C`` and ``b`` of ``C x <= b``, on the host; only where ``polyhedral``."""
        raise NotImplementedError

    def rows_on_matrices(self, n: int) -> tuple[Any, Any, Any] | None:
        """Return rows ``A, lower, upper`` on ``X.ravel()`` that describe the set beside a semidefinite cone.

        The rows are symmetric matrices of size n. No rows for the cone itself, None for sets of other kinds.
        """
        return None

    @property
    def is_orthant(self) -> bool:
        """Whether the set is ``x >= 0``."""
        return False

    def excludes_orthant(self) -> bool:
        """Whether a proof shows that the set contains no ``x >= 0``."""
        return False

    def boundary(self, near: Vector, slack: Vector, multiplier: Vector) -> list[Equation]:
        """Return equations of the boundary near a point, active by slack and multiplier of `cone_rows`."""
        return []

    def cuts_by_slopes(self, x: Array) -> bool:
        """Whether subgradients are the only cheap information on the set near ``x``."""
        return False

    def cuts(self, v: Vector, z: Array) -> list[Cut]:
        """Return half-spaces that contain the set but not ``z``, whose real vector is ``v``.

        The half-space supports the set at the projection of ``z`` or, where projecting is expensive, comes
        from a subgradient.
        """
        if not self.cuts_by_slopes(z):
            p = to_real_vector(self.project(z))
            normal = v - p
            # At a short distance the direction of the difference is rounding.
            size = np.linalg.norm(v) + np.linalg.norm(p) + self._typical_size
            if np.linalg.norm(normal) > _NEARBY * size:
                return [Cut(normal, float(normal @ p), self._typical_size)]
        c = self.value(z)
        if c <= 0.0:
            return []
        g = to_real_vector(self.subgradient(z))
        return [Cut(g, float(g @ v) - c, self._typical_size)]

    @cached_property
    def _typical_size(self) -> float:
        """The typical size, computed once; 0 if it is unknown."""
        return self.typical_size() or 0.0
