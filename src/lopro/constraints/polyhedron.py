"""Polyhedra ``{x : C x <= b}`` through their largest violation or the norm of all violations."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import scipy  # parts of it load when first used

from lopro.certificates import Units, Violation, column_units, noise_rows, of_rows
from lopro.constraints.base import Constraint, ValidInequality
from lopro.constraints.hoffman import hoffman_max, hoffman_norm
from lopro.core.arrays import (
    Array,
    Companion,
    asarray_like,
    copy,
    inner,
    is_complex,
    namespace,
    norm,
    take,
)
from lopro.core.arrays import to_numpy as to_host
from lopro.core.counting import count
from lopro.core.validation import check_array, check_shape, checked_shape
from lopro.errors import InfeasibleError
from lopro.functions import Ball, Constant, Image, Linearization, MappedFunction, Source
from lopro.functions.atoms import Interval
from lopro.functions.term import Term
from lopro.maps import LinearMap, linear_map
from lopro.projections.halfspaces import HalfSpaces
from lopro.projections.linear_program import LinearMinimum, minimize_linear
from lopro.projections.polyhedron import RepeatedProjection, project_polyhedron

__all__ = ["MaxForm", "NormForm", "Polyhedron", "PolyhedronForm"]


#: Rows times squared columns up to which a bounding box is computed: that takes two linear programs a column.
_BOXED = 2e7


@dataclass(frozen=True)
class MaxForm:
    """``c(x) = max_i (c_i x - b_i)``: one active row at a time, negative inside.

    Examples
    --------
    >>> import numpy as np, lopro.constraints as lc
    >>> lc.Polyhedron(np.eye(2), np.zeros(2), lc.MaxForm()).value(np.array([3.0, 4.0]))
    4.0
    """


@dataclass(frozen=True)
class NormForm:
    """``c(x) = |[C x - b]_+|_2``: all violated rows at once, zero inside.

    Examples
    --------
    >>> import numpy as np, lopro.constraints as lc
    >>> lc.Polyhedron(np.eye(2), np.zeros(2), lc.NormForm()).value(np.array([3.0, 4.0]))
    5.0
    """


PolyhedronForm: TypeAlias = MaxForm | NormForm


class Polyhedron(MappedFunction, Constraint):
    r"""The set ``{x : C x <= b}``.

    Parameters
    ----------
    C : array, scipy.sparse matrix or LinearMap
        One inequality per row; an equation is two rows with opposite signs. Rows of zeros and
        repeated rows are allowed.
    b : array
        The right-hand side.
    form : MaxForm or NormForm
        Which function ``c`` describes the set.
    shape : tuple of int, optional
        Shape of the points, where they are not vectors: ``C`` acts on ``x.ravel()``.

    Notes
    -----
    The regularity constant is Hoffman's, from an enumeration of row sets: exact for small systems,
    None for large ones.

    Departures
    ----------
    The paper's constant, the smallest nonzero eigenvalue of ``C'C``, is wrong for inequalities.

    Examples
    --------
    >>> import numpy as np, lopro.constraints as lc
    >>> wedge = lc.Polyhedron(np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([1.0, 1.0]))
    >>> wedge.value(np.array([2.0, 2.0]))
    3.0
    >>> wedge.project(np.array([2.0, 2.0])).round(9) + 0.0
    array([0.5, 0.5])
    """

    has_image_set = True
    has_vertices = True
    real_only = True
    shape: tuple[int, ...]

    def __init__(
        self, C: Any, b: Any, form: PolyhedronForm | None = None, shape: Any = None
    ) -> None:
        self.C = linear_map(C, "C")
        if not self.C.explicit:
            raise TypeError("C must be an array or a sparse matrix: its rows have to be read")
        if is_complex(self.C.like):
            raise TypeError(f"C must be real, got dtype {self.C.like.dtype}")
        self.b = copy(check_array("b", b, ndim=1, allow_complex=False))
        check_shape("b", self.b, (self.C.shape[0],))
        self._satisfy_noise()
        self.form: PolyhedronForm = MaxForm() if form is None else form
        if not isinstance(self.form, (MaxForm, NormForm)):
            raise TypeError(f"form must be MaxForm() or NormForm(), got {form!r}")
        self.shape = checked_point_shape(shape, self.C)
        self.like = self.C.like
        self._b = Companion(self.b)
        self._lengths = np.asarray(to_host(self.C.row_norms), dtype=np.float64)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.C.shape[0]} rows, form={self.form!r})"

    def _satisfy_noise(self) -> None:
        """Set sides to 0 that are rounding, of rows without an entry."""
        b = np.asarray(to_host(self.b), dtype=np.float64)
        rows = noise_rows(lambda i: rows_of_zeros(self.C.matrix, i), -b, b)
        if len(rows):
            self.b = asarray_like(np.where(np.isin(np.arange(len(b)), rows), 0.0, b), self.b)

    @staticmethod
    def box(lower: Any, upper: Any, form: PolyhedronForm | None = None) -> Polyhedron:
        """Return ``{x : lower <= x <= upper}``; infinite entries mean no bound.

        Examples
        --------
        >>> import numpy as np, lopro.constraints as lc
        >>> box = lc.Polyhedron.box([0.0, -np.inf], [1.0, 2.0])
        >>> box.project(np.array([3.0, -7.0]))
        array([ 1., -7.])
        """
        from lopro.constraints.box import Box

        return Box(lower, upper, form)

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        return (Term(Interval(np.full(len(self._host_b), -np.inf), self._host_b), self.C),)

    # The function.

    def image(self, x: Array) -> Image:
        if is_complex(x):
            raise TypeError(f"x must be real for a polyhedron, got dtype {x.dtype}")
        return (self.C.forward(self._vector(x)),)

    def _vector(self, x: Array) -> Array:
        """Return a point as the vector that the rows act on."""
        if len(self.shape) == 1:
            return x
        check_shape("x", x, self.shape)
        return namespace(x).reshape(x, (-1,))

    def _point(self, v: Array) -> Array:
        """Return the point that a vector stands for."""
        return v if len(self.shape) == 1 else namespace(v).reshape(v, self.shape)

    def linearize_at(self, image: Image) -> Linearization:
        (z,) = image
        excess = z - self._b.beside(z)
        xp = namespace(z)
        if isinstance(self.form, MaxForm):
            i = int(xp.argmax(excess))
            return float(excess[i]), lambda: self.row(i, z)
        outside = xp.where(excess > 0.0, excess, 0.0 * excess)
        c = norm(outside)
        return c, lambda: self.pullback((outside / c if c > 0.0 else outside,))

    def row(self, i: int, like: Array) -> Array:
        """Return a copy of row ``i`` of ``C`` in the library of ``like``, in the shape of a point."""
        if not scipy.sparse.issparse(self._entries):
            return self._point(copy(asarray_like(self._entries[i, :], like)))
        return self._point(asarray_like(np.asarray(self._matrix[[i]].toarray()).ravel(), like))

    def row_values(self, rows: np.ndarray[Any, Any], x: Array) -> np.ndarray[Any, Any]:
        """Return ``c_i x - b_i`` of some rows, on the host; the other rows are not looked at."""
        count("rows", len(rows))
        v = self._vector(x)
        if isinstance(self.C.like, np.ndarray):
            products = self._matrix[rows] @ to_host(v)
        else:
            products = to_host(take(self._entries, rows) @ v)
        values: np.ndarray[Any, Any] = np.asarray(products, dtype=np.float64) - self._host_b[rows]
        return values

    @cached_property
    def _host_b(self) -> np.ndarray[Any, Any]:
        return np.asarray(to_host(self.b), dtype=np.float64)

    @property
    def row_norms(self) -> np.ndarray[Any, Any]:
        """The lengths of the rows, on the host."""
        return self._lengths.copy()

    def lipschitz(self, ball: Ball | None = None) -> Constant | None:
        if isinstance(self.form, MaxForm):
            return Constant(float(self._lengths.max()), Source.DERIVED, "longest row of C")
        return self.C.largest_singular_value

    def infimum(self) -> Constant | None:
        if isinstance(self.form, NormForm):
            return Constant(0.0, Source.DERIVED, "a norm is not negative")
        return None

    # The geometry of the set.

    @cached_property
    def _entries(self) -> Any:
        """The rows as a scipy.sparse matrix or an array of their own library."""
        return self.C.matrix

    @cached_property
    def _matrix(self) -> Any:
        """The rows as a scipy.sparse matrix or a NumPy array."""
        entries = self._entries
        return entries.tocsr() if scipy.sparse.issparse(entries) else to_host(entries)

    @cached_property
    def halfspaces(self) -> HalfSpaces:
        """The inequalities with unit rows, on the host; raises if a row of zeros is violated."""
        return HalfSpaces.from_system(self._matrix, self.b)

    def regularity(self) -> Constant | None:
        rho = self._hoffman
        if rho is None:
            return None
        return Constant(rho, Source.DERIVED, "Hoffman constant, all independent row sets")

    @cached_property
    def _hoffman(self) -> float | None:
        rows = None if scipy.sparse.issparse(self._matrix) else self._matrix
        if rows is None and self.C.shape[0] * self.C.shape[1] <= 1e5:
            rows = self._matrix.toarray()
        if rows is None:
            return None
        constant = hoffman_max if isinstance(self.form, MaxForm) else hoffman_norm
        return constant(np.asarray(rows, dtype=np.float64))

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
        excess = self._excess(self.image(x))
        return max(0.0, float(excess.max()))

    def _excess(self, image: Image) -> np.ndarray[Any, Any]:
        (z,) = image
        return np.asarray(to_host(z - self._b.beside(z)), dtype=np.float64)

    def violation_of_rows(self, x: Array, image: Image, units: Callable[[], Units]) -> Violation:
        """Return the violation, with units of the columns that may come from other sets as well."""
        excess = self._excess(image)
        if excess.max() <= 0.0:
            return Violation()
        v = np.asarray(to_host(self._vector(x)), dtype=np.float64)
        return of_rows(self._entries, v, excess, self._host_b, units)

    @cached_property
    def _units(self) -> Units:
        return column_units([self.rows_and_sides], self.C.shape[1])

    @property
    def rows_and_sides(self) -> tuple[Any, Any]:
        """The matrix and the sides on the host; do not write on them."""
        return self._matrix, self._host_b

    def column_units(self) -> Array | float | None:
        return self._units.known

    def typical_size(self) -> float | None:
        telling = self._lengths > 0.0
        if isinstance(self.C.like, np.ndarray):
            telling[self._looser_bounds] = False
        sizes = np.abs(self._host_b[telling]) / self._lengths[telling]
        return float(sizes.max(initial=0.0)) or None

    @property
    def _looser_bounds(self) -> np.ndarray[Any, Any]:
        """Rows that bound one entry less tightly than another row: they do not tell how large the set is."""
        alone = _rows_with_one_entry(self._entries)
        if len(alone) < 2:
            return np.zeros(0, dtype=np.intp)
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

    # The set as {x : C x in Q} with the orthant Q below b.

    def project_image(self, image: Image) -> Image:
        (z,) = image
        b = self._b.beside(z)
        return (namespace(z).where(z > b, b, z),)

    def pullback(self, dual: Image) -> Array:
        return self._point(self.C.adjoint(dual[0]))

    def support_image(self, dual: Image) -> float:
        return inner(self._b.beside(dual[0]), dual[0])

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


def checked_point_shape(shape: Any, C: LinearMap) -> tuple[int, ...]:
    """Return the shape of the points that rows act on; vectors by default."""
    if shape is None:
        return (C.shape[1],)
    found = checked_shape(shape)
    if math.prod(found) != C.shape[1]:
        raise ValueError(
            f"shape must hold the {C.shape[1]} numbers that the rows of {C.name} act on, got {found}"
        )
    return found


def rows_of_zeros(matrix: Any, rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
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
