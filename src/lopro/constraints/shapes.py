"""Points of any shape, for sets whose maps act on vectors."""

from __future__ import annotations

import math
from typing import Any

from lopro.constraints.base import Constraint
from lopro.core.arrays import Array, namespace
from lopro.core.validation import check_shape, checked_shape
from lopro.maps import LinearMap

__all__ = ["ShapedPoints", "checked_point_shape"]


class ShapedPoints(Constraint):
    """The base of sets with a map that acts on ``x.ravel()``."""

    shape: tuple[int, ...]

    def _vector(self, x: Array) -> Array:
        """Return a point as the vector that the map acts on."""
        if len(self.shape) == 1:
            return x
        check_shape("x", x, self.shape)
        return namespace(x).reshape(x, (-1,))

    def _point(self, v: Array) -> Array:
        """Return a vector in the shape of a point."""
        return v if len(self.shape) == 1 else namespace(v).reshape(v, self.shape)


def checked_point_shape(shape: Any, C: LinearMap) -> tuple[int, ...]:
    """Return the shape of the points that the rows of ``C`` act on; by default that of vectors."""
    if shape is None:
        return (C.shape[1],)
    found = checked_shape(shape)
    if math.prod(found) != C.shape[1]:
        raise ValueError(
            f"shape must have {C.shape[1]} entries, as the rows of {C.name} have, got {found}"
        )
    return found
