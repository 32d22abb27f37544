"""Classes of problems from the literature and from users, each made from a seed. `who_wins` times them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from scipy.sparse.linalg import LinearOperator

from benchmarks.bpdn.images import cosine, fourier, image, mri

__all__ = ["CLASSES", "Instance"]

#: A matrix or an operator, measurements (several columns: several problems), and the radius.
Instance = tuple[Any, np.ndarray, Any]


def gaussian(
    m: int, d: int, k: int, noise: float, seed: int, *, iscomplex: bool = False
) -> Instance:
    """Return Gaussian columns, k random signs, and noise of a given share of the norm of y."""
    rng = np.random.default_rng(seed)
    A, x = rng.standard_normal((m, d)), np.zeros(d)
    e = rng.standard_normal(m)
    if iscomplex:
        A, x, e = A + 1j * rng.standard_normal((m, d)), x + 0j, e + 1j * rng.standard_normal(m)
    x[rng.choice(d, k, replace=False)] = rng.choice([-1.0, 1.0], k)
    if iscomplex:
        x *= np.exp(2j * math.pi * rng.random(d))
    y = A @ x
    e *= noise * np.linalg.norm(y) / np.linalg.norm(e)
    return A / math.sqrt(m), (y + e) / math.sqrt(m), float(np.linalg.norm(e)) / math.sqrt(m)


def transition(m: int, d: int, seed: int) -> Instance:
    """Return equations whose solution has about as many nonzeros as the equations can determine."""
    return gaussian(m, d, max(1, m // 2), 0.0, seed)


def close_to_y(m: int, d: int, below: float, seed: int) -> Instance:
    """Return an instance whose radius is almost the norm of y."""
    rng = np.random.default_rng(seed)
    A, y = rng.standard_normal((m, d)), rng.standard_normal(m)
    return A, y, float(np.linalg.norm(y)) * (1.0 - below)


def with_random_signs(A: np.ndarray, k: int, noise: float, rng: np.random.Generator) -> Instance:
    """Return measurements of k random signs with noise of a given share of their norm."""
    x, e = np.zeros(A.shape[1]), rng.standard_normal(A.shape[0])
    x[rng.choice(A.shape[1], k, replace=False)] = rng.choice([-1.0, 1.0], k)
    e *= noise * np.linalg.norm(A @ x) / np.linalg.norm(e)
    return A, A @ x + e, float(np.linalg.norm(e))


def positive(m: int, d: int, k: int, noise: float, seed: int) -> Instance:
    """Return a matrix with positive entries, whose columns are nearly parallel."""
    rng = np.random.default_rng(seed)
    return with_random_signs(rng.random((m, d)), k, noise, rng)


def of_different_lengths(m: int, d: int, k: int, noise: float, seed: int) -> Instance:
    """Return Gaussian columns whose norms differ by a factor of fifty."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((m, d)) * np.exp(rng.uniform(-2.0, 2.0, d))
    return with_random_signs(A, k, noise, rng)


def as_operator(instance: Instance) -> Instance:
    """Return the instance with its matrix as an operator."""
    A, y, sigma = instance
    rmatvec = (lambda v: A.T @ v) if np.isrealobj(A) else (lambda v: np.conj(A.T @ np.conj(v)))
    return (
        LinearOperator(A.shape, matvec=lambda v: A @ v.ravel(), rmatvec=rmatvec, dtype=A.dtype),
        y,
        sigma,
    )


def with_radius(factor: float, instance: Instance) -> Instance:
    """Return the instance with another radius."""
    A, y, sigma = instance
    return A, y, factor * sigma


def in_single_precision(instance: Instance) -> Instance:
    """Return the instance in single precision."""
    A, y, sigma = instance
    return A.astype(np.float32), y.astype(np.float32), sigma


def in_units(unit: float, instance: Instance) -> Instance:
    """Return the instance with a matrix in other units."""
    A, y, sigma = instance
    return A * unit, y, sigma


def sparse(m: int, d: int, k: int, density: float, noise: float, seed: int) -> Instance:
    """Return a sparse matrix with Gaussian entries."""
    rng = np.random.default_rng(seed)
    A = scipy.sparse.random_array((m, d), density=density, rng=rng, format="csc")
    A.data = rng.standard_normal(A.data.size)
    x = np.zeros(d)
    x[rng.choice(d, k, replace=False)] = rng.choice([-1.0, 1.0], k)
    y = A @ x
    e = rng.standard_normal(m)
    e *= noise * np.linalg.norm(y) / np.linalg.norm(e)
    return A, y + e, float(np.linalg.norm(e))


def several(
    m: int, d: int, k: int, columns: int, seed: int, *, rows: bool, iscomplex: bool
) -> Instance:
    """Return several right-hand sides: with the same nonzero rows, or each with its own nonzeros."""
    rng = np.random.default_rng(seed)
    A = gaussian(m, d, k, 0.0, seed, iscomplex=iscomplex)[0]
    X = np.zeros((d, columns), dtype=A.dtype)
    support = rng.choice(d, k, replace=False)
    for j in range(columns):
        chosen = support if rows else rng.choice(d, k, replace=False)
        X[chosen, j] = (
            np.exp(2j * math.pi * rng.random(k)) if iscomplex else rng.choice([-1.0, 1.0], k)
        )
    Y = A @ X
    E = rng.standard_normal(Y.shape) + (1j * rng.standard_normal(Y.shape) if iscomplex else 0.0)
    E *= 0.02 * np.linalg.norm(Y, axis=0) / np.linalg.norm(E, axis=0)
    return A, Y + E, float(np.linalg.norm(E)) if rows else np.linalg.norm(E, axis=0)


def with_same_rows(seed: int, *, iscomplex: bool) -> Instance:
    """Return five right-hand sides with one joint support."""
    return several(60, 150, 6, 5, seed, rows=True, iscomplex=iscomplex)


def with_own_nonzeros(seed: int) -> Instance:
    """Return fifty complex right-hand sides."""
    return several(120, 400, 12, 50, seed, rows=False, iscomplex=True)


#: By name: how an instance is made from a seed. Those with rows are joint problems.
CLASSES: dict[str, Callable[[int], Instance]] = {
    "equations 256x1024": lambda s: gaussian(256, 1024, 32, 0.0, s),
    "equations 500x2000": lambda s: gaussian(500, 2000, 60, 0.0, s),
    "equations 1000x5000": lambda s: gaussian(1000, 5000, 100, 0.0, s),
    "degenerate equations 20x25": lambda s: transition(20, 25, s),
    "degenerate equations 40x50": lambda s: transition(40, 50, s),
    "degenerate equations 80x100": lambda s: transition(80, 100, s),
    "degenerate equations 250x400": lambda s: transition(250, 400, s),
    "equations, operator 256x1024": lambda s: as_operator(gaussian(256, 1024, 32, 0.0, s)),
    "equations, complex 120x400": lambda s: gaussian(120, 400, 12, 0.0, s, iscomplex=True),
    "complex 120x400, 2 %": lambda s: gaussian(120, 400, 12, 0.02, s, iscomplex=True),
    "complex 400x1600, 2 %": lambda s: gaussian(400, 1600, 40, 0.02, s, iscomplex=True),
    "complex 120x400, sigma/10": lambda s: with_radius(0.1, gaussian(120, 400, 12, 0.02, s, iscomplex=True)),
    "tall 3000x300": lambda s: with_radius(1.0, gaussian(3000, 300, 30, 0.02, s)),
    "close to y 50x200": lambda s: close_to_y(50, 200, 1e-4, s),
    "operator 1024x2048, 2 %": lambda s: as_operator(gaussian(1024, 2048, 100, 0.02, s)),
    "support near m, sigma/1e4": lambda s: with_radius(1e-4, gaussian(200, 800, 20, 0.02, s)),
    "lengths over e^4 543x1086, 0.01 %": lambda s: of_different_lengths(543, 1086, 108, 1e-4, s),
    "operator, positive 313x2504, 0.01 %": lambda s: as_operator(positive(313, 2504, 125, 1e-4, s)),
    "small operator 146x219, 10 %": lambda s: as_operator(gaussian(146, 219, 20, 0.1, s)),
    "small complex 62x93, 1 %": lambda s: gaussian(62, 93, 1, 0.01, s, iscomplex=True),
    "tiny 20x50": lambda s: gaussian(20, 50, 3, 0.02, s),
    "paper-like 1000x5000, 1 %": lambda s: gaussian(1000, 5000, 100, 0.01, s),
    "sparse 2000x20000, 0.1 %": lambda s: sparse(2000, 20000, 50, 1e-3, 0.01, s),
    "sparse 20000x200000, 0.1 %": lambda s: sparse(20000, 200000, 500, 1e-3, 0.01, s),
    "single precision 256x1024, 1e-4": lambda s: in_single_precision(gaussian(256, 1024, 32, 1e-4, s)),
    "operator in units of 1e-9": lambda s: as_operator(in_units(1e-9, gaussian(256, 1024, 32, 0.02, s))),
    "rows 60x150, 5 columns": lambda s: with_same_rows(s, iscomplex=False),
    "rows, complex 60x150, 5 columns": lambda s: with_same_rows(s, iscomplex=True),
    "complex 120x400, 50 right-hand sides": with_own_nonzeros,
    "cosines 2^16": lambda s: cosine(2**16, s),
    "Fourier 2^14": lambda s: fourier(2**14, s),
    "MRI-like 256x256, 5 %": lambda s: mri(256, 0.3, 0.05, s),
    "image 256x256, 0.2 %": lambda s: image(256, 0.002, s),
}  # fmt: skip
