"""Rows with different supports as arrays of one width, on every array library, and their matrix products.

A mask of shape (rows, d) marks the columns of each row; ``places`` of shape (rows, n) has their indices
first, then others, up to the largest number of columns of a row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lopro.basis_pursuit.columns.pieces import cholesky_routines
from lopro.core.arrays import Array, asarray_like, is_complex, namespace
from lopro.core.device_cholesky import solve_many_definite

__all__ = [
    "HostColumns",
    "WholeGram",
    "conj",
    "count_true",
    "entries_at",
    "gathered",
    "largest_in_rows",
    "lengths",
    "real",
    "real_systems",
    "solve_each",
    "spread",
]


class HostColumns:
    """The columns of a NumPy matrix, each contiguous in memory, also in single precision.

    For each search the Gram matrix of its last columns is stored, and extended by new ones. That takes less
    time than computing and indexing that of all columns (`benchmarks.bpdn.many`, processor time each): 100
    right-hand sides of 1000 x 5000 take 12 instead of 14 ms, 256 of 2000 x 10000 take 16 instead of 23.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.basis_pursuit.batches.padded_rows import HostColumns
    >>> columns = HostColumns(np.array([[1.0, 2.0, 3.0]]))
    >>> columns.squares, columns.gram_matrices(np.array([[2, 0]]), owners=np.array([7]))
    (array([1., 4., 9.]), array([[[9., 3.],
            [3., 1.]]], dtype=float32))
    >>> columns.images(np.array([[0.0, 1.0, 2.0]]))
    array([[8.]])
    """

    def __init__(self, matrix: Any) -> None:
        self._columns = np.ascontiguousarray(matrix.T)
        self._single = self._columns.astype(np.complex64 if is_complex(matrix) else np.float32)
        #: The squared length of each column.
        self.squares = np.einsum("ij,ij->i", self._columns.conj(), self._columns).real
        self._last: dict[int, tuple[Any, Any]] = {}  # columns and their products, for each search
        self._position = np.full(len(self._columns), -1)

    def gram_matrices(self, places: Any, owners: Any) -> Any:
        """Return the Gram matrix of the columns at the places of each row, in single precision."""
        found = np.empty((*places.shape, places.shape[1]), dtype=self._single.dtype)
        for row, owner, gram in zip(places, owners.tolist(), found, strict=True):
            self._fill(gram, row, *self._last.get(owner, (row[:0], gram)))
            self._last[owner] = row, gram.copy()
        return found

    def _fill(self, gram: Any, row: Any, known: Any, products: Any) -> None:
        """Fill in the products of the columns of a row, computing those that are not known."""
        self._position[known] = np.arange(len(known))
        at = self._position[row]
        self._position[known] = -1
        some, new = self._single.take(row, axis=0), np.flatnonzero(at < 0)
        if 2 * len(new) > len(row):  # matmul with the transpose computes half of the product
            np.matmul(conj(some), some.T, out=gram)
            return
        gram[:] = products.take(at, axis=0).take(at, axis=1)  # arbitrary numbers for new columns
        border = conj(some.take(new, axis=0)) @ some.T
        gram[new] = border
        gram[:, new] = conj(border).T

    def images(self, z: Any) -> Any:
        """Return ``A z`` for each row, from the columns of its support."""
        found = np.empty((len(z), self._columns.shape[1]), dtype=self._columns.dtype)
        for row, image in zip(z, found, strict=True):
            support = np.flatnonzero(row)
            np.matmul(row[support], self._columns.take(support, axis=0), out=image)
        return found


class WholeGram:
    """The Gram matrix of all columns in single precision, on a device, where indexing it is fast."""

    def __init__(self, matrix: Array) -> None:
        xp = namespace(matrix)
        rough = xp.astype(matrix, xp.complex64 if is_complex(matrix) else xp.float32)
        self._matrix, self._gram = matrix, conj(rough).T @ rough
        #: The squared length of each column.
        self.squares = xp.astype(real(xp.linalg.diagonal(self._gram)), xp.float64)

    def gram_matrices(self, places: Array, owners: Any) -> Array:
        """Return its rows and columns at the places of each row."""
        gram = self._gram
        flat = places[:, :, None] * gram.shape[1] + places[:, None, :]
        return entries_at(namespace(gram).reshape(gram, (-1,)), flat)

    def images(self, z: Array) -> Array:
        """Return ``A z`` for each row."""
        return z @ self._matrix.T


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
    """Return the number of true entries of each row."""
    xp = namespace(mask)
    return xp.sum(xp.astype(mask, xp.int64), axis=1)


def entries_at(v: Array, places: Array) -> Array:
    """Return the entries of a vector at the places of each row."""
    xp = namespace(v)
    return xp.reshape(xp.take(v, xp.reshape(places, (-1,)), axis=0), places.shape)


def gathered(x: Array, places: Array) -> Array:
    """Return the entries of each row at its own places."""
    if isinstance(x, np.ndarray):
        return np.take_along_axis(x, places, axis=1)
    xp = namespace(x)
    starts = xp.arange(x.shape[0], dtype=xp.int64, device=x.device)[:, None] * x.shape[1]
    return entries_at(xp.reshape(x, (-1,)), places + starts)


def spread(values: Array, mask: Array, places: Array) -> Array:
    """Return rows of full width: the values at their places where the mask is true, 0 elsewhere."""
    if isinstance(values, np.ndarray):
        found = np.zeros(mask.shape, dtype=values.dtype)
        np.put_along_axis(found, places, values, axis=1)
        return found
    # The number of true entries before an entry is its position among the places.
    xp = namespace(mask)
    rank = xp.cumulative_sum(xp.astype(mask, xp.int64), axis=1) - 1
    rank = xp.where(mask, rank, xp.zeros_like(rank))
    found = gathered(values, rank)
    return xp.where(mask, found, xp.zeros_like(found))


def largest_in_rows(x: Array, positive: np.ndarray[Any, Any], room: np.ndarray[Any, Any]) -> Array:
    """Return nonnegative numbers with all but the ``room`` largest of each row set to 0.

    ``positive`` is the number of positive entries of each row; NumPy arrays are changed in place.
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


def real_systems(
    G: Array, there: Array, u: Array, turning: Array, forces: Array
) -> tuple[Array, Array]:
    """Return real matrices, padded with ones on the diagonal, and correlations, along and across ``u``.

    Parameters
    ----------
    G : array of shape (rows, n, n)
        Gram matrices, which are overwritten.
    there : array of shape (rows, n)
        Whether there is a column; ``u`` is 0 where there is none.
    u, forces : array
        Directions of the coefficients, and correlations in units of them.
    turning : array
        The curvature across the directions.
    """
    xp = namespace(turning)
    u = xp.astype(u, G.dtype)
    G *= conj(u)[:, :, None]
    G *= u[:, None, :]
    filled = xp.astype(~there, turning.dtype)
    H, correlations, added = real(G), real(forces), filled
    if is_complex(G):
        imag = xp.imag(G)
        upper, lower = xp.concat([H, -imag], axis=2), xp.concat([imag, H], axis=2)
        H = xp.concat([upper, lower], axis=1)
        correlations = xp.concat([correlations, xp.imag(forces)], axis=1)
        added = xp.concat([filled, turning + filled], axis=1)
    eye = asarray_like(np.eye(added.shape[1], dtype=np.float32), H)
    return H + xp.astype(added, H.dtype)[:, :, None] * eye, correlations


def solve_each(H: Array, right: Array) -> Array:
    """Return the solutions of systems, in the precision of the matrices; NaN where one is not definite."""
    xp = namespace(right)
    size = xp.max(abs(right), axis=1, keepdims=True)  # single precision has a short range
    size = xp.where(size > 0.0, size, xp.ones_like(size))
    scaled = xp.astype(right / size, H.dtype)
    if not isinstance(H, np.ndarray):
        return xp.astype(solve_many_definite(H, scaled), right.dtype) * size
    *_, posv = cholesky_routines(H.dtype.char)
    solved = np.full(right.shape, np.nan)
    for i, (matrix, column) in enumerate(zip(H, scaled, strict=True)):
        # The transpose of a symmetric matrix is in the order of LAPACK.
        _, x, info = posv(matrix.T, column, overwrite_a=True)
        if info == 0:
            solved[i] = x
    return solved * size
