"""A nearest correlation matrix as a semidefinite problem, from arguments that are checked.

With weights w of the variables and a least eigenvalue e, ``Z = W^(1/2) (X - e I) W^(1/2)`` is any positive
semidefinite matrix with the diagonal ``w (1 - e)`` and the fixed entries scaled alike: the nearest one to
``T = W^(1/2) (G - e I) W^(1/2)`` is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.arrays import to_numpy
from lopro.core.validation import check_array, check_number, check_shape, host_array
from lopro.linalg.dense import Array, Pattern
from lopro.newton.sdp.nearest import NearestProblem

__all__ = ["CorrelationTarget"]


@dataclass(frozen=True)
class CorrelationTarget:
    """The matrix, the weights, the entries to keep and the least eigenvalue asked for.

    Attributes
    ----------
    G : array of shape (n, n)
        Exactly symmetric, in double precision.
    w : array of shape (n,)
        One positive weight for each variable.
    kept : array of bool of shape (n, n)
        Which entries of ``G`` are kept; symmetric.
    least : float
        The least eigenvalue, at least 0 and below 1.
    dtype : numpy.dtype
        Of the answer: its rounding is paid for.
    """

    G: Array
    w: Array
    kept: Pattern
    least: float
    dtype: Any

    @staticmethod
    def of(G: Any, weights: Any = None, fixed: Any = None, least: Any = 0.0) -> CorrelationTarget:
        """Check the arguments; every message names the argument and what is wrong with it."""
        matrix, dtype = _symmetric(G)
        n = len(matrix)
        least = check_number("min_eigenvalue", least, minimum=0.0)
        if least >= 1.0:
            raise ValueError(f"min_eigenvalue must be below 1, the mean eigenvalue, got {least:g}")
        w = np.ones(n) if weights is None else _real("weights", weights, 1)[0]
        check_shape("weights", w, (n,))
        if not w.min() > 0.0:
            raise ValueError(f"weights must be positive, got {w.min():g}")
        target = CorrelationTarget(matrix, w, _pattern(fixed, n), least, dtype)
        target._check_kept()
        return target

    def rounded(self, X: Array) -> Array:
        """Return ``X`` as it will be handed out, in double precision: single rounds it."""
        return X if self.dtype == np.float64 else X.astype(self.dtype).astype(np.float64)

    def _check_kept(self) -> None:
        """Refuse fixed entries that no correlation matrix has: two rows and columns tell."""
        size = np.where(self.kept, np.abs(self.G), 0.0)
        np.fill_diagonal(size, 0.0)
        i, j = np.unravel_index(int(size.argmax()), size.shape)
        if size[i, j] > 1.0 - self.least:
            raise ValueError(
                f"fixed keeps G[{i}, {j}] = {self.G[i, j]:g}, which exceeds "
                f"1 - min_eigenvalue = {1.0 - self.least:g} in size"
            )

    def nearest_problem(self, margin: float = 0.0) -> tuple[NearestProblem, Array]:
        """Return the problem of Z and T, with the least eigenvalue raised by a margin."""
        n, least, roots = len(self.G), self.least + margin, np.sqrt(self.w)
        i, j = np.nonzero(np.tril(self.kept, -1))
        m, k = n + len(i), n + np.arange(len(i))
        T = self.G * (roots[:, None] * roots)
        T.flat[:: n + 1] -= least * self.w
        owners = np.concatenate([np.arange(n), k, k])
        places = np.concatenate([np.arange(n) * (n + 1), i * n + j, j * n + i])
        values = np.concatenate([np.ones(n), np.full(2 * len(i), 0.5)])
        A = scipy.sparse.csr_array((values, (owners, places)), (m, n * n))
        b = np.concatenate([self.w * (1.0 - least), T[i, j]])
        return NearestProblem(n, A, b, b), T

    def correlation(self, Z: Array) -> Array:
        """Return the matrix X of ``Z``, with the diagonal and the fixed entries set exactly."""
        roots = np.sqrt(self.w)
        X = Z / (roots[:, None] * roots)
        X = np.where(self.kept, self.G, 0.5 * (X + X.T))
        X.flat[:: len(X) + 1] = 1.0
        return X


def _real(name: str, value: Any, ndim: int) -> tuple[Array, Any]:
    """Return a copy in double precision, and the type it came with."""
    array = check_array(name, value, ndim=ndim, allow_complex=False)
    host = np.array(to_numpy(array))
    return host.astype(np.float64), host.dtype


def _symmetric(G: Any) -> tuple[Array, Any]:
    matrix, dtype = _real("G", G, 2)
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"G must be square, got shape {matrix.shape}")
    unequal = np.abs(matrix - matrix.T)
    i, j = np.unravel_index(int(unequal.argmax()), matrix.shape)
    if unequal[i, j] > 64.0 * np.finfo(dtype).eps * np.abs(matrix).max():
        raise ValueError(
            f"G must be symmetric, got G[{i}, {j}] = {matrix[i, j]:g} "
            f"and G[{j}, {i}] = {matrix[j, i]:g}; (G + G.T) / 2 is"
        )
    return 0.5 * (matrix + matrix.T), dtype


def _pattern(fixed: Any, n: int) -> Pattern:
    if fixed is None:
        return np.zeros((n, n), dtype=np.bool_)
    kept = np.array(host_array("fixed", fixed))
    if kept.dtype != np.bool_:
        raise TypeError(
            f"fixed must be an array of bool, True for the entries to keep, got dtype {kept.dtype}"
        )
    check_shape("fixed", kept, (n, n))
    if not np.array_equal(kept, kept.T):
        i, j = np.argwhere(kept != kept.T)[0]
        raise ValueError(f"fixed must be symmetric, got fixed[{i}, {j}] = {kept[i, j]}")
    return kept
