"""Sparse solutions for `benchmarks.scale.device_targets`: many right-hand sides, 102 GB, monomials."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import torch

import lopro
from benchmarks.scale.devices import Case, Place


def _measured(
    place: Place, rows: int, columns: int, nonzeros: int, many: int, dtype: Any = torch.float64
) -> tuple[Any, Any, Any]:
    """Return a normal matrix, measurements of sparse signals with noise, and the norms of the noise."""
    A, rng = place.normal(rows, columns, dtype=dtype), np.random.default_rng(0)
    y = 0.05 * place.normal(rows, many)
    radii = torch.linalg.vector_norm(y, dim=0).cpu().numpy()
    for k in range(many):
        at = place.there(rng.choice(columns, nonzeros, replace=False))
        signal = place.there(rng.uniform(-1.0, 1.0, nonzeros))
        for some in range(0, nonzeros, 256):
            y[:, k] += A[:, at[some : some + 256]].double() @ signal[some : some + 256]
    return place.given(A), place.given(y.to(dtype)), radii


def many_right_hand_sides(place: Place, limit: float) -> Iterator[Case]:
    """Basis pursuits with one matrix."""
    rows, columns, nonzeros = place.of((2000, 10_000, 60), (60, 200, 4))
    for many in place.of((256, 64, 8), (5,)):
        A, Y, radii = _measured(place, rows, columns, nonzeros, many)
        yield Case(
            f"bpdn {rows} x {columns}, {nonzeros} nonzeros, {many} right-hand sides",
            "256 in 0.3 s",
            partial(lopro.bpdn, A, Y, radii, tol=1e-8, time_limit=limit),
            lambda found, seconds: {"ms_each": 1e3 * seconds / len(found)},
        )


def basis_pursuit(place: Place, limit: float) -> Iterator[Case]:
    """One right-hand side, in double and in single precision, and without columns."""
    sizes = ((4000, 20_000, 40, "0.03 s"), (16_000, 80_000, 1200, "0.10 s"))
    for rows, columns, nonzeros, goal in place.of(sizes, ((60, 200, 4, "toy"),)):
        for dtype, tol in ((torch.float64, 1e-8), (torch.float32, 1e-6)):
            A, y, (radius,) = _measured(place, rows, columns, nonzeros, 1, dtype)
            name = f"bpdn {rows} x {columns}, {nonzeros} nonzeros, {str(dtype)[6:]}"
            call = partial(lopro.bpdn, A, y[:, 0], float(radius), time_limit=limit)
            yield Case(name, goal, partial(call, tol=tol))
            if dtype == torch.float64:
                without = partial(call, method=lopro.MatrixFree())
                yield Case(f"{name}, MatrixFree", "0.22 s at 16000 x 80000 with 160", without)
            A = y = call = without = None


def large(place: Place, limit: float) -> Iterator[Case]:
    """102 GB: basis pursuit and the penalised LASSO with one matrix."""
    rows, columns, nonzeros = place.of((32_000, 400_000, 2000), (80, 400, 5))
    A, y, (radius,) = _measured(place, rows, columns, nonzeros, 1)
    yield Case(
        f"bpdn {rows} x {columns}, {nonzeros} nonzeros",
        "0.55 s",
        partial(lopro.bpdn, A, y[:, 0], float(radius), tol=1e-8, time_limit=limit),
    )
    largest = float(abs(A.T @ y[:, 0]).max())
    for share in (0.5, 0.1):
        yield Case(
            f"lasso {rows} x {columns}, lam {share:g} of the largest",
            "1 s",
            partial(lopro.lasso, A, y[:, 0], lam=share * largest, tol=1e-8, time_limit=limit),
        )


def polynomial(place: Place, limit: float) -> Iterator[Case]:
    """LASSO on all monomials of degree 7 at most of correlated features in [-1, 1]."""
    shapes = (("bodyfat", 252, 14, 7, "1.2 s"), ("housing", 506, 13, 7, "5.7 s"))
    for name, samples, features, degree, goal in place.of(shapes, (("toy", 40, 3, 3, "toy"),)):
        rng = np.random.default_rng(0)
        mixing = rng.standard_normal((4, features))
        X = rng.standard_normal((samples, 4)) @ mixing + 0.5 * rng.standard_normal(
            (samples, features)
        )
        X = X / np.abs(X).max(axis=0)
        A = _monomials(place.there(X), degree)
        y = place.there(X @ rng.standard_normal(features) + np.sin(3.0 * X[:, 0]) * X[:, 1])
        y = y + 0.1 * place.normal(samples)
        largest = float(abs(A.T @ y).max())
        for share in (1e-3, 1e-4):
            yield Case(
                f"lasso, {name} {samples} x {A.shape[1]}, lam {share:g} of the largest",
                goal,
                partial(
                    lopro.lasso,
                    place.given(A),
                    place.given(y),
                    lam=share * largest,
                    tol=1e-8,
                    time_limit=limit,
                ),
            )


def _monomials(X: Any, degree: int) -> Any:
    """Return all products of at most so many features; the constant comes first."""
    samples, features = X.shape
    X = torch.cat([torch.ones(samples, 1, dtype=X.dtype, device=X.device), X], dim=1)
    chosen = itertools.combinations_with_replacement(range(features + 1), degree)
    flat = np.fromiter(itertools.chain.from_iterable(chosen), np.int64).reshape(-1, degree)
    index = torch.asarray(flat, device=X.device)
    found = X[:, index[:, 0]]
    for k in range(1, degree):
        found *= X[:, index[:, k]]
    return found
