"""Arithmetic in extended precision: long double, and mpmath where that is not conclusive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np

__all__ = [
    "EPS",
    "Interval",
    "exact_product",
    "length",
    "narrow",
    "norm",
    "power_of_two",
    "residual_length",
    "wide",
]

Wide = np.ndarray[Any, Any]

#: Rounding unit of the wide arithmetic. Where long double is double, more is left to mpmath.
EPS = float(np.finfo(np.longdouble).eps)

_DIGITS = 60


def wide(values: Any) -> Wide:
    """Return ``values`` in long double, real or complex; exact for every float and integer."""
    array = np.asarray(values)
    return array.astype(np.clongdouble if array.dtype.kind == "c" else np.longdouble)


def narrow(values: Any) -> Any:
    """Return ``values`` in double precision, complex ones as complex ones."""
    array = np.asarray(values)
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def norm(values: Any) -> Any:
    """Return the Euclidean length in long double."""
    array = wide(values).ravel()
    return np.sqrt(np.sum(np.abs(array) ** 2))


def power_of_two(value: float) -> float:
    """Return the power of two nearest to ``value`` (1 for 0): dividing by it rounds nothing."""
    return 1.0 if not value > 0.0 or not np.isfinite(value) else float(2.0 ** round(np.log2(value)))


@dataclass(frozen=True)
class Interval:
    """A number known to lie between two others."""

    low: Any
    high: Any


def residual_length(A: Any, x: Any, y: Any) -> Interval:
    """Return ``|A x - y|``, with rounding counted, in long double."""
    A, x, y = wide(A), wide(x), wide(y)
    r = A @ x - y
    sizes = np.abs(A) @ np.abs(x) + np.abs(y)
    error = (A.shape[1] + 4) * EPS * norm(sizes)
    value = norm(r)
    slack = error + 4 * len(r) * EPS * value
    return Interval(max(value - slack, np.longdouble(0)), value + slack)


def length(A: Any, x: Any, y: Any) -> mpmath.mpf:
    """Return ``|A x - y|`` to sixty digits; ``A``, ``y`` in floats, ``x`` in long double."""
    with mpmath.workdps(_DIGITS):
        points = _numbers(x)
        square = mpmath.mpf(0)
        for row, target in zip(np.asarray(A), _numbers(y), strict=True):
            r = mpmath.fdot(_numbers(row), points) - target
            square += abs(r) ** 2
        return mpmath.sqrt(square)


def exact_product(row: Any, x: Any) -> mpmath.mpf:
    """Return the inner product of floats and long doubles to sixty digits."""
    with mpmath.workdps(_DIGITS):
        return mpmath.fdot(_numbers(row), _numbers(x))


def _numbers(values: Any) -> list[Any]:
    """Return exact mpmath numbers of floats or long doubles."""
    array = np.asarray(values)
    if array.dtype.kind == "c":
        pairs = zip(_numbers(array.real), _numbers(array.imag), strict=True)
        return [mpmath.mpc(a, b) for a, b in pairs]
    high = array.astype(np.float64)
    low = (array - high).astype(np.float64) if array.dtype == np.longdouble else 0.0 * high
    return [mpmath.mpf(a) + mpmath.mpf(b) for a, b in zip(high.tolist(), low.tolist(), strict=True)]
