"""Quadratic and linear functions as smooth parts of a composite problem."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.certificates.programs import enclose_form
from lopro.linalg.dense import Array, Matrix
from lopro.linalg.eigenvalues import least_eigenvalue
from lopro.linalg.products import enclose_forward
from lopro.linalg.rounding import Enclosure, Estimate, dot
from lopro.maps import LinearMap, NumPyMap, SparseMap
from lopro.maps.host import entries_of
from lopro.newton.curvature import ConstantMatrix, Piece
from lopro.newton.smooth import Image, Slope, larger, parabola

__all__ = ["QuadraticForm"]


class QuadraticForm:
    """``1/2 x'Px + q'x + constant`` with a positive semidefinite ``P``, or None for a linear function.

    Parameters
    ----------
    P : array, scipy.sparse array, map for host vectors, or None
        The matrix; a map must be symmetric, of other matrices the symmetric part is used.
    q : array
        The linear term.
    constant : float
        The value at zero.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.newton.quadratic_form import QuadraticForm
    >>> QuadraticForm(np.diag([2.0, 4.0]), np.array([1.0, 0.0])).value(np.array([1.0, 1.0]))
    4.0
    """

    def __init__(self, P: Any, q: Any, constant: float = 0.0) -> None:
        self.q: Array = np.asarray(q, dtype=np.float64)
        self.size = len(self.q)
        self.constant = float(constant)
        self.map: LinearMap | None = None if P is None else _symmetric(P)
        self.images = 0 if P is None else 1

    @property
    def P(self) -> Matrix | None:
        """The matrix, on the host or on a device; None for a linear function."""
        if self.map is None:
            return None
        return entries_of(self.map)

    @cached_property
    def _form(self) -> tuple[Piece, ...]:
        return () if self.map is None else (ConstantMatrix(self.P),)

    def value(self, x: Array) -> float:
        half = 0.0 if self.map is None else 0.5 * float(x @ self.map.forward(x))
        return half + float(self.q @ x) + self.constant

    def image(self, x: Array) -> Image:
        return () if self.map is None else (np.asarray(self.map.forward(x)),)

    def gradient(self, x: Array, image: Image) -> Array:
        return image[0] + self.q if image else self.q

    def sized_gradient(self, x: Array, image: Image) -> tuple[Array, float]:
        gradient = self.gradient(x, image)
        return gradient, larger(gradient, self.q, *image)

    def curvature(self, x: Array, image: Image) -> tuple[Piece, ...]:
        return self._form

    def along(self, x: Array, image: Image, d: Array, direction: Image) -> Slope:
        curved = float(d @ direction[0]) if direction else 0.0
        return parabola(float(d @ self.gradient(x, image)), curved)

    def enclose(self, x: Array) -> Enclosure:
        if self.map is None:
            return Enclosure(dot(self.q, x) + Estimate(self.constant), self.q, np.zeros(len(x)))
        Px, error = enclose_forward(self.map, x)
        return enclose_form(Px, error, self.q, self.constant, x)

    def strong_convexity(self) -> float:
        return 0.0 if self.map is None else least_eigenvalue(self.P)


def _symmetric(P: Any) -> LinearMap:
    """Return the symmetric part of a matrix as a map; maps are returned unchanged."""
    if isinstance(P, LinearMap):
        return P
    if scipy.sparse.issparse(P):
        P = scipy.sparse.csr_array(P, dtype=np.float64)
    else:
        P = np.asarray(P, dtype=np.float64)
    if abs(P - P.T).max() != 0.0:
        P = 0.5 * (P + P.T)
    return SparseMap(P, "P") if scipy.sparse.issparse(P) else NumPyMap(P, "P")
