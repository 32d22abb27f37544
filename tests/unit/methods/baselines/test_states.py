"""The state of averaged steps: a weighted mean, and a sum of linearised constraints."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lopro.methods.baselines.one_projection import AveragedState, PrimalDualState

RNG = np.random.default_rng(0)


def test_the_mean_has_the_weights_it_is_given() -> None:
    state = AveragedState(np.zeros(2), np.full(2, np.nan), RNG)
    state.include(np.array([4.0, 0.0]), 1.0)  # exactly the first point, whatever the state was
    np.testing.assert_array_equal(state.average, [4.0, 0.0])
    state.include(np.array([0.0, 8.0]), 3.0)
    np.testing.assert_array_equal(state.average, [1.0, 6.0])
    assert state.weight == 4.0


@pytest.mark.parametrize(("weight", "scale"), [(4.0, 0.25), (0.0, 0.0), (math.inf, 0.0)])
def test_constraints_are_summed_and_divided_by_the_weights(weight: float, scale: float) -> None:
    """2 (c1 + <g1, z - x>) + 3 (c2 + <g2, z - x>) <= 0 at x = (1, 2), over the sum of the weights."""
    x = np.array([1.0, 2.0])
    state = PrimalDualState(x, x, RNG, weight, direction=np.zeros(2))
    state.add_constraint(2.0, 0.5, np.array([1.0, 0.0]))
    state.add_constraint(3.0, -1.0, np.array([1.0, 1.0]))
    inequality = state.valid_inequality
    np.testing.assert_array_equal(inequality.direction, scale * np.array([5.0, 3.0]))
    assert inequality.support == scale * (2.0 * (1.0 - 0.5) + 3.0 * (3.0 + 1.0))
