"""Basis pursuit problems whose solution is known by construction.

Choose the solution x* and a dual point nu with ``A_S' nu = w_S sign(x*_S)`` and strict inequality elsewhere
(columns are shrunk where that fails); then ``y = A x* + sigma nu / |nu|``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import lopro


@dataclass
class Constructed:
    A: Any
    y: Any
    sigma: float
    x: Any
    weights: Any
    nonneg: bool


def constructed(
    seed: int, *, kind: str, decades: float = 0.0, slack: float = 0.95, m: int = 40, d: int = 120
) -> Constructed:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((m, d))
    if kind == "complex":
        A = A + 1j * rng.standard_normal((m, d))
    if kind == "sparse":
        A = A * (rng.random((m, d)) < 0.3)
    w = rng.uniform(0.5, 2.0, d) if kind == "weighted" else np.ones(d)
    S = rng.choice(d, 6, replace=False)
    x = np.zeros(d, dtype=A.dtype)
    phase = rng.choice([-1.0, 1.0], 6)
    if kind == "complex":
        phase = np.exp(2j * np.pi * rng.random(6))
    if kind == "nonneg":
        phase = np.ones(6)
    x[S] = phase * 10.0 ** rng.uniform(-decades, 0.0, 6)
    nu = A[:, S] @ np.linalg.solve(A[:, S].conj().T @ A[:, S], w[S] * phase)
    correlation = np.abs(A.conj().T @ nu) / w
    off = np.setdiff1d(np.arange(d), S)
    A[:, off] *= np.minimum(1.0, slack / np.maximum(correlation[off], 1e-300))
    sigma = 0.1 * 10.0**-decades
    y = A @ x + sigma * nu / np.linalg.norm(nu)
    return Constructed(A, y, sigma, x, w, kind == "nonneg")


def check(known: Constructed, result: lopro.BPDNResult, tol: float) -> None:
    optimum = float(known.weights @ np.abs(known.x))
    assert result.success, str(result)
    assert result.certificate.violation <= 1e-9
    assert abs(result.fun - optimum) <= 2.0 * tol * optimum
    assert result.certificate.lower_bound <= optimum * (1.0 + 1e-10)
    assert np.linalg.norm(result.x - known.x) <= 1e-5 * max(1.0, np.linalg.norm(known.x))
