"""Seeded instances of three problems with expensive projections."""

from __future__ import annotations

from typing import Any

import numpy as np

from lopro.cli.instances import SensingProblem, SharpProblem, sharp_polyhedron, sparse_recovery
from lopro.constraints import PSDCone
from lopro.core.arrays import Array
from lopro.core.validation import check_count
from lopro.objectives import FunctionObjective, OffDiagonalL1, SquaredDistance
from lopro.problem import Problem

__all__ = [
    "SensingProblem",
    "SharpProblem",
    "compressive_sensing",
    "metric_learning",
    "sharp_polyhedron",
    "sparse_recovery",
]


def compressive_sensing(m: int = 200, d: int = 1000, nonzeros: int = 20, seed: int = 0) -> Problem:
    """Return ``min |x|_1`` s.t. ``|A x - y| <= sigma`` for a sparse signal in uniform noise.

    Examples
    --------
    >>> from paper.experiments.instances import compressive_sensing
    >>> compressive_sensing(m=5, d=20, nonzeros=2).shape
    (20,)
    """
    return sparse_recovery(m, d, nonzeros, seed).problem


def metric_learning(samples: int = 12, d: int = 15, seed: int = 0) -> Problem:
    """Return a sparse metric from pairs: squared loss, off-diagonal l1 norm, a little ridge, psd.

    Pairs of one class should be at distance 0, others at distance 2; the ridge makes the solution
    unique and bounded, which a certificate needs.

    Examples
    --------
    >>> from paper.experiments.instances import metric_learning
    >>> metric_learning(samples=4, d=3).shape
    (3, 3)
    """
    check_count("samples", samples, minimum=2)
    check_count("d", d)
    rng = np.random.default_rng(seed)
    X, labels = rng.standard_normal((samples, d)), rng.integers(0, 2, samples)
    i, j = np.triu_indices(samples, 1)
    Z, target = X[i] - X[j], np.where(labels[i] == labels[j], 0.0, 2.0)

    def residual(A: Array) -> Any:
        return ((Z @ A) * Z).sum(axis=1) - target

    def value(A: Array) -> float:
        r = residual(A)
        return float(r @ r) / (2 * len(target))

    def gradient(A: Array) -> Array:
        return (Z.T * (residual(A) / len(target))) @ Z

    loss = FunctionObjective(value, gradient=gradient, shape=(d, d))
    ridge = 1e-2 * SquaredDistance(np.zeros((d, d)))
    return Problem(loss + OffDiagonalL1(d, 1e-2) + ridge, PSDCone(d))
