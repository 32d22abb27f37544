"""The counts of a run agree with an independent count."""

from __future__ import annotations

import math

import array_api_compat.numpy
import numpy as np
import pytest
import scipy.sparse.linalg
from support.driver_cases import BUILDERS, ellipsoid, l1_halfspace, nearest_psd, watched

import lopro
from lopro import Problem
from lopro.constraints import ResidualBall
from lopro.driver import incumbent
from lopro.methods.inner import (
    AcceleratedGradient,
    ConstantStep,
    FixedSmoothness,
    SubgradientDescent,
)
from lopro.methods.theory import constants_of
from lopro.objectives import L1Norm, LeastSquares
from lopro.penalties import Hinge, Softplus

METHODS = {
    "auto": lopro.Auto(),
    "lopgd": lopro.LoPGD(),
    "one-subgradient": lopro.OneProjection(SubgradientDescent(ConstantStep(0.05)), Hinge(3.0), 50),
    "one-accelerated": lopro.OneProjection(AcceleratedGradient(), Softplus(3.0, 0.1), 50),
}


def total(result: lopro.Result, counter: str) -> int:
    return getattr(result.counts, counter) + getattr(result.certificate_counts, counter)


@pytest.mark.parametrize("build", BUILDERS, ids=lambda build: build.__name__)
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())
def test_counts_of_method_and_certificates_add_up_to_all_calls(rng, build, method):
    problem, f, c = watched(build(rng).problem)
    result = lopro.solve(problem, method=method, max_iter=500)
    for counter, calls in {
        "values": f.calls.get("value", 0),
        "gradients": f.calls.get("subgradient", 0),
        "proxes": f.calls.get("prox", 0),
        "constraint_values": c.calls.get("value", 0) + c.calls.get("project_image", 0),
        "constraint_gradients": c.calls.get("subgradient", 0) + c.calls.get("pullback", 0),
        "projections": c.calls.get("project", 0),
    }.items():
        assert total(result, counter) == calls, counter
    assert result.certificate_counts.projections == 0


class Operator(scipy.sparse.linalg.LinearOperator):
    """A matrix that counts its products."""

    def __init__(self, A):
        self.A, self.forward, self.backward = A, 0, 0
        super().__init__(A.dtype, A.shape)

    def _matvec(self, x):
        self.forward += 1
        return self.A @ x

    def _rmatvec(self, y):
        self.backward += 1
        return self.A.T @ y


@pytest.mark.parametrize(
    "method",
    [lopro.Auto(), lopro.LoPNAG(), METHODS["one-accelerated"]],
    ids=["auto", "lopnag", "one"],
)
def test_every_product_is_counted(rng, method):
    A = Operator(rng.standard_normal((4, 9)))
    problem = Problem(L1Norm(), ResidualBall(A, rng.standard_normal(4), 0.3))
    A.forward = A.backward = 0
    result = lopro.solve(problem, method=method, max_iter=1000)
    assert total(result, "matvecs") == A.forward > 0
    assert total(result, "rmatvecs") == A.backward > 0


def test_eigendecompositions_are_counted(rng, monkeypatch):
    calls = []

    def spy(module, name):
        real = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *a, **k: calls.append(name) or real(*a, **k))

    known = nearest_psd(rng)
    spy(np.linalg, "eigh")
    spy(array_api_compat.numpy.linalg, "eigvalsh")  # this function is not looked up in NumPy
    result = lopro.solve(known.problem)
    assert total(result, "eigendecompositions") == len(calls) > 0


def test_the_cost_of_one_projection_is_that_of_the_algorithm(rng):
    known = ellipsoid(rng)
    T = 37
    method = lopro.OneProjection(SubgradientDescent(ConstantStep(0.01)), Hinge(2.0), T)
    counts = lopro.solve(known.problem, method=method, tol=0.0).counts
    assert (counts.projections, counts.gradients, counts.constraint_values) == (1, T, T)
    assert counts.constraint_gradients <= T and counts.values == counts.proxes == 0

    smooth = AcceleratedGradient(step_rule=FixedSmoothness(100.0))
    method = lopro.OneProjection(smooth, Softplus(2.0, 0.1), T)
    counts = lopro.solve(known.problem, method=method, tol=0.0).counts
    assert (counts.projections, counts.gradients, counts.constraint_gradients) == (1, T, T)


def test_accelerated_steps_take_one_product_each_way(rng):
    """The image of the extrapolated point is a combination of known images."""
    A, T = rng.standard_normal((8, 3)), 25
    box = lopro.constraints.Polyhedron.box(-np.ones(3), np.ones(3))
    operator = Operator(A)
    problem = Problem(LeastSquares(operator, rng.standard_normal(8)), box)
    method = lopro.OneProjection(
        AcceleratedGradient(step_rule=FixedSmoothness(50.0)), Softplus(1.0, 1.0), T
    )
    steps = []
    operator.forward = operator.backward = 0
    step = AcceleratedGradient.step

    def watched_step(self, F, state):
        before = operator.forward, operator.backward
        out = step(self, F, state)
        steps.append((operator.forward - before[0], operator.backward - before[1]))
        return out

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AcceleratedGradient, "step", watched_step)
        lopro.solve(problem, method=method, tol=0.0)
    assert steps == [(1, 1)] * T


@pytest.mark.parametrize("K", [1, 4, 7])
def test_the_theorems_project_once_per_epoch(rng, K):
    known = l1_halfspace(rng)
    constants = constants_of(Problem(L1Norm(shape=(5,)), known.problem.constraint))
    schedule = lopro.theorems.Theorem2(constants, 1.0, 1.0 / 2.0**K, sigma=0.5, theta=1.0)
    x0 = known.problem.constraint.project(np.zeros(5))
    problem, _, c = watched(known.problem)
    result = lopro.solve(problem, x0, lopro.LoPGD(schedule), tol=0.0)
    assert result.counts.projections == c.calls["project"] == len(result.history) == K
    assert result.iterations == K * schedule.steps


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())
def test_expensive_certificates_are_counted_separately(monkeypatch, method):
    def run():
        problem, _, _ = watched(ellipsoid(np.random.default_rng(3)).problem)
        return lopro.solve(problem, method=method, max_iter=600, tol=0.0)

    cheap = run()
    real = incumbent.lower_bound

    def expensive(problem, x, normal, fun):
        for _ in range(10):
            problem.objective.value(x)
            problem.objective.subgradient(x)
            problem.constraint.subgradient(x)
        return real(problem, x, normal, fun)

    monkeypatch.setattr(incumbent, "lower_bound", expensive)
    costly = run()
    assert costly.counts == cheap.counts
    assert costly.certificate_counts.gradients >= cheap.certificate_counts.gradients + 10
    np.testing.assert_array_equal(costly.x, cheap.x)


def test_a_callback_that_works_on_the_problem_is_not_counted(rng):
    known = ellipsoid(rng)

    def busy(iterate):
        for _ in range(5):
            known.problem.objective.subgradient(iterate.x)
            known.problem.constraint.project(iterate.x)

    method = lopro.LoPNAG()
    plain = lopro.solve(known.problem, method=method, max_iter=400, tol=0.0)
    spied = lopro.solve(known.problem, method=method, max_iter=400, tol=0.0, callback=busy)
    # The factorisation of the first run is reused; all other counts must agree.
    for counter, value in plain.counts.to_dict().items():
        if counter != "factorizations":
            assert getattr(spied.counts, counter) == value, counter
    assert math.isfinite(spied.fun)
