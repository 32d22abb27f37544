"""kNN accuracy by nested cross-validation: parameters are chosen within the training part.

    python -m benchmarks.metric_learning.nested --output benchmarks/results

The outer folds measure; the inner ones choose the number of neighbours for every method and the weight of the
norm for lopro. A fit that exceeds the limit of processor time counts as failed. Prints tables in Markdown and
writes JSON; `benchmarks/figure_selected_features.py` draws the features that are used.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.bpdn.adapter import OutOfTime, time_cap
from benchmarks.metric_learning.nested_data import DATA, load
from benchmarks.metric_learning.nested_methods import METHODS, Method

__all__ = ["Outcome", "main", "nested_score"]

NEIGHBOURS = (1, 3, 5, 9)


@dataclass
class Outcome:
    """One method on one data set, fold by fold."""

    method: str
    accuracies: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    ranks: list[int] = field(default_factory=list)
    #: The share of the folds in which each feature was used.
    used: list[float] = field(default_factory=list)
    failure: str = ""


def nested_score(method: Method, X: np.ndarray, y: np.ndarray, folds: int, limit: float) -> Outcome:
    """Measure by stratified folds, with parameters chosen by two inner folds of each."""
    from sklearn.model_selection import StratifiedKFold

    outcome, used = Outcome(method.name), []
    for train, test in StratifiedKFold(folds, shuffle=True, random_state=0).split(X, y):
        try:
            choice, neighbours = _chosen(method, X[train], y[train], limit)
            start = time.process_time()
            mapped, L = _mapped(method, X[train], y[train], X[test], choice, limit)
        except OutOfTime:
            outcome.failure = f"no answer within {limit:.0f} s"
            break
        except Exception as error:  # an error of a method is a result
            outcome.failure = f"{type(error).__name__}: {error}"[:120]
            break
        outcome.seconds.append(time.process_time() - start)
        outcome.accuracies.append(_accuracy(*mapped, y[train], y[test], neighbours))
        outcome.ranks.append(int(np.linalg.matrix_rank(L)))
        used.append(np.abs(L).max(axis=0) > 0.0)
    outcome.used = np.mean(used, axis=0).tolist() if used else []
    return outcome


def _chosen(method: Method, X: np.ndarray, y: np.ndarray, limit: float) -> tuple[float, int]:
    from sklearn.model_selection import StratifiedKFold

    scores: dict[tuple[float, int], float] = {}
    for train, test in StratifiedKFold(2, shuffle=True, random_state=1).split(X, y):
        for choice in method.choices:
            mapped, _ = _mapped(method, X[train], y[train], X[test], choice, limit)
            for k in NEIGHBOURS:
                found = _accuracy(*mapped, y[train], y[test], k)
                scores[choice, k] = scores.get((choice, k), 0.0) + found
    return max(scores, key=lambda key: scores[key])


def _mapped(
    method: Method, X: np.ndarray, y: np.ndarray, test: np.ndarray, choice: float, limit: float
) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
    """Return training and test samples in the learned coordinates, and the map."""
    if method.standardise:
        mean, spread = X.mean(axis=0), X.std(axis=0)
        spread = np.where(spread > 0.0, spread, 1.0)
        X, test = (X - mean) / spread, (test - mean) / spread
    with time_cap(limit, processor=True), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # failures to converge show in the accuracy
        L = method.fit(X, y, choice)
    return (X @ L.T, test @ L.T), L


def _accuracy(
    train: np.ndarray, test: np.ndarray, labels: np.ndarray, truth: np.ndarray, k: int
) -> float:
    from sklearn.neighbors import KNeighborsClassifier

    model = KNeighborsClassifier(min(k, len(train))).fit(train, labels)
    return float(np.mean(model.predict(test) == truth))


def row(outcome: Outcome) -> str:
    """Return the row of a table in Markdown."""
    if not outcome.accuracies or outcome.failure:
        return f"| {outcome.method} | {outcome.failure} | | | |"
    found = np.array(outcome.accuracies)
    features = np.sum(outcome.used)
    return (
        f"| {outcome.method} | {found.mean():.3f} ± {found.std():.3f} | {features:.0f} of "
        f"{len(outcome.used)} | {np.median(outcome.ranks):.0f} | {np.median(outcome.seconds):.2g} |"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the tables, write JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--method", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument(
        "--limit", type=float, default=20.0, help="seconds of processor time for one fit"
    )
    parser.add_argument("--colon", type=Path, help="colon-cancer file; or set LOPRO_COLON")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results"))
    options = parser.parse_args(arguments)
    options.output.mkdir(parents=True, exist_ok=True)
    path = options.output / "metric_nested.json"
    results = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for name in options.data:
        X, y, told = load(name, options.colon)
        print(f"\n**{name}**: {told}, {len(X)} samples, {X.shape[1]} features\n")
        print("| metric | accuracy | features | rank | s |\n|---|---|---|---|---|")
        outcomes = []
        for method in (METHODS[key] for key in options.method):
            outcomes.append(nested_score(method, X, y, options.folds, options.limit))
            print(row(outcomes[-1]), flush=True)
        results[name] = {"data": told, "outcomes": [asdict(one) for one in outcomes]}
        path.write_text(json.dumps(results), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
