"""Starts for basis pursuit: none, good, bad and extreme."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuzz.sparse.case import SparseCase

__all__ = ["start"]


def start(rng: np.random.Generator, case: SparseCase) -> Any:
    """Return a start of the right shape, or None."""
    planted = case.planted
    if planted is None or rng.random() < 0.75:
        return None
    size = float(np.abs(planted).max()) or 1.0
    x0: Any
    way = rng.integers(0, 6)
    if way == 0:
        x0 = 0.0 * planted
    elif way == 1:
        x0 = planted.copy()
    elif way == 2:
        x0 = size * rng.standard_normal(planted.shape)
    elif way == 3:
        x0 = 1e6 * size * rng.standard_normal(planted.shape)
    elif way == 4:
        x0 = 0.0 * planted
        x0[rng.integers(0, len(x0))] = size
    else:
        x0 = planted * (1.0 + 1e-6 * rng.standard_normal(planted.shape))
    return np.asarray(x0).astype(case.dtype)
