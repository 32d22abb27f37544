"""Bounds of inner algorithms: ``bound`` as an exact number, and None wherever nothing is proved."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.theorem_checks import penalised
from support.theory_problems import Known, t1, t2, t3, t4, t6_box

import lopro
from lopro.functions import Ball
from lopro.methods.inner import (
    AcceleratedGradient,
    Backtracking,
    ConstantMomentum,
    ConstantStep,
    FixedSmoothness,
    InverseTimeStep,
    LastIterate,
    LinearWeights,
    NoMomentum,
    SqrtStep,
    StochasticSubgradient,
    SubgradientDescent,
    UniformAverage,
    WeightedInverseTimeStep,
)
from lopro.penalties import Hinge, Softplus


def after(inner: Any, F: Any, x0: Any, steps: int) -> Any:
    """Return the state after a number of steps."""
    state = inner.init(F, x0, np.random.default_rng(0))
    for _ in range(steps):
        state = inner.step(F, state)
    return state


def squares(known: Known, lam: float, sizes: list[float]) -> list[float]:
    """Return ``|g_t|^2`` of plain subgradient descent on ``f + lam [c]_+``, written down anew."""
    x, found = known.x0, []
    for eta in sizes:
        g = known.objective.subgradient(x)
        if known.constraint.value(x) > 0.0:
            g = g + lam * known.constraint.subgradient(x)
        found.append(float(np.sum(g * g)))
        x = x - eta * g
    return found


@pytest.mark.parametrize("known", [t1(), t2(), t3()], ids=lambda k: k.name)
@pytest.mark.parametrize("steps", [1, 2, 7, 40])
def test_prop_3_with_the_subgradients_evaluated(known: Known, steps: int) -> None:
    """Prop 3: ``eta/2 mean |g_t|^2 + D^2 / (2 eta T)``, no more and no less."""
    lam, eta, D = 1.7, 0.21, 0.9
    met = squares(known, lam, [eta] * steps)
    # T1 has two slopes, 1 and lam - 1: with one of them alone a wrong average would go unnoticed.
    assert steps < 40 or len({round(square, 9) for square in met}) > 1
    inner, F = SubgradientDescent(ConstantStep(eta)), penalised(known, Hinge(lam))
    expected = 0.5 * eta * float(np.mean(met)) + D**2 / (2.0 * eta * steps)
    bound = inner.bound(after(inner, F, known.x0, steps), D)
    assert bound == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("steps", [1, 2, 7, 40])
def test_c1_with_the_subgradients_evaluated(steps: int) -> None:
    """C1': the average of ``eta_t |g_t|^2 / 2`` with weights t, whatever the distance is."""
    known, lam = t6_box(), 1.3
    sizes = [2.0 / (known.mu * (t + 1)) for t in range(1, steps + 1)]
    met = squares(known, lam, sizes)
    terms = 0.5 * np.array(sizes) * np.array(met)
    expected = 2.0 / (steps * (steps + 1)) * float(np.arange(1, steps + 1) @ terms)
    F = penalised(known, Hinge(lam))
    inner = SubgradientDescent(WeightedInverseTimeStep(known.mu), LinearWeights())
    state = after(inner, F, known.x0, steps)
    assert inner.bound(state, 0.1) == pytest.approx(expected, rel=1e-12)
    assert inner.bound(state, 10.0) == inner.bound(state, 0.1)
    # A smaller constant of strong convexity than that of f is valid; a larger one is not and is refused.
    careful = SubgradientDescent(WeightedInverseTimeStep(0.5 * known.mu), LinearWeights())
    bold = SubgradientDescent(WeightedInverseTimeStep(2.0 * known.mu), LinearWeights())
    assert careful.bound(after(careful, F, known.x0, steps), 1.0) is not None
    assert bold.bound(after(bold, F, known.x0, steps), 1.0) is None


@pytest.mark.parametrize(
    "inner",
    [
        SubgradientDescent(SqrtStep(0.2)),
        SubgradientDescent(InverseTimeStep(1.0)),
        SubgradientDescent(ConstantStep(0.2), LastIterate()),
        SubgradientDescent(ConstantStep(0.2), LinearWeights()),
        SubgradientDescent(WeightedInverseTimeStep(1.0), UniformAverage()),
        SubgradientDescent(ConstantStep(0.2), ball=Ball(np.zeros(4), 9.0)),
        SubgradientDescent(WeightedInverseTimeStep(1.0), LinearWeights(), Ball(np.zeros(4), 9.0)),
    ],
    ids=repr,
)
def test_nothing_is_claimed_for_other_steps_other_averages_and_balls(inner: Any) -> None:
    """A given ball may not contain the comparator, and the other pairs have no theorem here."""
    known = t6_box()
    assert inner.bound(after(inner, penalised(known, Hinge(1.0)), known.x0, 5), 1.0) is None


def test_samples_claim_nothing() -> None:
    """A bound on the expectation does not bound a single run."""
    inner = StochasticSubgradient(ConstantStep(0.2))
    known = t6_box()
    state = after(SubgradientDescent(ConstantStep(0.2)), penalised(known, Hinge(1.0)), known.x0, 5)
    assert inner.bound(state, 1.0) is None


def test_nothing_is_claimed_before_the_first_step() -> None:
    known = t3(smooth=True)
    for inner, h in (
        (SubgradientDescent(ConstantStep(0.1)), Hinge(1.0)),
        (AcceleratedGradient(), Softplus(1.0, 0.1)),
    ):
        assert inner.bound(after(inner, penalised(known, h), known.x0, 0), 1.0) is None


def test_a_shortened_step_ends_the_claim_permanently() -> None:
    """T6 from far away: the first slope is 100 long, its step is shortened to 1, later ones are not."""
    known = t6_box(1)
    F, start = penalised(known, Hinge(0.0)), known.x0 + 100.0
    z = known.x0 - known.objective.subgradient(known.x0)
    for longest, claims in ((1.0, False), (1e3, True)):
        inner = SubgradientDescent(ConstantStep(0.9), LastIterate(), longest_move=longest)
        state = inner.init(F, start, np.random.default_rng(0))
        state = inner.step(
            F, inner.step(F, state)
        )  # outputs the point that the first step has reached
        moved = float(np.abs(inner.output(state) - start)[0])
        assert moved == pytest.approx(1.0 if longest == 1.0 else 0.9 * float((start - z)[0]))
        plain = SubgradientDescent(ConstantStep(0.9), longest_move=longest)
        near_the_end = after(plain, F, start, 150)
        assert (plain.bound(near_the_end, 1.0) is not None) == claims


# Accelerated gradient.


def doubled_until(L: float, first: float) -> float:
    """Return the least ``first 2^k`` that is at least L."""
    while first < L:
        first *= 2.0
    return first


@pytest.mark.parametrize("first", [1e-3, 0.7, 1.0, 40.0])
@pytest.mark.parametrize("steps", [1, 2, 3, 10])
def test_prop_2_with_the_smoothness_that_was_found(first: float, steps: int) -> None:
    """Prop 2 on ``|x - z|^2 / 2``: ``2 L D^2 / (T + 1)^2``, L the first trial that is at least 1."""
    known, D = t6_box(), 0.8
    F = penalised(known, Hinge(0.0))
    inner = AcceleratedGradient(step_rule=Backtracking(first))
    L = doubled_until(1.0, first)
    bound = inner.bound(after(inner, F, known.x0, steps), D)
    assert bound == pytest.approx(2.0 * L * D**2 / (steps + 1) ** 2, rel=1e-12)


@pytest.mark.parametrize(
    "inner",
    [
        AcceleratedGradient(restart=True),
        AcceleratedGradient(NoMomentum()),
        AcceleratedGradient(ConstantMomentum(1.0)),
        AcceleratedGradient(step_rule=FixedSmoothness(100.0)),
    ],
    ids=["restart", "no momentum", "constant momentum", "L unchecked"],
)
def test_prop_2_claims_nothing_for_other_variants(inner: Any) -> None:
    known = t4()
    F = penalised(known, Softplus(2.0, 0.1))
    assert inner.bound(after(inner, F, known.x0, 10), 1.0) is None
    assert AcceleratedGradient().bound(after(inner, F, known.x0, 10), 1.0) is not None


def test_sampled_steps_of_the_weighted_average_approach_the_solution_and_claim_nothing() -> None:
    """Batches of twenty rows: within the bound of C1' for the gradients evaluated, with one projection."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((500, 3))
    labels = np.where(A @ np.ones(3) + rng.standard_normal(500) > 0.0, 1, -1)
    f = lopro.objectives.Logistic(A, labels, l2=1.0, batch_size=20)
    half = lopro.constraints.Polyhedron(np.ones((1, 3)), np.array([0.1]))
    problem = lopro.Problem(f, half)
    ball = lopro.theorems.solution_ball(problem, np.zeros(3))
    constants = lopro.theory.constants_of(problem, ball)
    steps = 4000
    method = lopro.theorems.weighted_average(constants, steps, ball, stochastic=True)
    assert isinstance(method.inner, StochasticSubgradient) and method.claim is None
    result = lopro.solve(problem, np.zeros(3), method, tol=0, seed=0)
    exact = lopro.solve(problem, tol=1e-9)
    largest = max(float(np.linalg.norm(a)) for a in A) + f.l2 * ball.radius
    slope = largest + constants.weight * constants.Gc
    error = result.fun - exact.fun
    assert -1e-8 <= error <= 2.0 * slope**2 / (constants.mu * (steps + 1))
    assert error < 1e-3 * exact.fun
    assert result.counts.projections == 1
