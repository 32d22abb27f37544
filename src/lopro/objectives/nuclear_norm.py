"""The nuclear norm: the sum of the singular values of a matrix."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from lopro.core.arrays import Array, copy, eps, is_complex, namespace, norm
from lopro.core.counting import count
from lopro.core.deadline import EIGH, current_deadline
from lopro.core.validation import checked_shape
from lopro.functions import Ball, Constant, Source
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

    @property
    def _work(self) -> float:
        """About the operations of singular values."""
        return EIGH * float(math.prod(self.matrix_shape)) * min(self.matrix_shape)

    def value(self, x: Array) -> float:
        (z,) = self.image(x)
        xp = namespace(z)
        return (
            0.0
            if norm(z) == 0.0
            else float(xp.sum(xp.linalg.svdvals(xp.reshape(z, self.matrix_shape))))
        )

    def outer(self, z: Array) -> tuple[float, Callable[[], Array]]:
        xp = namespace(z)
        if norm(z) == 0.0:
            return 0.0, lambda: 0.0 * z
        U, s, Vh = singular_values(xp.reshape(z, self.matrix_shape))

        def slope() -> Array:
            # What is rounding among the singular values has no direction of its own.
            kept = s > max(self.matrix_shape) * eps(z) * float(s[0])
            return xp.reshape((U * _beside(xp.astype(kept, s.dtype), U)) @ Vh, tuple(z.shape))

        return float(xp.sum(s)), slope

    def prox(self, x: Array, step: float) -> Array:
        if step == 0.0:
            return copy(x)
        current_deadline().need(self._work)
        xp = namespace(x)
        U, s, Vh = singular_values(x)
        left = xp.where(s > step, s - step, 0.0 * s)
        return (U * _beside(left, U)) @ Vh

    def minorant(self, x: Array, target: Array) -> tuple[float, Array]:
        if self.D is not None:
            return super().minorant(x, target)
        # Every slope with singular values up to 1 touches f at 0: the nearest to the target is a clip.
        xp = namespace(target)
        U, s, Vh = singular_values(target)
        most = 1.0 - 8.0 * max(self.matrix_shape) * eps(target)
        if float(s[0]) <= most:
            return 0.0, 1.0 * target
        return 0.0, (U * _beside(xp.where(s > most, most + 0.0 * s, s), U)) @ Vh

    def scale_into_domain(self, v: Array) -> float | None:
        if self.D is not None:
            return None
        xp = namespace(v)
        largest = float(xp.max(xp.linalg.svdvals(v)))
        # Rounding of the largest singular value must not make the point infeasible.
        largest = largest * (1.0 + 8.0 * max(self.matrix_shape) * eps(v))
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


def singular_values(X: Array) -> tuple[Array, Array, Array]:
    """Return ``U, s, V^H`` with ``X = U diag(s) V^H``; counted as an eigendecomposition."""
    count("eigendecompositions")
    U, s, Vh = namespace(X).linalg.svd(X, full_matrices=False)
    return U, s, Vh


def _beside(s: Array, U: Array) -> Array:
    return namespace(U).astype(s, U.dtype) if is_complex(U) else s
