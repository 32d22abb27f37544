"""A linear map on several vectors at once, as one map on a long vector: what joint sparsity works on."""

from __future__ import annotations

from typing import Any

import numpy as np

from lopro.core.arrays import Array
from lopro.maps import LinearMap
from lopro.maps.algebra import dense

__all__ = ["Repeated"]


class Repeated(LinearMap):
    """``X -> A X`` on the entries of ``X``, row by row, as a vector.

    Parameters
    ----------
    base : LinearMap
        The map of one vector.
    copies : int
        The number of columns of ``X``.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.basis_pursuit.repeated import Repeated
    >>> from lopro.maps import linear_map
    >>> A = Repeated(linear_map(np.array([[1.0, 2.0]])), 2)
    >>> A.shape, A.forward(np.array([1.0, 0.0, 10.0, 1.0]))
    ((2, 4), array([21.,  2.]))
    """

    def __init__(self, base: LinearMap, copies: int) -> None:
        rows, columns = base.shape
        super().__init__(
            base.source, (rows * copies, columns * copies), base.like, base.name, base.nbytes
        )
        self.base, self.copies = base, copies

    def _as_block(self, v: Array) -> Array:
        return v.reshape(-1, self.copies)

    # Products are those of the base, on its ledger: as many as there are columns, in one pass.

    def forward(self, x: Array) -> Array:
        return self.base.forward(self._as_block(x)).reshape(-1)

    def adjoint(self, y: Array) -> Array:
        return self.base.adjoint(self._as_block(y)).reshape(-1)

    @property
    def has_columns(self) -> bool:
        return self.base.has_columns

    @property
    def in_memory(self) -> bool:
        return self.base.in_memory

    def read_columns(self, indices: Any) -> Any:
        """Return the columns of single entries: those of the base, in the rows of their right-hand side."""
        which, side = np.divmod(indices, self.copies)
        block = dense(self.base.columns(which))
        spread = np.zeros((self.base.shape[0], self.copies, len(which)), dtype=block.dtype)
        spread[:, side, np.arange(len(which))] = block
        return spread.reshape(self.shape[0], len(which))

    def adjoint_exactly(self, y: Array) -> Array:
        return self.base.adjoint_exactly(self._as_block(y)).reshape(-1)
