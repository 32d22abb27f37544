"""Least squares: through the normal matrix where there are more rows than columns."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.newton.arrays import Array, Image, Matrix
from lopro.newton.curvature import Constant, Piece, weighted
from lopro.newton.maps import as_map, matrix_of
from lopro.newton.smooth.base import Slope
from lopro.newton.smooth.quadratic import straight

__all__ = ["LeastSquares"]

#: The normal matrix of sparse rows is formed if it has at most so many times their entries.
_FILL = 4


class LeastSquares:
    """``1/2 |Bx - b|^2`` for dense or sparse ``B``, or an operator.

    Parameters
    ----------
    B : array, scipy.sparse array or map, shape (rows, columns)
        The matrix; never copied where it is an array of doubles.
    b : array, shape (rows,)
        The right-hand side.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.newton.smooth import LeastSquares
    >>> LeastSquares(np.array([[1.0], [2.0]]), np.array([1.0, 1.0])).value(np.array([1.0]))
    0.5
    """

    images = 1

    def __init__(self, B: Any, b: Any) -> None:
        self.map = as_map(B)
        #: The matrix; None for an operator.
        self.B: Matrix | None = matrix_of(self.map)
        self.b: Array = np.asarray(b, dtype=np.float64)
        self.size: int = self.map.shape[1]

    @cached_property
    def normal_matrix(self) -> Matrix | None:
        """``B'B`` where products with it are cheaper than products with ``B`` and ``B'``, else None."""
        if self.B is None or self.B.shape[0] < self.size:
            return None
        product = self.B.T @ self.B
        if scipy.sparse.issparse(product) and product.nnz > _FILL * self.B.nnz:
            return None
        return product.tocsr() if scipy.sparse.issparse(product) else product

    @cached_property
    def q(self) -> Array:
        """``-B'b``."""
        return -self.map.adjoint(self.b)

    def value(self, x: Array) -> float:
        residual = self.map.forward(x) - self.b
        return 0.5 * float(residual @ residual)

    def image(self, x: Array) -> Image:
        P = self.normal_matrix
        return (self.map.forward(x) if P is None else np.asarray(P @ x),)

    def gradient(self, x: Array, image: Image) -> Array:
        if self.normal_matrix is None:
            return self.map.adjoint(image[0] - self.b)
        return image[0] + self.q

    def curvature(self, x: Array, image: Image) -> tuple[Piece, ...]:
        P = self.normal_matrix
        return (weighted(self.map, np.ones(len(self.b))) if P is None else Constant(P),)

    def along(self, x: Array, image: Image, d: Array, direction: Image) -> Slope:
        if self.normal_matrix is None:
            e = direction[0]
            return straight(float(e @ (image[0] - self.b)), float(e @ e))
        return straight(float(d @ (image[0] + self.q)), float(d @ direction[0]))
