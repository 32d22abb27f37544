"""Step sizes and averages of subgradient descent: the weight of every iterate, in closed form."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from support.theorem_checks import iterates, penalised
from support.theory_problems import t2, t6_box

import lopro
from lopro import OneProjection
from lopro.methods.inner import (
    ConstantStep,
    InverseTimeStep,
    LastIterate,
    LinearWeights,
    PolynomialDecay,
    SqrtStep,
    SubgradientDescent,
    SuffixAverage,
    UniformAverage,
    WeightedInverseTimeStep,
)
from lopro.penalties import Hinge

T = 17


def suffix(count: int) -> Any:
    """Weights of the mean of the last ``count`` of T."""
    return np.where(np.arange(1, T + 1) > T - count, 1.0 / count, 0.0)


def decay(s: float) -> Any:
    """Weights proportional to ``Gamma(t + s) / Gamma(t)``: for ``s = 2`` they are ``t (t + 1)``."""
    weights = np.array([math.exp(math.lgamma(t + s) - math.lgamma(t)) for t in range(1, T + 1)])
    return weights / weights.sum()


#: An average, and the weights that iterates 1 to T have in it.
AVERAGES = {
    "last": (LastIterate(), suffix(1)),
    "uniform": (UniformAverage(), np.full(T, 1.0 / T)),
    "linear": (LinearWeights(), 2.0 * np.arange(1, T + 1) / (T * (T + 1))),
    # 0.4 T = 6.8, 0.75 T = 12.75: rounded down to whole iterates (E15).
    "suffix 0.4": (SuffixAverage(0.4, T), suffix(6)),
    "suffix 0.75": (SuffixAverage(0.75, T), suffix(12)),
    "suffix 1": (SuffixAverage(1.0, T), suffix(T)),
    "decay 0": (PolynomialDecay(0.0), np.full(T, 1.0 / T)),
    "decay 1": (PolynomialDecay(1.0), 2.0 * np.arange(1, T + 1) / (T * (T + 1))),
    "decay 3": (PolynomialDecay(3.0), decay(3.0)),
    "decay 2.5": (PolynomialDecay(2.5), decay(2.5)),
}


@pytest.mark.parametrize("name", AVERAGES)
def test_weights_of_all_iterates(name: str) -> None:
    """The running average gives iterate t the weight ``w_t (1 - w_(t+1)) ... (1 - w_T)``."""
    average, expected = AVERAGES[name]
    found = np.zeros(T)
    for t in range(1, T + 1):
        found *= 1.0 - average.weight(t)
        found[t - 1] = average.weight(t)
    assert found == pytest.approx(expected, rel=1e-12)
    assert found.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("name", AVERAGES)
def test_the_projected_point_is_that_average(name: str) -> None:
    """A whole run on T2: the answer is the projection of the average of ``x_1 ... x_T``."""
    average, weights = AVERAGES[name]
    known, lam, eta = t2(), 5.0, 0.13
    x, path = known.x0, []
    for _ in range(T):
        path.append(x)
        g = known.objective.subgradient(x)
        j = int(np.argmax(np.abs(x)))
        if abs(x[j]) > 1.0:
            g = g + lam * np.sign(x[j]) * np.eye(len(x))[j]
        x = x - eta * g
    expected = np.clip(weights @ np.array(path), -1.0, 1.0)
    method = OneProjection(SubgradientDescent(ConstantStep(eta), average), Hinge(lam), T)
    result = lopro.solve(known.problem, known.x0, method, tol=0)
    assert result.x == pytest.approx(expected, abs=1e-12)


#: A rule and its first sizes.
STEPS = {
    "constant": (ConstantStep(0.3), [0.3, 0.3, 0.3, 0.3]),
    "root": (SqrtStep(0.3), [0.3, 0.3 / math.sqrt(2.0), 0.3 / math.sqrt(3.0), 0.15]),
    "Cor 1": (InverseTimeStep(mu=4.0), [1 / 4, 1 / 8, 1 / 12, 1 / 16]),
    "C1'": (WeightedInverseTimeStep(mu=4.0), [1 / 4, 1 / 6, 1 / 8, 1 / 10]),
}


@pytest.mark.parametrize("name", STEPS)
def test_step_sizes(name: str) -> None:
    """Without the penalty of a constraint the iterates of T6 are ``x + eta_t (z - x)``."""
    rule, sizes = STEPS[name]
    known = t6_box()
    F = penalised(known, Hinge(0.0))
    x, z = known.x0, known.x0 - known.objective.subgradient(known.x0)
    inner = SubgradientDescent(rule, LastIterate())
    for t, seen in iterates(inner, F, known.x0, len(sizes)):
        assert seen == pytest.approx(x, abs=1e-14)
        assert rule.size(t) == pytest.approx(sizes[t - 1], rel=1e-15)
        x = x + sizes[t - 1] * (z - x)
