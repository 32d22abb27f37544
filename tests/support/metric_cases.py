"""Small problems of sparse metric learning of every kind, for tests of its lower bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
from support.metric_known import all_pairs, classes

from lopro.metric import SparseMetric

Matrix = Any


def psd(rng: np.random.Generator, d: int, rank: int) -> Matrix:
    L = rng.standard_normal((rank, d)) * (rng.random((rank, d)) < 0.5)
    return L.T @ L


def narrow() -> SparseMetric:
    """More samples than features."""
    return SparseMetric(all_pairs(*classes(0, 14, 4)), 0.05)


def wide() -> SparseMetric:
    """More features than samples: the pairs do not span."""
    return SparseMetric(all_pairs(*classes(1, 5, 8)), 0.02)


def not_sparse() -> SparseMetric:
    return SparseMetric(all_pairs(*classes(2, 12, 4)), 0.0)


def not_sparse_and_wide() -> SparseMetric:
    return SparseMetric(all_pairs(*classes(3, 5, 7)), 0.0)


def with_dead_features() -> SparseMetric:
    X, labels = classes(4, 10, 5)
    X[:, [2, 4]] = 7.0
    return SparseMetric(all_pairs(X, labels), 0.03)


def only_dead_but_one() -> SparseMetric:
    X, labels = classes(5, 6, 3)
    X[:, 1:] = 0.0
    return SparseMetric(all_pairs(X, labels), 0.0)


def badly_scaled() -> SparseMetric:
    X, labels = classes(6, 12, 4)
    return SparseMetric(all_pairs(X * [1.0, 20.0, 0.2, 3.0], labels), 0.01)


def heavy_norm() -> SparseMetric:
    return SparseMetric(all_pairs(*classes(7, 12, 4)), 1e3)


CASES = [
    narrow,
    wide,
    not_sparse,
    not_sparse_and_wide,
    with_dead_features,
    only_dead_but_one,
    badly_scaled,
    heavy_norm,
]
