"""Products and sums of many problems at once, with bounds of their rounding errors.

Arrays have one leading axis for the problems; everything is in double precision, in the library and on the
device of the data. Error bounds hold for any order of summation; they are computed with twice the constant
of the analysis, which covers the rounding of the bounds themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from array_api_compat import device, is_torch_array

from lopro.core.arrays import Array, namespace
from lopro.linalg.rounding import gamma

__all__ = ["Enclosures", "add_to_diagonals", "largest", "lengths", "positive_or_one", "times"]


def times(M: Array, x: Array) -> Array:
    """Return the matrix-vector product of each problem."""
    return (M @ x[..., None])[..., 0]


def add_to_diagonals(fresh: Array, values: Array | float) -> Array:
    """Add values to the diagonals of matrices, which may be overwritten.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.linalg.batched import add_to_diagonals
    >>> add_to_diagonals(np.ones((1, 2, 2)), np.array([[2.0, 3.0]]))
    array([[[3., 1.],
            [1., 4.]]])
    """
    if isinstance(fresh, np.ndarray):
        np.einsum("ijj->ij", fresh)[...] += values
        return fresh
    if is_torch_array(fresh):
        fresh.diagonal(dim1=-2, dim2=-1).add_(values)
        return fresh
    eye = namespace(fresh).eye(fresh.shape[-1], dtype=fresh.dtype, device=device(fresh))
    return fresh + (values * eye if isinstance(values, float) else values[..., None] * eye)


def largest(x: Array, axis: int | tuple[int, ...] = -1) -> Array:
    """Return the maximum of nonnegative numbers along some axes; 0 for empty axes."""
    xp = namespace(x)
    return xp.sum(x, axis=axis) if 0 in x.shape else xp.max(x, axis=axis)


def lengths(x: Array, axis: int | tuple[int, ...] = -1) -> Array:
    """Return Euclidean norms along some axes."""
    return namespace(x).sqrt(namespace(x).sum(x * x, axis=axis))


def positive_or_one(x: Array) -> Array:
    """Replace numbers that are not positive and finite by 1, for use as divisors."""
    xp = namespace(x)
    return xp.where((x > 0.0) & xp.isfinite(x), x, xp.ones_like(x))


@dataclass(frozen=True, eq=False)
class Enclosures:
    """Numbers with bounds of their errors, two arrays of the same shape.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.linalg.batched import Enclosures
    >>> third = Enclosures(np.ones(1) / 3.0, np.full(1, 1e-16))
    >>> both = third + third
    >>> bool((both.lower() < 2.0 / 3.0).all()), bool((both.error > 2e-16).all())
    (True, True)
    >>> found = Enclosures.product(np.array([[[1.0, 2.0]]]), np.array([[3.0, 4.0]]))
    >>> found.value, bool(found.error[0, 0] < 1e-14)
    (array([[11.]]), True)
    """

    value: Array
    error: Array

    @staticmethod
    def exact(x: Array) -> Enclosures:
        """Return numbers without an error."""
        return Enclosures(x, namespace(x).zeros_like(x))

    @staticmethod
    def product(M: Array, x: Array, error: Array | float = 0.0) -> Enclosures:
        """Return ``M x`` for matrices and vectors of each problem; ``x`` is known up to ``error``."""
        n = M.shape[-1]
        uncertain = 2.0 * gamma(n + 2) * abs(x) + (1.0 + gamma(2 * n + 8)) * error
        return Enclosures(times(M, x), times(abs(M), uncertain))

    @staticmethod
    def of(value: Array, moduli: Array, terms: int) -> Enclosures:
        """Return sums of ``terms`` products of exact numbers, given the sums of their absolute values."""
        return Enclosures(value, 2.0 * gamma(terms + 2) * moduli)

    @staticmethod
    def dot(x: Array, y: Array, error: Array | float = 0.0) -> Enclosures:
        """Return the inner products of each problem; ``x`` is known up to ``error``, ``y`` exactly."""
        xp, n, terms = namespace(x), x.shape[-1], x * y
        uncertain = 2.0 * gamma(n + 2) * abs(terms) + (1.0 + gamma(2 * n + 8)) * error * abs(y)
        return Enclosures(xp.sum(terms, axis=-1), xp.sum(uncertain, axis=-1))

    def __add__(self, other: Enclosures) -> Enclosures:
        value = self.value + other.value
        return Enclosures(value, self.error + other.error + gamma(2) * abs(value))

    def __sub__(self, other: Enclosures) -> Enclosures:
        return self + Enclosures(-other.value, other.error)

    def times(self, factor: Array) -> Enclosures:
        """Return the products with exact numbers."""
        value = factor * self.value
        error = abs(factor) * self.error * (1.0 + gamma(4)) + gamma(2) * abs(value)
        return Enclosures(value, error)

    def lower(self) -> Array:
        """Return lower bounds of the exact numbers."""
        return self.value - self.error - gamma(4) * (abs(self.value) + self.error)
