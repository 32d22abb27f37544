"""Names shared by the kernels: arrays, images of points under linear maps, the unit of rounding."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lopro.linalg.types import EPS, Array, Matrix, norm

__all__ = ["EPS", "Array", "Image", "Matrix", "Pattern", "norm", "shifted", "weighted_gram"]

#: 0/1 patterns.
Pattern: TypeAlias = NDArray[np.bool_]
#: Linear images of a point, kept beside it so that moving along a line costs no products.
Image: TypeAlias = tuple[Array, ...]

#: Rows that are weighted at a time: 1 MB of doubles stays in the cache between scaling and product.
_CHUNK = 1 << 17


def shifted(image: Image, t: float, direction: Image) -> Image:
    """Return the image of ``x + t d`` from those of ``x`` and ``d``."""
    return tuple(y + t * e for y, e in zip(image, direction, strict=True))


def weighted_gram(B: Array, h: Array) -> Array:
    """Return ``B' diag(h) B`` for dense ``B`` and ``h >= 0``, rows in chunks that stay in the cache.

    Scaling by the square root keeps the product symmetric, which halves the work.
    """
    root = np.sqrt(h)[:, None]
    step = max(1, _CHUNK // max(1, B.shape[1]))
    if len(B) <= step:
        scaled = root * B
        return np.asarray(scaled.T @ scaled)
    total = np.zeros((B.shape[1], B.shape[1]))
    for start in range(0, len(B), step):
        scaled = root[start : start + step] * B[start : start + step]
        total += scaled.T @ scaled
    return total
