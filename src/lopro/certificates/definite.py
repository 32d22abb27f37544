"""Least eigenvalues, proved in floating point."""

from __future__ import annotations

import numpy as np
import scipy  # parts of it load when first used

from lopro.certificates.rounding import EPS, gamma
from lopro.core.real_vectors import Vector as Array

__all__ = ["is_above", "missing"]

_TINY = float(np.finfo(np.float64).tiny)


def is_above(X: Array, least: float) -> bool:
    """Whether no eigenvalue of ``X`` is below ``least``, proved.

    A Cholesky factorisation that ends in floating point proves positive definiteness up to
    ``gamma_{n+2} trace`` (Rump 2006), which is subtracted beforehand.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.certificates.definite import is_above
    >>> is_above(np.diag([1.0, 2.0]), 0.999), is_above(np.diag([1.0, 2.0]), 1.0)
    (True, False)
    """
    shifted = X.copy()
    trace = float(np.abs(X.diagonal()).sum()) + len(X) * abs(least)
    shifted.flat[:: len(X) + 1] -= least + 1.01 * gamma(len(X) + 2) * trace
    return bool(scipy.linalg.lapack.dpotrf(shifted.T, lower=1, overwrite_a=1)[1] == 0)


def missing(X: Array, error: float = 0.0) -> float:
    """Return ``d >= 0`` such that ``X + d I`` is proved to be positive semidefinite; small, not least.

    ``X`` is a matrix, or the vector of the diagonal of one; it is known up to ``error`` in the spectral norm.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.certificates.definite import missing
    >>> missing(np.eye(3)), 1.0 <= missing(np.diag([-1.0, 1.0])) <= 1.0 + 1e-13
    (0.0, True)
    """
    if X.size == 0:
        return 0.0
    if X.ndim == 1:
        return max(0.0, error - float(X.min()))
    if is_above(X, error):
        return 0.0
    least = float(np.linalg.eigvalsh(X)[0])
    trace = float(np.abs(X.diagonal()).sum())
    # Never zero, or it could not grow.
    pad = 4.0 * gamma(len(X) + 2) * trace + EPS * (float(np.linalg.norm(X)) + error) + _TINY
    needed = max(0.0, error - least)
    while not is_above(X, error - needed - pad):
        pad *= 2.0
    return needed + pad
