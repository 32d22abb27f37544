"""Cases of metric learning from a seed. Frozen: see the docs before changing it."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuzz.general.sets import Array
from fuzz.metric.case import MetricCase

__all__ = ["metric_case"]

Rng = np.random.Generator


def metric_case(seed: int) -> MetricCase:
    """Samples of a few classes, well conditioned or not."""
    rng = np.random.default_rng([7, seed])
    N, d = int(rng.integers(3, 25)), int(rng.integers(1, 9))
    labels = _labels(rng, N)
    X = _samples(rng, N, d, labels)
    dtype = "float32" if rng.random() < 0.08 else "float64"
    if dtype == "float32":
        X = X / max(np.abs(X).max(), 1.0)  # squares of squares stay within its range
    X = X.astype(dtype)
    case = MetricCase(
        X,
        labels=_named(rng, labels),
        l1=float(
            rng.choice([0.0, 1e-3, 1e-2, 0.1, 1.0, 100.0], p=[0.15, 0.4, 0.2, 0.1, 0.1, 0.05])
        ),
        method="lopro.ConsensusADMM()" if rng.random() < 0.05 else None,
        tol=None if rng.random() < 0.6 else float(rng.choice([1e-2, 1e-4, 1e-6])),
        options={"time_limit": float(rng.choice([2.0, 0.5], p=[0.93, 0.07]))},
    )
    return _shaped(rng, case, N, d)


def _labels(rng: Rng, N: int) -> Array:
    if rng.random() < 0.03:
        return np.zeros(N, dtype=int)  # one class: nothing to learn
    labels = rng.integers(0, int(rng.integers(2, 5)), N)
    labels[:2] = 0, 1
    return labels


def _named(rng: Rng, labels: Array) -> Array:
    way = rng.random()
    if way < 0.1:
        return np.array(["ab", "c", "d e", "f"])[labels]
    return labels.astype(float) if way < 0.2 else labels


def _samples(rng: Rng, N: int, d: int, labels: Array) -> Array:
    X = rng.standard_normal((N, d))
    X[:, : max(1, d // 2)] += rng.uniform(0.5, 3.0) * labels[:, None]
    way = rng.random()
    if way < 0.15:
        X[:, -1] = X[:, 0] * rng.choice([1.0, -2.0, 1e3])  # collinear
    elif way < 0.25:
        X[:, rng.integers(0, d)] = rng.choice([0.0, 1.0, 1e6])  # constant
    elif way < 0.35:
        X = rng.standard_normal((N, 2)) @ rng.standard_normal((2, d))  # of rank two
    elif way < 0.42:
        X = rng.integers(0, 3, (N, d)).astype(float)  # ties and repeated samples
    way = rng.random()
    if way < 0.2:
        X *= 10.0 ** rng.uniform(-6.0, 6.0, d)  # units per feature
    elif way < 0.35:
        X *= 10.0 ** rng.uniform(-6.0, 6.0)  # units of everything
    if rng.random() < 0.1:
        X += 1e6 * np.abs(X).max() * rng.choice([1.0, 1e-3])  # a large offset
    return X


def _shaped(rng: Rng, case: MetricCase, N: int, d: int) -> MetricCase:
    """Pass the data in one of the supported forms."""
    changes: dict[str, Any] = {}
    way = rng.random()
    if way < 0.15:
        changes["form"] = "pandas"
    elif way < 0.3:
        pairs = rng.integers(0, N, (int(rng.integers(1, 3 * N)), 2))
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
        if len(pairs):
            changes = {"pairs": pairs, "labels": None, "targets": rng.uniform(0.0, 3.0, len(pairs))}
    elif way < 0.4:
        differences = case.X[1:] - case.X[:-1]
        targets = rng.choice([0.0, 2.0], N - 1)
        targets[0] = 2.0
        changes = {"form": "differences", "X": differences, "labels": None, "targets": targets}
    if rng.random() < 0.15:
        R = rng.standard_normal((d, d))
        changes["A0"] = (R @ R.T).astype(case.X.dtype)
    fields = {name: getattr(case, name) for name in case.__dataclass_fields__}
    return MetricCase(**(fields | changes))
