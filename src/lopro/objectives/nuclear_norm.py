"""The nuclear norm: the sum of the singular values of a matrix."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

from lopro.core.arrays import Array
from lopro.core.validation import checked_shape
from lopro.functions import Ball, Constant, Source, atoms
from lopro.functions.term import Term
from lopro.objectives.of_image import OfImage

__all__ = ["NuclearNorm"]


class NuclearNorm(OfImage):
    """``f(X)`` = the sum of the singular values of ``X``: the convex function nearest to the rank.

    Parameters
    ----------
    shape : (int, int)
        Rows and columns of the matrix.
    D : array, scipy.sparse matrix, LinearOperator or LinearMap of shape (rows * columns, d), optional
        Points are vectors then, and the matrix is ``(D x).reshape(shape)``: that of a Hankel matrix, say.
        Real. Not copied. With a map there is no prox.

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
        super().__init__(D, self.matrix_shape)
        size = math.prod(self.matrix_shape)
        if self.D is not None and self.D.shape[0] != size:
            raise ValueError(f"D must have {size} rows, as shape says, got {self.D.shape[0]}")
        self.proximable = self.D is None

    def __repr__(self) -> str:
        of = "" if self.D is None else f", D of shape {self.D.shape}"
        return f"NuclearNorm({self.matrix_shape}{of})"

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        return (Term(self._atom, self.D),)

    @cached_property
    def _atom(self) -> atoms.Nuclear:
        rows, columns = self.matrix_shape
        return atoms.Nuclear((rows, columns))

    def value(self, x: Array) -> float:
        return self._atom.value(self.image(x)[0])

    def prox(self, x: Array, step: float) -> Array:
        return self._atom.prox(x, step)

    def minorant(self, x: Array, target: Array) -> tuple[float, Array]:
        if self.D is not None:
            return super().minorant(x, target)
        # Every slope with singular values up to 1 touches f at 0: the nearest to the target is a clip.
        return 0.0, self._atom.into_domain(target)

    def scale_into_domain(self, v: Array) -> float | None:
        if self.D is not None:
            return None
        largest = self._atom.gauge(v)
        return 1.0 if largest <= 1.0 else 1.0 / largest

    def lipschitz(self, ball: Ball | None = None) -> Constant:
        root = math.sqrt(min(self.matrix_shape))
        return self._times_map(root, Source.DERIVED, "root of the smaller side")

    def infimum(self) -> Constant:
        return Constant(0.0, Source.DERIVED, "a norm")

    def sublevel_radius(self, level: float) -> Constant | None:
        if self.D is not None:
            return None
        return Constant(max(level, 0.0), Source.DERIVED, "the Frobenius norm is below the nuclear")
