"""Problems for `benchmarks.constants`: the work of the paper's methods and of the method of multipliers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import lopro
from lopro.constraints import Intersection, Polyhedron, PSDCone, ResidualBall, Simplex
from lopro.objectives import L1Norm, LeastSquares, Linear, Logistic, SquaredDistance

__all__ = ["multipliers", "paper"]


def _problems() -> dict[str, lopro.Problem]:
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((30, 60)), rng.standard_normal(30)
    X, y = rng.standard_normal((100, 15)), np.sign(rng.standard_normal(100))
    G = rng.standard_normal((25, 15))
    rows = Polyhedron(G, 0.1 + rng.random(25))
    ball = ResidualBall(A, b, 0.3 * float(np.linalg.norm(b)))
    B, c = rng.standard_normal((40, 15)), rng.standard_normal(40)
    S = rng.standard_normal((8, 8))
    posed: dict[str, tuple[Any, Any]] = {
        "l1, ball": (L1Norm(shape=(60,)), ball),
        "linear, ball": (Linear(rng.standard_normal(15)), ResidualBall(B, c, 8.0)),
        "least squares, rows": (LeastSquares(B, c), rows),
        "least squares, columns 1e-2 to 1e2": (LeastSquares(B * np.logspace(-2, 2, 15), c), rows),
        "logistic, rows": (Logistic(X, y), rows),
        "logistic, rows and ball": (Logistic(X, y), Intersection(rows, ResidualBall(B, c, 6.5))),
        "distance, simplex": (SquaredDistance(rng.standard_normal(15)), Simplex(15)),
        "distance, cone": (SquaredDistance(S + S.T), PSDCone(8)),
    }
    return {name: lopro.Problem(f, c) for name, (f, c) in posed.items()}


def multipliers() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield problems that the method of multipliers solves to 1e-6."""
    for name, problem in _problems().items():
        yield name, partial(lopro.solve, problem, method=lopro.MultiplierMethod(), max_iter=100_000)


def paper() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield gaps after 10,000 steps of LoPGD, and balls that LoPNAG solves to 1e-4 with both schedules."""
    for name, problem in _sharp().items():
        yield f"LoPGD, {name}", partial(_remaining_gap, problem)
    for name, problem in _over_balls().items():
        yield f"LoPNAG, {name}", partial(_solved, problem, lopro.LoPNAG(), 1e-4)
        recentring = lopro.LoPNAG(lopro.adaptive.Recentring())
        yield f"recentring, {name}", partial(_solved, problem, recentring, 1e-4)


def _sharp() -> dict[str, lopro.Problem]:
    """Return problems in which the objective grows linearly with the distance to a solution."""
    rng = np.random.default_rng(1)
    G = rng.standard_normal((12, 6))
    rows = Polyhedron(G, 0.1 + rng.random(12))
    return {
        "l1, rows": lopro.Problem(L1Norm(shape=(6,)), Polyhedron(-np.abs(G[:3]), -np.ones(3))),
        "linear, rows": lopro.Problem(Linear(-G[:4].sum(axis=0)), rows),
        "linear, simplex": lopro.Problem(Linear(rng.standard_normal(6)), Simplex(6)),
    }


def _over_balls() -> dict[str, lopro.Problem]:
    rng = np.random.default_rng(2)
    A, b = rng.standard_normal((30, 60)), rng.standard_normal(30)
    B, c = rng.standard_normal((40, 15)), rng.standard_normal(40)
    X, y = rng.standard_normal((100, 15)), np.sign(rng.standard_normal(100))
    ball, near = ResidualBall(A, b, 2.0), ResidualBall(B, c, 6.5)
    return {
        "l1": lopro.Problem(L1Norm(shape=(60,)), ball),
        "linear": lopro.Problem(Linear(rng.standard_normal(15)), near),
        "distance": lopro.Problem(SquaredDistance(rng.standard_normal(15)), near),
        "logistic": lopro.Problem(Logistic(X, y), near),
    }


def _remaining_gap(problem: lopro.Problem) -> float:
    """Return the gap after 10,000 steps of LoPGD, in billionths of the optimal value."""
    best = lopro.solve(problem, method=lopro.NewtonMultipliers()).fun
    fun = lopro.solve(problem, method=lopro.LoPGD(), tol=0.0, max_iter=10_000).fun
    return 1e9 * abs(fun / best - 1.0)


def _solved(problem: lopro.Problem, method: Any, tol: float) -> Any:
    return lopro.solve(problem, method=method, tol=tol, max_iter=30_000)
