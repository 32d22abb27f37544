"""The entries of matrices that sparse rows use; only these are copied from a device."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.arrays import Array as AnyArray
from lopro.core.arrays import from_numpy, namespace, take, to_numpy
from lopro.core.diagonals import diagonal_matrix
from lopro.linalg.dense import Array, Matrix

__all__ = ["UsedEntries", "row_squares"]


def row_squares(A: Matrix) -> Array:
    """Return the sums of squares of the rows of a sparse matrix, without a vector of their length.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> from lopro.newton.sdp.entries import row_squares
    >>> row_squares(scipy.sparse.csr_array(np.array([[3.0, 4.0], [0.0, 1.0]])))
    array([25.,  1.])
    """
    A = scipy.sparse.csr_array(A)
    owners = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    squares = np.bincount(owners, weights=A.data * A.data, minlength=A.shape[0])
    return squares.astype(np.float64)


class UsedEntries:
    """The entries of symmetric matrices, on the host or on a device, that sparse rows use.

    Parameters
    ----------
    A : scipy.sparse array of shape (m, size^2)
        Coefficients of the raveled matrices.
    size : int
        Order of the matrices.
    like : array
        An array of the library and device of the matrices.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> from lopro.newton.sdp.entries import UsedEntries
    >>> row = scipy.sparse.csr_array(np.array([[2.0, 0.0, 0.0, 3.0]]))
    >>> used = UsedEntries(row, 2, np.zeros((2, 2)))
    >>> used.A @ used.of(np.array([[1.0, 7.0], [7.0, 4.0]]))
    array([14.])
    >>> used.matrix(np.array([5.0, 6.0]))
    array([[5., 0.],
           [0., 6.]])
    """

    def __init__(self, A: Matrix, size: int, like: AnyArray) -> None:
        self.size, self._like = size, like
        #: The used places of raveled matrices, in order.
        self.places = np.unique(A.indices)
        #: Coefficients of the entries at these places.
        self.A = self.restricted(A)
        own = np.arange(size) * (size + 1)
        #: Whether the used entries are those of the diagonal.
        self.diagonal = bool(np.array_equal(self.places, own))

    def restricted(self, A: Matrix) -> Matrix:
        """Return the coefficients of the used entries in other rows; the rest is dropped."""
        A = scipy.sparse.csr_array(A)
        at = np.minimum(np.searchsorted(self.places, A.indices), max(0, len(self.places) - 1))
        data = np.where(self.places[at] == A.indices, A.data, 0.0) if len(at) else A.data
        return scipy.sparse.csr_array((data, at, A.indptr), shape=(A.shape[0], len(self.places)))

    def of(self, X: AnyArray) -> Array:
        """Return the entries of a matrix that are used, on the host."""
        raveled = namespace(X).reshape(X, (-1,))
        return to_numpy(take(raveled, self.places))

    def matrix(self, values: Array) -> AnyArray:
        """Return the matrix with these entries at the used places and zeros elsewhere."""
        if isinstance(self._like, np.ndarray):
            made = np.zeros(self.size**2)
            made[self.places] = values
            return made.reshape(self.size, self.size)
        if self.diagonal:
            return diagonal_matrix(from_numpy(values, self._like))
        entries = from_numpy(np.concatenate([[0.0], values]), self._like)
        xp = namespace(entries)
        return xp.reshape(xp.take(entries, self._which, axis=0), (self.size, self.size))

    @cached_property
    def _which(self) -> AnyArray:
        """Gather indices: for each place the number of its entry from one, or 0."""
        which = np.zeros(self.size**2, dtype=np.int64)
        which[self.places] = np.arange(1, len(self.places) + 1)
        return from_numpy(which, self._like)
