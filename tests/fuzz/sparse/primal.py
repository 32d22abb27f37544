"""Points that are proved to be feasible: their values are upper bounds on the optimum."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
import scipy.optimize

from fuzz.judge.wide import length, narrow, norm, wide
from fuzz.sparse.column import Array, Column

__all__ = ["Upper", "least_residual", "upper_bound"]

#: How much of the spectrum takes part in a move towards a smaller residual.
_SHARES = (1e-2, 1e-4, 1e-7, 1e-11, 1e-15)
#: Where feasibility is certain only up to rounding, a point contradicts a bound if it is lower by this share.
_NEARLY = 1e-6


@dataclass(frozen=True)
class Upper:
    """An upper bound on the optimum, and the point that proves it."""

    value: Any
    point: Any


def upper_bound(column: Column, starts: Iterable[Any]) -> Upper | None:
    """Return the best of the feasible points that can be made of ``starts`` and by formula."""
    found: list[Upper] = []
    for x in starts:
        if not np.isfinite(x).all():
            continue
        x = wide(x)
        x = np.maximum(x, 0) if column.nonneg else x
        found += _on_equation(column, x) if column.sigma == 0.0 else _in_ball(column, x)
    if column.sigma > 0.0:
        found += [Upper(column.value(z), z) for z in _one_entry(column) if column.holds(z)]
        zero = np.zeros(column.A.shape[1], dtype=np.longdouble)
        found += [Upper(np.longdouble(0), zero)] if column.holds(zero) else []
    return min(found, key=lambda upper: upper.value, default=None)


def _in_ball(column: Column, x: Any) -> list[Upper]:
    """Return feasible points as close to ``x`` as possible, made in several ways."""
    if column.holds(x):
        return [Upper(column.value(x), x)]
    r = norm(wide(column.A) @ x - wide(column.y))
    found = []
    for aim in _aims(column, x):
        e = norm(wide(column.A) @ aim - wide(column.y))
        if not e < column.sigma or not r > e:
            continue
        t = max((r - column.sigma) / (r - e), np.longdouble(0))
        for grown in (1.0 + 1e-9, 1.0 + 1e-4, 1.1, 2.0, 100.0):
            z = x + min(t * grown + 1e-19, np.longdouble(1)) * (aim - x)
            if column.holds(z):
                found.append(Upper(column.value(z), z))
                break
    return found


def _aims(column: Column, x: Any) -> Iterator[Any]:
    """Yield points with smaller residuals, the nearest first."""
    U, s, Vh = column.spectrum
    r = narrow(wide(column.y) - wide(column.A) @ x)
    for share in _SHARES:
        kept = s > share * s[0]
        if not kept.any():
            continue
        step = Vh[kept].conj().T @ ((U[:, kept].conj().T @ r) / s[kept])
        aim = x + wide(step)
        if not column.nonneg or (aim >= 0).all():
            yield aim
    if column.nonneg:
        yield wide(least_residual(column))


def least_residual(column: Column) -> Array:
    """Return a point of least residual among those allowed, in double precision."""
    A, y = column.A, column.y
    if column.nonneg:
        unit = float(np.abs(A).max()) or 1.0
        scale = float(np.abs(y).max()) or 1.0
        try:
            found, _ = scipy.optimize.nnls(
                A.astype(np.float64) / unit, y.astype(np.float64) / scale
            )
        except RuntimeError:
            return np.zeros(A.shape[1])
        return np.asarray(found * (scale / unit))
    U, s, Vh = column.spectrum
    best, least = np.zeros(A.shape[1], dtype=Vh.dtype), np.inf
    for share in _SHARES:
        kept = s > share * s[0]
        if not kept.any():
            continue
        x = Vh[kept].conj().T @ ((U[:, kept].conj().T @ y) / s[kept])
        # One step of refinement: the residual in long double.
        r = narrow(wide(y) - wide(A) @ wide(x))
        x = x + Vh[kept].conj().T @ ((U[:, kept].conj().T @ r) / s[kept])
        left = float(norm(wide(A) @ wide(x) - wide(y)))
        if left < least:
            best, least = x, left
    return best


def _one_entry(column: Column) -> Iterator[Any]:
    """Yield points with a single nonzero: optimal where sigma is close to |y|."""
    A, y = wide(column.A), wide(column.y)
    c = A.conj().T @ y
    lengths = np.sqrt(np.sum(np.abs(A) ** 2, axis=0))
    towards = c.real if column.nonneg else np.abs(c)
    ratio = np.where(lengths > 0, towards / wide(column.weights), 0)
    y_length = length(0 * column.A[:, :1], np.zeros(1), column.y)
    for j in np.argsort(-ratio)[:3]:
        if not ratio[j] > 0:
            continue
        # The smaller root of |y - t a|^2 = sigma^2, in the form that does not cancel.
        sigma = mpmath.mpf(column.sigma)
        with mpmath.workdps(50):
            rest = _long((y_length - sigma) * (y_length + sigma))
        depth = towards[j] ** 2 - lengths[j] ** 2 * rest
        if rest <= 0 or depth < 0:
            continue
        t = rest / (towards[j] + np.sqrt(depth))
        for grown in (1.0, 1.0 + 1e-17, 1.0 + 1e-15, 1.0 + 1e-12, 1.0 + 1e-9):
            z = np.zeros(A.shape[1], dtype=c.dtype)
            z[j] = t * np.longdouble(grown) * c[j] / np.abs(c[j])
            if column.holds(z):
                yield z
                break


def _long(number: mpmath.mpf) -> Any:
    high = float(number)
    return np.longdouble(high) + np.longdouble(float(number - mpmath.mpf(high)))


def _on_equation(column: Column, x: Any) -> list[Upper]:
    """Refine ``x`` until ``A x = y`` to long double, and add a bound on the effect of what remains."""
    used = np.flatnonzero(np.abs(x) > 1e-7 * np.abs(x).max(initial=0.0))
    every = np.arange(len(x))
    found = []
    for kept in [used] if column.nonneg else [used, every]:
        upper = _refined(column, x, kept)
        found += [] if upper is None else [upper]
    return found


def _refined(column: Column, x: Any, kept: Array) -> Upper | None:
    if len(kept) == 0:
        return None
    A = column.A[:, kept].astype(np.complex128 if column.A.dtype.kind == "c" else np.float64)
    U, s, Vh = np.linalg.svd(A, full_matrices=False)
    full = len(s) == A.shape[0] and bool(s[-1] > 1e-12 * s[0])
    above = s > 1e-13 * s[0]
    z = np.zeros(len(x), dtype=np.result_type(x.dtype, np.longdouble))
    z[kept] = x[kept]
    for _ in range(4):
        r = narrow(wide(column.y) - wide(column.A) @ z)
        z[kept] += wide(Vh[above].conj().T @ ((U[:, above].conj().T @ r) / s[above]))
    residual = norm(wide(column.A) @ z - wide(column.y))
    if residual > 1e-15 * column.size or (column.nonneg and (z < 0).any()):
        return None
    value = column.value(z)
    if not full:  # consistent only up to rounding: refutes gross errors alone
        return Upper(value * (1.0 + _NEARLY), z)
    # An exact solution is no further away than the residual over the least singular value.
    move = residual / (s[-1] * (1.0 - 1e-3))
    if column.nonneg and not (z[kept] > move).all():
        return Upper(value * (1.0 + _NEARLY), z)
    return Upper(value + column.weights.max() * np.sqrt(len(kept)) * move, z)
