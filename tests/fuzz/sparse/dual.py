"""Bounds that dual points prove, in higher precision than that of the library."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np

from fuzz.judge.wide import EPS, wide
from fuzz.sparse.column import Column

__all__ = ["gauge", "proved", "proved_as_given"]


def gauge(column: Column, nu: Any) -> Any:
    """Return the factor by which ``nu`` is too large for ``|A^H nu|_i <= w_i``, rounded up."""
    A, nu = wide(column.A), wide(nu)
    g = A.conj().T @ nu
    error = (A.shape[0] + 4) * EPS * (np.abs(A).T @ np.abs(nu))
    sizes = (g.real if column.nonneg else np.abs(g)) + error
    return max((sizes / wide(column.weights)).max(), np.longdouble(0))


def _raw(column: Column, nu: Any) -> Any:
    """Return ``Re <y, nu> - sigma |nu|`` to many digits."""
    with mpmath.workdps(60):
        pairs = [(_exact(a), _exact(b)) for a, b in zip(column.y, wide(nu), strict=True)]
        product = mpmath.fsum(mpmath.re(mpmath.conj(a) * b) for a, b in pairs)
        size = mpmath.sqrt(mpmath.fsum(abs(b) ** 2 for _, b in pairs))
        return product - mpmath.mpf(column.sigma) * size


def _exact(number: Any) -> Any:
    if np.iscomplexobj(number):
        return mpmath.mpc(_exact(number.real), _exact(number.imag))
    high = float(number)
    return mpmath.mpf(high) + mpmath.mpf(float(number - high))


def proved(column: Column, nu: Any) -> float:
    """Return the best lower bound that a multiple of ``nu`` proves; 0 is always proved."""
    if nu is None or not np.isfinite(nu).all():
        return 0.0
    value, factor = _raw(column, nu), gauge(column, nu)
    if value <= 0:
        return 0.0
    return math.inf if factor == 0 else _down(value / _exact(factor))


def proved_as_given(column: Column, nu: Any) -> float:
    """Return the lower bound that ``nu`` itself proves, scaled down only where it has to be."""
    if not np.isfinite(nu).all():
        return -math.inf
    value, factor = _raw(column, nu), gauge(column, nu)
    return _down(value / _exact(max(factor, np.longdouble(1))))


def _down(number: Any) -> float:
    """Return the next float below: a lower bound stays one."""
    return math.nextafter(float(number), -math.inf)
