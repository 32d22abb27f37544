"""Families of matrices for sparse recovery, well and badly conditioned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["FAMILIES", "matrix", "spoiled"]

Array = np.ndarray[Any, Any]
Rng = np.random.Generator


def gaussian(rng: Rng, m: int, d: int) -> Array:
    """Independent normal entries."""
    return rng.standard_normal((m, d))


def signs(rng: Rng, m: int, d: int) -> Array:
    """Plus and minus one."""
    return np.asarray(rng.choice([-1.0, 1.0], size=(m, d)))


def integers(rng: Rng, m: int, d: int) -> Array:
    """Small integers, with many ties."""
    return np.asarray(rng.integers(-2, 3, size=(m, d)), dtype=float)


def positive(rng: Rng, m: int, d: int) -> Array:
    """Positive entries, with an offset that makes columns nearly parallel."""
    return np.asarray(rng.random((m, d)) + rng.choice([0.0, 1.0, 10.0]))


def toeplitz(rng: Rng, m: int, d: int) -> Array:
    """A convolution."""
    kernel = rng.standard_normal(m + d - 1) * np.exp(-0.3 * np.arange(m + d - 1))
    return np.asarray(kernel[np.abs(np.arange(m)[:, None] - np.arange(d)[None, :])])


def cosines(rng: Rng, m: int, d: int) -> Array:
    """Rows of a discrete cosine transform."""
    rows = rng.choice(max(m, d), size=m, replace=False)
    return np.asarray(np.cos(np.pi * (np.arange(d)[None, :] + 0.5) * rows[:, None] / max(m, d)))


def vandermonde(rng: Rng, m: int, d: int) -> Array:
    """Powers of increasing nodes: condition numbers beyond double precision."""
    return np.vander(np.sort(rng.uniform(-1.0, 1.0, m)), d, increasing=True)


def kernel(rng: Rng, m: int, d: int) -> Array:
    """A Gaussian kernel between points on a line."""
    s, t = np.linspace(0.0, 1.0, m), np.linspace(0.0, 1.0, d)
    width = rng.choice([0.02, 0.1, 0.3])
    return np.asarray(np.exp(-(((s[:, None] - t[None, :]) / width) ** 2)))


def ill_conditioned(rng: Rng, m: int, d: int) -> Array:
    """Singular values that fall by many orders of magnitude."""
    k = min(m, d)
    U, _ = np.linalg.qr(rng.standard_normal((m, k)))
    V, _ = np.linalg.qr(rng.standard_normal((d, k)))
    s = np.logspace(0.0, -rng.uniform(3.0, 13.0), k)
    return np.asarray((U * s) @ V.T)


def low_rank(rng: Rng, m: int, d: int) -> Array:
    """Fewer independent rows than rows."""
    k = int(rng.integers(1, max(2, min(m, d))))
    return rng.standard_normal((m, k)) @ rng.standard_normal((k, d))


def few_entries(rng: Rng, m: int, d: int) -> Array:
    """Mostly zeros."""
    return rng.standard_normal((m, d)) * (rng.random((m, d)) < 0.2)


def diagonal(rng: Rng, m: int, d: int) -> Array:
    """A diagonal of very different sizes."""
    return np.eye(m, d) * 10.0 ** rng.uniform(-3.0, 3.0, d)


def unequal_columns(rng: Rng, m: int, d: int) -> Array:
    """Columns whose lengths differ by orders of magnitude."""
    return rng.standard_normal((m, d)) * 10.0 ** rng.uniform(-4.0, 4.0, d)


#: Each family with its share.
FAMILIES: dict[Callable[[Rng, int, int], Array], float] = {
    gaussian: 30.0,
    signs: 8.0,
    integers: 7.0,
    positive: 9.0,
    toeplitz: 7.0,
    cosines: 6.0,
    vandermonde: 4.0,
    kernel: 5.0,
    ill_conditioned: 6.0,
    low_rank: 5.0,
    few_entries: 6.0,
    diagonal: 3.0,
    unequal_columns: 4.0,
}


def matrix(rng: Rng, m: int, d: int) -> Array:
    """Draw a matrix."""
    shares = np.array(list(FAMILIES.values()))
    family = list(FAMILIES)[rng.choice(len(shares), p=shares / shares.sum())]
    return spoiled(rng, family(rng, m, d))


def spoiled(rng: Rng, A: Array) -> Array:
    """Return ``A`` with duplicate, parallel, nearly parallel or zero columns, now and then."""
    A, d = A.copy(), A.shape[1]
    if d < 2 or rng.random() > 0.3:
        return A
    for _ in range(int(rng.integers(1, 4))):
        i, j = rng.integers(0, d, 2)
        way = rng.integers(0, 5)
        if way == 0:
            A[:, i] = A[:, j]
        elif way == 1:
            A[:, i] = -A[:, j]
        elif way == 2:
            A[:, i] = A[:, j] * rng.choice([1e-6, 1e-3, 2.0, 1e3])
        elif way == 3:
            A[:, i] = A[:, j] + 1e-8 * rng.standard_normal(len(A))
        else:
            A[:, i] = 0.0
    return A
