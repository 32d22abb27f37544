"""The identity map."""

from __future__ import annotations

from typing import Any

import numpy as np

from lopro.core.arrays import Array
from lopro.maps.base import LinearMap

__all__ = ["Identity"]


class Identity(LinearMap):
    """``D x = x``; products return the vector itself and are not counted.

    Parameters
    ----------
    size : int
        Length of the vectors.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.maps import Identity
    >>> x = np.ones(2)
    >>> Identity(2).forward(x) is x
    True
    """

    is_identity = True

    def __init__(self, size: int) -> None:
        super().__init__(None, (size, size), np.zeros(1), "the identity")

    def forward(self, x: Array) -> Array:
        return x

    def adjoint(self, y: Array) -> Array:
        return y

    @property
    def row_norms(self) -> np.ndarray[Any, Any]:
        return np.ones(self.shape[0])

    column_norms = row_norms
