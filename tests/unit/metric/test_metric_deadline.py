"""Metric learning with many features does little work between two checks of the time limit."""

from __future__ import annotations

import math

import numpy as np
import pytest

import lopro
from lopro.core.deadline import Deadline, OutOfTime, using_clock
from lopro.metric.loss_step import _ENTRIES, ByEntries
from lopro.metric.pair_maps import Graph
from lopro.metric.pairs import pair_loss
from lopro.metric.symmetric import features_in_use
from lopro.metric.working_set import prices


class Clock:
    """Time passes the limit of a second after a number of readings."""

    def __init__(self, readings: float = math.inf) -> None:
        self.left, self.readings = readings, 0

    def __call__(self) -> float:
        self.readings += 1
        return 0.0 if self.readings <= self.left else 2.0


def wide(rng, features=900):
    X = rng.standard_normal((20, features))
    labels = np.arange(20) % 2
    X[:, 0] += 3.0 * labels
    return X, labels


def test_points_of_many_features_are_evaluated_on_those_in_use(rng, monkeypatch):
    """At 7129 features a product with a whole matrix takes longer than the time that is left."""
    sizes, distances = [], Graph.distances

    def noted(self, A):
        sizes.append(len(A))
        return distances(self, A)

    monkeypatch.setattr(Graph, "distances", noted)
    X, labels = wide(rng)
    result = lopro.learn_metric(X, labels, l1=0.05, max_iter=200)
    assert len(result.x) == 900
    assert math.isfinite(result.fun)
    assert math.isfinite(result.loss)
    assert sizes
    assert max(sizes) < 450


def test_the_hessian_is_formed_in_blocks_between_which_the_time_is_checked(rng):
    X, labels = wide(rng, features=40)
    loss = pair_loss(X, labels, None, None, None, None)
    with using_clock(clock := Clock()), Deadline(1.0).active():
        step = ByEntries(loss)
    assert clock.readings > len(step.quadratic[0]) ** 2 / _ENTRIES
    for readings in range(1, clock.readings):
        with using_clock(Clock(readings)), Deadline(1.0).active(), pytest.raises(OutOfTime):
            ByEntries(loss)


def test_pricing_ends_when_the_time_is_up(rng):
    S, M = np.eye(3), rng.standard_normal((3, 500))
    with using_clock(Clock(20)), Deadline(1.0).active(), pytest.raises(OutOfTime):
        prices(S, M, -np.ones(500), 0.1)


def test_features_in_use_are_those_of_nonzero_rows_and_columns():
    A = np.zeros((500, 500))
    assert features_in_use(A).tolist() == [0]
    A[3, 400] = A[7, 7] = 1.0
    assert features_in_use(A).tolist() == [3, 7, 400]
    assert features_in_use(A.T).tolist() == [3, 7, 400]
    A[:250, 0] = 1.0
    assert features_in_use(A) is None
    assert features_in_use(A.T) is None
