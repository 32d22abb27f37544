"""The benchmark of metric learning runs, and its judge is fair: at toy size, as a command."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.benchmark_runs import ABSENT, PRESENT, benchmarks_importable, run_benchmark

import lopro

if not PRESENT:
    pytest.skip(ABSENT, allow_module_level=True)
pytest.importorskip("sklearn", reason="the data sets come from scikit-learn")

with benchmarks_importable():
    from benchmarks.metric_learning.foreign import Environment
    from benchmarks.metric_learning.judge import Judge
    from benchmarks.metric_learning.knn import Score, Splits, _fitted_there
    from benchmarks.metric_learning.peers import Triangle, moments
    from benchmarks.metric_learning.problems import toy

CERTIFIED = ["lopro.learn_metric", "ConsensusADMM"]
DESCENT = ["LoPGD", "LoPGD, last iterate", "OPGD", "PGD", "PGD, last iterate"]
CONIC = ["CVXPY + CLARABEL", "CVXPY + SCS 1e-04", "CVXPY + SCS 1e-06"]
METRICS = ["Euclidean", "lopro", "NCA (scikit-learn)", "SDML (metric-learn)"]


def called(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    options = ["--quick", "--problem", "wine", "--output", str(folder)]
    return run_benchmark("metric_learning", *options, *arguments)


@pytest.fixture(scope="module")
def wine(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("metric")
    run = called(folder, "--time-limit", "1.5", "--tol", "1e-5")
    assert run.returncode == 0, run.stderr
    found: dict[str, Any] = json.loads(
        (folder / "metric_learning.json").read_text(encoding="utf-8")
    )["wine"]
    found["figures"] = [path.name for path in folder.glob("*.png")]
    return found


def row_of(problem: dict[str, Any], method: str) -> dict[str, Any]:
    (row,) = (row for row in problem["rows"] if row["method"] == method)
    if "not installed" in row["note"]:
        pytest.skip(row["note"])
    return row


def test_every_method_has_a_row(wine: dict[str, Any]) -> None:
    assert [row["method"] for row in wine["rows"]] == [*CERTIFIED, *DESCENT, *CONIC]


@pytest.mark.parametrize("method", CONIC)
def test_peers_are_called_correctly(wine: dict[str, Any], method: str) -> None:
    row = row_of(wine, method)
    assert row["verdict"]["violation_projected"] <= 1e-12
    # Their own multiplier proves the gap of their tolerance by the library's dual.
    assert row["own_gap"] <= 1e-2
    assert row["gap"] <= 1e-3


@pytest.mark.parametrize("method", [*CERTIFIED, *DESCENT, *CONIC])
def test_lower_bounds_are_below_every_value(wine: dict[str, Any], method: str) -> None:
    row = row_of(wine, method)
    values = [r["verdict"]["objective"] for r in wine["rows"] if r["verdict"]]
    assert row["lower_bound"] <= min(values) * (1.0 + 1e-9)
    assert "WRONG" not in row["note"]


@pytest.mark.parametrize("method", DESCENT)
def test_descent_is_tuned_and_has_a_curve(wine: dict[str, Any], method: str) -> None:
    row = row_of(wine, method)
    assert "/ L_f" in row["note"]
    assert row["snapshots"]
    assert row["counts"]["projections"] >= 1


def test_the_figure_is_drawn(wine: dict[str, Any]) -> None:
    pytest.importorskip("matplotlib")
    assert wine["figures"] == ["metric_wine.png"]


def test_the_judge_projects_before_it_evaluates() -> None:
    instance = toy()
    A = np.diag([1.0, 0.5, -2.0])
    verdict = Judge(instance)(A)
    assert verdict.violation > 0.1 and verdict.violation_projected == 0.0
    assert verdict.objective == pytest.approx(
        instance.objective.value(np.diag([1.0, 0.5, 0.0])), rel=1e-12
    )
    best = lopro.learn_metric(instance.X, instance.labels, l1=instance.l1, tol=1e-6)
    assert verdict.lower_bound <= best.fun


def test_the_moments_are_those_of_all_pairs() -> None:
    loss, triangle = toy().loss, Triangle(3)
    Q, b, c = moments(loss, triangle)
    X, (first, second) = np.asarray(loss.X), loss.pairs
    Z = triangle.of_squares(X[first] - X[second])
    n = len(Z)
    np.testing.assert_allclose(Q, Z.T @ Z / n, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(b, Z.T @ loss.targets / n, rtol=1e-12, atol=1e-12)
    A = np.array([[2.0, 0.3, -0.1], [0.3, 1.0, 0.2], [-0.1, 0.2, 0.7]])
    a = A[triangle.rows, triangle.columns]
    assert 0.5 * a @ Q @ a - b @ a + c == pytest.approx(loss.value(A), rel=1e-12)
    np.testing.assert_array_equal((triangle.to_matrix @ a).reshape(3, 3, order="F"), A)


def test_knn_scores_every_metric_and_a_failed_environment_is_a_failure(tmp_path: Path) -> None:
    # A file where the environment should be: it cannot be created, which must be reported.
    blocked = tmp_path / "blocked"
    blocked.write_text("not a folder", encoding="utf-8")
    options = ("--splits", "2", "--time-limit", "10", "--environment", str(blocked))
    run = called(tmp_path, "--knn", "--metric", *METRICS, *options)
    assert run.returncode == 0, run.stderr
    found = json.loads((tmp_path / "metric_knn.json").read_text(encoding="utf-8"))["wine"]
    scores = {score["metric"]: score for score in found["scores"]}
    for metric in METRICS[:3]:
        assert len(scores[metric]["accuracies"]) == 2 and not scores[metric]["failures"]
        assert min(scores[metric]["accuracies"]) > 0.5
    assert found["foreign"].startswith("no environment")
    failed = scores[METRICS[3]]
    assert not failed["accuracies"] and len(failed["failures"]) == 2
    assert "no environment" in failed["failures"][0]


class Answering(Environment):
    """An environment whose worker solved the first split, failed in the second, then ran out of time."""

    def fit(self, *_: Any) -> tuple[dict[str, np.ndarray], str]:
        answers = {"map_0": np.eye(3), "seconds_0": np.array(0.5), "error_1": np.array("Bad: no")}
        return answers, "no answer within 1 s"


def test_failed_splits_are_distinguished_from_others() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(30) % 2
    score = Score("LMNN (metric-learn)")
    splits = Splits(rng.standard_normal((30, 3)) + 5.0 * y[:, None], y, 3, 3)
    _fitted_there(score, splits, 1.0, Answering(Path("unused")))
    assert score.accuracies == [1.0] and score.seconds == [0.5]
    assert score.failures == ["split 1: Bad: no", "split 2: no answer within 1 s"]
