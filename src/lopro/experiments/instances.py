"""Seeded instances of three problems where the projection is the expensive part."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from lopro._arrays import Array
from lopro._validation import check_count
from lopro.constraints import Polyhedron, PSDCone, ResidualBall
from lopro.objectives import FunctionObjective, L1Norm, OffDiagonalL1, SquaredDistance
from lopro.problem import Problem

__all__ = [
    "SensingProblem",
    "SharpProblem",
    "compressive_sensing",
    "metric_learning",
    "sharp_polyhedron",
    "sparse_recovery",
]


@dataclass(frozen=True)
class SensingProblem:
    """Basis pursuit denoising, and the sparse signal that was measured."""

    problem: Problem
    signal: Array


def sparse_recovery(
    m: int = 200, d: int = 1000, nonzeros: int = 20, seed: int = 0
) -> SensingProblem:
    """Return the paper's recipe: uniform matrix, uniform nonzeros, uniform noise, sigma its norm.

    Examples
    --------
    >>> from lopro.experiments.instances import sparse_recovery
    >>> int((sparse_recovery(m=5, d=20, nonzeros=2).signal != 0).sum())
    2
    """
    for name, size in (("m", m), ("d", d), ("nonzeros", nonzeros)):
        check_count(name, size)
    rng = np.random.default_rng(seed)
    A = rng.uniform(-1, 1, (m, d))
    x = np.zeros(d)
    support = rng.choice(d, nonzeros, replace=False)  # in one line the values would be drawn first
    x[support] = rng.uniform(-1, 1, nonzeros)
    noise = rng.uniform(-0.01, 0.01, m)
    ball = ResidualBall(A, A @ x + noise, float(np.linalg.norm(noise)))
    return SensingProblem(Problem(L1Norm(shape=(d,)), ball), x)


def compressive_sensing(m: int = 200, d: int = 1000, nonzeros: int = 20, seed: int = 0) -> Problem:
    """Return ``min |x|_1`` s.t. ``|A x - y| <= sigma`` for a sparse signal in uniform noise.

    Examples
    --------
    >>> from lopro.experiments.instances import compressive_sensing
    >>> compressive_sensing(m=5, d=20, nonzeros=2).shape
    (20,)
    """
    return sparse_recovery(m, d, nonzeros, seed).problem


@dataclass(frozen=True)
class SharpProblem:
    """A problem with theta = 1, and what Theorem 2 has to be told about it."""

    problem: Problem
    start: Array
    f_star: float
    sigma: float

    @property
    def eps0(self) -> float:
        """``f(start) - f_*``."""
        return self.problem.objective.value(self.start) - self.f_star


def sharp_polyhedron(d: int = 20, seed: int = 0) -> SharpProblem:
    """Return ``min |x|_1`` s.t. ``a'x >= 1`` with its solution and error bound (T3).

    Examples
    --------
    >>> from lopro.experiments.instances import sharp_polyhedron
    >>> sharp_polyhedron(d=5).f_star
    0.5
    """
    check_count("d", d, minimum=2)
    a = np.random.default_rng(seed).uniform(0.2, 1.2, d)
    a[0] = 2.0  # the entry that carries the solution
    M, m = float(a[0]), float(np.max(a[1:]))
    sigma = math.hypot(M / (M - m), max(1.0, m / (M - m)))
    half_space = Polyhedron(-a[None, :], np.array([-1.0]))
    return SharpProblem(Problem(L1Norm(shape=(d,)), half_space), a / (a @ a), 1.0 / M, sigma)


def metric_learning(samples: int = 12, d: int = 15, seed: int = 0) -> Problem:
    """Return a sparse metric from pairs: squared loss, off-diagonal l1 norm, a little ridge, psd.

    Pairs of one class should be at distance 0, others at distance 2; the ridge makes the solution
    unique and bounded, which a certificate needs.

    Examples
    --------
    >>> from lopro.experiments.instances import metric_learning
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
