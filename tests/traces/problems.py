"""The problems that are traced: the known ones, every constraint of the catalogue, and the applications.

Only names that `lopro` exports are used, so that the same file runs on the code before and after a change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

import lopro
from lopro import constraints as lc
from lopro import objectives as lo

__all__ = ["applications", "problems"]


def problems() -> Iterator[tuple[str, Any]]:
    """Yield names and problems; small, since every method runs on every one it accepts."""
    rng = np.random.default_rng(12)
    a, z = rng.standard_normal(4), 2.0 * rng.standard_normal(4)
    Q = np.linalg.qr(rng.standard_normal((4, 4)))[0] * np.array([0.6, 1.0, 1.7, 3.0])
    B, b = rng.standard_normal((9, 4)), rng.standard_normal(9)
    labels = np.where(rng.standard_normal(9) > 0.0, 1.0, -1.0)
    rows, limits = rng.standard_normal((6, 4)), 0.3 + rng.random(6)
    sets = {
        "ellipsoid": lc.ResidualBall(Q, np.zeros(4), 1.0),
        "ball": lc.ResidualBall(Q, 0.3 * a, 1.0, lc.ResidualNorm()),
        "box": lc.Polyhedron.box(-np.ones(4), np.ones(4)),
        "simplex": lc.Simplex(4),
        "l1": lc.L1Ball(4),
        "rows": lc.Polyhedron(rows, limits),
        "rows-norm": lc.Polyhedron(sp.csr_array(rows), limits, lc.NormForm()),
        "both": lc.Intersection(
            lc.ResidualBall(Q, np.zeros(4), 1.0), lc.Polyhedron(rows[:2], limits[:2])
        ),
        "callable": lc.FunctionConstraint(
            lambda x: float(x @ x) - 1.0, lambda x: 2.0 * x, smooth=True, shape=(4,)
        ),
    }
    functions = {
        "linear": lo.Linear(a),
        "distance": lo.SquaredDistance(z),
        "l1": lo.L1Norm(),
        "lsq": lo.LeastSquares(B, b),
        "logistic": lo.Logistic(B, labels),
        "lasso": lo.LeastSquares(B, b) + 0.3 * lo.L1Norm(),
    }
    for name_f, f in functions.items():
        for name_c, c in sets.items():
            yield f"{name_f}/{name_c}", lopro.Problem(f, c)
    yield from _matrices(rng)
    yield from _sparse_recovery(rng)


def _matrices(rng: np.random.Generator) -> Iterator[tuple[str, Any]]:
    M = rng.standard_normal((4, 4))
    M = M + M.T
    forms = {"min": None, "sum": lc.NegativeSum(), "distance": lc.Distance(), "kyfan": lc.KyFan(2)}
    for name, form in forms.items():
        cone = lc.PSDCone(4) if form is None else lc.PSDCone(4, form)
        yield f"distance/psd-{name}", lopro.Problem(lo.SquaredDistance(M), cone)
    sphere = lc.Spectrahedron(4)
    yield "distance/spectrahedron", lopro.Problem(lo.SquaredDistance(M), sphere)


def _sparse_recovery(rng: np.random.Generator) -> Iterator[tuple[str, Any]]:
    A = rng.standard_normal((15, 40))
    x = np.zeros(40)
    x[[3, 17, 30]] = [2.0, -1.0, 1.5]
    y = A @ x + 0.01 * rng.standard_normal(15)
    ball = lc.ResidualBall(A, y, 0.05)
    yield "l1/wide", lopro.Problem(lo.L1Norm(), ball)
    yield "l1/operator", lopro.Problem(lo.L1Norm(), lc.ResidualBall(aslinearoperator(A), y, 0.05))
    orthant = lc.Polyhedron.box(np.zeros(40), np.full(40, np.inf))
    half = lc.ResidualBall(A, A @ np.abs(x), 0.05)
    yield "l1/nonneg", lopro.Problem(lo.L1Norm(), lc.Intersection(half, orthant))


def applications() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield names and calls of the applications; each call takes the options of a run."""
    rng = np.random.default_rng(13)
    for m, d, k in ((20, 60, 3), (50, 200, 8)):
        A = rng.standard_normal((m, d))
        x = np.zeros(d)
        x[rng.choice(d, k, replace=False)] = rng.standard_normal(k)
        e = 0.02 * rng.standard_normal(m)
        y, s = A @ x + e, float(np.linalg.norm(e))
        kinds = {"dense": A, "sparse": sp.csc_array(A), "operator": aslinearoperator(A)}
        for kind, matrix in kinds.items():
            yield f"bpdn-{m}-{kind}", _bpdn(matrix, y, s)
        yield f"bpdn-{m}-complex", _bpdn(A + 1j * rng.standard_normal((m, d)), y, s)
        yield f"bpdn-{m}-nonneg", _bpdn(A, A @ np.abs(x), s, nonneg=True)
        yield f"bpdn-{m}-weights", _bpdn(A, y, s, weights=0.5 + rng.random(d))
        yield f"bpdn-{m}-equality", _bpdn(A, A @ x, 0.0)
        yield f"bpdn-{m}-single", _bpdn(A.astype(np.float32), y.astype(np.float32), s, tol=1e-3)
        yield f"bpdn-{m}-tall", _bpdn(A.T.copy(), A.T @ y, 3.0)
    labels = np.repeat([0, 1, 2], 8)
    for d in (5, 80):
        X = rng.standard_normal((24, d)) + 0.8 * labels[:, None] * (np.arange(d) < 3)
        yield f"metric-{d}", _metric(X, labels)


def _bpdn(A: Any, y: Any, sigma: float, **more: Any) -> Callable[..., Any]:
    return lambda **options: lopro.bpdn(A, y, sigma, **more, **options)


def _metric(X: Any, labels: Any) -> Callable[..., Any]:
    return lambda **options: lopro.learn_metric(X, labels, l1=0.01, tol=1e-3, **options)
