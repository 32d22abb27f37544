"""The problems: labelled samples, all pairs of them, and the weight of the norm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from lopro import Problem
from lopro.metric import SparseMetric
from lopro.metric.api import metric_problem
from lopro.metric.loss import PairLoss
from lopro.metric.pairs import pair_loss
from paper.experiments.colon import Samples, load_colon

__all__ = ["PROBLEMS", "Instance", "samples_of", "standardised", "toy"]

#: The samples that the paper uses of the colon-cancer data, and the features of the smaller problem.
COLON_ROWS, COLON_FEATURES = 40, 200
#: The size of every data set with ``--quick``.
QUICK_ROWS, QUICK_FEATURES = 24, 6


@dataclass(frozen=True, eq=False)
class Instance:
    """One problem: ``min 1/(2n) sum_e (t_e - z_e'A z_e)^2 + l1 |A|_off`` over psd ``A``."""

    name: str
    #: A description of the samples and their source.
    data: str
    X: np.ndarray
    labels: np.ndarray
    l1: float = 1e-3

    @property
    def dim(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    @property
    def pairs(self) -> int:
        """Number of pairs."""
        return self.loss.count

    @cached_property
    def loss(self) -> PairLoss:
        """The loss on all pairs, with a list of them, which other solvers need."""
        return pair_loss(self.X, self.labels, None, None, None, None).listed()

    @cached_property
    def problem(self) -> Problem:
        """The problem as `lopro.learn_metric` solves it."""
        return metric_problem(pair_loss(self.X, self.labels, None, None, None, None), self.l1)

    @property
    def objective(self) -> SparseMetric:
        """The function that is minimised."""
        objective = self.problem.objective
        assert isinstance(objective, SparseMetric)
        return objective

    def smaller(self, samples: int, features: int) -> Instance:
        """Return the problem with a random subset of the samples and the first features."""
        chosen: Any = slice(None)
        if len(self.X) > samples:
            chosen = np.sort(np.random.default_rng(0).choice(len(self.X), samples, replace=False))
        return replace(self, X=self.X[chosen, :features], labels=self.labels[chosen])


def standardised(X: np.ndarray) -> np.ndarray:
    """Return the features with mean 0 and variance 1; constant ones become 0."""
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)


def samples_of(name: str, colon: Path | None) -> Samples:
    """Return all samples of a data set as published."""
    if name.startswith("colon"):
        samples = load_colon(colon)
        return replace(samples, X=samples.X[:, :COLON_FEATURES]) if "-" in name else samples
    import sklearn.datasets

    X, labels = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
    return Samples(X.astype(float), labels, name, "scikit-learn")


def _instance(name: str, colon: Path | None, quick: bool) -> Instance:
    samples = samples_of(name, colon)
    if name.startswith("colon"):
        X, labels = samples.X[:COLON_ROWS], samples.labels[:COLON_ROWS]
    else:
        X, labels = standardised(samples.X), samples.labels
    instance = Instance(name, f"{samples.name}: {samples.origin}", X, labels)
    return instance.smaller(QUICK_ROWS, QUICK_FEATURES) if quick else instance


def _recipe(name: str) -> Callable[[Path | None, bool], Instance]:
    return lambda colon, quick: _instance(name, colon, quick)


def toy() -> Instance:
    """A small problem on which every package imports and compiles what it needs."""
    rng = np.random.default_rng(0)
    return Instance("toy", "random", rng.standard_normal((8, 3)), np.arange(8) % 2)


PROBLEMS: dict[str, Callable[[Path | None, bool], Instance]] = {
    name: _recipe(name) for name in ("colon", "colon-200", "wine", "breast_cancer", "digits")
}
