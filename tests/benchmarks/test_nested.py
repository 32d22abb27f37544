"""Nested cross-validation of metrics: choices do not use the test part."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest
from support.benchmark_runs import ABSENT, PRESENT, benchmarks_importable

if not PRESENT:
    pytest.skip(ABSENT, allow_module_level=True)
pytest.importorskip("sklearn", reason="the data sets come from scikit-learn")

with benchmarks_importable():
    from benchmarks.bpdn.adapter import OutOfTime
    from benchmarks.metric_learning import nested
    from benchmarks.metric_learning.nested_methods import METHODS, Method


def two_features(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The first feature determines the class, the second is noise and much larger."""
    y = np.arange(60) % 2
    X = np.column_stack([y + 0.1 * rng.standard_normal(60), 100.0 * rng.standard_normal(60)])
    return X, y


def test_the_better_choice_is_taken_and_measured_outside(rng: np.random.Generator) -> None:
    X, y = two_features(rng)
    seen: list[int] = []

    def pick(X: np.ndarray, y: np.ndarray, choice: float) -> np.ndarray:
        seen.append(len(X))
        L = np.zeros((1, 2))
        L[0, int(choice)] = 1.0
        return L

    outcome = nested.nested_score(Method("pick", pick, (1.0, 0.0)), X, y, 3, 10.0)
    assert outcome.accuracies == [1.0, 1.0, 1.0] and outcome.used == [1.0, 0.0]
    assert outcome.ranks == [1, 1, 1] and not outcome.failure
    # Two inner folds for each choice, then all of the training part: 40 of 60.
    assert seen == 3 * [20, 20, 20, 20, 40]


def test_units_come_from_the_training_part(rng: np.random.Generator) -> None:
    X, y = two_features(rng)
    for name, expected in (("raw", 0.8), ("standardised", 1.0)):
        found = np.mean(nested.nested_score(METHODS[name], X, y, 3, 10.0).accuracies)
        assert found <= expected if name == "raw" else found >= 0.9
    mapped, _ = nested._mapped(METHODS["standardised"], X[:40], y[:40], X[40:], 0.0, 10.0)
    np.testing.assert_allclose(mapped[0].std(axis=0), 1.0)
    assert abs(mapped[1].std(axis=0) - 1.0).max() > 1e-3


def test_fits_that_take_too_long_or_fail_are_reported(rng: np.random.Generator) -> None:
    X, y = two_features(rng)

    def slow(X: np.ndarray, y: np.ndarray, choice: float) -> np.ndarray:
        while True:
            time.process_time()

    def wrong(X: np.ndarray, y: np.ndarray, choice: float) -> np.ndarray:
        raise ValueError("no such thing")

    assert "no answer" in nested.nested_score(Method("slow", slow), X, y, 3, 0.05).failure
    failed = nested.nested_score(Method("wrong", wrong), X, y, 3, 1.0)
    assert failed.failure == "ValueError: no such thing" and "no such thing" in nested.row(failed)
    with pytest.raises(OutOfTime), nested.time_cap(0.01, processor=True):
        slow(X, y, 0.0)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--data", "iris", "--method", "standardised", "lopro, l1", "--folds", "2"]
    assert nested.main([*options, "--output", str(tmp_path)]) == 0
    table = capsys.readouterr().out
    assert "| lopro, l1 | 0.9" in table
    found = json.loads((tmp_path / "metric_nested.json").read_text(encoding="utf-8"))["iris"][
        "outcomes"
    ]
    assert [one["method"] for one in found] == ["standardised", "lopro, l1"]
    assert all(len(one["accuracies"]) == 2 for one in found)
