"""The root of an increasing slope: exact for piecewise linear slopes, an error where there is none."""

import numpy as np
import pytest

from lopro.newton.inner import UnboundedBelow, least_along


def piecewise(rng, n=200):
    a, e = rng.standard_normal(n), rng.standard_normal(n)

    def slope(t):
        there = a + t * e
        active = there > 0.0
        first = -3.0 * abs(e[a > 0] @ a[a > 0]) + 0.1 * t + there[active] @ e[active]
        return float(first), float(0.1 + e[active] @ e[active])

    return slope


def test_exact_root_of_a_piecewise_linear_slope(rng):
    for _ in range(20):
        slope = piecewise(rng)
        start = slope(0.0)[0]
        t = least_along(slope, start, 0.0)
        assert abs(slope(t)[0]) <= 1e-12 * abs(start)


def test_stops_at_the_required_accuracy(rng):
    slope = piecewise(rng)
    calls = []

    def counted(t):
        calls.append(t)
        return slope(t)

    start = slope(0.0)[0]
    rough = least_along(counted, start, 0.5)
    few = len(calls)
    assert abs(slope(rough)[0]) <= 0.5 * abs(start)
    calls.clear()
    least_along(counted, start, 1e-12)
    assert few < len(calls) < 40


def test_a_full_newton_step_costs_one_evaluation():
    calls = []

    def slope(t):
        calls.append(t)
        return 2.0 * t - 2.0, 2.0

    assert least_along(slope, -2.0, 0.1) == 1.0
    assert calls == [1.0]


def test_a_slope_that_jumps_past_its_root_is_bisected():
    def slope(t):
        return (-1.0, 0.0) if t < 0.3 else (1e6 * (t - 0.3) + 1e-9, 1e6)

    t = least_along(slope, -1.0, 0.0)
    assert t == pytest.approx(0.3, abs=1e-12)


def test_unbounded_descent():
    with pytest.raises(UnboundedBelow):
        least_along(lambda t: (-1.0, 0.0), -1.0, 0.5, evaluations=200)


def test_distant_roots_are_found():
    assert least_along(lambda t: (t / 1e9 - 1.0, 0.0), -1.0, 1e-6) == pytest.approx(1e9, rel=1e-5)
    assert np.isfinite(least_along(lambda t: (np.expm1(t - 30.0), np.exp(t - 30.0)), -1.0, 1e-3))
