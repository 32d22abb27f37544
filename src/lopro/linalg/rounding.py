"""Numbers with a bound of their rounding error: running error analysis.

The standard model of floating-point arithmetic is assumed: the relative error of a result is at most
``u = EPS / 2``, nothing overflows, and underflow is negligible. Sums are pairwise, so the constant of a dot
product grows with the logarithm of its length. Error bounds are rounded themselves, hence the factor `_SAFE`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.arrays import Array as AnyArray
from lopro.core.arrays import namespace
from lopro.linalg.dense import EPS, Array, Matrix

__all__ = [
    "AT_A_TIME",
    "EPS",
    "Enclosure",
    "Estimate",
    "adjoint_product",
    "dot",
    "extended_adjoint",
    "gamma",
    "length",
    "product",
    "total",
]

_UNIT = 0.5 * EPS
#: Number of entries of a dense matrix whose absolute values are formed at a time: 8 MB of doubles.
AT_A_TIME = 1 << 20
#: Least and largest number of rows in one sum, and the number of sums in between; these are added pairwise.
#: The error bound of a sum of n terms is n roundings, so short sums are worth the additional calls: with at
#: least 64 rows, 2 of the 39 bounds in tests/unit/certificates/test_recorded_bounds.py lose 6e-11 and 3e-8.
_ROWS, _SUMS = (16, 128), 64
#: Number of terms up to which the exact sum (`math.fsum`) is as fast as a pairwise one, n = 256: 8 us.
_FEW = 256
#: Covers the rounding of an error bound that is itself computed by a few operations or a short sum.
_SAFE = 1.0 + 64.0 * EPS


def gamma(n: int) -> float:
    """Return ``n u / (1 - n u)``, a bound of the relative error of n consecutive roundings.

    Examples
    --------
    >>> from lopro.linalg.rounding import gamma
    >>> 1.1e-16 < gamma(1) < 1.2e-16
    True
    """
    return n * _UNIT / (1.0 - n * _UNIT) * _SAFE


@dataclass(frozen=True)
class Estimate:
    """A computed number with a bound of its error.

    Examples
    --------
    >>> from lopro.linalg.rounding import Estimate
    >>> third = Estimate(1.0) / 3.0
    >>> third.lower() < 1 / 3 < third.upper()
    True
    """

    value: float
    error: float = 0.0

    def __add__(self, other: Estimate) -> Estimate:
        value = self.value + other.value
        return Estimate(value, _SAFE * (self.error + other.error + _UNIT * abs(value)))

    def __sub__(self, other: Estimate) -> Estimate:
        return self + Estimate(-other.value, other.error)

    def __mul__(self, factor: float) -> Estimate:
        value = factor * self.value
        return Estimate(value, _SAFE * (abs(factor) * self.error + _UNIT * abs(value)))

    def __truediv__(self, divisor: float) -> Estimate:
        value = self.value / divisor
        return Estimate(value, _SAFE * (self.error / abs(divisor) + _UNIT * abs(value)))

    def lower(self) -> float:
        """Return a lower bound of the exact number."""
        if self.error == 0.0:
            return self.value
        return math.nextafter(self.value - self.error, -math.inf)

    def upper(self) -> float:
        """Return an upper bound of the exact number."""
        if self.error == 0.0:
            return self.value
        return math.nextafter(self.value + self.error, math.inf)


@dataclass(frozen=True)
class Enclosure:
    """Value and gradient at a point; ``error`` bounds the error of each entry of the gradient."""

    value: Estimate
    gradient: Array
    error: Array

    def __add__(self, other: Enclosure) -> Enclosure:
        gradient = self.gradient + other.gradient
        error = self.error + other.error + EPS * np.abs(gradient)
        return Enclosure(self.value + other.value, gradient, error * (1.0 + 8.0 * EPS))

    def slope(self) -> float:
        """Return an upper bound of the norm of the exact gradient."""
        return length(self.gradient, self.error)


def total(terms: AnyArray, errors: AnyArray | float = 0.0) -> Estimate:
    """Return the sum of numbers that are known up to ``errors``: one bound each, or the sum of all bounds.

    Arrays of any library, in double precision, are added on their device.
    """
    if isinstance(terms, np.ndarray) and terms.size <= _FEW:
        carried = (
            errors if isinstance(errors, float) else _SAFE * float(np.add.reduce(errors, axis=None))
        )
        exact = _exactly_rounded(terms)
        if exact is not None:
            slack = 1.0 + terms.size * EPS
            return Estimate(exact, _SAFE * (_UNIT * abs(exact) + slack * carried))
    xp, count = namespace(terms), math.prod(terms.shape)
    carried = errors if isinstance(errors, float) else _SAFE * float(xp.sum(errors))
    sums, levels = xp.reshape(terms, (-1,)), 0
    size = float(xp.sum(xp.abs(sums)))
    while sums.shape[0] > 1:
        half = sums.shape[0] // 2
        rest = sums[2 * half :]
        sums = xp.concat([sums[:half] + sums[half : 2 * half], rest])
        levels += 1
    # `size` is a sum of nonnegative numbers, whose relative error is below n u.
    slack = 1.0 + count * EPS
    value = float(sums[0]) if count else 0.0
    return Estimate(value, _SAFE * (slack * gamma(levels) * size + slack * carried))


def _exactly_rounded(terms: Array) -> float | None:
    """Return the exact sum, rounded once; None where it overflows or infinities of both signs occur."""
    try:
        return math.fsum(terms.ravel().tolist())
    except (OverflowError, ValueError):
        return None


def dot(x: AnyArray, y: AnyArray, x_error: AnyArray | float = 0.0) -> Estimate:
    """Return ``<x, y>`` where ``x`` is known up to ``x_error`` in each entry and ``y`` exactly."""
    terms = x * y
    errors = _UNIT * abs(terms) + x_error * abs(y)
    return total(terms, errors)


def product(M: Matrix, x: Array, x_error: Array | float = 0.0) -> tuple[Array, Array]:
    """Return ``M x`` and a bound of the error of each entry, for any order of summation."""
    terms = _longest_row(M)
    uncertain = (gamma(terms) * np.abs(x) + x_error) * (_SAFE + terms * EPS)
    if isinstance(M, np.ndarray) and M.size > AT_A_TIME:
        step = max(1, AT_A_TIME // M.shape[1])
        chunks = [np.abs(M[i : i + step]) @ uncertain for i in range(0, M.shape[0], step)]
        return np.asarray(M @ x), np.concatenate(chunks)
    return np.asarray(M @ x), np.asarray(abs(M) @ uncertain)


def adjoint_product(M: Matrix, v: Array, v_error: Array | float = 0.0) -> tuple[Array, Array]:
    """Return ``M' v`` and a bound of the error of each entry.

    Dense rows are added in chunks and the sums of chunks pairwise: the bound of one long sum would be large.
    """
    if not isinstance(M, np.ndarray):
        return product(M.T.tocsr(), v, v_error)
    m = len(v)
    height = m if m <= _ROWS[0] else min(max(m // _SUMS, _ROWS[0]), _ROWS[1])
    uncertain = (gamma(height) * np.abs(v) + v_error) * (_SAFE + m * EPS)
    if M.size <= AT_A_TIME:
        bounds = uncertain @ np.abs(M)
    else:
        step = max(1, AT_A_TIME // M.shape[1])
        parts = (slice(i, i + step) for i in range(0, m, step))
        bounds = np.add.reduce([uncertain[part] @ np.abs(M[part]) for part in parts])
    if height == m:
        return v @ M, bounds
    sums, levels = _partial_sums(M, v, height), 0
    sizes = np.add.reduce(np.abs(sums))
    while len(sums) > 1:
        half = len(sums) // 2
        added = sums[:half] + sums[half : 2 * half]
        sums = np.concatenate([added, sums[2 * half :]]) if len(sums) % 2 else added
        levels += 1
    return sums[0], _SAFE * (bounds + gamma(levels) * (1.0 + m * EPS) * sizes)


def _partial_sums(M: Matrix, v: Array, height: int) -> Array:
    """Return the sums of ``M' v`` over chunks of ``height`` rows, as the rows of an array."""
    chunks, n = len(v) // height, M.shape[1]
    full = chunks * height
    if M.flags.c_contiguous:
        sums = (v[:full].reshape(chunks, 1, height) @ M[:full].reshape(chunks, height, n))[:, 0]
    else:
        starts = range(0, full, height)
        sums = np.array([v[i : i + height] @ M[i : i + height] for i in starts])
    return sums if full == len(v) else np.concatenate([sums, (v[full:] @ M[full:])[None]])


def extended_adjoint(M: Matrix, v: Array) -> tuple[Any, Array]:
    """Return ``M' v`` in extended precision and a bound of the error of each entry; for sparse matrices.

    Where the platform has no wider format than double precision the bound is that of double precision.
    Sums of terms with few digits are exact: terms that cancel leave 0 with the error 0.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> from lopro.linalg.rounding import extended_adjoint
    >>> M = scipy.sparse.csr_array([[1.0, 0.0], [1e-3, 0.0]])
    >>> product, error = extended_adjoint(M, np.array([1.0, 1e3]))
    >>> float(product[0]), bool(error[0] < 1e-15), float(product[1])
    (2.0, True, 0.0)
    >>> product, error = extended_adjoint(0.1 * M[[0, 0]], np.array([0.5, -0.5]))
    >>> float(product[0]), float(error[0])
    (0.0, 0.0)
    """
    csc = scipy.sparse.csc_array(M)
    counts = np.diff(csc.indptr)
    terms = csc.data.astype(np.longdouble) * v[csc.indices]
    sums, used = np.zeros(M.shape[1], dtype=np.longdouble), np.flatnonzero(counts)
    sums[used] = np.add.reduceat(terms, csc.indptr[used]) if len(used) else 0.0
    sizes = np.asarray(abs(csc).T @ np.abs(v)) * (_SAFE + len(v) * EPS)
    # n roundings of the sum and one of the product, in units of the wider format.
    wide = np.finfo(np.longdouble)
    error = (counts + 2.0) * (0.5 * float(wide.eps)) * sizes * _SAFE
    # Multiples of one unit are added exactly if their sums have no more digits than the format.
    last = np.full(M.shape[1], np.inf)
    if len(used):
        products = _last_digits(csc.data) * _last_digits(v)[csc.indices]
        last[used] = np.minimum.reduceat(products, csc.indptr[used])
    return sums, np.where(sizes < 2.0**wide.nmant * last, 0.0, error)


def _last_digits(v: Array) -> Array:
    """Return the value of the last nonzero binary digit of each number; infinity for 0."""
    mantissas, exponents = np.frexp(v)
    digits = np.ldexp(mantissas, 53).astype(np.int64)
    return np.where(
        v == 0.0, np.inf, np.ldexp((digits & -digits).astype(np.float64), exponents - 53)
    )


def length(vector: Array, error: Array | float = 0.0) -> float:
    """Return an upper bound of the norm of a vector that is known up to ``error`` in each entry."""
    size = np.abs(vector) + error
    largest = float(np.maximum.reduce(size, initial=0.0))
    if largest == 0.0:
        return 0.0
    # Scaled so that squares neither overflow nor underflow; the sum of squares has n + 3 roundings.
    scaled = size / largest
    return largest * math.sqrt(float(scaled @ scaled)) * (1.0 + (len(size) + 8) * EPS)


def _longest_row(M: Matrix) -> int:
    """Return the number of terms in the longest row."""
    if isinstance(M, np.ndarray):
        return int(M.shape[1])
    return int(np.diff(M.tocsr().indptr).max(initial=0))
