"""Seeded instances for ``lopro bench``: sparse recovery by the paper's recipe, and a sharp polyhedron."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lopro.constraints import Polyhedron, ResidualBall
from lopro.core.arrays import Array
from lopro.core.validation import check_count
from lopro.objectives import L1Norm
from lopro.problem import Problem

__all__ = ["SensingProblem", "SharpProblem", "sharp_polyhedron", "sparse_recovery"]


@dataclass(frozen=True)
class SensingProblem:
    """A problem of basis pursuit denoising with its sparse signal."""

    problem: Problem
    signal: Array


def sparse_recovery(
    m: int = 200, d: int = 1000, nonzeros: int = 20, seed: int = 0
) -> SensingProblem:
    """Return an instance as in the paper: uniform matrix, nonzeros and noise; sigma is the norm of the noise.

    Examples
    --------
    >>> from lopro.cli.instances import sparse_recovery
    >>> int((sparse_recovery(m=5, d=20, nonzeros=2).signal != 0).sum())
    2
    """
    for name, size in (("m", m), ("d", d), ("nonzeros", nonzeros)):
        check_count(name, size)
    rng = np.random.default_rng(seed)
    A = rng.uniform(-1, 1, (m, d))
    x = np.zeros(d)
    # The support is drawn before the values.
    support = rng.choice(d, nonzeros, replace=False)
    x[support] = rng.uniform(-1, 1, nonzeros)
    noise = rng.uniform(-0.01, 0.01, m)
    ball = ResidualBall(A, A @ x + noise, float(np.linalg.norm(noise)))
    return SensingProblem(Problem(L1Norm(shape=(d,)), ball), x)


@dataclass(frozen=True)
class SharpProblem:
    """A problem with theta = 1 and the constants of Theorem 2."""

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
    >>> from lopro.cli.instances import sharp_polyhedron
    >>> sharp_polyhedron(d=5).f_star
    0.5
    """
    check_count("d", d, minimum=2)
    a = np.random.default_rng(seed).uniform(0.2, 1.2, d)
    a[0] = 2.0  # the only nonzero entry of the solution
    M, m = float(a[0]), float(np.max(a[1:]))
    sigma = math.hypot(M / (M - m), max(1.0, m / (M - m)))
    half_space = Polyhedron(-a[None, :], np.array([-1.0]))
    return SharpProblem(Problem(L1Norm(shape=(d,)), half_space), a / (a @ a), 1.0 / M, sigma)
