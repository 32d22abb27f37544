"""Rows with a bound on either side: what polyhedra, equations and boxes have in common."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.certificates import Units, Violation, column_units, noise_rows, of_rows
from lopro.constraints.base import ValidInequality
from lopro.constraints.row_forms import MaxForm, NormForm, Numbers, RowForm
from lopro.constraints.shapes import ShapedPoints
from lopro.core.arrays import (
    Array,
    asarray_like,
    copy,
    is_complex,
    namespace,
    one_entry,
    take,
)
from lopro.core.arrays import to_numpy as to_host
from lopro.core.counting import count
from lopro.core.real_vectors import Vector
from lopro.core.validation import check_shape
from lopro.engines.cones import ConeRows, halfspace_rows
from lopro.errors import InfeasibleError
from lopro.functions import Ball, Constant, Image, Linearization, MappedFunction, Source
from lopro.functions.atoms import Interval
from lopro.functions.term import Term
from lopro.maps import LinearMap, linear_map
from lopro.projections.cuts import Cut
from lopro.projections.halfspaces import HalfSpaces
from lopro.projections.linear_program import LinearMinimum, minimize_linear
from lopro.projections.newton import Equation
from lopro.projections.polyhedron import RepeatedProjection, project_polyhedron

__all__ = ["LinearRows"]


#: Rows times squared columns up to which a bounding box is computed: that takes two linear programs a column.
_BOXED = 2e7


class LinearRows(MappedFunction, ShapedPoints):
    """The set ``{x : lower <= M x <= upper}``: the base of polyhedra, boxes and rows with two sides.

    The image is ``M x``, and a row has one multiplier: positive at its upper bound, negative at its lower
    one. Where rows with one side each are needed, ``C x <= b`` are those with an upper bound and, below them,
    minus those with a lower one.

    Parameters
    ----------
    M : LinearMap or None
        Explicit and real; None for the identity.
    lower, upper : arrays
        On the host, infinite where there is no bound.
    form : MaxForm or NormForm, optional
        Which function ``c`` describes the set.
    shape : tuple of int
        Shape of the points; ``M`` acts on ``x.ravel()``.
    like : array
        An array of the library, precision and device of the points.
    """

    has_image_set = True
    has_vertices = True
    real_only = True

    def __init__(
        self,
        M: LinearMap | None,
        lower: Any,
        upper: Any,
        form: RowForm | None,
        shape: tuple[int, ...],
        like: Array,
    ) -> None:
        self.form: RowForm = MaxForm() if form is None else form
        if not isinstance(self.form, (MaxForm, NormForm)):
            raise TypeError(f"form must be MaxForm() or NormForm(), got {form!r}")
        self.M, self.shape, self.like = M, shape, like
        #: Lengths of the rows of M, on the host; None for the identity.
        self._norms: Numbers | None = None
        if M is not None:
            self._norms = np.asarray(to_host(M.row_norms), np.float64)
            if not np.logical_and.reduce(self._norms):
                lower, upper = _without_noise(M.matrix, lower, upper)
        self.lower, self.upper = lower, upper
        try:
            self.atom = Interval(lower, upper)
        except ValueError:
            _check_sides(lower, upper)
            raise
        if not np.logical_or.reduce(np.maximum(lower, -upper) > -np.inf, axis=None):
            raise ValueError("lower and upper must not both be infinite everywhere")

    # Rows with one side each: those with an upper bound, and below them those with a lower one.

    @cached_property
    def _all_above(self) -> bool:
        """Whether all rows have an upper bound and none has a lower one."""
        above, below = self.upper < np.inf, self.lower > -np.inf
        return bool(np.logical_and.reduce(above > below, axis=None))

    @cached_property
    def _above(self) -> np.ndarray[Any, Any]:
        """The rows with an upper bound."""
        return np.flatnonzero(np.isfinite(self.upper))

    @cached_property
    def _below(self) -> np.ndarray[Any, Any]:
        """The rows with a lower bound."""
        return np.flatnonzero(np.isfinite(self.lower))

    def _by_side(self, above: Any, below: Any) -> Numbers:
        """Return entries for the rows with an upper bound, and others for those with a lower one."""
        if self._all_above:
            return np.asarray(above.ravel())
        return np.concatenate([above.ravel()[self._above], below.ravel()[self._below]])

    @cached_property
    def _host_b(self) -> Numbers:
        """The sides of ``C x <= b``, on the host."""
        return self._by_side(self.upper, -self.lower)

    @cached_property
    def _lengths(self) -> Numbers:
        """The norms of the rows of C."""
        norms = np.ones(self.lower.size) if self._norms is None else self._norms
        return self._by_side(norms, norms)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self._host_b)} rows, form={self.form!r})"

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        return (Term(self.atom, self.M),)

    # The function.

    def image(self, x: Array) -> Image:
        if is_complex(x):
            raise TypeError(f"x must be real for a polyhedron, got dtype {x.dtype}")
        if self.M is None:
            check_shape("x", x, self.shape)
            return (x,)
        return (self.M.forward(x if len(self.shape) == 1 else self._vector(x)),)

    def linearize_at(self, image: Image) -> Linearization:
        return self.form.linearize(self, image[0])

    def largest_excess(self, z: Array) -> tuple[int, float, float]:
        """Return the row that an image violates most, the sign of its side, and by how much."""
        xp = namespace(z)
        low, high = self.atom.bounds_beside(z)
        found = []
        if len(self._above):
            found.append((1.0, xp.reshape(z - high, (-1,))))
        if len(self._below):
            found.append((-1.0, xp.reshape(low - z, (-1,))))
        worst = [(i := int(xp.argmax(excess)), sign, float(excess[i])) for sign, excess in found]
        return max(worst, key=lambda each: each[2])

    def signed_row(self, i: int, sign: float, like: Array) -> Array:
        """Return ``sign`` times row ``i`` of M, in the library of ``like`` and the shape of a point."""
        if self.M is None:
            return self._point(one_entry(self.lower.size, i, sign, like))
        matrix = self.M.matrix
        if scipy.sparse.issparse(matrix):
            row = np.asarray(matrix.tocsr()[[i]].toarray()).ravel()
        else:
            row = copy(matrix[i, :])
        return self._point(asarray_like(row if sign > 0.0 else -row, like))

    def row(self, i: int, like: Array) -> Array:
        """Return a copy of row ``i`` of ``C``, in the library of ``like`` and the shape of a point."""
        above = len(self._above)
        if i < above:
            return self.signed_row(int(self._above[i]), 1.0, like)
        return self.signed_row(int(self._below[i - above]), -1.0, like)

    def row_values(self, rows: np.ndarray[Any, Any], x: Array) -> np.ndarray[Any, Any]:
        """Return ``c_i x - b_i`` of some rows, on the host; the other rows are not computed."""
        count("rows", len(rows))
        v = self._vector(x)
        if isinstance(self.C.like, np.ndarray):
            products = self._matrix[rows] @ to_host(v)
        else:
            products = to_host(take(self._entries, rows) @ v)
        return np.asarray(np.asarray(products, dtype=np.float64) - self._host_b[rows])

    @property
    def row_norms(self) -> np.ndarray[Any, Any]:
        """The lengths of the rows of ``C``, on the host."""
        return self._lengths.copy()

    def lipschitz(self, ball: Ball | None = None) -> Constant | None:
        return self.form.lipschitz(self)

    def infimum(self) -> Constant | None:
        return self.form.infimum()

    # Rows with one side each.

    @cached_property
    def C(self) -> LinearMap:
        """The rows with an upper bound and, below them, minus those with a lower one."""
        if self.M is not None:
            if self._all_above:
                return self.M
            return linear_map(_one_sided(self.M.matrix, self._above, self._below), "C")
        signs = np.concatenate([np.ones(len(self._above)), -np.ones(len(self._below))])
        columns = np.concatenate([self._above, self._below])
        size = len(signs), self.lower.size
        C = scipy.sparse.csr_array((signs, (np.arange(len(signs)), columns)), size)
        if isinstance(self.like, np.ndarray):
            return linear_map(C.astype(self.like.dtype), "C")
        return linear_map(asarray_like(C.toarray(), self.like), "C")

    @property
    def b(self) -> Array:
        """The bounds of the rows of ``C``."""
        return asarray_like(self._host_b, self.like)

    @cached_property
    def _entries(self) -> Any:
        """``C`` as a scipy.sparse matrix or an array of its own library."""
        return self.C.matrix

    @cached_property
    def _matrix(self) -> Any:
        """``C`` as a scipy.sparse matrix or a NumPy array."""
        entries = self._entries
        return entries.tocsr() if scipy.sparse.issparse(entries) else to_host(entries)

    @cached_property
    def halfspaces(self) -> HalfSpaces:
        """The inequalities with unit rows, on the host; raises if a row of zeros is violated."""
        return HalfSpaces.from_system(self._matrix, self._host_b)

    # The geometry of the set.

    def regularity(self) -> Constant | None:
        rho = self._hoffman
        if rho is None:
            return None
        return Constant(rho, Source.DERIVED, "Hoffman constant, all independent row sets")

    @cached_property
    def _hoffman(self) -> float | None:
        rows = self._matrix
        if scipy.sparse.issparse(rows):
            if math.prod(rows.shape) > 1e5:
                return None
            rows = rows.toarray()
        return self.form.hoffman(np.asarray(rows, dtype=np.float64))

    def radius(self) -> Constant | None:
        bound = self._radius
        return None if bound is None else Constant(bound, Source.DERIVED, "bounding box")

    @cached_property
    def _radius(self) -> float | None:
        rows, columns = self.C.shape
        if rows * columns**2 > _BOXED:
            return None
        return None if self.infeasibility() is not None else self.halfspaces.radius()

    def infeasibility(self) -> str | None:
        return self._infeasibility

    @cached_property
    def _infeasibility(self) -> str | None:
        try:
            excess = self.halfspaces.excess_everywhere()
        except InfeasibleError as error:
            return str(error)
        if excess is None:
            return None
        return (
            f"the polyhedron is empty: every point violates some unit row by {excess:.3g} or more"
        )

    def violation(self, x: Array) -> float:
        return self.violation_at(x, self.image(x))

    def violation_at(self, x: Array, image: Image) -> float:
        return self.violation_of_rows(x, image, lambda: self._units).relative

    def absolute_violation(self, x: Array) -> float:
        return float(self._excess(self.image(x)).max(initial=0.0))

    def _excess(self, image: Image) -> Numbers:
        """Return by how much each row of ``C`` is violated, on the host."""
        (z,) = image
        outside = np.asarray(to_host(z - self.atom.prox(z, 1.0)), dtype=np.float64).ravel()
        return np.asarray(np.maximum(self._by_side(outside, -outside), 0.0))

    def violation_of_rows(self, x: Array, image: Image, units: Callable[[], Units]) -> Violation:
        """Return the violation, with units of the columns that may come from other sets as well."""
        (z,) = image
        if isinstance(z, np.ndarray):
            low, high = self.atom.bounds_beside(z)
            if np.logical_and.reduce((low <= z) & (z <= high), axis=None):
                return Violation()
        excess = self._excess(image)
        if not excess.any():
            return Violation()
        v = np.asarray(to_host(self._vector(x)), dtype=np.float64)
        return of_rows(self._entries, v, excess, self._host_b, units)

    @cached_property
    def _units(self) -> Units:
        return column_units([self.rows_and_sides], self.C.shape[1])

    @property
    def rows_and_sides(self) -> tuple[Any, Any]:
        """``C`` and ``b`` on the host; do not write on them."""
        return self._matrix, self._host_b

    def column_units(self) -> Array | float | None:
        return self._units.known

    def relative_units(self) -> Array | None:
        return self._units.relative()

    def typical_size(self) -> float | None:
        telling = self._lengths > 0.0
        telling[self._looser_bounds] = False
        sizes = np.abs(self._host_b[telling]) / self._lengths[telling]
        return float(sizes.max(initial=0.0)) or None

    @property
    def _looser_bounds(self) -> np.ndarray[Any, Any]:
        """Rows that bound an entry less tightly than another row: they say nothing of the set's size."""
        nothing = np.zeros(0, dtype=np.intp)
        if self.M is None or not isinstance(self.C.like, np.ndarray):
            return nothing
        alone = _rows_with_one_entry(self._entries)
        if len(alone) < 2:
            return nothing
        found = scipy.sparse.coo_array(self._entries[alone])
        found.eliminate_zeros()
        row, column, entry = alone[found.row], found.col, found.data
        bound = self._host_b[row] / np.abs(entry)
        order = np.lexsort((bound, entry > 0.0, column))
        sides = np.stack([column[order], entry[order] > 0.0])
        again = np.zeros(order.size, dtype=bool)
        again[1:] = (sides[:, 1:] == sides[:, :-1]).all(axis=0)
        return np.asarray(row[order[again]])

    def project(self, x: Array) -> Array:
        return self._point(project_polyhedron(self._vector(x), self.halfspaces))

    def projector(self) -> Callable[[Array], Array]:
        """Return the projection, for a sequence of nearby points."""
        repeated = RepeatedProjection(self.halfspaces)
        return lambda x: self._point(repeated(self._vector(x)))

    @property
    def cone_rows(self) -> ConeRows:
        return halfspace_rows(self.halfspaces.normals, self.halfspaces.bounds)

    def conic_form(self, complex_points: bool = False) -> list[ConeRows]:
        return [self.cone_rows]

    @property
    def as_halfspaces(self) -> HalfSpaces:
        return self.halfspaces

    def boundary(self, near: Vector, slack: Vector, multiplier: Vector) -> list[Equation]:
        active = np.flatnonzero(multiplier > slack)
        bounds = self.halfspaces.bounds[active]
        return [
            Equation(lambda z, n=n, h=h: float(n @ z) - h, lambda z, n=n: n)  # type: ignore[misc]
            for n, h in zip(self.halfspaces.rows(active), bounds, strict=True)
        ]

    def cuts(self, v: Vector, z: Array) -> list[Cut]:
        rows = self.halfspaces
        violated = np.flatnonzero(rows.normals @ v > rows.bounds)
        normals = rows.rows(violated)
        return [Cut(n, float(rows.bounds[i])) for n, i in zip(normals, violated, strict=True)]

    # The set as {x : M x in Q} with the interval Q.

    def project_image(self, image: Image) -> Image:
        return (self.atom.prox(image[0], 1.0),)

    def pullback(self, dual: Image) -> Array:
        return 1.0 * dual[0] if self.M is None else self._point(self.M.adjoint(dual[0]))

    def support_image(self, dual: Image) -> float:
        return self.atom.conjugate(dual[0])

    # Linear functions over the set, where it is bounded.

    @property
    def has_linear_minimizer(self) -> bool:
        return self.radius() is not None

    def linear_minimizer(self, direction: Array) -> Array:
        return self._point(asarray_like(self._linear_minimum(direction).vertex, direction))

    def support_inequality(self, direction: Array) -> ValidInequality:
        """Return what the multipliers of the linear program prove; it points along -direction, nearly."""
        u, rows = self._linear_minimum(direction).multipliers, self.halfspaces
        normal = self._point(asarray_like(rows.csc.T @ u, direction))
        return ValidInequality(normal, float(rows.bounds @ u))

    def _linear_minimum(self, direction: Array) -> LinearMinimum:
        cost = np.asarray(to_host(direction), dtype=np.float64).reshape(-1)
        return minimize_linear(cost, self.halfspaces)


def _check_sides(lower: Array, upper: Array) -> None:
    """Raise where a lower bound exceeds the upper one."""
    wrong = np.argwhere(lower > upper)
    if wrong.size:
        at = tuple(int(i) for i in wrong[0])
        place = ", ".join(map(str, at))
        raise ValueError(
            f"lower must not exceed upper, but lower[{place}]={lower[at]:g} > "
            f"upper[{place}]={upper[at]:g}"
        )


def _without_noise(matrix: Any, lower: Any, upper: Any) -> tuple[Any, Any]:
    """Return the sides with 0 in place of what is rounding, in rows without an entry."""
    sides = np.concatenate([lower, upper])
    rows = noise_rows(lambda i: _rows_of_zeros(matrix, i), np.maximum(lower, -upper), sides)
    if not len(rows):
        return lower, upper
    lower, upper = lower.copy(), upper.copy()
    lower[rows], upper[rows] = np.minimum(lower[rows], 0.0), np.maximum(upper[rows], 0.0)
    return lower, upper


def _rows_of_zeros(matrix: Any, rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return whether all coefficients of these rows are exactly 0."""
    if scipy.sparse.issparse(matrix):
        sums = abs(matrix.tocsr()[rows]).sum(axis=1)
        return np.asarray(np.asarray(sums).ravel() == 0.0)
    return np.asarray(to_host(abs(take(matrix, rows))).max(axis=1) == 0.0)


def _rows_with_one_entry(matrix: Any) -> np.ndarray[Any, Any]:
    """Return which rows have exactly one nonzero entry."""
    entries = matrix != 0.0
    if scipy.sparse.issparse(matrix):
        return np.flatnonzero(np.diff(scipy.sparse.csr_array(entries).indptr) == 1)
    return np.flatnonzero(np.count_nonzero(entries, axis=1) == 1)


def _one_sided(matrix: Any, above: Any, below: Any) -> Array:
    """Return the rows with an upper bound, and below them minus those with a lower one."""
    if scipy.sparse.issparse(matrix):
        rows = matrix.tocsr()[np.concatenate([above, below])]
        rows.data[rows.indptr[len(above)] :] *= -1.0
        return rows
    parts = [take(matrix, above), -take(matrix, below)]
    return namespace(matrix).concat(parts, axis=0)
