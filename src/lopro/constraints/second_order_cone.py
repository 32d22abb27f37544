"""Second-order cones ``{x : |A x + b| <= c'x + d}``."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.constraints.base import Constraint, ValidInequality
from lopro.constraints.pulled_back import pulled_back
from lopro.core.arrays import (
    Array,
    asarray_like,
    copy,
    eps,
    from_numpy,
    inner,
    is_complex,
    namespace,
    norm,
    to_numpy,
)
from lopro.core.real_vectors import Vector, from_real_vector, to_real_vector
from lopro.core.validation import check_array, check_number, check_shape
from lopro.engines.cones import ConeRows, SecondOrder, active_cone
from lopro.errors import ProjectionError
from lopro.functions import Ball, Constant, Image, Linearization, MappedFunction, atoms
from lopro.functions.term import Term
from lopro.maps import LinearMap, linear_map
from lopro.maps.algebra import widened
from lopro.projections.conic import project_conic
from lopro.projections.generic import project_sublevel
from lopro.projections.newton import Equation, polish

__all__ = ["SecondOrderCone"]

#: Number of rows up to which their Gram matrix is formed: 32 MB. For 600 dense rows and 700 columns it takes
#: 6 ms, a projection by a conic solver 3 s.
_FEW_ROWS = 2000
#: ``|A x + b|`` below this share of its terms counts as the apex, where there is no gradient: a gradient
#: would have ten correct digits there.
_APEX = 1e-6


class SecondOrderCone(MappedFunction, Constraint):
    """The set ``{x : |A x + b|_2 <= c'x + d}``, described by the difference of both sides.

    Parameters
    ----------
    A : array, scipy.sparse matrix, LinearOperator or LinearMap of shape (m, n)
        Real. The entries are copied together with ``c``; those of an operator are computed by products.
    b : array of shape (m,), optional
        Zero if not given.
    c : array of shape (n,), optional
        Zero if not given: a ball, for which `ResidualBall` has more constants.
    d : float
        Any number.

    Notes
    -----
    Multipliers are vectors ``(v_0, v)`` of ``m + 1`` entries with ``|v| <= -v_0``: they belong to
    ``(c'x + d, A x + b)``.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> cone = lopro.constraints.SecondOrderCone(
    ...     [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], c=[1.0, 0.0, 0.0]
    ... )
    >>> cone.value(np.array([0.0, 3.0, 4.0])), cone.project(np.array([0.0, 3.0, 4.0])).round(9)
    (5.0, array([2.5, 1.5, 2. ]))
    >>> f = lopro.objectives.SquaredDistance(np.array([0.0, 3.0, 4.0]))
    >>> lopro.solve(lopro.Problem(f, cone)).success
    True
    """

    has_image_set = True
    real_only = True

    def __init__(self, A: Any, b: Any = None, c: Any = None, d: float = 0.0) -> None:
        own = linear_map(A, "A")
        if is_complex(own.like):
            raise TypeError(f"A must be real, got dtype {own.like.dtype}")
        rows, columns = own.shape
        top = _vector("c", c, columns, own.like)
        side = check_number("d", d, minimum=-math.inf)
        #: ``c'`` above ``A``, and ``d`` above ``b``: the set is ``{x : D x + offset is in the cone}``.
        self.D: LinearMap = linear_map(_stacked(top, own), "D")
        b = _vector("b", b, rows, own.like)
        self.offset: Array = namespace(b).concat([0.0 * b[:1] + side, b])
        self.shape = (columns,)
        self.like = self.D.like
        self._trivially_empty = side < 0.0 and norm(top) == 0.0

    def __repr__(self) -> str:
        return f"SecondOrderCone(A and c: {self.D!r})"

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        return (Term(atoms.SecondOrderCone(), self.D, -1.0 * self.offset),)

    def image(self, x: Array) -> Image:
        return (self.D.forward(x),)

    def sides(self, image: Image) -> tuple[Array, float]:
        """Return ``A x + b`` and ``c'x + d``."""
        z = image[0] - self.terms[0].offset_beside(image[0])
        return z[1:], float(z[0])

    def linearize_at(self, image: Image) -> Linearization:
        u, t = self.sides(image)
        length = norm(u)
        return length - t, lambda: self.D.adjoint(_normal(u, length))

    def lipschitz(self, ball: Ball | None = None) -> Constant | None:
        largest = self.D.largest_singular_value
        return Constant(math.sqrt(2.0) * largest.value, largest.source, "root of 2 times |(c, A)|")

    def infeasibility(self) -> str | None:
        if not self._trivially_empty:
            return None
        return "the set is empty: d < 0, c is zero, and a norm is not negative"

    def violation(self, x: Array) -> float:
        return self.violation_at(x, self.image(x))

    def violation_at(self, x: Array, image: Image) -> float:
        u, t = self.sides(image)
        excess = norm(u) - t
        # Both sides are sums, so that the violation is relative to the size of their terms.
        return excess / (norm(image[0]) + norm(self.offset)) if excess > 0.0 else 0.0

    def typical_size(self) -> float | None:
        return norm(self.offset) / norm(self.D.row_norms) if norm(self.offset) > 0.0 else None

    def valid_inequality(self, x: Array, weight: float) -> ValidInequality:
        """Return the supporting half-space with the slope of ``weight * c`` at ``x``."""
        image = self.image(x)
        u, _ = self.sides(image)
        dual = self.terms[0].into_domain(weight * _normal(u, norm(u)))
        return pulled_back(self, (dual,), x, image)

    def project_image(self, image: Image) -> Image:
        return (self.terms[0].prox(image[0], 1.0),)

    def pullback(self, dual: Image) -> Array:
        return self.D.adjoint(dual[0])

    def into_domain(self, dual: Image) -> Image:
        return (self.terms[0].into_domain(dual[0]),)

    def support_image(self, dual: Image) -> float:
        """Return ``<-offset, nu>``, rounded up, because lower bounds rest on it."""
        (nu,) = dual
        own = self.terms[0].offset_beside(nu)
        return inner(own, nu) + 8.0 * eps(nu) * norm(self.offset) * norm(nu)

    @property
    def projects_in_closed_form(self) -> bool:
        return self._frame is not None

    def project(self, x: Array) -> Array:
        if self.value(x) <= 0.0:
            return copy(x)
        if self._frame is not None:
            z = self.image(x)[0]
            return x + self.pullback(((self.project_image((z,))[0] - z) / self._frame,))
        at_apex = self._apex(x)
        return self._nearest(x) if at_apex is None else at_apex

    @cached_property
    def _gram(self) -> np.ndarray[Any, Any] | None:
        """``D D'`` on the host in double precision; None where that is large."""
        if self.D.shape[0] > _FEW_ROWS:
            return None
        entries = widened(self.D.matrix)
        gram = entries @ entries.T
        return gram.toarray() if scipy.sparse.issparse(gram) else to_numpy(gram)

    @cached_property
    def _frame(self) -> float | None:
        """``a`` with ``D D' = a I``, for which projections of the image give those of x; else None."""
        if self._gram is None:
            return None
        a = float(self._gram[0, 0])
        off = float(np.abs(self._gram - a * np.eye(len(self._gram))).max())
        return a if off <= 4.0 * float(np.finfo(np.float64).eps) * a and a > 0.0 else None

    def _apex(self, x: Array) -> Array | None:
        """Return the nearest point where both sides are 0, if multipliers prove it to be the projection."""
        if self._gram is None or self.D.shape[0] > self.D.shape[1]:
            return None
        z = self.image(x)[0]
        w = to_real_vector(z - self.terms[0].offset_beside(z))
        dual = -np.linalg.lstsq(self._gram, w, rcond=None)[0]
        if not np.linalg.norm(dual[1:]) < dual[0]:
            return None
        point = x + self.pullback((asarray_like(dual, z),))
        return point if self.violation(point) <= 1e2 * eps(x) else None

    def projector(self) -> Callable[[Array], Array]:
        """Return the projection for a sequence of nearby points; each starts from the previous result."""
        last: Array | None = None

        def project(x: Array) -> Array:
            nonlocal last
            found = None
            if last is not None and self._frame is None and self.value(x) > 0.0:
                found = self._near(x, to_real_vector(last))
            last = self.project(x) if found is None else found
            return last

        return project

    def _near(self, x: Array, start: Vector) -> Array | None:
        """Return the projection by Newton's method from a point nearby; None where that fails."""
        found = polish(to_real_vector(x), start, self._equations(start))
        if found is None:
            return None
        z = from_real_vector(found, x)
        return z if self.violation(z) <= 1e2 * eps(z) else None

    def _nearest(self, x: Array) -> Array:
        """Project by a conic solver and refine by Newton's method; by cuts where that fails."""
        with suppress(ProjectionError):
            near = project_conic(to_real_vector(x), [self.cone_rows], eps(x))[0]
            found = self._near(x, near)
            if found is not None:
                return found
        return project_sublevel(x, self.value, self.subgradient)

    @cached_property
    def in_double(self) -> SecondOrderCone:
        """The same set in double precision."""
        entries, offset = widened(self.D.matrix), widened(self.offset)
        top = entries[[0]].toarray()[0] if scipy.sparse.issparse(entries) else entries[0, :]
        return SecondOrderCone(entries[1:], offset[1:], top, float(offset[0]))

    @cached_property
    def cone_rows(self) -> ConeRows:
        """The set as rows of a cone program."""
        entries = self.D.matrix if scipy.sparse.issparse(self.D.matrix) else to_numpy(self.D.matrix)
        rows = scipy.sparse.csc_matrix(-widened(entries))
        return ConeRows(rows, to_real_vector(self.offset), SecondOrder(rows.shape[0]))

    def conic_form(self, complex_points: bool = False) -> list[ConeRows]:
        return [self.cone_rows]

    def boundary(self, near: Vector, slack: Vector, multiplier: Vector) -> list[Equation]:
        return self._equations(near) if active_cone(slack, multiplier) else []

    def cuts_by_slopes(self, x: Array) -> bool:
        return not self.projects_in_closed_form

    def _equations(self, near: Vector) -> list[Equation]:
        """Return the boundary near a point as an equation; none near the apex, where there is no gradient."""
        D, offset = self.cone_rows.rows, to_real_vector(self.offset)
        u = offset - D @ near
        if np.linalg.norm(u[1:]) <= _APEX * (np.linalg.norm(offset) + np.linalg.norm(D @ near)):
            return []

        def value(v: Vector) -> float:
            w = offset - D @ v
            return float(np.linalg.norm(w[1:]) - w[0])

        def slope(v: Vector) -> Vector:
            w = offset - D @ v
            return np.asarray(D.T @ np.concatenate([[1.0], -w[1:] / np.linalg.norm(w[1:])]))

        return [Equation(value, slope)]


def _vector(name: str, given: Any, size: int, like: Array) -> Array:
    """Return a vector in the library of A after checks; zeros if it is not given."""
    if given is None:
        return asarray_like(np.zeros(size), like)
    found = check_array(name, given, ndim=1, allow_complex=False)
    check_shape(name, found, (size,))
    return asarray_like(found, like) if name == "c" else from_numpy(to_numpy(found), like)


def _stacked(top: Array, A: LinearMap) -> Any:
    """Return the entries of ``(c', A)``; sparse for sparse A."""
    entries = A.matrix if A.explicit else A.toarray()
    if scipy.sparse.issparse(entries):
        row = scipy.sparse.csr_array(np.asarray(to_numpy(top)).reshape(1, -1))
        return scipy.sparse.vstack([row, entries], format="csr")
    xp = namespace(entries)
    return xp.concat([xp.reshape(asarray_like(top, entries), (1, -1)), entries])


def _normal(u: Array, length: float) -> Array:
    """Return the slope ``(-1, u/|u|)`` of the difference of both sides."""
    own = u / length if length > 0.0 else 0.0 * u
    return namespace(u).concat([0.0 * u[:1] - 1.0, own])
