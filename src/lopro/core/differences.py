"""Derivatives by forward differences, invariant under the units of the variables."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.arrays import to_numpy

__all__ = ["forward_differences"]

#: Least size of a variable, relative to the largest one, for its step: steps are then at least 1.5e-10 of the
#: largest variable, 7e5 units of its rounding.
_LEAST = 1e-2
#: A point below this share of the start is treated as zero: 5e3 units of rounding of the start.
_VANISHED = 1e-12


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
    share = math.sqrt(np.finfo(np.float64).eps)

    def slope(x: Any) -> Any:
        size = np.abs(np.asarray(x))
        largest = float(size.max(initial=0.0))
        # At zero the size of the start is the scale, if it is small; a start above 1 says little of it.
        least = _LEAST * largest if largest > _VANISHED * start else min(start, 1.0)
        return scipy.optimize.approx_fprime(x, fun, share * np.maximum(size, least))

    return slope
