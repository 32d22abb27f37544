"""Calls of the applications as a user writes them: basis pursuit, metrics, correlation matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

import lopro
from traces.entry import measured

__all__ = ["benchmark_calls", "bpdn_calls", "correlation_calls", "metric_calls"]

Calls = Iterator[tuple[str, Callable[[], Any]]]


def _sparse(m: int, d: int, k: int, seed: int, noise: float = 0.01) -> tuple[Any, Any, Any, float]:
    """Return a Gaussian matrix, a vector with k nonzeros, measurements and the length of their noise."""
    rng = np.random.default_rng(seed)
    A, x = rng.standard_normal((m, d)) / np.sqrt(m), np.zeros(d)
    x[rng.choice(d, k, replace=False)] = rng.standard_normal(k)
    e = noise * rng.standard_normal(m)
    return A, x, A @ x + e, float(np.linalg.norm(e))


def bpdn_calls() -> Calls:
    """Real, complex, sparse, operator, groups, joint, nonnegative, weighted, lasso, paths, many at once."""
    for m, d, k in ((30, 80, 4), (200, 600, 20), (100, 1000, 40)):
        A, x, y, s = _sparse(m, d, k, seed=m)
        size = f"{m}x{d}"
        for name, call in _variants(A, x, y, s):
            yield f"{name} {size}", partial(measured, call)
    for name, call in _hard():
        yield name, partial(measured, call)


def _variants(A: Any, x: Any, y: Any, s: float) -> Calls:
    rng = np.random.default_rng(7)
    m, d = A.shape
    bpdn, lasso, path = lopro.bpdn, lopro.lasso, lopro.bpdn_path
    C = (A + 1j * rng.standard_normal((m, d)) / np.sqrt(m)) / np.sqrt(2.0)
    thin = sp.csr_array(np.where(rng.random((m, d)) < 0.2, A, 0.0))
    Y = np.stack([A @ np.roll(x, 3 * j) for j in range(4)], axis=1)
    Y = Y + 0.01 * rng.standard_normal(Y.shape)
    same = A @ (x[:, None] * rng.standard_normal((1, 3))) + 0.01 * rng.standard_normal((m, 3))
    groups, radii = np.arange(d) // 4, [4.0 * s, 2.0 * s, s]
    yield "real", partial(bpdn, A, y, s)
    yield "real, tol 1e-9", partial(bpdn, A, y, s, tol=1e-9)
    yield "equations", partial(bpdn, A, A @ x, 0.0)
    yield "large sigma", partial(bpdn, A, y, 0.7 * float(np.linalg.norm(y)))
    yield "infeasible", partial(bpdn, A.T.copy(), rng.standard_normal(d), 0.1)
    yield "complex", partial(bpdn, C, C @ x, s)
    yield "sparse", partial(bpdn, thin, thin @ x + (y - A @ x), s)
    yield "operator", partial(bpdn, aslinearoperator(A), y, s)
    yield "single", partial(bpdn, A.astype("f4"), y.astype("f4"), s, tol=1e-3)
    yield "weights", partial(bpdn, A, y, s, weights=0.5 + rng.random(d))
    yield "free columns", partial(bpdn, A, y, s, weights=np.where(np.arange(d) < 2, 0.0, 1.0))
    yield "nonnegative", partial(bpdn, A, A @ np.abs(x) + (y - A @ x), s, nonneg=True)
    yield "groups", partial(bpdn, A, y, s, groups=groups)
    yield (
        "joint",
        partial(bpdn, A, same, float(np.linalg.norm(0.01 * np.ones(same.size))), joint=True),
    )
    yield "many", partial(bpdn, A, Y, s)
    yield "many, radii", partial(bpdn, A, Y, [s, 2.0 * s, 3.0 * s, 4.0 * s])
    yield "many, operator", partial(bpdn, aslinearoperator(A), Y, s)
    yield "start", partial(bpdn, A, y, s, x0=x)
    yield "path", partial(path, A, y, radii)
    yield "path, operator", partial(path, aslinearoperator(A), y, radii)
    yield "lasso", partial(lasso, A, y, 0.8 * float(np.abs(x).sum()))
    yield "lasso, nonnegative", partial(lasso, A, y, 0.5 * float(np.abs(x).sum()), nonneg=True)
    yield "lasso, operator", partial(lasso, aslinearoperator(A), y, 0.8 * float(np.abs(x).sum()))


def _hard() -> Calls:
    """Matrices that are not Gaussian: correlated, coherent, badly scaled columns, a tall one."""
    A, x, _, s = _sparse(80, 240, 8, seed=3)
    rng = np.random.default_rng(8)
    e = s * rng.standard_normal(80) / np.sqrt(80.0)
    kinds = {
        "correlated": A + 0.8 * A[:, :1],
        "positive": np.abs(A) + 0.1,
        "smooth": np.cumsum(A, axis=1) / 10.0,
        "scaled": A * np.geomspace(1e-3, 1e3, 240),
    }
    for name, M in kinds.items():
        yield f"{name} 80x240", partial(lopro.bpdn, M, M @ x + e, s, max_iter=3000)
    T, y = A.T.copy(), A.T @ rng.standard_normal(80)
    yield "tall 240x80", partial(lopro.bpdn, T, y + 0.01 * rng.standard_normal(240), 1.0)


def benchmark_calls() -> Calls:
    """The classes of `benchmarks.bpdn.who_wins`, one instance each."""
    try:
        from benchmarks.bpdn.classes import CLASSES
    except ImportError as error:
        raise LookupError(f"run it in a checkout, where benchmarks/ is: {error}") from None
    for name, make in CLASSES.items():
        yield name, partial(_benchmark, name, make)


def _benchmark(name: str, make: Callable[[int], Any]) -> Any:
    A, y, sigma = make(0)
    tol = 1e-3 if np.asarray(y).dtype == np.float32 else 1e-6
    joint = name.startswith("rows")
    return measured(partial(lopro.bpdn, A, y, sigma, joint=joint, tol=tol, seed=0))


def metric_calls() -> Calls:
    """Labels, pairs, weights of the trace and of features, more features than samples."""
    rng = np.random.default_rng(13)
    for n, d in ((24, 5), (40, 12), (24, 80)):
        labels = np.arange(n) % 3
        X = rng.standard_normal((n, d)) + 0.8 * labels[:, None] * (np.arange(d) < 3)
        learn = partial(lopro.learn_metric, X, labels, seed=0)
        kinds: dict[str, dict[str, Any]] = {
            "l1": {"l1": 0.01},
            "l1, tol 1e-6": {"l1": 0.01, "tol": 1e-6, "max_iter": 3000},
            "large l1": {"l1": 0.3},
            "trace": {"l1": 0.01, "trace": 0.05},
            "features": {"l1": 0.01, "features": 0.05},
        }
        for name, options in kinds.items():
            yield f"{name} {n}x{d}", partial(measured, partial(learn, **options))
        one = partial(lopro.learn_metric, X, labels, l1=0.01, seed=0, method=lopro.LoPGD())
        yield f"LoPGD {n}x{d}", partial(measured, partial(one, max_iter=2000, max_projections=200))


def correlation_calls() -> Calls:
    """Random symmetric matrices and perturbed correlations; weights, fixed entries, least eigenvalues."""
    rng = np.random.default_rng(14)
    for n in (5, 20, 60, 150):
        G = rng.uniform(-1.0, 1.0, (n, n))
        G = 0.5 * (G + G.T)
        np.fill_diagonal(G, 1.0)
        B = rng.standard_normal((n, 2 * n))
        C = np.corrcoef(B) + 0.1 * G
        fixed = np.zeros((n, n), dtype=bool)
        fixed[0, 1] = fixed[1, 0] = True
        kinds: dict[str, tuple[Any, dict[str, Any]]] = {
            "random": (G, {}),
            "random, tol 1e-9": (G, {"tol": 1e-9}),
            "perturbed": (C, {}),
            "weights": (G, {"weights": 0.5 + rng.random(n)}),
            "least eigenvalue": (G, {"min_eigenvalue": 1e-2}),
            "fixed": (np.clip(G, -0.9, 0.9), {"fixed": fixed}),
            "single": (G.astype("f4"), {"tol": 1e-3}),
        }
        for name, (matrix, options) in kinds.items():
            call = partial(lopro.nearest_correlation, matrix, **options)
            yield f"{name} {n}", partial(measured, call)
