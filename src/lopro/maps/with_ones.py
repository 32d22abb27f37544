"""A map with one more column, of ones: the intercept of a regression."""

from __future__ import annotations

from typing import Any

import numpy as np

from lopro.core.arrays import Array, asarray_like, namespace
from lopro.maps.algebra import checked_indices, dense
from lopro.maps.base import LinearMap

__all__ = ["WithOnes"]


class WithOnes(LinearMap):
    """``(A 1)``: products, columns and counts are those of ``A``, which is not changed.

    Parameters
    ----------
    base : LinearMap
        ``A``.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.maps import linear_map
    >>> from lopro.maps.with_ones import WithOnes
    >>> A = WithOnes(linear_map(np.array([[2.0], [3.0]])))
    >>> A.forward(np.array([1.0, 10.0])), A.adjoint(np.ones(2)), A.columns([1])
    (array([12., 13.]), array([5., 2.]), array([[1.],
           [1.]]))
    """

    def __init__(self, base: LinearMap) -> None:
        super().__init__(
            base.source, (base.shape[0], base.shape[1] + 1), base.like, base.name, base.nbytes
        )
        self.base = base

    @property
    def in_memory(self) -> bool:
        return self.base.in_memory

    @property
    def has_columns(self) -> bool:
        return self.base.has_columns

    @property
    def has_rows(self) -> bool:
        return self.base.has_rows

    def passes_for(self, count: int) -> int:
        return self.base.passes_for(count)

    # Counted by the base map, which may have faster products for few nonzeros.

    def forward(self, x: Array) -> Array:
        return self.base.forward(x[:-1]) + x[-1:]

    def adjoint(self, y: Array) -> Array:
        return self._with_sum(self.base.adjoint(y), y)

    def adjoint_exactly(self, y: Array) -> Array:
        return self._with_sum(self.base.adjoint_exactly(y), y)

    def multiply(self, X: Array) -> Array:
        return self.base.multiply(X[:-1]) + X[-1:]

    def multiply_adjoint(self, Y: Array) -> Array:
        return self._with_sum(self.base.multiply_adjoint(Y), Y)

    def _with_sum(self, pulled: Array, y: Array) -> Array:
        xp = namespace(pulled)
        last = asarray_like(namespace(y).sum(y, axis=0), pulled)
        return xp.concat([pulled, xp.reshape(last, (1, *pulled.shape[1:]))])

    def columns(self, indices: Any) -> Any:
        chosen = checked_indices("columns", indices, self.shape[1])
        own = chosen == self.shape[1] - 1
        if not own.any():
            return self.base.columns(chosen)
        block = np.ones((self.shape[0], len(chosen)))
        if not own.all():
            block[:, ~own] = dense(self.base.columns(chosen[~own]))
        return asarray_like(block, self.like)

    @property
    def column_norms(self) -> Array:
        xp, own = namespace(self.like), self.base.column_norms
        return xp.concat([own, asarray_like(np.full(1, np.sqrt(self.shape[0])), own)])

    def rows(self, indices: Any) -> Any:
        block = dense(self.base.rows(indices))
        return asarray_like(np.concatenate([block, np.ones((len(block), 1))], axis=1), self.like)
