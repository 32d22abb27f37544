"""Positive semidefinite matrices of bounded or fixed trace: a simplex of eigenvalues."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.constraints.compact import NormDistance, total_row
from lopro.constraints.semidefinite_rows import semidefinite_rows
from lopro.constraints.simplex import excess, excess_slopes
from lopro.core.arrays import Array, asarray_like, norm, to_numpy
from lopro.core.validation import check_count, check_number, check_shape
from lopro.engines.cones import ConeRows
from lopro.functions import Constant, Source
from lopro.functions.simplex import project_simplex
from lopro.projections.psd import (
    adjoint,
    eigenvalues,
    full_spectrum,
    smallest_eigenpairs,
    symmetric_part,
)

__all__ = ["Spectrahedron"]


class Spectrahedron(NormDistance):
    """The symmetric (Hermitian) psd matrices with ``tr X <= trace``, or ``tr X = trace`` with ``equality``.

    Parameters
    ----------
    dim : int
        Number of rows.
    trace : float
        The bound; positive.
    equality : bool
        Whether the trace must equal ``trace`` exactly.

    Notes
    -----
    ``c`` is the distance in the nuclear norm, that is the l1 distance of the eigenvalues from their
    simplex; the Frobenius distance is never longer, so rho = 1. Linear functions attain their minimum at a
    matrix of rank one, from an extreme eigenvector, or at zero. Points must be symmetric up to rounding.

    Examples
    --------
    >>> import numpy as np, lopro.constraints as lc
    >>> c = lc.Spectrahedron(2)
    >>> c.value(np.diag([3.0, -1.0]))
    3.0
    >>> c.project(np.diag([3.0, -1.0])).round(9) + 0.0
    array([[1., 0.],
           [0., 0.]])
    >>> c.linear_minimizer(np.diag([1.0, -1.0]))
    array([[0., 0.],
           [0., 1.]])
    """

    norm_name = "nuclear"
    is_semidefinite = True

    def __init__(self, dim: int, trace: float = 1.0, *, equality: bool = False) -> None:
        self.dim = check_count("dim", dim)
        self.trace = check_number("trace", trace, minimum=0.0, exclusive=True)
        self.equality = bool(equality)
        self.shape = (self.dim, self.dim)

    def __repr__(self) -> str:
        return f"Spectrahedron({self.dim}, {self.trace:g}, equality={self.equality})"

    def _symmetric(self, x: Array) -> Array:
        check_shape("x", x, (self.dim, self.dim))
        asymmetry, size = norm(x - adjoint(x)), norm(x)
        # Rounding is tolerated, in single precision as well.
        if asymmetry > 1e-5 * size:
            raise ValueError(
                f"x must be symmetric (Hermitian), but |x - x^H| / |x| = {asymmetry / size:.3g}"
            )
        return symmetric_part(x)

    def value(self, x: Array) -> float:
        return excess(eigenvalues(self._symmetric(x)), self.trace, self.equality)

    def subgradient(self, x: Array) -> Array:
        values, V = full_spectrum(self._symmetric(x))
        slopes = excess_slopes(values, self.trace, self.equality)
        return symmetric_part((V * asarray_like(to_numpy(slopes), V)) @ adjoint(V))

    @property
    def scale(self) -> float:
        return self.trace

    def rows_on_matrices(self, n: int) -> tuple[Any, Any, Any]:
        row = scipy.sparse.csr_array(np.eye(n).reshape(1, -1))
        return row, np.array([self.trace if self.equality else -np.inf]), np.array([self.trace])

    def conic_form(self, complex_points: bool = False) -> list[ConeRows]:
        diagonal = np.eye(self.dim).reshape(1, -1)
        row = np.hstack([diagonal, 0.0 * diagonal]) if complex_points else diagonal
        cone = semidefinite_rows(self.dim, complex_points)
        return [*cone, total_row(row, self.trace, self.equality)]

    def project(self, x: Array) -> Array:
        X = self._symmetric(x)
        values, V = full_spectrum(X)
        inside = project_simplex(values, self.trace, equality=self.equality)
        if norm(inside - values) == 0.0:
            return X
        return symmetric_part((V * asarray_like(to_numpy(inside), V)) @ adjoint(V))

    def linear_minimizer(self, direction: Array) -> Array:
        values, V = smallest_eigenpairs(self._symmetric(direction), 1)
        if not self.equality and float(values[0]) >= 0.0:
            return 0.0 * direction
        return self.trace * (V @ adjoint(V))

    def radius(self) -> Constant | None:
        return Constant(self.trace * (1.0 + 1e-14), Source.DERIVED, "matrices of rank one")
