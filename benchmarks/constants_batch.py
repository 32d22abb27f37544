"""Batches of quadratic programs that show what the constants of `lopro.batch` change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import lopro
from lopro.batch.interior_point import Settings
from lopro.batch.results import METHOD

__all__ = ["calls"]


def calls() -> Iterator[tuple[str, Callable[[], float]]]:
    """Yield batches; each counts the steps of all its programs, `Settings.steps` for one without a proof."""
    rng = np.random.default_rng(3)
    for name, programs in {
        "quadratic, 16 x 32": _random(rng, 16, 32),
        "quadratic, 50 x 100": _random(rng, 50, 100, count=64),
        "low rank": _random(rng, 20, 40, rank=5),
        "linear": _random(rng, 20, 60, rank=0),
        "columns 1e-3 to 1e3": _random(rng, 20, 40, decades=3),
        "rows 1e-6 to 1e6": _random(rng, 20, 40, row_decades=6),
        "equations and a box": _portfolios(rng, 30),
    }.items():
        yield name, lambda programs=programs: _steps(programs)


def _steps(programs: lopro.QuadraticPrograms) -> float:
    results = lopro.solve_many(programs)
    return float(sum(r.iterations if r.method == METHOD else Settings.steps for r in results))


def _random(
    rng: np.random.Generator,
    n: int,
    m: int,
    *,
    count: int = 256,
    rank: int | None = None,
    decades: float = 0.0,
    row_decades: float = 0.0,
) -> lopro.QuadraticPrograms:
    """Return programs over rows and a box of side 10, with units that differ by powers of ten."""
    B = rng.standard_normal((count, n if rank is None else rank, n))
    G, inside = rng.standard_normal((count, m, n)), rng.standard_normal((count, n))
    upper = (G @ inside[:, :, None])[:, :, 0] + 0.3 * rng.random((count, m))
    P, q = np.matrix_transpose(B) @ B / n, rng.standard_normal((count, n))
    units = 10.0 ** rng.uniform(-decades, decades, n)
    rows = 10.0 ** rng.uniform(-row_decades, row_decades, m)
    side: Any = 10.0 / units * np.ones((count, 1))
    P, q, G = P * units[:, None] * units, q * units, rows[:, None] * G * units
    return lopro.QuadraticPrograms(q, P, G, upper=rows * upper, least=-side, most=side)


def _portfolios(rng: np.random.Generator, n: int, count: int = 256) -> lopro.QuadraticPrograms:
    """Return Markowitz problems: weights in [0, 1] with the sum 1."""
    B = rng.standard_normal((count, 2 * n, n))
    P, ones = np.matrix_transpose(B) @ B / n, np.ones((count, 1))
    zeros = np.zeros((count, n))
    return lopro.QuadraticPrograms(
        -rng.random((count, n)), P, np.ones((count, 1, n)), ones, ones, zeros, zeros + 1.0
    )
