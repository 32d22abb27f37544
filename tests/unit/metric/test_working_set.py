"""The working set: unused features are removed, and those that were added again are kept."""

from __future__ import annotations

import numpy as np
import pytest

from lopro.metric import SparseMetric
from lopro.metric.api import metric_problem
from lopro.metric.loss import PairLoss
from lopro.metric.working_set import WorkingProblem


def working_problem(features: list[int]) -> WorkingProblem:
    """Return a problem whose last two features are noise that the solution does not use."""
    rng = np.random.default_rng(0)
    side = np.arange(10) % 2
    X = np.column_stack(
        [2.0 * side, rng.standard_normal((10, 4)), 9.0 * rng.standard_normal((10, 2))]
    )
    first, second = np.triu_indices(10, 1)
    targets = np.where(side[first] == side[second], 0.0, 2.0)
    objective = SparseMetric(PairLoss(X, (first, second), targets), 0.1)
    return WorkingProblem(objective, np.array(features), 0.1 * np.eye(len(features)))


def test_unused_features_are_removed_without_a_change_of_the_optimum() -> None:
    work = working_problem([0, 5, 6])
    work.solve(1e-8, tick=lambda: True)
    before = work.fun
    work.join(np.array([1]))
    assert list(work.features) == [0, 1]
    work.solve(1e-8, tick=lambda: True)
    assert work.fun <= before * (1.0 + 1e-6)
    assert 5 in work.outside
    assert not {5, 6} & set(work.violated(most=5, threshold=1e-3).tolist())


def test_values_count_as_zero_below_a_billionth_of_the_value_of_zero() -> None:
    objective = working_problem([0]).objective
    at_zero = objective.value(np.zeros(objective.shape))
    assert metric_problem(objective.loss, 0.1).gap_scale == pytest.approx(1e-9 * at_zero)


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_the_accuracy_is_relative_to_the_value(unit: float) -> None:
    """Targets and weight in other units scale the matrix by the one and the value by its square."""
    plain = working_problem([1, 2, 3]).objective
    loss = PairLoss(plain.loss.X, plain.loss.pairs, unit * plain.loss.targets)
    work = WorkingProblem(
        SparseMetric(loss, unit * plain.l1), np.arange(1, 4), 0.1 * unit * np.eye(3)
    )
    steps = [0]

    def tick() -> bool:
        steps[0] += 1
        return True

    assert work.solve(1e-4, tick)
    assert 0.0 <= work.gap <= 1e-4 * work.fun
    twin = working_problem([1, 2, 3])
    twin.solve(1e-4, tick=lambda: True)
    assert work.fun == pytest.approx(unit**2 * twin.fun, rel=1e-9)
    assert steps[0] == twin.admm.iterations


@pytest.mark.parametrize("iterations", [1, 3])
def test_points_with_exact_zeros_are_semidefinite_from_the_beginning(iterations: int) -> None:
    """Whenever it is stopped: the diagonal of the thresholded matrix of ADMM is increased until it is psd."""
    work = working_problem([0, 1, 2, 3, 5])
    left = iterations

    def tick() -> bool:
        nonlocal left
        left -= 1
        return left > 0

    assert not work.solve(1e-8, tick)
    B = work.admm.B
    assert np.linalg.eigvalsh(B)[0] < -1e-6  # the lift is needed
    lifted = work.sparse_point
    assert np.linalg.eigvalsh(lifted)[0] >= -1e-15
    off = ~np.eye(len(B), dtype=bool)
    assert np.array_equal(lifted[off], B[off])


def test_a_feature_added_again_is_kept() -> None:
    work = working_problem([0, 5, 6])
    work.solve(1e-8, tick=lambda: True)
    work.join(np.array([1]))
    work.join(np.array([5]))
    work.solve(1e-8, tick=lambda: True)
    work.join(np.array([2]))
    assert 5 in work.features


def test_points_move_along_with_their_features() -> None:
    work = working_problem([0, 5, 6])
    work.solve(1e-8, tick=lambda: True)
    work.join(np.array([1]))
    value = work.admm.objective.value
    assert work.fun == value(work.point)
    assert work.sparse_fun == value(work.sparse_point)
    assert np.linalg.eigvalsh(work.answer).min() >= -1e-12
