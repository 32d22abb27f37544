"""Build the loss of metric learning from labels or from pairs of samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.arrays import Array, asarray_like, namespace, take, to_numpy
from lopro.core.validation import check_array, check_count, check_seed, host_array
from lopro.metric.all_pairs import DIFFERENT, SAME, AllPairsLoss
from lopro.metric.loss import PairLoss
from lopro.metric.pair_indices import checked_pairs

__all__ = ["DIFFERENT", "SAME", "pair_loss"]

#: Up to this number of samples all pairs are listed: at most 19,900 pairs, with any array library. Beyond,
#: the loss of all pairs is computed from moments.
LISTED_UP_TO = 200
#: The longest list of pairs with libraries other than NumPy, all pairs of 2000 samples: 32 MB of indices.
#: Pairs of more samples are sampled.
MAX_LISTED = 1_999_000
#: Up to this number of pairs they are drawn from a permutation of all (80 kB); of more, repetitions are
#: dropped.
_FEW = 10_000


def pair_loss(
    X: Any, labels: Any, pairs: Any, targets: Any, max_pairs: int | None, seed: Any
) -> PairLoss:
    """Return the loss that the arguments of `lopro.learn_metric` describe."""
    if max_pairs is not None:
        check_count("max_pairs", max_pairs)
    if X is None:
        return _of_differences(labels, pairs, targets)
    X = _as_floats(check_array("X", X, ndim=2, allow_complex=False))
    N = X.shape[0]
    classes = None if labels is None else _classes(labels, N)
    if pairs is None:
        if classes is None:
            raise ValueError("labels or pairs are needed along with X")
        if targets is not None:
            raise ValueError("targets belong to pairs: give pairs too, or leave targets out")
        if _by_moments(X, max_pairs):
            return _differing(AllPairsLoss(_centred(X), classes))
        most = MAX_LISTED if max_pairs is None else max_pairs
        first, second = _chosen_pairs(N, most, check_seed("seed", seed))
    else:
        first, second = checked_pairs(_index_pairs(pairs), N)
    if targets is None:
        if classes is None:
            raise ValueError("targets are needed: they cannot be derived without labels")
        goals = np.where(classes[first] == classes[second], SAME, DIFFERENT)
        if goals.max() == SAME:
            raise ValueError(
                f"none of the {len(first)} pairs is of two classes: the zero matrix is optimal"
            )
    else:
        goals = _checked_targets(targets, len(first))
    X = _centred(X) if pairs is None else _centred_by_component(X, first, second)
    return _differing(PairLoss(X, (first, second), asarray_like(goals, X)))


def _by_moments(X: Array, max_pairs: int | None) -> bool:
    """Whether to use all pairs without a list of them."""
    N = X.shape[0]
    every = max_pairs is None or max_pairs >= N * (N - 1) // 2
    return every and N > LISTED_UP_TO and isinstance(X, np.ndarray)


def _differing(loss: PairLoss) -> PairLoss:
    """Return the loss, whose samples are centred; raise `ValueError` if no pair differs in any feature."""
    # A feature that is constant among samples that pairs connect is exactly zero.
    if not bool(namespace(loss.X).any(loss.X * loss.X != 0.0)):
        raise ValueError("X has no feature in which the samples of any pair differ")
    return loss


def _as_floats(X: Array) -> Array:
    xp = namespace(X)
    return X if xp.isdtype(X.dtype, "real floating") else xp.astype(X, xp.float64)


def _centred(X: Array) -> Array:
    """Return the samples less their mean: large offsets would increase the rounding errors of differences."""
    # One sample is subtracted first: constant features become exactly zero.
    X = X - X[:1, :]
    return X - namespace(X).mean(X, axis=0, keepdims=True)


def _centred_by_component(X: Array, first: Any, second: Any) -> Array:
    """Return the samples less the mean of their connected component in the graph of the pairs.

    Distances between components do not enter the loss, but would increase its rounding errors.
    """
    N = X.shape[0]
    graph = scipy.sparse.coo_array((np.ones(len(first)), (first, second)), shape=(N, N))
    count, group = scipy.sparse.csgraph.connected_components(graph, directed=False)
    if count == 1:
        return _centred(X)
    _, leader, sizes = np.unique(group, return_index=True, return_counts=True)
    X = X - take(X, leader[group])
    order = np.argsort(group, kind="stable")
    values = to_numpy(X)[order].astype(np.float64)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    means = np.add.reduceat(values, starts, axis=0) / sizes[:, None]
    return X - asarray_like(means[group], X)


def _of_differences(labels: Any, pairs: Any, targets: Any) -> PairLoss:
    if pairs is None or targets is None:
        raise ValueError("without X give the differences of the pairs and their targets")
    if labels is not None:
        raise ValueError("labels belong to the samples X, which were not given")
    Z = _as_floats(check_array("pairs", pairs, ndim=2, allow_complex=False))
    goals = _checked_targets(targets, Z.shape[0])
    if not bool(namespace(Z).any(Z != 0.0)):
        raise ValueError("all differences in pairs are zero: no metric can be learned from them")
    return PairLoss.from_differences(Z, asarray_like(goals, Z))


def _checked_targets(targets: Any, count: int) -> Any:
    t = to_numpy(check_array("targets", targets, ndim=1, allow_complex=False))
    if len(t) != count:
        raise ValueError(f"targets must have one entry for each of {count} pairs, got {len(t)}")
    if t.max() <= 0.0:
        raise ValueError(
            "targets must have a positive entry: without one the zero matrix is optimal"
        )
    return t.astype(np.float64)


def _classes(labels: Any, samples: int) -> Any:
    values = host_array("labels", labels)
    if values.ndim != 1 or len(values) != samples:
        raise ValueError(
            f"labels must have one entry for each of {samples} samples, got {values.shape}"
        )
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise ValueError("labels must not contain NaN or infinity")
    try:
        found, classes = np.unique(values, return_inverse=True)
    except TypeError:
        raise TypeError(
            "labels must be all numbers or all strings, and none may be missing"
        ) from None
    if len(found) < 2:
        raise ValueError(
            f"labels must have at least two classes, got only {found[0]}: with one class the zero "
            "matrix is optimal"
        )
    return classes


def _chosen_pairs(N: int, max_pairs: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Return all pairs of samples, or ``max_pairs`` distinct random ones if there are more."""
    count = N * (N - 1) // 2
    if count <= max_pairs:
        return np.triu_indices(N, 1)
    if max_pairs > count // 3 or count <= _FEW:
        numbers = rng.choice(count, max_pairs, replace=False)
    else:
        # Draw twice the number required and drop repetitions: there is no list of all pairs.
        numbers = np.unique(rng.integers(0, count, 2 * max_pairs))
        numbers = rng.permutation(numbers)[:max_pairs]
    numbers = np.sort(numbers)
    # Pair number p of the upper triangle, row by row: solve the quadratic equation for its row.
    row = N - 2 - np.floor(np.sqrt(2.0 * (count - 1 - numbers) + 0.25) - 0.5).astype(np.int64)
    start = row * (2 * N - row - 1) // 2
    return row, numbers - start + row + 1


def _index_pairs(pairs: Any) -> tuple[Any, Any]:
    """Return two index arrays, given as such or as an array with two columns."""
    if isinstance(pairs, tuple) and len(pairs) == 2:
        return host_array("pairs[0]", pairs[0]), host_array("pairs[1]", pairs[1])
    array = host_array("pairs", pairs)
    if array.ndim != 2 or array.shape[1] != 2:
        raise ValueError(
            f"pairs must be two index arrays or an array with two columns, got shape {array.shape}"
        )
    return array[:, 0], array[:, 1]
