"""The nuclear norm: the sum of the singular values of a matrix."""

from __future__ import annotations

import math
from typing import Any

from lopro.core.arrays import Array
from lopro.core.validation import checked_shape
from lopro.functions import Ball, Constant, Source, atoms
from lopro.objectives.of_atom import NormOfImage

__all__ = ["NuclearNorm"]


class NuclearNorm(NormOfImage):
    """``f(X)`` = the sum of the singular values of ``X``: the convex envelope of the rank on its unit ball.

    Parameters
    ----------
    shape : (int, int)
        Rows and columns of the matrix.
    D : array, scipy.sparse matrix, LinearOperator or LinearMap of shape (rows * columns, d), optional
        With a map points are vectors, and the matrix is ``(D x).reshape(shape)``, a Hankel matrix for
        example; there is no prox then. Real. Not copied.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.objectives import NuclearNorm
    >>> f = NuclearNorm((2, 2))
    >>> X = np.array([[0.0, 3.0], [4.0, 0.0]])
    >>> round(f.value(X), 12)
    7.0
    >>> f.prox(X, 3.0).round(12) + 0.0
    array([[0., 0.],
           [1., 0.]])
    """

    def __init__(self, shape: Any, D: Any = None) -> None:
        self.matrix_shape = checked_shape(shape)
        if len(self.matrix_shape) != 2:
            raise ValueError(f"shape must have 2 numbers, got {self.matrix_shape}")
        rows, columns = self.matrix_shape
        super().__init__(atoms.Nuclear((rows, columns)), D, shape=self.matrix_shape)
        if self.D is not None and self.D.shape[0] != rows * columns:
            raise ValueError(
                f"D must have {rows * columns} rows, as shape says, got {self.D.shape[0]}"
            )

    def __repr__(self) -> str:
        of = "" if self.D is None else f", D of shape {self.D.shape}"
        return f"NuclearNorm({self.matrix_shape}{of})"

    def value(self, x: Array) -> float:
        # `linearize` would compute the singular vectors as well.
        return self.atom.value(self.image(x)[0])

    def lipschitz(self, ball: Ball | None = None) -> Constant:
        root = math.sqrt(min(self.matrix_shape))
        return self._times_map(root, "root of the smaller side")

    def sublevel_radius(self, level: float) -> Constant | None:
        if self.D is not None:
            return None
        return Constant(max(level, 0.0), Source.DERIVED, "the Frobenius norm is below the nuclear")
