"""Problems with norms of images for `benchmarks.constants`: the products that splitting methods take."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.fft
from scipy.sparse.linalg import LinearOperator

import lopro
from benchmarks.general.imaging import Blurred
from lopro.constraints import Affine, Box, Intersection, ResidualBall
from lopro.objectives import L1Norm, LeastSquares, NuclearNorm, TotalVariation

__all__ = ["products"]

SIDE = 24


def products() -> Iterator[tuple[str, Callable[[], float]]]:
    """Yield calls that return the number of products or iterations; they raise if the gap is not proved."""
    data, n = Blurred.of(SIDE), SIDE**2
    A = LinearOperator((n, n), matvec=data.apply, rmatvec=data.apply, dtype=float)
    variation, ball = TotalVariation((SIDE, SIDE)), ResidualBall(A, data.y, data.radius)
    cosines = LinearOperator((n, n), matvec=_cosines, rmatvec=_inverse, dtype=float)
    rng = np.random.default_rng(0)
    kept = np.sort(rng.choice(n, n // 2, replace=False))
    sparse = np.where(rng.random(n) < 0.03, rng.standard_normal(n), 0.0)
    mask = LinearOperator(
        (n // 2, n), matvec=lambda x: x.ravel()[kept], rmatvec=partial(_filled, kept, n)
    )
    seen = _inverse(sparse)[kept] + 0.01 * rng.standard_normal(n // 2)
    steps = np.repeat(rng.standard_normal(8), 25)
    signal = steps + 0.1 * rng.standard_normal(steps.size)
    box = Box(np.zeros(n), np.ones(n))
    found = {
        "variation, ball": (variation, ball, 1e-3),
        "variation, ball, 1e-5": (variation, ball, 1e-5),
        "variation, penalised": (LeastSquares(A, data.y) + 0.005 * variation, None, 1e-4),
        "variation, ball and box": (variation, Intersection(ball, box), 1e-3),
        "variation of a signal": (TotalVariation(200), ResidualBall(np.eye(200), signal, 1.4), 1e-4),
        "cosines, blur": (L1Norm(D=cosines), ball, 1e-3),
        "cosines, mask": (L1Norm(D=cosines), ResidualBall(mask, seen, 0.01 * (n // 2) ** 0.5), 1e-4),
    }  # fmt: skip
    for name, (f, c, tol) in found.items():
        problem = lopro.Problem(f) if c is None else lopro.Problem(f, c)
        yield name, partial(_products, problem, lopro.ADMM(), tol)
    for rank, noise in ((2, 0.0), (3, 0.1)):
        L = rng.standard_normal((40, rank)) @ rng.standard_normal((rank, 40))
        L += noise * rng.standard_normal(L.shape)
        known = rng.random(L.shape) < 0.5
        problem = lopro.Problem(NuclearNorm((40, 40)), Affine.entries(known, L[known], L[known]))
        name = f"completion, rank {rank}, noise {noise}"
        yield name, partial(_products, problem, lopro.AlternatingDirections(), 1e-6)


def _cosines(x: Any) -> Any:
    return scipy.fft.dctn(np.reshape(x, (SIDE, SIDE)), norm="ortho").ravel()


def _inverse(x: Any) -> Any:
    return scipy.fft.idctn(np.reshape(x, (SIDE, SIDE)), norm="ortho").ravel()


def _filled(kept: Any, size: int, v: Any) -> Any:
    x = np.zeros(size)
    x[kept] = np.ravel(v)
    return x


def _products(problem: lopro.Problem, method: Any, tol: float) -> float:
    result = lopro.solve(problem, method=method, tol=tol, max_iter=20_000)
    if not result.success:
        raise RuntimeError(result.message)
    counts = result.counts
    return float(counts.matvecs + counts.rmatvecs or result.iterations)
