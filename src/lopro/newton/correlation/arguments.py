"""What users hand in for a nearest correlation matrix, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lopro.core.arrays import to_numpy
from lopro.core.validation import check_array, check_number, check_shape, host_array
from lopro.newton.arrays import Array, Pattern

__all__ = ["Request"]


@dataclass(frozen=True)
class Request:
    """The matrix, the weights, the entries to keep and the least eigenvalue asked for.

    Attributes
    ----------
    G : array
        Exactly symmetric, in double precision; a copy.
    w : array
        One positive weight for each variable.
    kept : array of bool
        Which entries of ``G`` are kept.
    least : float
        The least eigenvalue, at least 0 and below 1.
    dtype : numpy.dtype
        Of the matrix that was given, and of the answer.
    """

    G: Array
    w: Array
    kept: Pattern
    least: float
    dtype: Any

    @staticmethod
    def of(G: Any, weights: Any, fixed: Any, min_eigenvalue: Any) -> Request:
        """Check the arguments; every message names the argument and what is wrong with it."""
        matrix, dtype = _symmetric(G)
        n = len(matrix)
        least = check_number("min_eigenvalue", min_eigenvalue, minimum=0.0)
        if least >= 1.0:
            raise ValueError(f"min_eigenvalue must be below 1, the mean eigenvalue, got {least:g}")
        w = np.ones(n) if weights is None else _real("weights", weights, 1)[0]
        check_shape("weights", w, (n,))
        if not w.min() > 0.0:
            raise ValueError(f"weights must be positive, got {w.min():g}")
        request = Request(matrix, w, _pattern(fixed, n), least, dtype)
        request._check_kept()
        return request

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

    def rounded(self, X: Array) -> Array:
        """Return ``X`` as it will be handed out, in double precision: single rounds it."""
        return X if self.dtype == np.float64 else X.astype(self.dtype).astype(np.float64)


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
