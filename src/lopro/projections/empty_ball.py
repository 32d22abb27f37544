"""Proofs that a residual ball is empty, by dual vectors with bounds of their rounding errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.certificates import TOUCHING
from lopro.certificates.emptiness import is_rounding, without_remnants
from lopro.core.arrays import (
    Array,
    asarray_like,
    eps,
    inner,
    is_single,
    namespace,
    norm,
    to_numpy,
)
from lopro.core.deadline import current_deadline
from lopro.core.real_vectors import power_of_two
from lopro.maps import LinearMap, linear_map

__all__ = ["nonnegative_residual_exceeds", "residual_exceeds"]

#: Number of random products from which the Frobenius norm of an operator is estimated: the estimate of its
#: square has a relative standard deviation of at most ``sqrt(2 / 3)``.
_PROBES = 3
#: Largest number of entries of a matrix that is copied for a proof: 32 MB.
_DENSE = 4e6


def residual_exceeds(
    A: LinearMap,
    y: Array,
    sigma: float,
    nu: Array,
    nonneg: bool = False,
    blur: float = 0.0,
    cancelled: float = 0.0,
) -> bool:
    """Whether ``nu`` proves that no ``x`` (``x >= 0`` if ``nonneg``) has ``|A x - y| <= sigma``.

    Every residual has ``|A x - y| >= (Re <y, nu> - Re <A^H nu, x>) / |nu|``. So it suffices that ``A^H nu``
    vanishes, up to the rounding of the product, and that ``Re <y, nu> / |nu|`` exceeds sigma by more than
    rounding. For ``x >= 0`` it suffices that no entry of ``A' nu`` is positive. ``blur`` is the relative
    error of ``y`` where it exceeds the rounding of its dtype; if ``y`` is a difference, ``cancelled`` is
    the size of its terms.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.maps import linear_map
    >>> from lopro.projections.empty_ball import residual_exceeds
    >>> A, y = linear_map(np.array([[1.0], [0.0]])), np.array([3.0, 2.0])
    >>> residual_exceeds(A, y, 1.9, np.array([0.0, 1.0])), residual_exceeds(A, y, 1.9, y)
    (True, False)
    """
    if is_single(y) or is_single(A.like):
        # A matrix can be singular in single precision and nonsingular in double.
        return A.explicit and _exceeds_in_double(A, y, sigma, cancelled)
    size, unit = max(norm(y), cancelled), eps(y)
    margin = max(TOUCHING, 1e3 * unit, 64.0 * blur) * (size + sigma)
    known = A.explicit and A.in_memory
    for trial in without_remnants(nu) if known else (nu,):
        length = norm(trial)
        if not 0.0 < length < math.inf or not inner(y, trial) / length - sigma > margin:
            continue
        pulled = to_numpy(A.adjoint(trial))
        left = np.maximum(pulled, 0.0) if nonneg else np.abs(pulled)
        if known and is_rounding(left, _column_sizes(A, trial), A.shape[0]):
            return True
        # The columns of an operator are unknown and are assumed to have equal norms.
        if not known:
            return float(np.linalg.norm(left)) <= 64.0 * unit * _frobenius(A, y) * length
    return False


def nonnegative_residual_exceeds(A: LinearMap, y: Array, sigma: float) -> bool:
    """Whether the residual of nonnegative least squares proves that no ``x >= 0`` has ``|A x - y| <= sigma``.

    For explicit maps only, up to the size limit of a dense copy.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.maps import linear_map
    >>> from lopro.projections.empty_ball import nonnegative_residual_exceeds
    >>> A, y = linear_map(np.array([[1.0, 0.0], [0.0, 1.0]])), np.array([3.0, -2.0])
    >>> nonnegative_residual_exceeds(A, y, 1.9), nonnegative_residual_exceeds(A, y, 2.1)
    (True, False)
    """
    rows, columns = A.shape
    if not A.explicit or rows * columns > _DENSE:
        return False
    current_deadline().need(10.0 * rows * columns * min(rows, columns))
    matrix, right = (to_numpy(v).astype(np.float64) for v in (A.toarray(), y))
    unit, size = (power_of_two(float(np.abs(v).max(initial=0.0))) for v in (matrix, right))
    try:
        x, _ = scipy.optimize.nnls(matrix / unit, right / size)
    except RuntimeError:  # the iteration limit was reached
        return False
    # The residual is made orthogonal to the columns of the support up to rounding, not to the accuracy of x.
    nu, basis = right, np.linalg.qr(matrix[:, x > 0.0])[0]
    for _ in range(2):
        nu = nu - basis @ (basis.T @ nu)
    return residual_exceeds(linear_map(matrix), right, sigma, nu, nonneg=True, blur=eps(y))


def _exceeds_in_double(A: LinearMap, y: Array, sigma: float, cancelled: float) -> bool:
    """Whether the component of ``y`` orthogonal to the range of ``A``, in double precision, is a proof."""
    rows, columns = A.shape
    current_deadline().need(4.0 * rows * columns * min(rows, columns))
    matrix, right = (
        v.astype(np.complex128 if v.dtype.kind == "c" else np.float64)
        for v in (to_numpy(A.toarray()), to_numpy(y))
    )
    U, s, _ = np.linalg.svd(matrix, full_matrices=False)
    U = U[:, s > max(A.shape) * eps(matrix) * s[0]]
    # Twice: after one projection a short remainder is orthogonal only up to the rounding of the longer y.
    for _ in range(2):
        right = right - U @ (U.conj().T @ right)
    y_in_double = to_numpy(y).astype(right.dtype)
    return residual_exceeds(
        linear_map(matrix), y_in_double, sigma, right, blur=eps(y), cancelled=cancelled
    )


def _column_sizes(A: LinearMap, nu: Array) -> Any:
    """Return ``|A|' |nu|``, the sums of absolute values in the products of the columns with ``nu``."""
    matrix = A.matrix
    if scipy.sparse.issparse(matrix):
        return np.asarray(abs(matrix).T @ np.abs(to_numpy(nu)))
    xp = namespace(matrix)
    return to_numpy(xp.abs(asarray_like(nu, matrix)) @ xp.abs(matrix))


def _frobenius(A: LinearMap, y: Array) -> float:
    """Return an estimate of the Frobenius norm from a few products with random vectors."""
    probes = np.random.default_rng(0).standard_normal((_PROBES, A.shape[0]))
    squares = [norm(A.adjoint(asarray_like(p, y))) ** 2 for p in probes]
    return math.sqrt(sum(squares) / _PROBES)
