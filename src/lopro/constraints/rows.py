"""Linear rows with lower and upper bounds: the base of polyhedra, equations and boxes."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.certificates import Units, Violation, column_units, noise_rows, of_rows
from lopro.constraints.base import ValidInequality
from lopro.constraints.one_sided_rows import OneSidedRows
from lopro.constraints.row_forms import MaxForm, NormForm, Numbers, RowForm
from lopro.constraints.symmetrised import symmetrised
from lopro.core.arrays import Array, asarray_like, is_complex, namespace, take
from lopro.core.arrays import to_numpy as to_host
from lopro.core.validation import check_shape
from lopro.errors import InfeasibleError
from lopro.functions import Ball, Constant, Image, Linearization, MappedFunction, Source
from lopro.functions.atoms import Interval
from lopro.functions.term import Term
from lopro.maps import LinearMap
from lopro.projections.linear_program import LinearMinimum, minimize_linear
from lopro.projections.polyhedron import RepeatedProjection, project_polyhedron

__all__ = ["LinearRows"]

#: Rows times squared columns up to which a bounding box is computed, by two linear programs for each
#: column: 0.2 s for 60 dense rows and 12 columns, 1.1 s for 200 and 50, 9 s for 300 and 100 (3e6). The
#: deadline is obeyed.
_BOXED = 2e7


class LinearRows(MappedFunction, OneSidedRows):
    """The set ``{x : lower <= M x <= upper}``: the base of polyhedra, boxes and rows with two sides.

    The image is ``M x``, and a row has one multiplier: positive at its upper bound, negative at its lower
    one. `OneSidedRows` has the same set as ``C x <= b``.

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
    polyhedral = True

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

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self._bounds)} rows, form={self.form!r})"

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

    def lipschitz(self, ball: Ball | None = None) -> Constant | None:
        return self.form.lipschitz(self)

    def infimum(self) -> Constant | None:
        return self.form.infimum()

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
        return self._violation(x, image, lambda: self._units).relative

    def violation_in_units(
        self, x: Array, image: Image | None, units: Callable[[], Units]
    ) -> float:
        return self._violation(x, self.image(x) if image is None else image, units).relative

    def absolute_violation(self, x: Array) -> float:
        return float(self._excess(self.image(x)).max(initial=0.0))

    def _excess(self, image: Image) -> Numbers:
        """Return by how much each row of ``C`` is violated, on the host."""
        (z,) = image
        outside = np.asarray(to_host(z - self.atom.prox(z, 1.0)), dtype=np.float64).ravel()
        return np.asarray(np.maximum(self._by_side(outside, -outside), 0.0))

    def _violation(self, x: Array, image: Image, units: Callable[[], Units]) -> Violation:
        """Return the violation of the worst row; the units are computed only if a row is violated."""
        (z,) = image
        if isinstance(z, np.ndarray):
            low, high = self.atom.bounds_beside(z)
            if np.logical_and.reduce((low <= z) & (z <= high), axis=None):
                return Violation()
        excess = self._excess(image)
        if not excess.any():
            return Violation()
        v = np.asarray(to_host(self._vector(x)), dtype=np.float64)
        return of_rows(self._entries, v, excess, self._bounds, units)

    @cached_property
    def _units(self) -> Units:
        return column_units([self.rows_and_sides], self.C.shape[1])

    def column_units(self) -> Array | float | None:
        return self._units.known

    def relative_units(self) -> Array | None:
        return self._units.relative()

    def rows_on_matrices(self, n: int) -> tuple[Any, Any, Any]:
        assert self.M is not None  # boxes define this method themselves
        matrix = self.M.matrix
        rows = scipy.sparse.csr_array(
            matrix if scipy.sparse.issparse(matrix) else to_host(matrix), dtype=np.float64
        )
        symmetric = symmetrised(rows, n)
        return rows if symmetric is None else symmetric, self.lower, self.upper

    def project(self, x: Array) -> Array:
        return self._point(project_polyhedron(self._vector(x), self.halfspaces))

    def projector(self) -> Callable[[Array], Array]:
        """Return the projection, for a sequence of nearby points."""
        repeated = RepeatedProjection(self.halfspaces)
        return lambda x: self._point(repeated(self._vector(x)))

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
        """Return the inequality that the multipliers of the linear program prove, nearly along -direction."""
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
    """Return the sides with 0 in place of rounding errors, in rows whose coefficients are all zero."""
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
