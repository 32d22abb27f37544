"""Problems of metric learning for `benchmarks.constants`: tall, wide, correlated, badly scaled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import lopro

__all__ = ["calls"]


def calls() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield calls of `lopro.learn_metric`; every one is certified."""
    for name, (X, labels, options) in _problems().items():
        yield name, lambda X=X, y=labels, o=options: lopro.learn_metric(X, y, **o)


def _problems() -> dict[str, tuple[Any, Any, dict[str, Any]]]:
    rng = np.random.default_rng(5)
    tall, few = _classes(rng, 40, 10), _classes(rng, 30, 24)
    scaled = _classes(rng, 30, 8)
    scaled[0][:] *= 10.0 ** np.linspace(-4, 4, 8)
    many, first = _classes(rng, 1100, 8), rng.integers(0, 1100, 3000)
    second = (first + rng.integers(1, 1100, 3000)) % 1100
    goals = np.where(many[1][first] == many[1][second], 0.0, 2.0)
    Z = rng.standard_normal((20, 60))
    return {
        "tall": (*tall, {"l1": 0.01, "tol": 1e-6}),
        "square": (*few, {"l1": "auto", "tol": 1e-6}),
        "all pairs": (*_classes(rng, 300, 12), {"l1": "auto"}),
        "all pairs, many features": (*_classes(rng, 250, 95), {"l1": "auto"}),
        "wide": (*_classes(rng, 20, 300), {"l1": "auto"}),
        "wide, accurate": (*_classes(rng, 16, 120), {"l1": "auto", "tol": 1e-4}),
        "wide, three classes": (*_classes(rng, 24, 200, 3), {"l1": "auto"}),
        "wide, correlated": (*_correlated(rng, 30, 400), {"l1": "auto", "tol": 1e-2}),
        "trace": (*few, {"l1": 0.02, "trace": 0.05}),
        "rows": (*few, {"l1": 0.0, "features": 0.05}),
        "without the norm": (*tall, {"l1": 0.0, "tol": 1e-6}),
        "scales of 1e8": (*scaled, {"l1": 1e-3}),
        "differences": (None, None, {"pairs": Z, "targets": np.tile([0.0, 2.0], 10), "l1": 0.05}),
        "few pairs of many samples": (
            *(many[0], None),
            {"pairs": (first, second), "targets": goals, "l1": "auto"},
        ),
    }


def _classes(
    rng: np.random.Generator, samples: int, features: int, classes: int = 2
) -> tuple[Any, Any]:
    """Return Gaussian samples whose first features separate the classes."""
    labels = np.arange(samples) % classes
    X = rng.standard_normal((samples, features))
    X[:, :3] += 1.5 * labels[:, None]
    return X, labels


def _correlated(rng: np.random.Generator, samples: int, features: int) -> tuple[Any, Any]:
    """Return samples of eight common factors and noise, one of which separates the classes."""
    labels = np.arange(samples) % 2
    factors = rng.standard_normal((samples, 8))
    factors[:, 0] += 2.0 * labels
    X = factors @ rng.standard_normal((8, features)) + rng.standard_normal((samples, features))
    return (X - X.mean(axis=0)) / X.std(axis=0), labels
