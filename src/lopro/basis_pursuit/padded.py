"""Rows of different supports as arrays of one width, on every array library.

A mask of shape (rows, d) marks the columns of each row; ``places`` of shape (rows, n) has their indices in
front, then others, up to the largest number of columns of a row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lopro.core.arrays import Array, is_complex, namespace
from lopro.core.device_cholesky import solve_many_definite

__all__ = [
    "conj",
    "count_true",
    "entries_at",
    "gathered",
    "gram_matrices",
    "largest_in_rows",
    "lengths",
    "real",
    "rows_of",
    "solved_there",
    "spread",
]


def conj(x: Array) -> Array:
    """Return the conjugates; real numbers as they are."""
    return namespace(x).conj(x) if is_complex(x) else x


def real(x: Array) -> Array:
    """Return the real parts."""
    return namespace(x).real(x) if is_complex(x) else x


def lengths(x: Array) -> Array:
    """Return the Euclidean lengths of the rows."""
    moduli = abs(x)
    return namespace(x).sqrt(namespace(x).sum(moduli * moduli, axis=1))


def count_true(mask: Array) -> Array:
    """Return how many entries of each row are true."""
    xp = namespace(mask)
    return xp.sum(xp.astype(mask, xp.int64), axis=1)


def rows_of(x: Array, some: np.ndarray[Any, Any]) -> Array:
    """Return some rows; the indices are on the host."""
    if isinstance(x, np.ndarray):
        return x[some]
    xp = namespace(x)
    return xp.take(x, xp.asarray(np.array(some, dtype=np.int64), device=x.device), axis=0)


def entries_at(v: Array, places: Array) -> Array:
    """Return the entries of a vector at the places of each row."""
    xp = namespace(v)
    return xp.reshape(xp.take(v, xp.reshape(places, (-1,)), axis=0), places.shape)


def gathered(x: Array, places: Array) -> Array:
    """Return the entries of each row at its own places."""
    if isinstance(x, np.ndarray):
        return np.take_along_axis(x, places, axis=1)
    return entries_at(namespace(x).reshape(x, (-1,)), places + _starts(x))


def _starts(x: Array) -> Array:
    """Return where the rows of an array begin in its flat form."""
    xp = namespace(x)
    return xp.arange(x.shape[0], dtype=xp.int64, device=x.device)[:, None] * x.shape[1]


def spread(values: Array, mask: Array, places: Array) -> Array:
    """Return rows of full width with the values at their places where the mask is true, 0 elsewhere."""
    if isinstance(values, np.ndarray):
        found = np.zeros(mask.shape, dtype=values.dtype)
        np.put_along_axis(found, places, values, axis=1)
        return found
    # The number of true entries before one is its position among the places.
    xp = namespace(mask)
    rank = xp.cumulative_sum(xp.astype(mask, xp.int64), axis=1) - 1
    rank = xp.where(mask, rank, xp.zeros_like(rank))
    found = gathered(values, rank)
    return xp.where(mask, found, xp.zeros_like(found))


def gram_matrices(gram: Array, places: Array) -> Array:
    """Return the rows and columns of a Gram matrix at the places of each row."""
    if isinstance(gram, np.ndarray):
        return np.stack([gram.take(row, axis=0).take(row, axis=1) for row in places])
    flat = places[:, :, None] * gram.shape[1] + places[:, None, :]
    return entries_at(namespace(gram).reshape(gram, (-1,)), flat)


def largest_in_rows(x: Array, positive: np.ndarray[Any, Any], room: np.ndarray[Any, Any]) -> Array:
    """Return nonnegative numbers with all but the ``room`` largest of each row set to 0.

    ``positive`` tells how many of each row are not 0; rows of NumPy arrays are changed in place.
    """
    above = np.flatnonzero(positive > room)
    if above.size == 0:
        return x
    if isinstance(x, np.ndarray):
        for i in above:
            x[i, np.argpartition(-x[i], room[i])[room[i] :]] = 0.0
        return x
    xp = namespace(x)
    ordered = xp.sort(x, axis=1, descending=True)
    last = xp.asarray(np.array(room - 1, dtype=np.int64)[:, None], device=x.device)
    least = gathered(ordered, last)
    limited = xp.asarray((positive > room)[:, None], device=x.device)
    return xp.where(limited & (x < least), xp.zeros_like(x), x)


def solved_there(H: Array, right: Array) -> Array:
    """Return the solutions of definite systems of a device; NaN where one is not definite."""
    xp = namespace(right)
    size = xp.max(abs(right), axis=1, keepdims=True)  # single precision has a short range
    size = xp.where(size > 0.0, size, xp.ones_like(size))
    found = solve_many_definite(H, xp.astype(right / size, H.dtype))
    return xp.astype(found, right.dtype) * size
