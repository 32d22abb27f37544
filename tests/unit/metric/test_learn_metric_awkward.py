"""`lopro.learn_metric` on difficult data: duplicates, constants, extreme weights and units."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.metric_known import check, classes

import lopro

Matrix = Any


@pytest.mark.parametrize("l1", [0.0, 1e-3, 0.5])
@pytest.mark.parametrize("d", [1, 3, 70])
def test_a_single_pair(d: int, l1: float) -> None:
    """One equation: some diagonal matrix meets it at no cost."""
    X = np.random.default_rng(d).standard_normal((2, d))
    result = lopro.learn_metric(X, [0, 1], l1=l1, tol=1e-4)
    check(result, X, np.array([0, 1]), l1)
    assert result.success and result.fun <= 1e-8


def test_two_classes_of_which_one_has_one_sample() -> None:
    X, _ = classes(6, 10, 4)
    labels = np.array([1] + [0] * 9)
    result = lopro.learn_metric(X, labels, l1=0.01, tol=1e-5)
    check(result, X, labels, 0.01)
    assert result.success


def test_every_sample_a_class_of_its_own() -> None:
    X, _ = classes(7, 12, 3)
    labels = np.arange(12)
    result = lopro.learn_metric(X, labels, l1=0.01, tol=1e-5)
    check(result, X, labels, 0.01)
    assert result.success


@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize("shape", [(12, 4), (6, 9)])
def test_duplicate_points(shape: tuple[int, int], across: bool) -> None:
    """Within a class they change nothing; across classes their target cannot be met."""
    X, labels = classes(8, *shape)
    X[1 if across else 2] = X[0]
    result = lopro.learn_metric(X, labels, l1=0.01, tol=1e-5)
    check(result, X, labels, 0.01)
    n = len(X) * (len(X) - 1) // 2
    assert result.success and result.fun >= (2.0 / n if across else 0.0)


@pytest.mark.parametrize("constant", [0.0, 7.0, 0.1, -1e6 / 3])
@pytest.mark.parametrize("shape", [(12, 5), (6, 9), (8, 80)])
@pytest.mark.parametrize("l1", [0.0, 0.02])
def test_constant_features_are_never_used(
    shape: tuple[int, int], constant: float, l1: float
) -> None:
    X, labels = classes(9, *shape)
    X[:, [2, 4]] = constant
    result = lopro.learn_metric(X, labels, l1=l1, tol=1e-4)
    check(result, X, labels, l1)
    assert result.success
    assert abs(result.x[[2, 4]]).max() <= (0.0 if l1 > 0.0 else 1e-12)
    without = lopro.learn_metric(np.delete(X, [2, 4], axis=1), labels, l1=l1, tol=1e-4)
    assert result.fun == pytest.approx(without.fun, rel=2e-4, abs=1e-8)


@pytest.mark.parametrize("shape", [(20, 4), (5, 9), (10, 10), (8, 80)])
def test_without_the_norm(shape: tuple[int, int]) -> None:
    X, labels = classes(10, *shape)
    result = lopro.learn_metric(X, labels, l1=0.0, tol=1e-5)
    check(result, X, labels, 0.0)
    assert result.success and result.fun == pytest.approx(result.loss, rel=1e-9, abs=1e-14)
    if shape[0] <= shape[1]:
        assert result.fun <= 1e-6  # enough features to meet every target


@pytest.mark.parametrize("shape", [(20, 4), (6, 9), (30, 80)])
def test_a_huge_norm_leaves_a_diagonal_metric(shape: tuple[int, int]) -> None:
    X, labels = classes(11, *shape)
    result = lopro.learn_metric(X, labels, l1=1e4, tol=1e-4)
    check(result, X, labels, 1e4)
    assert result.success
    # The same by nonnegative least squares in the diagonal.
    import scipy

    i, j = np.triu_indices(len(X), 1)
    squares, targets = np.square(X[i] - X[j]), np.where(labels[i] == labels[j], 0.0, 2.0)
    _, residual = scipy.optimize.nnls(squares, targets)
    assert result.fun == pytest.approx(residual**2 / (2 * len(targets)), rel=2e-4)
    off = result.x - np.diag(np.diag(result.x))
    assert abs(off).sum() <= 1e-8


@pytest.mark.parametrize("offset", [1e3, 1e6])
def test_offsets_do_not_matter(offset: float) -> None:
    X, labels = classes(12, 20, 4)
    result = lopro.learn_metric(X, labels, l1=0.01, tol=1e-6)
    moved = lopro.learn_metric(X + offset, labels, l1=0.01, tol=1e-6)
    assert moved.success and moved.fun == pytest.approx(result.fun, rel=1e-5)


@pytest.mark.parametrize("size", [1e-6, 1e6])
def test_units_of_all_features_together(size: float) -> None:
    """Scaling the samples scales the matrix; the norm scales along when its weight does."""
    X, labels = classes(13, 20, 4)
    result = lopro.learn_metric(X, labels, l1=0.01, tol=1e-6)
    other = lopro.learn_metric(size * X, labels, l1=0.01 * size**2, tol=1e-6)
    assert other.success and other.fun == pytest.approx(result.fun, rel=1e-5)
    np.testing.assert_allclose(other.x * size**2, result.x, atol=1e-3 * abs(result.x).max())


@pytest.mark.parametrize("apart", [1e-3, 1e-6, 1e-8])
def test_no_bound_exceeds_that_of_the_difference_of_two_features(apart: float) -> None:
    """Two features differ slightly, by a multiple of the class: ``f`` is almost zero at a ``v v'``.

    In the squares of the differences this direction is of the size of rounding.
    """
    labels = np.repeat([0, 1], 10)
    x = np.random.default_rng(0).standard_normal(20)
    X = np.stack([x, x + apart * (labels - 0.5)], axis=1)
    v = np.sqrt(2.0) / apart * np.array([1.0, -1.0])
    first, second = np.triu_indices(20, 1)
    targets = np.where(labels[first] == labels[second], 0.0, 2.0)
    at_v = np.mean(np.square(targets - np.square((X[first] - X[second]) @ v))) / 2.0
    result = lopro.learn_metric(X, labels, l1=0.0, max_iter=2000)
    assert result.certificate.lower_bound <= at_v
    assert not result.success or result.fun <= 1e-6


@pytest.mark.parametrize("l1", [0.0, 0.01])
def test_groups_that_no_pair_connects_may_lie_far_apart(l1: float) -> None:
    X, labels = classes(15, 20, 3)
    group = np.repeat([0, 1], 10)
    first, second = np.triu_indices(20, 1)
    inside = group[first] == group[second]
    pairs = first[inside], second[inside]
    targets = np.where(labels[pairs[0]] == labels[pairs[1]], 0.0, 2.0)
    near = lopro.learn_metric(X, pairs=pairs, targets=targets, l1=l1, tol=1e-6)
    shifted = X + 2.0**25 * group[:, None] * np.array([1.0, -1.0, 2.0])
    far = lopro.learn_metric(shifted, pairs=pairs, targets=targets, l1=l1, tol=1e-6)
    assert near.success and far.success
    assert far.fun == pytest.approx(near.fun, rel=1e-5)


def test_features_need_not_be_standardised() -> None:
    """In wine's own units one feature is five hundred times as large as another."""
    datasets = pytest.importorskip("sklearn.datasets")
    X, labels = datasets.load_wine(return_X_y=True)
    result = lopro.learn_metric(X, labels, l1=0.01, tol=1e-3, max_iter=2000)
    assert result.success
