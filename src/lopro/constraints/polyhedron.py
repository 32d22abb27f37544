"""Polyhedra ``{x : C x <= b}``, and boxes, whose constants and projections are formulas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.constraints.base import Constraint, ValidInequality
from lopro.constraints.row_forms import RowForm
from lopro.constraints.rows import LinearRows
from lopro.constraints.shapes import checked_point_shape
from lopro.core.arrays import Array, is_array, is_complex, namespace
from lopro.core.arrays import to_numpy as to_host
from lopro.core.validation import check_array, check_shape, host_array
from lopro.functions import Constant, Source
from lopro.maps import linear_map

__all__ = ["Box", "Polyhedron"]


class Polyhedron(LinearRows):
    r"""The set ``{x : C x <= b}``.

    Parameters
    ----------
    C : array, scipy.sparse matrix or LinearMap
        One inequality per row. Rows of zeros and repeated rows are allowed; `Affine` takes equations, and
        rows with two sides.
    b : array
        The right-hand side.
    form : MaxForm or NormForm
        Which function ``c`` describes the set.
    shape : tuple of int, optional
        Shape of the points, where they are not vectors: ``C`` acts on ``x.ravel()``.

    Notes
    -----
    The regularity constant is Hoffman's, computed by enumeration of row sets: exact for small systems,
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

    def __init__(self, C: Any, b: Any, form: RowForm | None = None, shape: Any = None) -> None:
        M = linear_map(C, "C")
        if not M.explicit:
            raise TypeError(
                "C must be an array or a sparse matrix, because its rows are read; got an operator"
            )
        if is_complex(M.like):
            raise TypeError(f"C must be real, got dtype {M.like.dtype}")
        given = check_array("b", b, ndim=1, allow_complex=False)
        check_shape("b", given, (M.shape[0],))
        upper = np.array(to_host(given), dtype=np.float64)
        lower = np.full(len(upper), -np.inf)
        points = (M.shape[1],) if shape is None else checked_point_shape(shape, M)
        super().__init__(M, lower, upper, form, points, M.like)

    @staticmethod
    def box(lower: Any, upper: Any, form: RowForm | None = None) -> Box:
        """Return ``{x : lower <= x <= upper}``; infinite entries mean no bound.

        Examples
        --------
        >>> import numpy as np, lopro.constraints as lc
        >>> box = lc.Polyhedron.box([0.0, -np.inf], [1.0, 2.0])
        >>> box.project(np.array([3.0, -7.0]))
        array([ 1., -7.])
        """
        return Box(lower, upper, form)


class Box(Polyhedron):
    """The set ``{x : lower <= x <= upper}``, made by `Polyhedron.box`.

    Parameters
    ----------
    lower, upper : array
        Of the shape of the points, with ``lower <= upper``; infinite entries mean no bound.
    form : MaxForm or NormForm
        Which function ``c`` describes the set.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.constraints.polyhedron import Box
    >>> Box([-1.0, -1.0], [1.0, 1.0]).regularity().value.__round__(6)
    0.707107
    """

    def __init__(self, lower: Any, upper: Any, form: RowForm | None = None) -> None:
        low, high = _bound("lower", lower), _bound("upper", upper)
        check_shape("upper", high, tuple(low.shape))
        like = _floating(next((a for a in (lower, upper) if is_array(a)), low))
        LinearRows.__init__(self, None, low, high, form, low.shape, like)

    @property
    def is_orthant(self) -> bool:
        """Whether the set is ``x >= 0``."""
        return bool((self.lower == 0.0).all() and np.isposinf(self.upper).all())

    def rows_on_matrices(self, n: int) -> tuple[Any, Any, Any]:
        # Entries (i, j) and (j, i) are the same; where their bounds differ, both rows are kept.
        low, high = self.lower, self.upper
        same = np.array_equal(low, low.T) and np.array_equal(high, high.T)
        bounded = np.isfinite(low) | np.isfinite(high)
        i, j = np.nonzero(np.tril(bounded) if same else bounded)
        halves = np.full(2 * len(i), 0.5)
        places = np.tile(np.arange(len(i)), 2), np.concatenate([i * n + j, j * n + i])
        A = scipy.sparse.csr_array((halves, places), (len(i), n * n))
        return A, low[i, j], high[i, j]

    def regularity(self) -> Constant | None:
        bounded = np.count_nonzero(np.isfinite(self.lower) | np.isfinite(self.upper))
        rho = self.form.of_orthonormal_rows(int(bounded))
        return Constant(rho, Source.DERIVED, "orthogonal rows")

    def radius(self) -> Constant | None:
        corner = np.maximum(np.abs(self.lower), np.abs(self.upper))
        if not np.isfinite(corner).all():
            return None
        value = float(np.linalg.norm(corner)) * (1.0 + 1e-15)
        return Constant(value, Source.DERIVED, "the farthest corner")

    def infeasibility(self) -> str | None:
        return None

    def project(self, x: Array) -> Array:
        return self.project_image(self.image(x))[0]

    @property
    def projects_in_closed_form(self) -> bool:
        return True

    def projector(self) -> Callable[[Array], Array]:
        return self.project

    def linear_minimizer(self, direction: Array) -> Array:
        low, high = self.atom.bounds_beside(direction)
        return namespace(direction).where(direction > 0.0, low, high)

    def support_inequality(self, direction: Array) -> ValidInequality:
        # A corner is exact, in contrast to the solution of a linear program.
        return Constraint.support_inequality(self, direction)


def _bound(name: str, value: Any) -> np.ndarray[Any, Any]:
    """Return a bound on the host after a check; it may be infinite but not NaN."""
    host = host_array(name, value)
    finite = np.where(np.isinf(host), 0.0, host) if host.dtype.kind in "fiu" else value
    check_array(name, finite, allow_complex=False)
    if host.ndim == 0:
        raise ValueError(f"{name} must have at least 1 dimension, got a number")
    return np.array(host, dtype=np.float64)


def _floating(like: Array) -> Array:
    """Return an array of the library of ``like`` that holds floating-point numbers."""
    xp = namespace(like)
    return like if xp.isdtype(like.dtype, "real floating") else xp.astype(like, xp.float64)
