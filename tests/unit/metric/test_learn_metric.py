"""`lopro.learn_metric`: every kind of input, valid and invalid."""

from __future__ import annotations

from typing import Any

import array_api_strict
import numpy as np
import pytest
from support.metric_known import all_pairs, check, classes, value

import lopro
from lopro.metric import SparseMetric

Matrix = Any


def test_a_metric_from_labels() -> None:
    X, labels = classes(0, 30, 5)
    result = lopro.learn_metric(X, labels, l1=0.01)
    check(result, X, labels, 0.01)
    assert result.success and result.certificate.relative_gap <= 1e-3
    assert result.fun < value(SparseMetric(all_pairs(X, labels), 0.01), 0.2 * np.eye(5))
    # The factor is the map into the new space.
    far = X @ result.factor.T
    between = far[labels == 0].mean(axis=0) - far[labels == 1].mean(axis=0)
    assert np.linalg.norm(between) > 0.3
    assert {0, 1} <= set(result.features.tolist())


def test_all_equivalent_calls_agree() -> None:
    X, labels = classes(1, 12, 4)
    i, j = np.triu_indices(12, 1)
    targets = np.where(labels[i] == labels[j], 0.0, 2.0)
    options: dict[str, Any] = {"l1": 0.02, "tol": 1e-7}
    results = [
        lopro.learn_metric(X, labels, **options),
        lopro.learn_metric(X, labels, pairs=(i, j), **options),
        lopro.learn_metric(X, labels, pairs=np.column_stack([i, j]), **options),
        lopro.learn_metric(X, pairs=(j, i), targets=targets, **options),
        lopro.learn_metric(X, pairs=list(zip(i, j, strict=True)), targets=list(targets), **options),
        lopro.learn_metric(pairs=X[i] - X[j], targets=targets, **options),
        lopro.learn_metric(X.tolist(), labels.tolist(), **options),
        lopro.learn_metric(X, np.array(["left", "right"])[labels], **options),
        lopro.learn_metric(X, [f"class {c}" for c in labels], **options),
        lopro.learn_metric(X, labels == 1, **options),
        lopro.learn_metric(X, 0.5 * labels, **options),
        lopro.learn_metric(X + 1e4, labels, **options),
    ]
    for result in results:
        assert result.success
        assert result.fun == pytest.approx(results[0].fun, rel=1e-6)
        np.testing.assert_allclose(result.x, results[0].x, atol=1e-4)


def test_integers_are_samples_too() -> None:
    X = np.array([[0, 1, 5], [1, 1, 5], [4, 0, 5], [5, 2, 5]])
    result = lopro.learn_metric(X, [0, 0, 1, 1], l1=0.01)
    check(result, X, np.array([0, 0, 1, 1]), 0.01)
    assert result.x.dtype == np.float64


def test_single_precision() -> None:
    X, labels = classes(2, 20, 4)
    double = lopro.learn_metric(X, labels, l1=0.02, tol=1e-4)
    single = lopro.learn_metric(X.astype(np.float32), labels, l1=0.02, tol=1e-4)
    assert single.success and single.x.dtype == np.float32 and single.factor.dtype == np.float32
    assert single.fun == pytest.approx(double.fun, rel=2e-4)
    assert np.linalg.eigvalsh(single.x.astype(np.float64))[0] >= -1e-6


@pytest.mark.parametrize("method", [None, lopro.ConsensusADMM()])
@pytest.mark.parametrize("shape", [(12, 4), (6, 9)])
@pytest.mark.parametrize("l1", [0.0, 0.02])
def test_the_array_standard(shape: tuple[int, int], l1: float, method: Any) -> None:
    X, labels = classes(3, *shape)
    plain = lopro.learn_metric(X, labels, l1=l1, tol=1e-3, method=method)
    strict = lopro.learn_metric(
        array_api_strict.asarray(X),
        array_api_strict.asarray(labels),
        l1=l1,
        tol=1e-3,
        method=method,
    )
    assert strict.success and isinstance(strict.x, type(array_api_strict.asarray(X)))
    assert isinstance(strict.factor, type(strict.x))
    assert strict.fun == pytest.approx(plain.fun, rel=2e-3, abs=1e-7)
    assert np.from_dlpack(strict.features).tolist() == plain.features.tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(12, 4), (6, 20)])
def test_torch(shape: tuple[int, int], dtype: str) -> None:
    torch = pytest.importorskip("torch")
    X, labels = classes(4, *shape)
    tol = 1e-3 if dtype == "float32" else 1e-5
    tensor = torch.asarray(X, dtype=getattr(torch, dtype))
    method = lopro.FeatureWorkingSet(all_below=8, join=4)
    result = lopro.learn_metric(tensor, torch.asarray(labels), l1=0.1, tol=tol, method=method)
    plain = lopro.learn_metric(X, labels, l1=0.1, tol=tol)
    assert result.success and isinstance(result.x, torch.Tensor) and result.x.dtype == tensor.dtype
    assert result.fun == pytest.approx(plain.fun, rel=2.0 * tol)
    admm = lopro.learn_metric(tensor, labels, l1=0.1, tol=tol, method=lopro.ConsensusADMM())
    assert admm.success and admm.x.dtype == tensor.dtype


def test_inputs_are_left_alone() -> None:
    X, labels = classes(5, 12, 5)
    X[:, 2] = 1.0
    i, j = np.triu_indices(12, 1)
    targets, A0 = np.where(labels[i] == labels[j], 0.0, 2.0), 0.1 * np.eye(5)
    inputs = (X, labels, i, j, targets, A0)
    before = [a.copy() for a in inputs]
    for a in inputs:
        a.setflags(write=False)
    for method in (None, lopro.ConsensusADMM(), lopro.FeatureWorkingSet(all_below=0, join=1)):
        for l1 in (0.0, 0.02):
            result = lopro.learn_metric(
                X, pairs=(i, j), targets=targets, A0=A0, l1=l1, method=method, max_iter=300
            )
            assert not np.shares_memory(result.x, A0)
    lopro.learn_metric(X, labels, max_iter=100)
    for a, old in zip(inputs, before, strict=True):
        np.testing.assert_array_equal(a, old)


# Wrong input.

GOOD = np.arange(12.0).reshape(4, 3) ** 1.5
LABELS = [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"labels": [1.0] * 4}, ValueError, "at least two classes, got only 1.0: with"),
        ({"labels": ["a"] * 4}, ValueError, "at least two classes"),
        ({"labels": [0, 1, 0]}, ValueError, "one entry for each of 4 samples"),
        ({"labels": [[0, 1], [0, 1]]}, ValueError, "one entry for each of 4 samples"),
        ({"labels": [0, 1, np.nan, 1]}, ValueError, "labels must not contain NaN"),
        ({"labels": None}, ValueError, "labels or pairs are needed"),
        ({"X": GOOD * np.nan}, ValueError, "X must be finite"),
        ({"X": np.where(GOOD == 0.0, np.inf, GOOD)}, ValueError, "X must be finite"),
        ({"X": GOOD[0]}, ValueError, "X must have 2 dimension"),
        ({"X": GOOD[:0], "labels": []}, ValueError, "X must not be empty"),
        ({"X": GOOD[:, :0]}, ValueError, "X must not be empty"),
        ({"X": GOOD[:1], "labels": [0]}, ValueError, "at least two classes"),
        ({"X": np.ones((4, 3))}, ValueError, "no feature in which"),
        ({"X": np.full((4, 3), 0.1)}, ValueError, "no feature in which"),
        ({"X": GOOD * 1j}, TypeError, "X must be real"),
        ({"X": "abc"}, TypeError, "X must be an array of numbers"),
        (
            {"labels": np.array([None, "a", "b", "a"], dtype=object)},
            TypeError,
            "none may be missing",
        ),
        ({"labels": np.array([1, "a", 2, "a"], dtype=object)}, TypeError, "labels must be all"),
        ({"l1": -1e-3}, ValueError, "l1 must be in"),
        ({"l1": np.nan}, ValueError, "l1 must be finite"),
        ({"l1": np.inf}, ValueError, "l1 must be finite"),
        ({"l1": "1"}, TypeError, "l1 must be a real number"),
        ({"targets": [0.0, 2.0]}, ValueError, "targets belong to pairs"),
        ({"pairs": ([0, 1], [1, 4])}, ValueError, r"pairs\[1\] must lie in \[0, 4\)"),
        ({"pairs": ([0, -1], [1, 2])}, ValueError, r"pairs\[0\] must lie in \[0, 4\)"),
        ({"pairs": ([0, 1], [1, 2, 3])}, ValueError, "two arrays of one length"),
        ({"pairs": ([0.0], [1.0])}, TypeError, "must hold integers"),
        ({"pairs": ([0, 1], [2, 3])}, ValueError, "none of the 2 pairs is of two classes"),
        ({"max_pairs": 1, "seed": 0, "labels": [1, 0, 2, 2]}, ValueError, "none of the 1 pairs"),
        ({"pairs": np.ones((3, 3), dtype=int)}, ValueError, "an array with two columns"),
        ({"pairs": ([], [])}, (ValueError, TypeError), "pairs"),
        ({"pairs": ([0], [1]), "targets": [1.0, 2.0]}, ValueError, "one entry for each of 1 pair"),
        ({"pairs": ([0], [1]), "targets": [-1.0]}, ValueError, "targets must have a positive"),
        ({"pairs": ([0], [1]), "targets": [0.0]}, ValueError, "targets must have a positive"),
        ({"pairs": ([0], [1]), "targets": [np.nan]}, ValueError, "targets must be finite"),
        ({"pairs": ([0], [1]), "labels": None}, ValueError, "targets are needed"),
        ({"X": None}, ValueError, "without X give the differences"),
        ({"X": None, "pairs": GOOD, "targets": [1.0] * 4}, ValueError, "labels belong to"),
        (
            {"X": None, "labels": None, "pairs": 0.0 * GOOD, "targets": [1.0] * 4},
            ValueError,
            "are zero",
        ),
        ({"max_pairs": 0}, ValueError, "max_pairs must be at least 1"),
        ({"max_pairs": 2.5}, TypeError, "max_pairs must be an integer"),
        ({"seed": "x", "max_pairs": 2}, (TypeError, ValueError), "seed"),
        ({"A0": np.eye(2)}, ValueError, "A0 must have shape"),
        ({"A0": np.array([[1.0, 2, 0], [0, 1, 0], [0, 0, 1]])}, ValueError, "A0 must be symmetric"),
        ({"A0": np.eye(3) * np.nan}, ValueError, "A0 must be finite"),
        ({"tol": -1.0}, ValueError, "tol"),
        ({"method": "admm"}, TypeError, "method must be a method"),
    ],
)
def test_wrong_input_is_named(arguments: dict[str, Any], error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        lopro.learn_metric(**{"X": GOOD, "labels": LABELS, **arguments})


def test_the_methods_refuse_other_problems() -> None:
    problem = lopro.Problem(
        lopro.objectives.SquaredDistance(np.eye(2)), lopro.constraints.PSDCone(2)
    )
    for method in (lopro.FeatureWorkingSet(), lopro.ConsensusADMM()):
        with pytest.raises(lopro.errors.MissingCapabilityError, match="SparseMetric"):
            lopro.solve(problem, method=method)
