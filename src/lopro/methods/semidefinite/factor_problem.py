"""Linear costs over positive semidefinite matrices with a given diagonal, posed in a factor V."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.constraints.base import Constraint
from lopro.core.arrays import Array
from lopro.objectives import Objective

__all__ = ["FactorCost", "RowLengths"]


class FactorCost(Objective):
    """``f(V) = <C, V V'>``, linear in ``X = V V'``; C is symmetric, sparse or dense."""

    cancels = True

    def __init__(self, C: Any, rank: int) -> None:
        self.C, self.rank, self.shape = C, rank, (C.shape[0], rank)

    def value(self, x: Array) -> float:
        return float(np.vdot(self.C @ x, x))

    def subgradient(self, x: Array) -> Array:
        return np.asarray(2.0 * (self.C @ x))

    def magnitude(self, x: Array, fun: float) -> float:
        """Return the sum of ``|C_ij <v_i, v_j>|``."""
        if not scipy.sparse.issparse(self.C):
            return float(np.abs(self.C * (x @ x.T)).sum())
        i, j = self.C.nonzero()
        total, step = 0.0, max(1, 10**7 // x.shape[1])
        for first in range(0, len(i), step):
            at = slice(first, first + step)
            products = np.einsum("ek,ek->e", x[i[at]], x[j[at]])
            total += float(np.abs(np.asarray(self.C[i[at], j[at]]).ravel() * products).sum())
        return total


class RowLengths(Constraint):
    """The factors V with ``|v_i|^2 = d_i``, for which ``V V'`` has the diagonal d."""

    def __init__(self, diagonal: Array, rank: int) -> None:
        self.diagonal, self.shape = diagonal, (len(diagonal), rank)

    def value(self, x: Array) -> float:
        return float(np.abs(np.einsum("ij,ij->i", x, x) - self.diagonal).max())

    def subgradient(self, x: Array) -> Array:
        raise NotImplementedError

    def violation(self, x: Array) -> float:
        off = np.einsum("ij,ij->i", x, x) - self.diagonal
        return float((np.abs(off) / self.diagonal).max())

    def project(self, x: Array) -> Array:
        lengths = np.sqrt(np.einsum("ij,ij->i", x, x))
        return np.asarray(
            x * (np.sqrt(self.diagonal) / np.where(lengths > 0.0, lengths, 1.0))[:, None]
        )
