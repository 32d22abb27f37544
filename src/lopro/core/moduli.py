"""Functions of the modulus of each entry, for real and complex arrays of any library."""

from __future__ import annotations

import numpy as np

from lopro.core.arrays import Array, is_complex, namespace

__all__ = ["clip_modulus", "unit_phase"]


def unit_phase(x: Array) -> Array:
    """Return ``x / |x|`` entry by entry, and 0 where ``x`` is 0."""
    if isinstance(x, np.ndarray):
        return np.sign(x)
    xp = namespace(x)
    if not is_complex(x):
        return xp.sign(x)
    # Not every library's sign takes complex numbers, or 0 / 0 without a warning.
    modulus = xp.abs(x)
    return x / xp.where(modulus > 0.0, modulus, xp.ones_like(modulus))


def clip_modulus(x: Array, bound: float | Array) -> Array:
    """Return ``x`` with every entry of modulus above ``bound`` scaled to the modulus ``bound``."""
    if is_complex(x):
        xp = namespace(x)
        modulus = xp.abs(x)
        beyond = modulus > bound
        factor = bound / xp.where(beyond, modulus, xp.ones_like(modulus))
        return x * xp.where(beyond, factor, xp.ones_like(modulus))
    if isinstance(x, np.ndarray):
        if isinstance(bound, float):
            return x.clip(-bound, bound)
        clipped = np.maximum(x, -bound)
        return np.minimum(clipped, bound, out=clipped)
    return namespace(x).clip(x, -bound, bound)
