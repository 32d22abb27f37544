"""Basis pursuit denoising: weights are a scaling of the columns, and units are a scaling of everything."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lopro


def instance(seed: int, nonneg: bool = False) -> tuple[Any, Any, float]:
    """Return a problem whose solution has far fewer nonzeros than there are rows."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((50, 180))
    x = np.zeros(180)
    x[:8] = rng.standard_normal(8)
    y = A @ (np.abs(x) if nonneg else x) + 0.05 * rng.standard_normal(50)
    return A, y, 0.05 * 50**0.5


@pytest.mark.parametrize("part", [3.0, 1.0])
@pytest.mark.parametrize("nonneg", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_weights_are_a_scaling_of_the_columns(seed: int, nonneg: bool, part: float) -> None:
    """``min sum w_i |x_i|`` for A is ``min |z|_1`` for ``A / w`` with ``z = w x``: the same run.

    Powers of two are exact, so that not even rounding is different.
    """
    A, y, sigma = instance(seed, nonneg)
    weights = 2.0 ** np.random.default_rng(seed).integers(-2, 3, 180)
    options: dict[str, Any] = {"tol": 1e-8, "nonneg": nonneg}
    weighted = lopro.bpdn(A, y, part * sigma, weights=weights, **options)
    scaled = lopro.bpdn(A / weights, y, part * sigma, **options)
    assert weighted.success and scaled.success
    assert weighted.iterations == scaled.iterations
    assert weighted.counts == scaled.counts
    assert weighted.x == pytest.approx(scaled.x / weights, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("unit", [2.0**-30, 2.0**30])
@pytest.mark.parametrize("of", ["A", "data"])
def test_units_do_not_matter(of: str, unit: float) -> None:
    """A, or A and y and sigma, in other units: the same run again."""
    A, y, sigma = instance(4)
    plain = lopro.bpdn(A, y, sigma, tol=1e-8)
    if of == "A":
        other, factor = lopro.bpdn(unit * A, y, sigma, tol=1e-8), 1.0 / unit
    else:
        other, factor = lopro.bpdn(unit * A, unit * y, unit * sigma, tol=1e-8), 1.0
    assert plain.success and other.success
    assert other.iterations == plain.iterations
    assert other.x == pytest.approx(factor * plain.x, rel=1e-6, abs=1e-12 * factor)
