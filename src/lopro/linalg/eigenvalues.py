"""Proved bounds of the least eigenvalue of a symmetric matrix, and proofs that it is negative.

If a Cholesky factorisation succeeds in floating point, no eigenvalue is below ``-gamma_{n+2} trace`` (Rump,
Verification of positive definiteness, BIT 46, 2006). Factorising a shifted matrix therefore proves a lower
bound of the least eigenvalue.
"""

from __future__ import annotations

import functools
import math

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.arrays import Array as AnyArray
from lopro.core.arrays import copy, namespace, to_numpy
from lopro.core.arrays import norm as norm_of
from lopro.core.device_cholesky import factor_of_definite
from lopro.core.diagonals import raise_diagonal
from lopro.linalg.dense import EPS, Array, Matrix, SingularSystem, cholesky, norm
from lopro.linalg.rounding import dot, gamma, product
from lopro.linalg.sparse import SPARSE

__all__ = [
    "DENSE",
    "is_above",
    "least_eigenvalue",
    "negative_curvature",
    "rounding_of_gram",
    "semidefinite_shift",
]

#: A matrix is indefinite if an eigenvalue is below ``-n EPS`` times this and the largest entry. Rounding the
#: entries changes eigenvalues by ``n EPS / 2`` times that, rounding of sums like ``B'B`` by more. A tenth and
#: ten times as much change nothing in ``python -m benchmarks.constants linalg``.
_INDEFINITE = 8.0
#: Up to this size eigenvectors are computed from dense matrices, above it by Lanczos' method, and matrices on
#: a device are copied to the host for a proof. Seconds of one eigenvector, measured on one core: for n = 500:
#: 0.006, n = 1000: 0.04, n = 2000: 0.3.
DENSE = 1000


def least_eigenvalue(P: Matrix) -> float:
    """Return a proved lower bound of the least eigenvalue of a symmetric matrix, or 0 if none is found.

    The proof is made on the host; for matrices on a device that are larger than `DENSE` the bound is 0.
    """
    if scipy.sparse.issparse(P):
        return _sparse(P)
    if not isinstance(P, np.ndarray):
        if P.shape[0] > DENSE:
            return 0.0
        P = np.array(to_numpy(P))
    try:
        estimate = _inverse_iteration(P, cholesky(P.copy()))
    except SingularSystem:
        return 0.0
    lost = gamma(len(P) + 2) * float(np.abs(P.diagonal()).sum()) * 1.01
    shifted, shift = P.copy(), 0.5 * estimate
    shifted.flat[:: len(P) + 1] -= shift + lost
    try:
        cholesky(shifted)
    except SingularSystem:
        return 0.0
    # The shift was subtracted with one rounding for each entry of the diagonal.
    return max(0.0, shift - EPS * float(np.abs(P.diagonal()).max()))


def rounding_of_gram(rows: int, columns: int, trace: float) -> float:
    """Return a bound of the error of the least eigenvalue of a computed ``s B'B`` with this trace.

    The entries are sums over all rows, and ``|B|'|B|`` has a norm of at most ``|B|_F^2``, the trace.
    """
    return gamma(rows + 1) * trace * (1.0 + (2 * (rows + columns) + 64) * EPS)


def negative_curvature(P: Matrix, coarser: float = 1.0) -> Array | None:
    """Return a unit vector d with a proved ``d'Pd < 0`` if P is indefinite by more than rounding, else None.

    ``coarser`` is the rounding unit of the entries divided by that of double precision.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.linalg.eigenvalues import negative_curvature
    >>> negative_curvature(np.diag([1.0, -1e-5])).round(3)
    array([0., 1.])
    >>> negative_curvature(np.diag([1.0, -1e-20])) is None
    True
    """
    n = P.shape[0]
    dense = isinstance(P, np.ndarray)
    largest = float(np.maximum.reduce(abs(P), axis=None) if dense else abs(P).max()) if n else 0.0
    if largest == 0.0:
        return None
    allowance = _INDEFINITE * n * EPS * coarser * largest
    if not dense:
        shifted = scipy.sparse.csc_array(P) + allowance * scipy.sparse.eye_array(n, format="csc")
        factors = _factorised(shifted)
        if factors is not None and factors.U.diagonal().min() > 0.0:
            return None
    else:
        shifted = P.copy()
        shifted.flat[:: n + 1] += allowance
        try:
            cholesky(shifted)
        except SingularSystem:
            pass
        else:
            return None
    d = _lowest(P)
    Pd, error = product(P, d)
    return d if dot(Pd, d, error).upper() < 0.0 else None


def _lowest(P: Matrix) -> Array:
    """Return an approximate eigenvector of the least eigenvalue."""
    if P.shape[0] <= DENSE:
        dense = P.toarray() if scipy.sparse.issparse(P) else P
        vectors = scipy.linalg.eigh(dense, subset_by_index=(0, 0))[1]
        return np.asarray(vectors[:, 0])
    start = np.random.default_rng(0).standard_normal(P.shape[0])
    _, vectors = scipy.sparse.linalg.eigsh(P, k=1, which="SA", v0=start, tol=1e-3)
    return np.asarray(vectors[:, 0])


@functools.lru_cache(maxsize=8)
def _first_vector(size: int) -> Array:
    """Return a random vector, the same for all matrices of one size."""
    return np.random.default_rng(0).standard_normal(size)


def _inverse_iteration(P: Array, factor: Array) -> float:
    """Return a Rayleigh quotient near the least eigenvalue; 0 where squares overflow or vanish."""
    x, solve = _first_vector(len(P)), scipy.linalg.lapack.dpotrs
    square = float(x @ x)
    for _ in range(4):
        x = solve(factor, x * (1.0 / math.sqrt(square)), lower=1)[0]
        square = float(x @ x)
        if not 0.0 < square < math.inf:
            return 0.0
    return 1.0 / math.sqrt(square)


def _sparse(P: Matrix) -> float:
    """Return the bound from Gershgorin's discs, else from a factorisation whose residual is bounded."""
    P = scipy.sparse.csc_array(P)
    on_diagonal = P.diagonal()
    off = np.asarray(abs(P).sum(axis=1)).ravel() - np.abs(on_diagonal)
    discs = float((on_diagonal - off * (1.0 + P.shape[0] * EPS)).min())
    disc_bound = discs - 4.0 * EPS * float(on_diagonal.max())
    if disc_bound > 0.0:
        return disc_bound
    if on_diagonal.min() <= 0.0:
        return 0.0
    solve = _factorised(P)
    if solve is None:
        return 0.0
    counts = np.diff(solve.L.indptr).astype(np.float64)
    if SPARSE * float(counts @ counts) > float(P.shape[0]) ** 3:
        return least_eigenvalue(P.toarray())  # the factors are nearly full
    x = np.random.default_rng(0).standard_normal(P.shape[0])
    for _ in range(4):
        x = solve.solve(x / norm(x))
    shift = 0.5 / norm(x)
    shifted = P - shift * scipy.sparse.eye_array(P.shape[0], format="csc")
    return max(0.0, shift - _residual(shifted) - EPS * float(np.abs(on_diagonal).max()))


def _factorised(P: Matrix) -> scipy.sparse.linalg.SuperLU | None:
    """Return the factors without pivoting, ``L D L'`` of a symmetric matrix; None if it is singular."""
    try:
        return scipy.sparse.linalg.splu(
            P, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
        )
    except RuntimeError:
        return None


def _residual(P: Matrix) -> float:
    """Return a bound of ``|P - L D L'|``; infinite if there are no such factors with a positive ``D``."""
    factors = _factorised(P)
    if factors is None or not np.array_equal(factors.perm_r, factors.perm_c):
        return math.inf
    D = factors.U.diagonal()
    if D.min() <= 0.0:
        return math.inf
    order = np.argsort(factors.perm_c)
    L = factors.L
    product = L @ scipy.sparse.dia_array((D[None, :], [0]), shape=P.shape) @ L.T
    difference = abs(P[order][:, order] - product)
    sizes = abs(L) @ scipy.sparse.dia_array((D[None, :], [0]), shape=P.shape) @ abs(L).T
    terms = int(np.diff(L.tocsr().indptr).max()) + 3
    rows = np.asarray((difference + gamma(terms) * sizes).sum(axis=1)).ravel()
    # The norm of a symmetric matrix is at most its largest row sum.
    return float(rows.max() * (1.0 + P.shape[0] * EPS))


_TINY = float(np.finfo(np.float64).tiny)


def is_above(X: AnyArray, least: float) -> bool:
    """Return whether it is proved that no eigenvalue of ``X``, in double precision, is below ``least``.

    A Cholesky factorisation that succeeds in floating point proves positive definiteness up to
    ``gamma_{n+2} trace`` (Rump 2006), which is subtracted beforehand. The algorithms of other libraries may
    differ, so for them the residual of the factor ``L`` is computed on the device of ``X``: ``L L'`` is
    positive semidefinite, and the error of the computed ``|S - L L'|`` is at most ``gamma_{n+1} |L|_F^2``.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.linalg.eigenvalues import is_above
    >>> is_above(np.diag([1.0, 2.0]), 0.999), is_above(np.diag([1.0, 2.0]), 1.0)
    (True, False)
    """
    n = X.shape[0]
    pad = 1.01 * gamma(n + 2) * (_trace_of_moduli(X) + n * abs(least))
    if isinstance(X, np.ndarray):
        shifted = X.copy()
        shifted.flat[:: n + 1] -= least + pad
        return bool(scipy.linalg.lapack.dpotrf(shifted.T, lower=1, overwrite_a=1)[1] == 0)
    # Twice the rounding: one half for the residual, the other for the rounding of its evaluation.
    shifted = raise_diagonal(copy(X), -(least + 2.0 * pad))
    L = factor_of_definite(shifted)
    if L is None:
        return False
    off, size = norm_of(shifted - L @ L.T), norm_of(L)
    lost = (off + gamma(n + 2) * (size * size + abs(least))) * (1.0 + 2.0 * n * n * EPS)
    return bool(lost <= 2.0 * pad)


def _trace_of_moduli(X: AnyArray) -> float:
    xp = namespace(X)
    return float(xp.sum(abs(xp.linalg.diagonal(X))))


def semidefinite_shift(X: AnyArray, error: float = 0.0) -> float:
    """Return a small ``d >= 0``, not the least, such that ``X + d I`` is proved to be positive semidefinite.

    ``X`` is a matrix, or the diagonal of one as a vector; it is known up to ``error`` in the spectral norm.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.linalg.eigenvalues import semidefinite_shift
    >>> semidefinite_shift(np.eye(3))
    0.0
    >>> 1.0 <= semidefinite_shift(np.diag([-1.0, 1.0])) <= 1.0 + 1e-13
    True
    """
    if 0 in X.shape:
        return 0.0
    xp = namespace(X)
    if X.ndim == 1:
        return max(0.0, error - float(xp.min(X)))
    if is_above(X, error):
        return 0.0
    least = float(xp.linalg.eigvalsh(X)[0])
    # Positive, so that doubling increases it.
    pad = 4.0 * gamma(X.shape[0] + 2) * _trace_of_moduli(X) + EPS * (norm_of(X) + error) + _TINY
    needed = max(0.0, error - least)
    while not is_above(X, error - needed - pad):
        pad *= 2.0
    return needed + pad
