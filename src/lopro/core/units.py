"""Units that cost nothing: powers of two, by which numbers are divided without rounding."""

from __future__ import annotations

import math

__all__ = ["power_of_two"]


def power_of_two(size: float) -> float:
    """Return the power of two nearest to a size, in the logarithm; 1 for zero and what is not finite.

    Examples
    --------
    >>> from lopro.core.units import power_of_two
    >>> power_of_two(5.0), power_of_two(0.3), power_of_two(0.0)
    (4.0, 0.25, 1.0)
    """
    if not (size > 0.0 and math.isfinite(size)):
        return 1.0
    return 2.0 ** round(math.log2(size))
