"""Derivatives by forward differences, in the units of the variables."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.arrays import to_numpy

__all__ = ["forward_differences"]

#: A variable is moved as if it had at least this share of the largest one.
_LEAST = 1e-2
#: Points of less than this share of the start are at zero: they say nothing of the unit.
_VANISHED = 1e-12


def forward_differences(fun: Callable[[Any], Any], x0: Any) -> Callable[[Any], Any]:
    """Return the gradient of ``fun``, or the Jacobian if it returns vectors.

    Variables are moved by a share of their size that is the root of the rounding unit: a step of a fixed
    length would be lost in large numbers, and would be far too long for small ones.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.core.differences import forward_differences
    >>> slope = forward_differences(lambda x: x @ x, np.ones(2))
    >>> slope(np.array([3.0, 4.0])).round(5), (slope(np.array([3e9, 4e9])) / 1e9).round(5)
    (array([6., 8.]), array([6., 8.]))
    """
    start = float(np.abs(to_numpy(x0)).max(initial=0.0)) or 1.0
    share = math.sqrt(np.finfo(np.float64).eps)

    def slope(x: Any) -> Any:
        size = np.abs(np.asarray(x))
        largest = float(size.max(initial=0.0))
        # At zero a start in small units is the better guess; one that is far away is none.
        least = _LEAST * largest if largest > _VANISHED * start else min(start, 1.0)
        return scipy.optimize.approx_fprime(x, fun, share * np.maximum(size, least))

    return slope
