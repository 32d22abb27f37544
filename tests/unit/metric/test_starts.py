"""First matrices: the best multiple of the identity, and the rank-one matrix of a linear program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize
from support.metric_known import all_pairs, classes, value

from lopro.core.deadline import Deadline, using_clock
from lopro.metric import SparseMetric
from lopro.metric.loss import PairLoss
from lopro.metric.starts import best_start, rank_one_direction, scaled_identity


@pytest.mark.parametrize("shape", [(12, 3), (5, 9)])
def test_the_multiple_of_the_identity_is_the_best_on_its_ray(shape: tuple[int, int]) -> None:
    loss = all_pairs(*classes(0, *shape))
    c, eye = scaled_identity(loss), np.eye(shape[1])
    best = loss.value(c * eye)
    for other in np.linspace(0.0, 3.0 * c, 301):
        assert loss.value(other * eye) >= best - 1e-14
    assert loss.value(1.001 * c * eye) > best and loss.value(0.999 * c * eye) > best


def test_the_ray_ends_at_zero_and_pairs_may_be_fewer_than_samples() -> None:
    X = np.array([[0.0, 1.0], [2.0, 0.0], [3.0, 3.0]])
    assert scaled_identity(PairLoss(X, ([0, 1], [1, 2]), [-1.0, -2.0])) == 0.0
    assert scaled_identity(PairLoss(X, ([0], [0]), [1.0])) == 0.0
    assert scaled_identity(PairLoss(X, ([0], [1]), [10.0])) == pytest.approx(2.0)


@pytest.mark.parametrize("exponent", [-40, 40])
def test_the_rank_one_start_has_no_units(exponent: int) -> None:
    X, labels = classes(3, 10, 25, shift=0.0)
    v = rank_one_direction(all_pairs(X, labels))
    scaled = rank_one_direction(all_pairs(2.0**exponent * X, labels))
    np.testing.assert_array_equal(2.0**exponent * scaled, v)


def test_the_rank_one_start_ends_when_it_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is limited to a fifth of the time left, and in the number of steps."""
    loss, seen = all_pairs(*classes(3, 10, 25, shift=0.0)), []
    solve = scipy.optimize.linprog

    def watched(*args: Any, options: Any, **more: Any) -> Any:
        seen.append(options)
        return solve(*args, options=options, **more)

    monkeypatch.setattr("scipy.optimize.linprog", watched)
    with using_clock(lambda: 0.0):
        deadline = Deadline(5.0)
    with deadline.active():
        assert rank_one_direction(loss) is not None
    assert seen[0]["time_limit"] == pytest.approx(1.0) and seen[0]["maxiter"] == 800_000
    monkeypatch.setattr("lopro.metric.starts.WORK", 250.0)
    assert rank_one_direction(loss) is None and seen[1]["maxiter"] == 1
    with Deadline(1e-9).active():  # not enough to set it up
        assert rank_one_direction(loss) is None and len(seen) == 2


@pytest.mark.parametrize("seed", range(5))
def test_the_rank_one_start_meets_every_target(seed: int) -> None:
    X, labels = classes(seed, 10, 25, shift=0.0)
    loss = all_pairs(X, labels)
    v = rank_one_direction(loss)
    A = np.outer(v, v)
    np.testing.assert_allclose(loss.distances(A), loss.targets, atol=1e-9)
    assert loss.value(A) <= 1e-18
    assert np.count_nonzero(v) <= 10
    # The least l1 norm: moving within the solutions of the equations does not decrease it.
    rng = np.random.default_rng(seed)
    centred = X - X.mean(axis=0)
    null = np.linalg.svd(centred)[2][np.linalg.matrix_rank(centred) :]
    for _ in range(50):
        step = null.T @ rng.standard_normal(len(null))
        np.testing.assert_allclose(
            loss.distances(np.outer(v + step, v + step)), loss.targets, atol=1e-8
        )
        assert np.abs(v + 0.1 * step).sum() >= np.abs(v).sum() - 1e-10


def test_sparse_graphs_of_pairs_are_sufficient() -> None:
    """A chain of dissimilar, similar, dissimilar pairs determines both classes."""
    X = np.random.default_rng(0).standard_normal((4, 6))
    loss = PairLoss(X, ([0, 1, 3], [1, 2, 2]), [3.0, 0.0, 3.0])
    v = rank_one_direction(loss)
    assert loss.value(np.outer(v, v)) <= 1e-18


@pytest.mark.parametrize(
    ("pairs", "targets"),
    [
        (([0, 1, 0], [1, 2, 2]), [2.0, 2.0, 2.0]),  # three classes
        (([0, 1], [1, 2]), [2.0, 1.0]),  # more than two values
        (([0, 1], [1, 2]), [0.0, 0.0]),  # nothing to separate
        (([0], [1]), [2.0]),  # a sample without a pair
        (([0, 0, 1], [1, 1, 2]), [2.0, 0.0, 2.0]),  # a pair with two targets
    ],
)
def test_no_rank_one_start(pairs: tuple[list[int], list[int]], targets: list[float]) -> None:
    X = np.random.default_rng(1).standard_normal((3, 8))
    assert rank_one_direction(PairLoss(X, pairs, targets)) is None


def test_no_rank_one_start_with_more_samples_than_features() -> None:
    assert rank_one_direction(all_pairs(*classes(0, 10, 3))) is None


def test_no_rank_one_start_where_samples_coincide_across_the_classes() -> None:
    X, labels = classes(0, 6, 12)
    X[1] = X[0]
    assert labels[0] != labels[1]
    assert rank_one_direction(all_pairs(X, labels)) is None


def test_the_better_start_is_taken() -> None:
    X, labels = classes(0, 8, 20, shift=0.0)
    for tau, rank_one in ((1e-4, True), (10.0, False)):
        objective = SparseMetric(all_pairs(X, labels), tau)
        A = best_start(objective)
        assert (np.linalg.matrix_rank(A) == 1) == rank_one
        identity = scaled_identity(objective.loss) * np.eye(20)
        assert value(objective, A) <= value(objective, identity)
