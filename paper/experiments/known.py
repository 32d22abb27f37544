"""Problems whose solution and constants are known in closed form (T3, T4 and T6 of docs/theory.md).

The spectra are spread on purpose: on a ball the projection is radial and corrects every error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from lopro.constraints import Polyhedron, ResidualBall, ResidualNorm
from lopro.driver.result import Result
from lopro.objectives import L1Norm, Linear, SquaredDistance
from lopro.problem import Problem

__all__ = ["Known", "distance_to_ellipsoid", "half_space", "linear_on_ellipsoid"]

Vector = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Known:
    """A problem with its solution, a feasible start, and the error bound of Assumption 2.

    Examples
    --------
    >>> from paper.experiments.known import half_space
    >>> known = half_space()
    >>> known.problem.objective.value(known.x_star) == known.f_star, known.eps0 > 0
    (True, True)
    """

    problem: Problem
    x_star: Vector
    f_star: float
    x0: Vector
    sigma: float
    theta: float

    @property
    def eps0(self) -> float:
        """``f(x0) - f_*``."""
        return self.problem.objective.value(self.x0) - self.f_star

    @property
    def distance(self) -> float:
        """``|x0 - x_*|``."""
        return float(np.linalg.norm(self.x0 - self.x_star))

    def error(self, result: Result) -> float:
        """Return ``f(x) - f_*`` at the feasible point of a result."""
        return result.fun - self.f_star


def half_space(d: int = 10) -> Known:
    """T3: ``min |x|_1`` s.t. ``a'x >= 1``, a sharp minimum (theta = 1).

    Examples
    --------
    >>> from paper.experiments.known import half_space
    >>> half_space().theta
    1.0
    """
    a = np.linspace(2.0, 0.5, d)
    a[1:] -= 0.4  # a clear first place: the second largest entry decides sigma
    M, m = float(a[0]), float(a[1])
    x_star = np.zeros(d)
    x_star[0] = 1.0 / M
    problem = Problem(L1Norm(shape=(d,)), Polyhedron(-a[None, :], np.array([-1.0])))
    sigma = math.hypot(M / (M - m), max(1.0, m / (M - m)))
    return Known(problem, x_star, 1.0 / M, a / (a @ a), sigma, 1.0)


def _axes(d: int, spread: float) -> Vector:
    """Return the singular values of the matrix that describes the ellipsoid."""
    return np.geomspace(1.0, spread, d)


def linear_on_ellipsoid(d: int = 10, spread: float = 3.0, *, squared: bool = True) -> Known:
    """T4: ``min a'x`` s.t. ``x'Qx <= 1``, curved at the solution (theta = 1/2).

    Examples
    --------
    >>> from paper.experiments.known import linear_on_ellipsoid
    >>> linear_on_ellipsoid().theta
    0.5
    """
    s = _axes(d, spread)
    a = np.random.default_rng(4).standard_normal(d)
    a /= np.linalg.norm(a)
    w = float(np.linalg.norm(a / s))
    x_star = -a / (s**2 * w)
    start = np.random.default_rng(5).standard_normal(d)
    x0 = 0.99 * start / np.linalg.norm(s * start)
    form = None if squared else ResidualNorm()
    problem = Problem(Linear(a), ResidualBall(np.diag(s), np.zeros(d), 1.0, form))
    return Known(problem, x_star, -w, x0, 1.0 / math.sqrt(0.5 * w * s.min() ** 2), 0.5)


def distance_to_ellipsoid(d: int = 10, spread: float = 3.0, *, squared: bool = True) -> Known:
    """T6: ``min |x - z|^2 / 2`` on the same ellipsoid, with ``z`` outside on a known normal.

    Examples
    --------
    >>> from paper.experiments.known import distance_to_ellipsoid
    >>> distance_to_ellipsoid().theta
    0.5
    """
    s = _axes(d, spread)
    direction = np.random.default_rng(6).standard_normal(d)
    x_star = direction / np.linalg.norm(s * direction)
    normal = s**2 * x_star
    z = x_star + normal / np.linalg.norm(normal)
    form = None if squared else ResidualNorm()
    problem = Problem(SquaredDistance(z), ResidualBall(np.diag(s), np.zeros(d), 1.0, form))
    return Known(problem, x_star, 0.5, np.zeros(d), math.sqrt(2.0), 0.5)
