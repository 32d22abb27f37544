"""Names shared by the kernels: arrays, images of points under linear maps, the unit of rounding."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lopro.linalg.dense import EPS, Array, Matrix, norm

__all__ = ["EPS", "Array", "Image", "Matrix", "Pattern", "norm", "shifted"]

#: 0/1 patterns.
Pattern: TypeAlias = NDArray[np.bool_]
#: Linear images of a point, kept beside it so that moving along a line costs no products.
Image: TypeAlias = tuple[Array, ...]


def shifted(image: Image, t: float, direction: Image) -> Image:
    """Return the image of ``x + t d`` from those of ``x`` and ``d``."""
    return tuple(y + t * e for y, e in zip(image, direction, strict=True))
