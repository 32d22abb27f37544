"""The order of the columns of a problem with blocks: those of a block side by side."""

from __future__ import annotations

import numpy as np

from lopro.basis_pursuit.block_norm import BlockNorm, Repeated
from lopro.basis_pursuit.columns.pieces import Vector
from lopro.basis_pursuit.problem import SparseForm
from lopro.maps import LinearMap

__all__ = ["BlockLayout"]


class BlockLayout:
    """The columns of each block, and the weights of all columns.

    Parameters
    ----------
    form : SparseForm
        A problem with complex coefficients, groups, or rows of several right-hand sides.
    """

    def __init__(self, form: SparseForm) -> None:
        # With x >= 0, single entries of a row may be zero: then each of them has a column of its own.
        self.base: LinearMap = form.A
        if isinstance(form.A, Repeated) and not form.nonneg:
            self.base = form.A.base
        #: The number of right-hand sides of the base.
        self.copies = form.A.shape[1] // self.base.shape[1]
        #: The block of each column.
        self.labels = np.arange(self.base.shape[1])
        if isinstance(form.objective, BlockNorm):
            self.labels = form.objective.labels[:: self.copies]
        #: All columns, block by block, and the number and the first position of those of each block.
        self.order = np.argsort(self.labels, kind="stable")
        self.sizes = np.bincount(self.labels)
        self.firsts = np.cumsum(self.sizes) - self.sizes
        self.weights = np.asarray(form.weights[:: self.copies], dtype=np.float64)

    def rows_of(self, v: Vector) -> Vector:
        """Return a long vector as the rows of an array."""
        return v.reshape(-1, self.copies)

    def columns_of(self, blocks: Vector) -> Vector:
        """Return the columns of blocks, block by block."""
        parts = [
            self.order[self.firsts[b] : self.firsts[b] + self.sizes[b]] for b in blocks.tolist()
        ]
        return np.concatenate(parts) if parts else np.empty(0, dtype=np.intp)

    def of_blocks(self, everywhere: Vector) -> Vector:
        """Return for each block the value at its first entry, which is that of all its entries."""
        return np.asarray(np.asarray(everywhere)[self.order[self.firsts] * self.copies])
