"""Ctrl-C at any place ends the run with the best feasible point so far, not with a traceback."""

from __future__ import annotations

import math

import numpy as np
import pytest
from support.driver_cases import ellipsoid, l1_halfspace, nearest_in_box, watched

import lopro
from lopro import Status
from lopro.methods.inner import (
    AcceleratedGradient,
    ConstantStep,
    FixedSmoothness,
    SubgradientDescent,
)
from lopro.penalties import Hinge, Softplus


class Interrupter:
    """An oracle that raises KeyboardInterrupt, once, at its n-th call."""

    def __init__(self, oracle: str, n: int) -> None:
        self.oracle, self.left = oracle, n

    def __call__(self, name: str) -> None:
        if name == self.oracle:
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt


METHODS = {
    "auto": lopro.Auto(),
    "lopgd": lopro.LoPGD(),
    "lopnag": lopro.LoPNAG(),
    "one": lopro.OneProjection(AcceleratedGradient(), Softplus(3.0, 0.1), 200),
}


def interrupted(known, method, oracle, n, **options):
    problem, _, _ = watched(known.problem, Interrupter(oracle, n))
    result = lopro.solve(problem, method=method, tol=0.0, max_iter=5000, **options)
    assert result.status is Status.INTERRUPTED, result
    assert not result.success
    assert known.problem.constraint.violation(result.x) <= 1e-9
    assert result.fun == known.problem.objective.value(result.x)
    assert result.certificate.lower_bound <= known.optimum + 1e-9
    return result


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())
@pytest.mark.parametrize("n", [1, 2, 3, 17, 150])
def test_in_a_slope_of_the_objective(rng, method, n):
    interrupted(ellipsoid(rng), method, "subgradient", n)


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())
@pytest.mark.parametrize("n", [1, 2, 4])
def test_in_a_value_of_the_objective_which_may_be_the_certificate(rng, method, n):
    interrupted(ellipsoid(rng), method, "value", n)


@pytest.mark.parametrize("name", ["auto", "lopgd", "lopnag"])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_inside_a_projection(rng, name, n):
    result = interrupted(ellipsoid(rng), METHODS[name], "project", n, x0=np.full(4, 2.0))
    if n > 2:
        # Two points had been projected; the one with the lower value was kept.
        assert result.fun <= min(result.history["fun"])


def test_the_best_point_is_returned_not_the_last(rng):
    known = ellipsoid(rng)
    result = interrupted(known, lopro.LoPGD(), "subgradient", 1900)
    assert len(result.history) > 3
    assert result.fun == min(result.history["fun"])


def test_without_a_complete_epoch_the_interrupted_point_is_projected(rng):
    known = nearest_in_box(rng)
    inner, penalty = SubgradientDescent(ConstantStep(0.05)), Hinge(2.0)
    method = lopro.OneProjection(inner, penalty, iterations=1000)
    # The n-th subgradient is that of step n: n - 1 steps had been done.
    result = interrupted(known, method, "subgradient", 2 * 30)
    twin = lopro.solve(known.problem, method=method, max_iter=result.iterations, tol=0.0)
    assert 0 < result.iterations < 60
    np.testing.assert_array_equal(result.x, twin.x)
    assert result.counts.projections == 1


def test_an_interrupted_projection_is_repeated(rng):
    known = nearest_in_box(rng)
    method = lopro.OneProjection(SubgradientDescent(ConstantStep(0.05)), Hinge(2.0), 40)
    result = interrupted(known, method, "project", 1)
    undisturbed = lopro.solve(known.problem, method=method, tol=0.0)
    np.testing.assert_array_equal(result.x, undisturbed.x)
    assert result.iterations == 40 and len(result.history) == 0


def test_before_the_first_step_the_start_is_projected(rng):
    known = nearest_in_box(rng)
    method = lopro.OneProjection(SubgradientDescent(ConstantStep(0.05)), Hinge(2.0), 40)
    x0 = np.array([3.0, -3.0, 0.5, 9.0])
    result = interrupted(known, method, "subgradient", 1, x0=x0)
    np.testing.assert_array_equal(result.x, np.clip(x0, -1.0, 1.0))


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_a_truncated_first_step_proves_nothing_wrong(rng, steps):
    # Prop 2 holds after at least one step; at the start it is false for a proximable f.
    known = l1_halfspace(rng)
    method = lopro.OneProjection(
        AcceleratedGradient(step_rule=FixedSmoothness(1e-3)), Softplus(1.0, 1.0), 100
    )
    x0 = np.full(5, 50.0)
    result = interrupted(known, method, "prox", steps + 1, x0=x0)
    assert result.iterations == steps
    assert result.certificate.gap >= result.fun - known.optimum - 1e-9


def test_an_interrupt_of_iteration_by_hand(rng):
    problem, _, _ = watched(ellipsoid(rng).problem, Interrupter("subgradient", 500))
    run = lopro.iterate(problem, method=lopro.LoPGD(), tol=0.0)
    seen = [state.fun for state in run]
    result = run.result()
    assert result.status is Status.INTERRUPTED
    assert result.fun == min(seen) and math.isfinite(result.fun)


def test_an_interrupt_of_the_callback_is_the_callers(rng):
    def callback(iterate):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lopro.solve(ellipsoid(rng).problem, callback=callback)
