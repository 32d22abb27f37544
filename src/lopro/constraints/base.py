"""The constraint protocol: ``c(x) <= 0`` with its slope, its regularity, and its projection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lopro.core.arrays import Array, from_numpy, inner, norm
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

#: A projection nearer than this, next to the numbers, leaves no direction to cut along: of the 16 digits of
#: a difference ten are left.
_NEARBY = 1e-6


@dataclass(frozen=True, eq=False)
class ValidInequality:
    """A valid inequality of the feasible set: ``<direction, z> <= support`` for every feasible z.

    These are the multipliers of lower bounds; like cone elements they can be added and scaled.

    Parameters
    ----------
    direction : array
        Of the shape of a point.
    support : float
        At least the largest ``<direction, z>`` over the set.
    dual : tuple of arrays, optional
        The multipliers it comes from, one array for each image of the constraint: ``direction`` is
        their pullback. None where a method does not know them.
    blur : float
        By how much rounding may have moved the direction, as that of a product.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.constraints import ValidInequality
    >>> double = ValidInequality(np.array([1.0, 0.0]), 3.0).scaled(2.0)
    >>> double.support
    6.0
    """

    direction: Array
    support: float
    dual: Image | None = None
    blur: float = 0.0

    @staticmethod
    def trivial(like: Array) -> ValidInequality:
        """Return ``<0, z> <= 0``, which says nothing of the set: enough where f alone has its minimum."""
        return ValidInequality(0.0 * like, 0.0)

    def __add__(self, other: ValidInequality) -> ValidInequality:
        dual = None
        if self.dual is not None and other.dual is not None:
            dual = tuple(u + v for u, v in zip(self.dual, other.dual, strict=True))
        support, blur = self.support + other.support, self.blur + other.blur
        return ValidInequality(self.direction + other.direction, support, dual, blur)

    def scaled(self, factor: float) -> ValidInequality:
        """Return the inequality multiplied by ``factor >= 0``."""
        dual = None if self.dual is None else tuple(factor * v for v in self.dual)
        return ValidInequality(
            factor * self.direction, factor * self.support, dual, factor * self.blur
        )

    def beside(self, x: Array) -> ValidInequality:
        """Return the inequality where the point ``x`` is, if it was computed on the host."""
        if isinstance(x, np.ndarray) or not isinstance(self.direction, np.ndarray):
            return self
        dual = None if self.dual is None else tuple(from_numpy(v, x) for v in self.dual)
        return ValidInequality(from_numpy(self.direction, x), self.support, dual, self.blur)


class Constraint(Function):
    """The set ``{x : c(x) <= 0}`` of a convex function ``c``.

    Subclasses define ``value`` (this is ``c``), ``subgradient`` and ``project``. Optional abilities
    are declared by attributes:

    ``smooth``
        ``c`` is differentiable with a locally Lipschitz gradient, except perhaps where it is least: deep
        inside, where every penalty is flat.
    ``has_image_set``
        the set is ``{x : M x in Q}`` with a set ``Q`` that is easy to project on; then ``image``,
        ``project_image``, ``pullback`` and ``support_image`` describe ``M`` and ``Q``.
    ``has_linear_minimizer``
        the set is bounded and there is a ``linear_minimizer``, all that Frank-Wolfe methods need.
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
    #: Whether the values of c may be too small: no bound may compare them at several points.
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
        """Return the projection, for a sequence of nearby points: it may reuse work from those before."""
        return self.project

    def followed(self) -> Constraint:
        """Return the same set for many nearby points, with a cheaper function that may be too small.

        It reuses work from the points before; every run gets its own. Itself where nothing is cheaper.
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
        """Return how far ``x`` is outside, relative to what the set compares; 0 for a feasible point.

        Rows, balls and matrices are measured by their own data (`lopro.certificates.violation`). The default,
        for functions of which nothing is known, is the first-order distance ``c / |g|`` over ``|x|``, or over
        `typical_size` where that is larger. It must not depend on the units of ``x`` and of ``c``.
        """
        c = self.value(x)
        if c <= 0.0:
            return 0.0
        slope, size = norm(self.subgradient(x)), max(norm(x), self.typical_size() or 0.0)
        return c / (slope * size) if slope * size > 0.0 else float("inf")

    def violation_at(self, x: Array, image: Image) -> float:
        """Return `violation` where the image of ``x`` is known already; override both to save the product."""
        return self.violation(x)

    def absolute_violation(self, x: Array) -> float:
        """Return how far ``x`` is outside in the units of ``c``, or of the row that is violated most."""
        return max(0.0, float(self.value(x)))

    def column_units(self) -> Array | float | None:
        """Return a unit for each entry of ``x``, or one for all; None if the set has none."""
        return self.typical_size()

    def relative_units(self) -> Array | None:
        """Return units of the entries up to a common factor, the largest is 1; None for one of all."""
        return None

    @property
    def sizes_for_free(self) -> bool:
        """Whether `typical_size` costs no product with data that are large or known by their products."""
        return all(m.sizes_for_free for m in self.members() if m is not self)

    def typical_size(self) -> float | None:
        """Return a length that is typical of the points of the set, or None: a cone has none.

        It only sets the scale of first steps and tolerances, so it need not be exact; but it must change
        with the units of ``x``, and be cheap.
        """
        return None

    def infeasibility(self) -> str | None:
        """Return why the set is empty, if the data show it without computations; else None."""
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
        """Return a dual near this one whose support is finite: after rounding it may be infinite."""
        return dual

    def support_image(self, dual: Image) -> float:
        """Return ``sup {<dual, q> : q in Q}`` for a ``dual`` that is normal to ``Q`` somewhere."""
        raise NotImplementedError

    # What the nearest point of several sets is found from (`lopro.constraints.nearest_of_all`).

    @property
    def as_matrix(self) -> Constraint:
        """The same set with a matrix where it has an operator with few columns: that takes a product each."""
        return self

    @property
    def in_double(self) -> Constraint | None:
        """The same set in double precision; None where that would copy a large matrix."""
        return self

    @property
    def cone_rows(self) -> ConeRows | None:
        """The set as rows of a cone program; None where it is not known as such."""
        return None

    @property
    def as_halfspaces(self) -> HalfSpaces | None:
        """The set as half-spaces, equations from both sides; None for sets that are curved or large."""
        return None

    def boundary(self, near: Vector, slack: Vector, multiplier: Vector) -> list[Equation]:
        """Return equations of the boundary near a point, active by slack and multiplier of `cone_rows`."""
        return []

    def cuts_by_slopes(self, x: Array) -> bool:
        """Whether a subgradient is all that is cheap to know of the set near ``x``."""
        return False

    def cuts(self, v: Vector, z: Array) -> list[Cut]:
        """Return half-spaces that hold the set and not ``z``, whose real vector is ``v``.

        They are the supporting half-space at the projection or, where projecting is expensive, that of a
        slope.
        """
        if not self.cuts_by_slopes(z):
            p = to_real_vector(self.project(z))
            normal = v - p
            # From nearby, the direction of the difference is rounding.
            if np.linalg.norm(normal) > _NEARBY * (np.linalg.norm(v) + np.linalg.norm(p)):
                return [Cut(normal, float(normal @ p))]
        c = self.value(z)
        if c <= 0.0:
            return []
        g = to_real_vector(self.subgradient(z))
        return [Cut(g, float(g @ v) - c)]
