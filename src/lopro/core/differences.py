"""Derivatives by forward differences, invariant under the units of the variables."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from lopro.core.arrays import asarray_like, eps, is_array, to_numpy

__all__ = ["ForwardDifferences", "forward_differences"]

#: Least size of a variable, relative to the largest one, for its step: steps are then at least 1.5e-10 of the
#: largest variable, 7e5 units of its rounding.
_LEAST = 1e-2
#: A point below this share of the start is treated as zero: 5e3 units of rounding of the start.
_VANISHED = 1e-12
#: A difference of values below this number of their rounding units has less than four digits. The step is
#: then multiplied by the second number, up to the step of the largest variable or of the start.
_DIGITS, _LONGER = 1e4, 100.0
#: Differences of quotients below this share of the largest slope so far are truncation errors of all forward
#: differences: half of the digits, and two more where a small variable has the step of a larger one.
_TRUNCATION = 1e-6


def forward_differences(fun: Callable[[Any], Any], x0: Any) -> ForwardDifferences:
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
    return ForwardDifferences(fun, start)


class ForwardDifferences:
    """The quotients of a function by forward differences, and their errors.

    Parameters
    ----------
    fun : callable
        The function.
    start : float
        The size of the variables at the start.
    """

    def __init__(self, fun: Callable[[Any], Any], start: float) -> None:
        self._fun, self._start = fun, start
        self._largest = 0.0

    def __call__(self, x: Any) -> Any:
        """Return the forward quotients at a point."""
        found = self._quotients(x, 1.0)
        self._largest = max(self._largest, float(np.abs(found).max(initial=0.0)))
        return asarray_like(found, x)

    def error(self, x: Any) -> np.ndarray[Any, Any]:
        """Return upper bounds of the errors of the quotients as slopes of a convex function, one per entry.

        Every slope of a convex function is between the backward and the forward quotient, which differ
        at kinks. Differences within the truncation error count as zero.

        Examples
        --------
        >>> import numpy as np
        >>> from lopro.core.differences import forward_differences
        >>> slope = forward_differences(lambda x: abs(x[0]) + x[1] ** 2, np.ones(2))
        >>> slope.error(np.array([0.0, 3.0])).round(3)
        array([2., 0.])
        """
        ahead = np.asarray(to_numpy(self(x)), dtype=np.float64)
        width = ahead - self._quotients(x, -1.0)
        return np.where(width > _TRUNCATION * self._largest, width, 0.0)

    def _value(self, z: Any) -> Any:
        found = self._fun(z)
        return np.asarray(to_numpy(found) if is_array(found) else found, dtype=np.float64)

    def _quotients(self, x: Any, sign: float) -> np.ndarray[Any, Any]:
        host = np.asarray(to_numpy(x))
        # Points in single precision on the host are evaluated in double precision.
        unit = float(np.finfo(np.float64).eps) if isinstance(x, np.ndarray) else eps(x)
        size = np.abs(host)
        largest = float(size.max(initial=0.0))
        # At zero the scale is the size of the start, but at most 1: a large start may be far off.
        nonzero = largest > _VANISHED * self._start
        least = _LEAST * largest if nonzero else min(self._start, 1.0)
        steps = math.sqrt(unit) * np.maximum(size, least)
        first, longest = self._value(x), math.sqrt(unit) * max(self._start, largest)
        columns = []
        for j in range(host.size):
            step = float(steps[j])
            difference, taken = self._difference(x, j, sign * step, first)
            # Take a longer step where the values agree in nearly all digits.
            while not _visible(difference, first, unit) and step < longest:
                step = min(_LONGER * step, longest)
                difference, taken = self._difference(x, j, sign * step, first)
            columns.append(difference / taken)
        return np.stack(columns, axis=-1)

    def _difference(self, x: Any, j: int, step: float, first: Any) -> tuple[Any, float]:
        """Return the difference along one variable, and the step after rounding."""
        host = np.asarray(to_numpy(x), dtype=np.float64)
        moved = host.copy()
        moved[j] += step
        there = asarray_like(moved, x)
        taken = float(to_numpy(there)[j]) - float(host[j]) or step
        return self._value(there) - first, taken


def _visible(difference: Any, first: Any, unit: float) -> bool:
    """Whether a difference of values is far above their rounding."""
    return bool(
        np.abs(difference).max(initial=0.0) > _DIGITS * unit * np.abs(first).max(initial=0.0)
    )
