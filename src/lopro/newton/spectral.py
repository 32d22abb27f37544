"""The positive part of a symmetric matrix and its generalised Jacobian, on the device of the matrix."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.arrays import Array, namespace, take, to_numpy
from lopro.core.diagonals import row_inners

__all__ = ["Spectrum", "entries_of_sum", "symmetric_pattern"]


class Spectrum:
    """The spectral decomposition of a symmetric matrix ``M``, split by the signs of the eigenvalues.

    With ``M = V diag(l) V'``, the Jacobian of the positive part is ``S -> V (Omega o V'SV) V'``, where
    ``Omega`` is 1 between positive eigenvalues, 0 between the others, and ``l_i / (l_i - l_j)`` across.
    Products use the smaller of the two parts of the spectrum.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.newton.spectral import Spectrum
    >>> spectrum = Spectrum(np.array([[0.0, 2.0], [2.0, 0.0]]))
    >>> spectrum.positive_part()
    array([[1., 1.],
           [1., 1.]])
    """

    def __init__(self, M: Array) -> None:
        xp = namespace(M)
        self.M = M
        self.values, self.vectors = xp.linalg.eigh(M)
        self.size = M.shape[0]
        #: The number of positive eigenvalues, which are the last ones.
        self.rank = int(xp.sum(xp.astype(self.values > 0.0, xp.int64)))

    @property
    def positive(self) -> tuple[Array, Array]:
        """Eigenvalues and vectors of the positive part."""
        first = self.size - self.rank
        return self.values[first:], self.vectors[:, first:]

    @property
    def negative(self) -> tuple[Array, Array]:
        """The absolute values of the other eigenvalues, and their vectors."""
        first = self.size - self.rank
        return -self.values[:first], self.vectors[:, :first]

    def positive_part(self) -> Array:
        """Return the nearest positive semidefinite matrix."""
        if 2 * self.rank <= self.size:
            values, vectors = self.positive
            return (vectors * values) @ vectors.T
        values, vectors = self.negative
        return self.M + (vectors * values) @ vectors.T

    @cached_property
    def quotients(self) -> Array:
        """``Omega`` between nonpositive (rows) and positive eigenvalues (columns)."""
        negative, positive = self.negative[0], self.positive[0]
        return positive / (positive + negative[:, None])

    def half_product(self, scaled: Array) -> tuple[Array, Array, bool]:
        """Return ``U, K, complement`` with ``J[S] = U K + (U K)'``, or ``S`` minus that.

        ``scaled`` is ``S V``. U spans the smaller part of the spectrum, so K has as few rows as possible.
        """
        first = self.size - self.rank
        V2, V1 = self.vectors[:, :first], self.vectors[:, first:]
        if 2 * self.rank <= self.size:
            B = V1.T @ scaled
            K = 0.5 * (B[:, first:] @ V1.T) + (self.quotients.T * B[:, :first]) @ V2.T
            return V1, K, False
        B = V2.T @ scaled
        K = 0.5 * (B[:, :first] @ V2.T) + ((1.0 - self.quotients) * B[:, first:]) @ V1.T
        return V2, K, True

    def diagonal_derivatives(self) -> Array:
        """Return ``J[e_i e_i']_ii`` for all i, the derivative of each diagonal entry by itself."""
        xp, first = namespace(self.M), self.size - self.rank
        squares = self.vectors**2
        P2, P1 = squares[:, :first], squares[:, first:]
        if 2 * self.rank <= self.size:
            across = row_inners(P2 @ self.quotients, P1)
            return xp.sum(P1, axis=1) ** 2 + 2.0 * across
        across = row_inners(P2 @ (1.0 - self.quotients), P1)
        return 1.0 - xp.sum(P2, axis=1) ** 2 - 2.0 * across

    def jacobian(self, S: Array) -> Array:
        """Return ``J[S]`` for a symmetric ``S``."""
        U, K, complement = self.half_product(S @ self.vectors)
        half = U @ K
        return S - half - half.T if complement else half + half.T


def entries_of_sum(U: Array, K: Array, i: Any, j: Any) -> Any:
    """Return the entries (i, j) of ``U K + (U K)'`` as a vector on the host.

    The matrix is formed only if many entries are needed.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.newton.spectral import entries_of_sum
    >>> entries_of_sum(
    ...     np.array([[1.0], [2.0]]), np.array([[3.0, 4.0]]), np.array([1, 1]), np.array([0, 1])
    ... )
    array([10., 16.])
    """
    n = U.shape[0]
    if len(i) == n and np.array_equal(i, j) and np.array_equal(i, np.arange(n)):
        return to_numpy(2.0 * row_inners(U, K.T))
    if 8 * len(i) >= n**2:
        whole = namespace(U).reshape(U @ K, (-1,))
        return to_numpy(take(whole, i * n + j) + take(whole, j * n + i))
    columns = np.ascontiguousarray(K.T) if isinstance(K, np.ndarray) else K.T
    first = row_inners(take(U, i), take(columns, j))
    return to_numpy(first + row_inners(take(U, j), take(columns, i)))


def symmetric_pattern(i: Any, j: Any, n: int) -> tuple[Any, Any]:
    """Return the symmetric sparsity pattern of entries of one triangle, and the entry that each value is.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.newton.spectral import symmetric_pattern
    >>> S, order = symmetric_pattern(np.array([1, 2]), np.array([0, 2]), 3)
    >>> S.data = np.array([5.0, 7.0])[order]
    >>> S.toarray()
    array([[0., 5., 0.],
           [5., 0., 0.],
           [0., 0., 7.]])
    """
    off = i != j
    places = np.concatenate([i, j[off]]), np.concatenate([j, i[off]])
    # Numbered from one, so that none is dropped as a zero.
    numbers = np.arange(1.0, len(i) + 1.0)
    S = scipy.sparse.coo_array((np.concatenate([numbers, numbers[off]]), places), shape=(n, n))
    pattern = S.tocsr()
    return pattern, pattern.data.astype(np.intp) - 1
