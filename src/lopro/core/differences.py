"""Derivatives by forward differences, invariant under the units of the variables."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from lopro.core.arrays import asarray_like, eps, is_array, to_numpy

__all__ = ["forward_differences"]

#: Least size of a variable, relative to the largest one, for its step: steps are then at least 1.5e-10 of the
#: largest variable, 7e5 units of its rounding.
_LEAST = 1e-2
#: A point below this share of the start is treated as zero: 5e3 units of rounding of the start.
_VANISHED = 1e-12
#: A difference of values below so many units of their rounding has less than four digits; then the step
#: becomes so many times as long, up to that of the largest variable or of the start.
_DIGITS, _LONGER = 1e4, 100.0


def forward_differences(fun: Callable[[Any], Any], x0: Any) -> Callable[[Any], Any]:
    """Return the gradient of ``fun``, or the Jacobian if it returns vectors.

    The step of a variable is its size times the square root of the rounding unit. A step of fixed length
    would be below the rounding of large variables and too long for small ones.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.core.differences import forward_differences
    >>> slope = forward_differences(lambda x: x @ x, np.ones(2))
    >>> slope(np.array([3.0, 4.0])).round(5), (slope(np.array([3e9, 4e9])) / 1e9).round(5)
    (array([6., 8.]), array([6., 8.]))
    """
    start = float(np.abs(to_numpy(x0)).max(initial=0.0)) or 1.0

    def value(z: Any) -> Any:
        found = fun(z)
        return np.asarray(to_numpy(found) if is_array(found) else found, dtype=np.float64)

    def slope(x: Any) -> Any:
        host = np.asarray(to_numpy(x))
        # Single precision on the host is computed with in double precision.
        unit = float(np.finfo(np.float64).eps) if isinstance(x, np.ndarray) else eps(x)
        size = np.abs(host)
        largest = float(size.max(initial=0.0))
        # At zero the size of the start is the scale, if it is small; a start above 1 says little of it.
        least = _LEAST * largest if largest > _VANISHED * start else min(start, 1.0)
        steps = math.sqrt(unit) * np.maximum(size, least)
        first, longest = value(x), math.sqrt(unit) * max(start, largest)
        columns = []
        for j in range(host.size):
            step = float(steps[j])
            difference, taken = _difference(value, x, j, step, first)
            # Where the values agree in nearly all of their digits, a longer step is taken.
            while not _visible(difference, first, unit) and step < longest:
                step = min(_LONGER * step, longest)
                difference, taken = _difference(value, x, j, step, first)
            columns.append(difference / taken)
        return asarray_like(np.stack(columns, axis=-1), x)

    return slope


def _difference(
    value: Callable[[Any], Any], x: Any, j: int, step: float, first: Any
) -> tuple[Any, float]:
    """Return the difference along one variable, and the step that rounding has left."""
    host = np.asarray(to_numpy(x), dtype=np.float64)
    moved = host.copy()
    moved[j] += step
    there = asarray_like(moved, x)
    return value(there) - first, float(to_numpy(there)[j]) - float(host[j]) or step


def _visible(difference: Any, first: Any, unit: float) -> bool:
    """Whether a difference of values is far above their rounding."""
    return bool(
        np.abs(difference).max(initial=0.0) > _DIGITS * unit * np.abs(first).max(initial=0.0)
    )
