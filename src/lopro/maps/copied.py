"""`CopiedMap`: products with a copy of the entries of an operator, which are not counted."""

from __future__ import annotations

from typing import Any

from lopro.core.arrays import Array
from lopro.core.counting import Counts, counting
from lopro.maps.arrays import NumPyMap

__all__ = ["CopiedMap"]


class CopiedMap(NumPyMap):
    """A copy of the entries of an operator; its products do not use the operator and are not counted.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.core.counting import Counts, counting
    >>> from lopro.maps.copied import CopiedMap
    >>> with counting(Counts()) as counts:
    ...     CopiedMap(np.array([[1.0, 2.0]])).forward(np.ones(2))
    array([3.])
    >>> counts.matvecs
    0
    """

    def forward(self, x: Array) -> Array:
        return self.multiply(x)

    def adjoint(self, y: Array) -> Array:
        return self.multiply_adjoint(y)

    def adjoint_exactly(self, y: Array) -> Array:
        return self.multiply_adjoint_exactly(y)

    def columns(self, indices: Any) -> Any:
        with counting(Counts()):
            return super().columns(indices)
