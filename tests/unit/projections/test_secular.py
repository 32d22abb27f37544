"""The secular equation at targets of every size."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lopro.projections.secular import damping


@pytest.mark.parametrize("exponent", [-1, -10, -50, -80, -89])
def test_the_root_is_accurate_for_small_targets(exponent: int) -> None:
    h_squared, s = np.array([4.0, 1.0, 9.0]), np.array([1.0, 1e-3, 5.0])
    target = math.sqrt(14.0) * 10.0**exponent
    kappa = damping(h_squared, s, target)
    reached = math.sqrt(float((h_squared * (kappa / (kappa + s)) ** 2).sum()))
    assert reached == pytest.approx(target, rel=1e-12)


@pytest.mark.parametrize("exponent", [-91, -110, -151, -300])
def test_a_target_below_rounding_counts_as_zero(exponent: int) -> None:
    assert damping(np.array([4.0]), np.array([1.0]), 10.0**exponent) == 0.0
