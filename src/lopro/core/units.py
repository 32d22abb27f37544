"""Powers of two as units: division by them does not round."""

from __future__ import annotations

import math

__all__ = ["power_of_two"]


def power_of_two(size: float) -> float:
    """Return the power of two nearest to a size on a logarithmic scale; 1 for 0, inf and NaN.

    Examples
    --------
    >>> from lopro.core.units import power_of_two
    >>> power_of_two(5.0), power_of_two(0.3), power_of_two(0.0)
    (4.0, 0.25, 1.0)
    """
    if not (size > 0.0 and math.isfinite(size)):
        return 1.0
    return 2.0 ** round(math.log2(size))
