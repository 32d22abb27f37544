"""Inner products without rounding errors, or with 45 correct digits for differences that cancel."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from typing import Any

import numpy as np

from lopro.core.arrays import Vector

__all__ = ["exact_terms", "square_beyond", "support_of_ball"]

#: 2^27 + 1: splits a double into two halves whose products are exact (Dekker (1971)).
_SPLITTER = 134217729.0
#: Decimal digits: a sum of three doubles has 159 bits, 48 digits.
_DIGITS = 50
#: Bound on the relative error of `_inner` and of a root: each of the three sums leaves 2^-53 of the rest,
#: together 2^-159 = 1.4e-48, and Decimal adds some 1e-50.
_ERROR = Decimal("1e-45")


def support_of_ball(y: Vector, sigma: float, nu: Vector) -> float:
    """Return ``Re <y, nu> + sigma |nu|``, correct to the last digit and rounded up.

    The two terms cancel if the ball around ``y`` almost touches the hyperplane of ``nu``; their sum in double
    precision may then be rounding error.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.core.exact import support_of_ball
    >>> y, nu = np.array([1.0, 1e-9]), np.array([-1.0, 1e-9])
    >>> float(y @ nu + np.linalg.norm(nu)), support_of_ball(y, 1.0, nu)
    (0.0, 1.5000000000000003e-18)
    """
    with localcontext() as context:
        context.prec = _DIGITS
        product, size = _inner(y, nu), Decimal(float(sigma)) * _inner(nu, nu).sqrt()
        value = float(product + size + _ERROR * (abs(product) + size))
    return math.nextafter(value, math.inf)


def square_beyond(y: Vector, sigma: float) -> float:
    """Return ``|y|^2 - sigma^2``, correct to the last digit.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.core.exact import square_beyond
    >>> square_beyond(np.array([1.0, 1e-9]), 1.0)
    1e-18
    """
    with localcontext() as context:
        context.prec = _DIGITS
        return float(_inner(y, y) - Decimal(float(sigma)) ** 2)


def _inner(x: Vector, y: Vector) -> Decimal:
    """Return the real inner product of two vectors with three times the precision of doubles."""
    a, b = _parts(x), _parts(y)
    a_power, b_power = _power(a), _power(b)
    terms = exact_terms(np.ldexp(a, -a_power), np.ldexp(b, -b_power))
    high = math.fsum(terms)
    low = math.fsum([*terms, -high])
    lowest = math.fsum([*terms, -high, -low])
    return (Decimal(high) + Decimal(low) + Decimal(lowest)) * Decimal(2) ** (a_power + b_power)


def _parts(x: Vector) -> Vector:
    """Return real and imaginary parts in one real vector of double precision."""
    if x.dtype.kind == "c":
        return np.concatenate([x.real, x.imag]).astype(np.float64)
    return x.astype(np.float64)


def _power(x: Vector) -> int:
    """Return the exponent of two that scales a vector to size 1, against over- and underflow."""
    return int(math.frexp(float(np.abs(x).max(initial=0.0)))[1])


def exact_terms(x: Any, y: Any) -> list[float]:
    """Return numbers whose exact sum is ``<x, y>``: the rounded products and their rounding errors (Dekker).

    That holds barring overflow and underflow.

    Examples
    --------
    >>> from lopro.core.exact import exact_terms
    >>> exact_terms([1.0 + 2.0**-30], [1.0 - 2.0**-30])
    [1.0, -8.673617379884035e-19]
    """
    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    products = a * b
    a_high, b_high = _high(a), _high(b)
    a_low, b_low = a - a_high, b - b_high
    errors = ((a_high * b_high - products) + a_high * b_low + a_low * b_high) + a_low * b_low
    return [*products.tolist(), *errors.tolist()]


def _high(a: Vector) -> Vector:
    """Return the upper half of the digits of each entry."""
    big = _SPLITTER * a
    high: Vector = big - (big - a)
    return high
