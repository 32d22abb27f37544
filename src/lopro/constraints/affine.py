"""Affine constraints: rows with a lower bound, an upper bound, or both."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.constraints.polyhedron import Polyhedron
from lopro.constraints.row_forms import RowForm
from lopro.constraints.rows import LinearRows
from lopro.constraints.shapes import checked_point_shape
from lopro.core.arrays import Array, asarray_like, is_array, is_complex, is_single
from lopro.core.arrays import to_numpy as to_host
from lopro.core.validation import check_array, check_shape, checked_shape, host_array
from lopro.engines.cones import ConeRows, Zero, halfspace_rows
from lopro.maps import LinearMap, linear_map
from lopro.projections.halfspaces import HalfSpaces, row_norms

__all__ = ["Affine"]


class Affine(Polyhedron):
    """The set ``{x : lower <= M x <= upper}``; equations where both agree.

    Parameters
    ----------
    M : array, scipy.sparse matrix, LinearOperator or LinearMap of shape (m, d)
        Real; sparse stays sparse. Not copied. The entries of an operator are computed at once, by ``m``
        products with its adjoint.
    lower, upper : array of shape (m,) or float, optional
        Infinite entries and None mean no bound.
    shape : tuple of int, optional
        Shape of the points where they are not vectors; ``M`` acts on ``x.ravel()``.
    form : MaxForm or NormForm
        Which function ``c`` describes the set.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> total = lopro.constraints.Affine([[1.0, 1.0]], lower=1.0, upper=1.0)
    >>> total.project(np.array([1.0, 1.0]))
    array([0.5, 0.5])
    >>> f = lopro.objectives.SquaredDistance(np.array([3.0, 0.0]))
    >>> lopro.solve(lopro.Problem(f, total)).x.round(9)
    array([ 2., -1.])

    On matrices, here with the trace 1:

    >>> unit = lopro.constraints.Affine(np.eye(2).reshape(1, 4), 1.0, 1.0, shape=(2, 2))
    >>> unit.project(np.zeros((2, 2)))
    array([[0.5, 0. ],
           [0. , 0.5]])
    """

    M: LinearMap

    def __init__(
        self,
        M: Any,
        lower: Any = None,
        upper: Any = None,
        shape: Any = None,
        form: RowForm | None = None,
    ) -> None:
        given = linear_map(M, "M")
        if is_complex(given.like):
            raise TypeError(f"M must be real, got dtype {given.like.dtype}")
        if not given.explicit:
            given = linear_map(_read(given), "M")
        rows = given.shape[0]
        low, high = _sides("lower", lower, -np.inf, rows), _sides("upper", upper, np.inf, rows)
        points = checked_point_shape(shape, given)
        LinearRows.__init__(self, given, low, high, form, points, given.like)

    def conic_form(self, complex_points: bool = False) -> list[ConeRows]:
        """Return the rows, with equations as such: pairs of inequalities would have no interior."""
        M = self.M.matrix if scipy.sparse.issparse(self.M.matrix) else to_host(self.M.matrix)
        lengths = row_norms(M)
        if (lengths == 0.0).any():
            return [self.cone_rows]
        N = scipy.sparse.csr_array(HalfSpaces.from_system(M, np.zeros(len(lengths))).normals)
        lower, upper = self.lower / lengths, self.upper / lengths
        equal = np.flatnonzero(lower == upper)
        above, below = (np.flatnonzero((lower < upper) & np.isfinite(s)) for s in (upper, lower))
        cones = []
        if len(equal):
            cones.append(ConeRows(N[equal].tocsc(), upper[equal], Zero(len(equal))))
        if len(above) + len(below):
            sides = scipy.sparse.vstack([N[above], -N[below]])
            cones.append(halfspace_rows(sides, np.concatenate([upper[above], -lower[below]])))
        return cones

    @staticmethod
    def entries(
        index: Any, lower: Any = None, upper: Any = None, shape: Any = None, form: Any = None
    ) -> Affine:
        """Return bounds on some entries of an array; equations where both sides agree.

        Parameters
        ----------
        index : tuple of int arrays, array of bool, or array of int
            The entries: indices for each axis, as from ``numpy.nonzero``; a mask of the shape; or indices
            into ``x.ravel()``. Each entry once.
        lower, upper : array or float, optional
            One number for each entry, in this order; for a mask in the order of ``x[mask]``. Arrays in
            single precision make a set of points in single precision; with plain numbers the objective
            determines the precision.
        shape : tuple of int
            Shape of the points; not needed for a mask.
        form : MaxForm or NormForm
            Which function ``c`` describes the set.

        Examples
        --------
        >>> import numpy as np
        >>> from lopro.constraints import Affine
        >>> fixed = Affine.entries(([0, 1], [1, 0]), 0.5, 0.5, shape=(2, 2))
        >>> fixed.project(np.eye(2))
        array([[1. , 0.5],
               [0.5, 1. ]])
        """
        places, shape = _places(index, shape)
        single = any(is_array(side) and is_single(side) for side in (lower, upper))
        ones = np.ones(len(places), dtype=np.float32 if single else np.float64)
        rows = np.arange(len(places))
        M = scipy.sparse.csr_array((ones, (rows, places)), (len(places), int(np.prod(shape))))
        bounds = Affine(M, lower, upper, shape, form)
        if not any(is_array(side) for side in (lower, upper)):
            bounds.like = None  # plain numbers determine neither library, precision nor device
        return bounds

    def __repr__(self) -> str:
        equations = int(np.count_nonzero(self.lower == self.upper))
        points = f", points of shape {self.shape}" if len(self.shape) > 1 else ""
        return f"Affine({self.M.shape[0]} rows, {equations} of them equations{points})"

    @cached_property
    def _disjoint(self) -> bool:
        """Whether no two rows share a variable, so that projections treat them separately."""
        if not scipy.sparse.issparse(self.M.matrix):
            return self.M.shape[0] == 1
        columns = self.M.matrix.tocsc()
        return bool(np.diff(columns.indptr).max(initial=0) <= 1)

    @property
    def projects_in_closed_form(self) -> bool:
        return self._disjoint

    def project(self, x: Array) -> Array:
        if not self._disjoint or is_complex(x):
            return super().project(x)
        if self.infeasibility() is not None:
            return super().project(x)  # which raises the error
        v = self._vector(x)
        lengths = asarray_like(np.where(self._squares > 0.0, self._squares, 1.0), v)
        for _ in range(2):  # the second step removes the rounding error of a long first one
            z = self.M.forward(v)
            v = v + self.M.adjoint((self.atom.prox(z, 1.0) - z) / lengths)
        return self._point(v)

    @cached_property
    def _squares(self) -> np.ndarray[Any, Any]:
        """The squared lengths of the rows of M."""
        return np.asarray(to_host(self.M.row_norms), dtype=np.float64) ** 2

    def projector(self) -> Callable[[Array], Array]:
        return self.project if self._disjoint else super().projector()

    @cached_property
    def _infeasibility(self) -> str | None:
        # Without common variables only a row of zeros can be infeasible.
        if self._disjoint and (self._squares > 0.0).all():
            return None
        return super()._infeasibility


def _read(M: LinearMap) -> Any:
    """Return the entries of an operator as a sparse matrix, by products with its adjoint."""
    rows, units = [], np.zeros(M.shape[0], dtype=M.like.dtype)
    for i in range(M.shape[0]):
        units[i] = 1.0
        rows.append(scipy.sparse.csr_array(np.asarray(M.adjoint(units)).reshape(1, -1)))
        units[i] = 0.0
    # Always sparse, so that points of other libraries are transferred to the host, as for the operator.
    return scipy.sparse.vstack(rows, format="csr").astype(M.like.dtype)


def _places(index: Any, shape: Any) -> tuple[np.ndarray[Any, Any], tuple[int, ...]]:
    """Return indices into the raveled array, and the shape of the array."""
    if not isinstance(index, tuple) and (mask := host_array("index", index)).dtype == bool:
        if shape is not None and checked_shape(shape) != mask.shape:
            raise ValueError(f"index is a mask of shape {mask.shape}, but shape is {shape}")
        places, shape = np.flatnonzero(mask), mask.shape
    else:
        if shape is None:
            raise TypeError("shape is needed, unless index is a mask of the shape of the points")
        shape = checked_shape(shape)
        places = _from_indices(index, shape)
    if not len(places):
        raise ValueError("index must name at least one entry")
    if len(np.unique(places)) < len(places):
        raise ValueError("index must name each entry once")
    return places, shape


def _from_indices(index: Any, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Return indices into the raveled array after checks."""
    parts = [host_array("index", p) for p in (index if isinstance(index, tuple) else (index,))]
    if any(part.dtype.kind not in "iu" for part in parts):
        raise TypeError("index must hold integers, or be a mask of truth values")
    size = int(np.prod(shape))
    limits = shape if isinstance(index, tuple) else (size,)
    if len(parts) != len(limits):
        raise ValueError(f"index must have {len(limits)} parts for shape {shape}, got {len(parts)}")
    for part, limit in zip(parts, limits, strict=True):
        if part.size and (part.min() < 0 or part.max() >= limit):
            raise ValueError(f"index must be in 0 to {limit - 1}, got {part.min()} to {part.max()}")
    return np.asarray(np.ravel_multi_index(tuple(np.broadcast_arrays(*parts)), limits)).ravel()


def _sides(name: str, value: Any, missing: float, rows: int) -> Any:
    """Return one side as an array after checks: ``missing`` for None, a number for all rows."""
    if value is None:
        value = missing
    given = value if type(value) is np.ndarray else host_array(name, value)
    if given.dtype.kind not in "fiu":
        check_array(name, value, allow_complex=False)
    if np.logical_or.reduce(np.isnan(given), axis=None):
        raise ValueError(f"{name} must not contain NaN")
    if given.ndim:
        check_shape(name, given, (rows,))
    side = np.empty(rows)
    side[:] = given
    side.flags.writeable = False
    return side
