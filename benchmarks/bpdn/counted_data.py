"""Random matrices and measurements of the instances in `benchmarks.bpdn.counted`."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.fft
import scipy.sparse
from scipy.sparse.linalg import LinearOperator

from benchmarks.bpdn.classes import as_operator, gaussian
from benchmarks.lasso import instance as random_columns


def uniform(m: int, d: int, k: int, share: float = 1.0, seed: int = 0) -> Any:
    """Return the paper's recipe: uniform entries, k nonzeros, a share of the noise as the radius."""
    rng = np.random.default_rng(seed)
    A, x = rng.uniform(-1, 1, (m, d)), np.zeros(d)
    x[rng.choice(d, k, replace=False)] = rng.uniform(-1, 1, k)
    e = rng.uniform(-0.01, 0.01, m)
    return A, A @ x + e, share * float(np.linalg.norm(e))


def ill_conditioned(m: int, d: int, decades: float, noise: float, seed: int = 0) -> Any:
    """Return a matrix whose singular values are spread over a number of decades."""
    rng = np.random.default_rng(seed)
    U, _ = np.linalg.qr(rng.standard_normal((m, m)))
    V, _ = np.linalg.qr(rng.standard_normal((d, m)))
    A, x = (U * np.geomspace(1.0, 10.0**-decades, m)) @ V.T, np.zeros(d)
    x[rng.choice(d, 12, replace=False)] = rng.uniform(-1, 1, 12)
    e = rng.standard_normal(m)
    e *= noise * np.linalg.norm(A @ x) / np.linalg.norm(e)
    return A, A @ x + e, float(np.linalg.norm(e))


def correlated(m: int, d: int, k: int, seed: int = 0) -> Any:
    """Return columns that are cumulative sums of noise, so that neighbours are nearly equal."""
    rng = np.random.default_rng(seed)
    A, x = np.cumsum(rng.standard_normal((m, d)), axis=1) / math.sqrt(d), np.zeros(d)
    x[rng.choice(d, k, replace=False)] = rng.choice([-1.0, 1.0], k)
    e = 0.05 * rng.standard_normal(m)
    return A, A @ x + e, float(np.linalg.norm(e))


def cosine(d: int, m: int, k: int, noise: float, seed: int = 2) -> Any:
    """Return random rows of an orthonormal cosine transform."""
    rng = np.random.default_rng(seed)
    rows, x = np.sort(rng.choice(d, m, replace=False)), np.zeros(d)
    x[rng.choice(d, k, replace=False)] = rng.uniform(-1, 1, k)

    def adjoint(y: np.ndarray) -> np.ndarray:
        spectrum = np.zeros(d)
        spectrum[rows] = y.ravel()
        return scipy.fft.idct(spectrum, norm="ortho")

    def forward(x: np.ndarray) -> np.ndarray:
        return scipy.fft.dct(x.ravel(), norm="ortho")[rows]

    e = noise * rng.standard_normal(m)
    A = LinearOperator((m, d), matvec=forward, rmatvec=adjoint, dtype=np.float64)
    return A, A @ x + e, float(np.linalg.norm(e))


def blur(d: int, k: int, seed: int = 3) -> Any:
    """Return a Gaussian blur of spikes: ill-conditioned, and not a tight frame."""
    rng = np.random.default_rng(seed)
    kernel, x = np.exp(-0.5 * (np.arange(-6, 7) / 2.0) ** 2), np.zeros(d)
    kernel /= kernel.sum()
    x[rng.choice(d, k, replace=False)] = rng.uniform(1, 2, k)

    def apply(v: np.ndarray) -> np.ndarray:
        return np.convolve(v.ravel(), kernel, mode="same")

    e = 0.01 * rng.standard_normal(d)
    A = LinearOperator((d, d), matvec=apply, rmatvec=apply, dtype=np.float64)
    return A, A @ x + e, float(np.linalg.norm(e))


def sparse(m: int, d: int, density: float, k: int, seed: int = 4) -> Any:
    """Return a sparse matrix by columns."""
    rng = np.random.default_rng(seed)
    A = scipy.sparse.random_array((m, d), density=density, rng=rng, format="csc")
    x, e = np.zeros(d), 0.01 * rng.standard_normal(m)
    x[rng.choice(d, k, replace=False)] = rng.uniform(1, 2, k)
    return A, A @ x + e, float(np.linalg.norm(e))


def columns(instance: Any, count: int) -> Any:
    """Return an instance with that many right-hand sides: y and its columns in other signs."""
    A, y, sigma = instance
    rng = np.random.default_rng(9)
    sides = [y]
    for _ in range(count - 1):
        x = np.zeros(A.shape[1], dtype=A.dtype)
        x[rng.choice(A.shape[1], 8, replace=False)] = rng.choice([-1.0, 1.0], 8)
        e = rng.standard_normal(A.shape[0])
        sides.append(A @ x + e * (sigma / np.linalg.norm(e)))
    return A, np.stack(sides, axis=1), sigma


def on(instance: Any, convert: Callable[[Any], Any]) -> Any:
    """Return an instance with its matrix in another form."""
    return convert(instance[0]), *instance[1:]


def single(instance: Any) -> Any:
    """Return an instance in single precision."""
    A, y, sigma = instance
    return A.astype(np.float32), y.astype(np.float32), sigma


def tensors(instance: Any, dtype: str) -> Any:
    """Return an instance as PyTorch tensors."""
    import torch

    A, y, sigma = instance
    kind = getattr(torch, dtype)
    return torch.tensor(A, dtype=kind), torch.tensor(y, dtype=kind), sigma


def mapped(instance: Any) -> Any:
    """Return an instance whose matrix is mapped from a file."""
    folder = Path(tempfile.mkdtemp(prefix="lopro-counts-"))
    np.save(folder / "A.npy", instance[0])
    return np.load(folder / "A.npy", mmap_mode="r"), *instance[1:]


def free(instance: Any) -> Any:
    """Return weights that are zero for three columns."""
    w = np.ones(instance[0].shape[1])
    w[[0, 5, 9]] = 0.0
    return {"weights": w}


def weights(instance: Any) -> Any:
    """Return weights over a decade."""
    return {"weights": np.random.default_rng(7).uniform(0.3, 3.0, instance[0].shape[1])}


def groups(instance: Any) -> Any:
    """Return groups of four neighbours."""
    return {"groups": np.arange(instance[0].shape[1]) // 4}


def noisy(m: int, d: int, density: float | None = None) -> Any:
    """Return the matrix and the measurements of `benchmarks.lasso`."""
    return random_columns(m, d, density)


def of_low_rank(m: int, d: int, rank: int) -> Any:
    """Return a matrix whose columns occur twice, with both signs, and noise as measurements."""
    rng = np.random.default_rng([m, d])
    A = rng.standard_normal((m, rank)) @ rng.standard_normal((rank, d // 2))
    return np.concatenate([A, -A], axis=1), rng.standard_normal(m)


def operator(data: Any) -> Any:
    """Return measurements with an operator."""
    return as_operator((*data, 0.0))[:2]


def complexly(*arguments: Any) -> Any:
    return gaussian(*arguments, iscomplex=True)
