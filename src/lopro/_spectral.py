"""The largest singular value of a map that is only known through its products."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from lopro._util.arrays import Array, inner, is_complex, norm

__all__ = ["estimate_norm"]

#: Lanczos steps; the extreme Ritz value has settled long before, or a clustered top hides it.
MAX_STEPS = 60
#: Relative residual of the Ritz pair at which to stop early.
TOLERANCE = 1e-6


def estimate_norm(
    forward: Callable[[Array], Array], adjoint: Callable[[Array], Array], start: Array
) -> float:
    """Estimate ``|A|_2`` by Lanczos steps on ``A^H A`` from ``start``.

    The value returned is the square root of the Ritz value plus its residual: an upper bound of
    the nearest eigenvalue, which is the largest one unless ``start`` is orthogonal to it. That
    cannot be checked with products alone, hence an estimate and not a bound.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro._spectral import estimate_norm
    >>> A = np.diag([3.0, 1.0])
    >>> round(estimate_norm(lambda x: A @ x, lambda y: A.T @ y, np.ones(2)), 9)
    3.0
    """
    basis: list[Array] = [start / norm(start)]
    diagonal: list[float] = []
    beside: list[float] = []
    largest = residual = 0.0
    while len(diagonal) < MAX_STEPS:
        w = adjoint(forward(basis[-1]))
        diagonal.append(inner(basis[-1], w))
        # Twice against all of the basis: without it copies of the top pair would come up again.
        for v in basis + basis:
            w = w - _coefficient(v, w) * v
        length = norm(w)
        largest, last = _top_ritz_pair(diagonal, beside)
        residual = length * abs(last)
        if residual <= TOLERANCE * largest:
            break
        beside.append(length)
        basis.append(w / length)
    return math.sqrt(max(largest, 0.0) + residual)


def _coefficient(v: Array, w: Array) -> float | complex:
    """Return ``<v, w>``, complex where the vectors are."""
    real, imaginary = inner(v, w), inner(1j * v, w) if is_complex(v) else 0.0
    return complex(real, imaginary) if imaginary else real


def _top_ritz_pair(diagonal: list[float], beside: list[float]) -> tuple[float, float]:
    """Return the largest eigenvalue of the tridiagonal matrix and its vector's last entry."""
    values, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1))
    return float(values[-1]), float(vectors[-1, -1])
