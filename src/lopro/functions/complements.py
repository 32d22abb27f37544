"""``I - J`` for ``J`` in the generalised Jacobian of a prox, as structured matrices.

They are diagonal, diagonal plus low rank, or block diagonal; symmetric, with eigenvalues between 0 and 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from lopro.core.arrays import Array

__all__ = ["BlockDiagonal", "Complement", "DiagonalComplement", "DiagonalPlusRows"]


@dataclass(frozen=True)
class DiagonalComplement:
    """``I - J = diag(values)`` with values between 0 and 1."""

    values: Array

    def apply(self, s: Array) -> Array:
        """Return ``(I - J) s``."""
        return self.values * s


@dataclass(frozen=True)
class DiagonalPlusRows:
    """``I - J = diag(values) + sum of weights_k rows_k rows_k'``; weights may have any sign."""

    values: Array
    rows: Array
    weights: Array

    def apply(self, s: Array) -> Array:
        """Return ``(I - J) s``."""
        return self.values * s + (self.weights * (self.rows @ s)) @ self.rows


@dataclass(frozen=True)
class BlockDiagonal:
    """``I - J`` block diagonal: ``blocks[k]`` acts on the k-th group of consecutive entries."""

    blocks: Array

    def apply(self, s: Array) -> Array:
        """Return ``(I - J) s``."""
        groups, size, _ = self.blocks.shape
        return np.asarray((self.blocks @ s.reshape(groups, size, 1)).ravel())


Complement: TypeAlias = DiagonalComplement | DiagonalPlusRows | BlockDiagonal
