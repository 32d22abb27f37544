"""kNN accuracy of learned metrics: repeated stratified splits, everything learned from the training part."""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import asdict, dataclass, field
from statistics import mean, median, stdev
from typing import Any

import numpy as np
from _report import write_entry
from rich.console import Console
from rich.table import Table

from benchmarks.bpdn.adapter import OutOfTime, time_cap
from benchmarks.metric_learning.foreign import Environment, environment_at
from benchmarks.metric_learning.knn_methods import FOREIGN, HERE
from benchmarks.metric_learning.measure import said
from benchmarks.metric_learning.problems import QUICK_FEATURES, samples_of, standardised

__all__ = ["Score", "accuracy", "run_knn"]

TEST_SHARE = 0.3
#: The size of a data set with ``--quick``.
QUICK_SAMPLES = 60


@dataclass
class Score:
    """One metric on one data set: accuracies on the splits, and the errors on the others."""

    metric: str
    accuracies: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    #: Rows of the map: the dimension in which neighbours are searched.
    dimensions: list[int] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


class Splits:
    """A data set with its splits, the same for all metrics."""

    def __init__(self, X: np.ndarray, y: np.ndarray, count: int, neighbors: int) -> None:
        from sklearn.model_selection import StratifiedShuffleSplit

        self.X, self.neighbors = X, neighbors
        self.y = np.unique(y, return_inverse=True)[1]
        shuffled = StratifiedShuffleSplit(count, test_size=TEST_SHARE, random_state=0)
        self.parts = list(shuffled.split(X, self.y))

    def training(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return standardised training samples and their labels."""
        train = self.parts[k][0]
        return standardised(self.X[train]), self.y[train]

    def accuracy(self, k: int, L: np.ndarray) -> float:
        """Return the share of test samples that neighbours in ``X @ L.T`` classify correctly."""
        train, test = self.parts[k]
        spread = self.X[train].std(axis=0)
        scaled = (self.X - self.X[train].mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
        mapped = scaled @ L.T
        return accuracy(mapped[train], self.y[train], mapped[test], self.y[test], self.neighbors)


def accuracy(
    train: np.ndarray, labels: np.ndarray, test: np.ndarray, truth: np.ndarray, neighbors: int
) -> float:
    """Return the accuracy of scikit-learn's kNN classifier."""
    from sklearn.neighbors import KNeighborsClassifier

    model = KNeighborsClassifier(neighbors).fit(train, labels)
    return float(np.mean(model.predict(test) == truth))


def run_knn(options: argparse.Namespace, console: Console) -> None:
    """Measure all metrics on all data sets; print tables, write JSON."""
    told = {key: str(value) for key, value in vars(options).items()}
    with environment_at(options.environment) as environment:
        if any(name in FOREIGN for name in options.metric):
            console.print("creating the environment of metric-learn", highlight=False)
            environment.make()
            console.print(environment.failure or environment.versions, markup=False)
        for name in options.problem:
            samples = samples_of(name, options.colon)
            splits = _splits(samples.X, samples.labels, options)
            scores = []
            for metric in options.metric:
                console.print(f"running {name}: {metric}", markup=False, highlight=False)
                scores.append(_scored(metric, splits, options.time_limit, environment))
            console.print(_table(name, samples.name, splits, scores))
            entry = {
                "data": samples.name,
                "samples": len(splits.X),
                "features": splits.X.shape[1],
                "foreign": environment.failure or environment.versions,
                "scores": [asdict(score) for score in scores],
            }
            write_entry(options.output / "metric_knn.json", name, entry, told)


def _splits(X: np.ndarray, y: np.ndarray, options: argparse.Namespace) -> Splits:
    if options.quick:
        chosen = np.sort(np.random.default_rng(0).permutation(len(X))[:QUICK_SAMPLES])
        X, y = X[chosen, :QUICK_FEATURES], y[chosen]
    return Splits(X, y, options.splits, options.neighbors)


def _scored(metric: str, splits: Splits, limit: float, environment: Environment) -> Score:
    score = Score(metric)
    if metric in HERE:
        for k in range(len(splits.parts)):
            _fitted_here(score, splits, k, limit)
    else:
        _fitted_there(score, splits, limit * len(splits.parts), environment)
    return score


def _fitted_here(score: Score, splits: Splits, k: int, limit: float) -> None:
    X, y = splits.training(k)
    start = time.perf_counter()
    try:
        with time_cap(limit), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # failures to converge show in the accuracy
            L = HERE[score.metric](X, y, k)
        score.seconds.append(time.perf_counter() - start)
        _noted(score, splits, k, L)
    except OutOfTime:
        score.failures.append(f"split {k}: no answer within {limit:.0f} s")
    except Exception as error:
        score.failures.append(f"split {k}: {said(error)}")


def _fitted_there(score: Score, splits: Splits, limit: float, environment: Environment) -> None:
    trains = [train for train, _ in splits.parts]
    name = FOREIGN[score.metric]
    found, trouble = environment.fit(name, splits.X, splits.y, trains, limit)
    for k in range(len(trains)):
        if f"map_{k}" in found:
            try:
                _noted(score, splits, k, found[f"map_{k}"])
                score.seconds.append(float(found[f"seconds_{k}"]))
            except ValueError as error:
                score.failures.append(f"split {k}: {said(error)}")
        else:
            score.failures.append(f"split {k}: {str(found.get(f'error_{k}', trouble))[:400]}")


def _noted(score: Score, splits: Splits, k: int, L: np.ndarray) -> None:
    score.accuracies.append(splits.accuracy(k, L))
    score.dimensions.append(len(L))


def _table(name: str, data: str, splits: Splits, scores: list[Score]) -> Table:
    shown = Table(
        title=f"{name} ({data}): {len(splits.X)} samples, {splits.X.shape[1]} features; accuracy of "
        f"{splits.neighbors} nearest neighbours over {len(splits.parts)} stratified 70/30 splits",
        caption="standardised by the training part, metrics learned from it, defaults of every package; "
        "s: median time of a fit; dim: median rows of the map",
        title_justify="left",
        caption_justify="left",
    )
    shown.add_column("metric", no_wrap=True)
    for column in ("accuracy", "std", "splits", "s", "dim"):
        shown.add_column(column, justify="right", no_wrap=True)
    shown.add_column("failures", overflow="fold")
    for score in scores:
        shown.add_row(score.metric, *_cells(score), _failures(score))
    return shown


def _cells(score: Score) -> list[str]:
    found = score.accuracies
    if not found:
        return ["failed", "", "0", "", ""]
    return [
        f"{mean(found):.4f}",
        f"{stdev(found):.4f}" if len(found) > 1 else "",
        str(len(found)),
        f"{median(score.seconds):.3g}",
        f"{median(score.dimensions):.0f}",
    ]


def _failures(score: Score) -> str:
    if not score.failures:
        return ""
    first: Any = score.failures[0]
    return f"{len(score.failures)} of the splits failed; {first}"[:240]


if __name__ == "__main__":
    from benchmarks.metric_learning.nested import main

    raise SystemExit(main())
