"""Small calls of every entry with a time limit: each returns the names of its statuses."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cvxpy
import numpy as np
from scipy.sparse.linalg import aslinearoperator

import lopro.cvxpy
from lopro import constraints as lc
from lopro import objectives as lo
from lopro.cli import main

__all__ = ["ENTRIES", "WORDS"]

#: Statuses that an entry may return: a status of a result, of CVXPY, or that CVXPY has raised its own error.
WORDS = {status.name for status in lopro.Status} | {
    "optimal",
    "optimal_inaccurate",
    "user_limit",
    "SolverError",
    "fitted",
    "exit",
}

_RNG = np.random.default_rng(0)
A = _RNG.standard_normal((12, 30))
Y = A[:, :3] @ [1.0, -2.0, 1.0] + 0.01 * _RNG.standard_normal(12)
THREE = np.stack([Y, 2.0 * Y, Y[::-1]], axis=1)
X = _RNG.standard_normal((20, 6))
LABELS = np.arange(20) % 2
X[:, 2] += 3.0 * LABELS
WIDE = np.concatenate([X, _RNG.standard_normal((20, 80))], axis=1)
G = _RNG.uniform(-1.0, 1.0, (8, 8))
G = 0.5 * (G + G.T)
ROWS = lc.Polyhedron(_RNG.standard_normal((20, 6)), np.ones(20))
BOX = lc.Box(-np.ones(6), np.ones(6))
Q, B = _RNG.standard_normal((10, 6)), _RNG.standard_normal(10)
FIT = lo.LeastSquares(Q, B)
DIAGONAL = (np.arange(8), np.arange(8))

Entry = Callable[[float], Any]


def solved(f: Any, c: Any, method: Any = None, **options: Any) -> Entry:
    problem = lopro.Problem(f, c)
    return lambda limit: lopro.solve(problem, method=method, time_limit=limit, **options)


def iterated(limit: float) -> Any:
    run = lopro.iterate(lopro.Problem(FIT, ROWS), method=lopro.LoPGD(), time_limit=limit)
    for _ in range(5):
        next(run, None)
    return run.result()


def minimized(limit: float) -> Any:
    return lopro.minimize(
        lambda x: float(np.sum((Q @ x - B) ** 2)),
        np.zeros(6),
        lambda x: 2.0 * Q.T @ (Q @ x - B),
        constraint=ROWS,
        time_limit=limit,
    )


def batched(limit: float) -> list[Any]:
    cone = lopro.Problem(lo.SquaredDistance(G), lc.PSDCone(8))
    problems = [lopro.Problem(FIT, ROWS), lopro.Problem(FIT, BOX), cone, lopro.Problem(FIT, ROWS)]
    return list(lopro.solve_many(problems, time_limit=limit))


def through_cvxpy(kind: str) -> Entry:
    def call(limit: float) -> str:
        x, S = cvxpy.Variable(6), cvxpy.Variable((8, 8), PSD=True)
        cost, rows = {
            "lp": (B[:6] @ x, [cvxpy.norm(x, "inf") <= 1.0]),
            "qp": (cvxpy.sum_squares(Q @ x - B), [ROWS.C.toarray() @ x <= 1.0]),
            "socp": (cvxpy.norm(Q @ x - B), [cvxpy.norm(x) <= 0.5]),
            "sdp": (cvxpy.trace(G @ S), [cvxpy.trace(S) == 1.0]),
        }[kind]
        problem = cvxpy.Problem(cvxpy.Minimize(cost), rows)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # CVXPY warns of what is inaccurate, or a limit
            try:
                problem.solve(solver=lopro.cvxpy.Lopro(), time_limit=limit)
            except cvxpy.SolverError:
                return "SolverError"
        assert np.isfinite(problem.value)
        return str(problem.status)

    return call


def fitted(limit: float) -> str:
    from lopro.sklearn import SparseMetricLearner

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nothing is proved
        learner = SparseMetricLearner("auto", time_limit=limit).fit(X, LABELS)
    assert learner.transform(X).shape == (20, len(learner.components_))
    return "fitted"


def commanded(*arguments: str, **arrays: Any) -> Entry:
    def call(limit: float) -> str:
        with tempfile.TemporaryDirectory() as folder:
            for name, array in arrays.items():
                np.save(Path(folder) / f"{name}.npy", array)
            places = {name: str(Path(folder) / f"{name}.npy") for name in arrays}
            words = [places.get(word, word) for word in arguments]
            words += ["--time-limit", str(limit), "--quiet"]
            assert main(words) in (0, 1, 130), words
        return "exit"

    return call


def projected_by_the_callback(limit: float) -> Any:
    """A callback that computes a projection by the library in every call."""
    far = np.full(6, 5.0)
    problem = lopro.Problem(FIT, ROWS)
    return lopro.solve(
        problem,
        method=lopro.LoPGD(),
        max_iter=200,
        time_limit=limit,
        callback=lambda iterate: ROWS.project(far) is None,
    )


ENTRIES: dict[str, Entry] = {
    "solve": solved(FIT, ROWS),
    "solve-logistic": solved(lo.Logistic(Q, np.sign(B)), ROWS),
    "solve-lopgd": solved(FIT, ROWS, lopro.LoPGD(), max_iter=200),
    "solve-cone": solved(lo.SquaredDistance(G), lc.PSDCone(8)),
    "solve-semidefinite": solved(
        lo.Linear(G),
        lc.Intersection(lc.PSDCone(8), lc.Affine.entries(DIAGONAL, 1.0, 1.0, shape=(8, 8))),
    ),
    "solve-nuclear": solved(
        lo.NuclearNorm((8, 8)), lc.Affine.entries(DIAGONAL, 1.0, 1.0, shape=(8, 8))
    ),
    "solve-variation": solved(lo.TotalVariation((6,)) + FIT, BOX),
    "solve-multipliers": solved(lo.L1Norm(), ROWS, lopro.MultiplierMethod()),
    "solve-many": batched,
    "callback": projected_by_the_callback,
    "iterate": iterated,
    "minimize": minimized,
    "bpdn": lambda limit: lopro.bpdn(A, Y, 0.01, time_limit=limit),
    "bpdn-equations": lambda limit: lopro.bpdn(A, Y, 0.0, time_limit=limit),
    "bpdn-operator": lambda limit: lopro.bpdn(aslinearoperator(A), Y, 0.01, time_limit=limit),
    "bpdn-nonneg": lambda limit: lopro.bpdn(A, Y, 0.5, nonneg=True, time_limit=limit),
    "bpdn-free": lambda limit: lopro.bpdn(
        A, Y, 0.01, weights=np.minimum(np.arange(30.0), 1.0), time_limit=limit
    ),
    "bpdn-many": lambda limit: lopro.bpdn(A, THREE, 0.1, time_limit=limit),
    "bpdn-complex": lambda limit: lopro.bpdn(A + 1j * A[::-1], THREE, 0.1, time_limit=limit),
    "bpdn-joint": lambda limit: lopro.bpdn(A, THREE, 0.1, joint=True, time_limit=limit),
    "bpdn-groups": lambda limit: lopro.bpdn(A, Y, 0.1, groups=np.arange(30) // 3, time_limit=limit),
    "bpdn_path": lambda limit: lopro.bpdn_path(A, Y, [1.0, 0.1], time_limit=limit),
    "lasso": lambda limit: lopro.lasso(A, Y, 1.0, time_limit=limit),
    "metric": lambda limit: lopro.learn_metric(X, LABELS, time_limit=limit),
    "metric-auto": lambda limit: lopro.learn_metric(X, LABELS, l1="auto", time_limit=limit),
    "metric-wide": lambda limit: lopro.learn_metric(WIDE, LABELS, l1=0.05, time_limit=limit),
    "metric-span": lambda limit: lopro.learn_metric(X[:4], LABELS[:4], l1=0.0, time_limit=limit),
    "correlation": lambda limit: lopro.nearest_correlation(G, time_limit=limit),
    "cvxpy-lp": through_cvxpy("lp"),
    "cvxpy-qp": through_cvxpy("qp"),
    "cvxpy-socp": through_cvxpy("socp"),
    "cvxpy-sdp": through_cvxpy("sdp"),
    "estimator": fitted,
    "command-bpdn": commanded("bpdn", "A", "y", "--sigma", "0.1", A=A, y=Y),
    "command-metric": commanded("metric", "X", "--labels", "y", X=X, y=LABELS),
}
