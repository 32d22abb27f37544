"""Vector operations of iterations: fused updates, several inner products at once, unit vectors.

They save temporary arrays on the host and device-to-host transfers.
"""

from __future__ import annotations

import math

import numpy as np
from array_api_compat import device

from lopro.core.arrays import Array, inner, is_complex, namespace, norm, to_numpy, zeros

__all__ = ["axpy", "diagonal_direction", "inners", "mix", "norms", "one_entry"]


def axpy(t: float, g: Array, x: Array, *, reuse: bool = False) -> Array:
    """Return ``x + t g``, computed in the memory of ``g`` if ``reuse`` allows it."""
    if not (isinstance(g, np.ndarray) and isinstance(x, np.ndarray) and g.dtype == x.dtype):
        return x + t * g
    reuse = reuse and g.dtype.kind in "fc"
    step = g if reuse and t == 1.0 else np.multiply(g, t, out=g if reuse else None)
    return np.add(x, step, out=step)


def mix(x: Array, w: float, y: Array) -> Array:
    """Return ``x + w (y - x)`` as a new array, with no other temporary array."""
    move = y - x
    if isinstance(move, np.ndarray) and move.dtype == x.dtype and move.dtype.kind in "fc":
        np.multiply(move, w, out=move)
        return np.add(x, move, out=move)
    return x + w * move


def inners(*pairs: tuple[Array, Array]) -> list[float]:
    """Return several inner products; from a device they are one device-to-host transfer."""
    arrays = [x for pair in pairs for x in pair]
    first = arrays[0]
    alike = all(x.ndim == 1 and x.dtype == first.dtype for x in arrays)
    if isinstance(first, np.ndarray) or not alike or is_complex(first):
        return [inner(x, y) for x, y in pairs]
    with np.errstate(over="ignore", under="ignore"):
        return [float(n) for n in to_numpy(namespace(*arrays).stack([x @ y for x, y in pairs]))]


def norms(*arrays: Array) -> list[float]:
    """Return several norms; from a device they are one device-to-host transfer."""
    if isinstance(arrays[0], np.ndarray):
        return [norm(x) for x in arrays]
    squares = inners(*((x, x) for x in arrays))
    return [
        math.sqrt(square) if 1e-20 < square < 1e30 else norm(x)
        for x, square in zip(arrays, squares, strict=True)
    ]


def one_entry(size: int, i: int, value: Array | float, like: Array) -> Array:
    """Return a vector with one entry that is not zero, in the library, dtype and device of ``like``."""
    xp = namespace(like)
    here = xp.arange(size, device=device(like)) == i
    return xp.where(here, zeros((size,), like) + value, zeros((size,), like))


def diagonal_direction(like: Array) -> Array:
    """Return the unit vector with equal entries."""
    return (0.0 * like + 1.0) / math.sqrt(max(1, math.prod(like.shape)))
