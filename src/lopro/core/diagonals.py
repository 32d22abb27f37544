"""Operations with diagonals of square matrices that the array API standard does not define."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import device

from lopro.core.arrays import Array, namespace

__all__ = [
    "boxed",
    "diagonal_matrix",
    "diagonal_of",
    "inverse_roots",
    "raise_diagonal",
    "row_inners",
    "scaled",
    "with_diagonal",
    "without_diagonal",
]


def diagonal_of(A: Array) -> Array:
    """Return the diagonal as a vector."""
    return namespace(A).linalg.diagonal(A)


def diagonal_matrix(values: Array) -> Array:
    """Return the matrix with these values on its diagonal."""
    if isinstance(values, np.ndarray):
        return np.diag(values)
    xp = namespace(values)
    return values[:, None] * xp.eye(values.shape[0], dtype=values.dtype, device=device(values))


def raise_diagonal(fresh: Array, values: Any) -> Array:
    """Return the matrix, which may be overwritten, with ``values`` added to its diagonal."""
    if isinstance(fresh, np.ndarray):
        np.fill_diagonal(fresh, fresh.diagonal() + values)
        return fresh
    return fresh + diagonal_matrix(values + 0.0 * diagonal_of(fresh))


def with_diagonal(A: Array, values: Array | float) -> Array:
    """Return a copy with another diagonal: a vector, or a number.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.core.diagonals import with_diagonal
    >>> with_diagonal(np.ones((2, 2)), 3.0)
    array([[3., 1.],
           [1., 3.]])
    """
    if isinstance(A, np.ndarray):
        made = A.copy()
        np.fill_diagonal(made, values)
        return made
    xp = namespace(A)
    places = xp.arange(A.shape[0], device=device(A))
    column = 0.0 * diagonal_of(A) + values
    return xp.where(places[:, None] == places, column[:, None], A)


def row_inners(A: Array, B: Array) -> Array:
    """Return the diagonal of ``A B'``: the inner products of the rows of real matrices.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.core.diagonals import row_inners
    >>> row_inners(np.array([[1.0, 2.0], [3.0, 4.0]]), np.ones((2, 2)))
    array([3., 7.])
    """
    if isinstance(A, np.ndarray):
        return np.einsum("ij,ij->i", A, B)
    return namespace(A, B).sum(A * B, axis=1)


def without_diagonal(fresh: Array) -> Array:
    """Return the matrix, which may be overwritten, with zeros on its diagonal."""
    if isinstance(fresh, np.ndarray):
        np.fill_diagonal(fresh, 0.0)
        return fresh
    return fresh - diagonal_matrix(diagonal_of(fresh))


def boxed(Y: Array, tau: float) -> Array:
    """Return the nearest matrix with entries of at most ``tau`` in modulus and zeros on the diagonal."""
    return without_diagonal(namespace(Y).clip(Y, -tau, tau))


def scaled(A: Array, sizes: Array) -> Array:
    """Return ``D^(-1/2) A D^(-1/2)`` for nonnegative D, with 0 for zeros of D."""
    root = inverse_roots(sizes)
    out = root[:, None] * A
    out *= root[None, :]
    return out


def inverse_roots(sizes: Array) -> Array:
    """Return ``D^(-1/2)`` for nonnegative D, with 0 for zeros of D."""
    xp = namespace(sizes)
    present = sizes > 0.0
    return xp.where(
        present, 1.0 / xp.sqrt(xp.where(present, sizes, 1.0 + 0.0 * sizes)), 0.0 * sizes
    )
