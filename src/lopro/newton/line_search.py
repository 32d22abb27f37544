"""The minimiser along a line, from slopes alone.

Values of convex functions agree to all digits long before their slopes do, so the search looks for the
root of the slope, an increasing function. Where that is piecewise linear (rows, absolute values), Newton
steps find it exactly.
"""

from __future__ import annotations

import math

from lopro.newton.smooth import Slope

__all__ = ["UnboundedBelow", "least_along"]

#: Steps longer than this many times the Newton step mean that nothing stops the descent.
_LONGEST = 2.0**100
#: Steps shorter than this make nothing of a Newton step, and brackets so narrow hold nothing but rounding.
_SHORTEST, _NARROW = 1e-12, 1e-9
#: A slope so many times that at zero is far beyond the minimiser. Newton steps come back from there by a
#: fixed length only where the function is an exponential, so the bracket is halved.
_FAR = 10.0
#: By how much a step grows at a time while the slope is negative.
_STRETCH = 16.0


class UnboundedBelow(ArithmeticError):
    """The function falls without end along this direction."""


def least_along(slope: Slope, at_zero: float, accuracy: float, evaluations: int = 100) -> float:
    """Return a step at which the slope is at most ``accuracy`` times its size at zero.

    Parameters
    ----------
    slope : callable
        Returns the first and the second derivative at a step; the first increases.
    at_zero : float
        The slope at zero, negative.
    accuracy : float
        0 for the exact root of a piecewise linear slope.
    evaluations : int
        When they are spent, the best step so far is returned.

    Raises
    ------
    UnboundedBelow
        If the slope stays negative however far one goes.

    Examples
    --------
    >>> from lopro.newton.line_search import least_along
    >>> least_along(lambda t: (2.0 * t - 1.0, 2.0), -1.0, 0.0)
    0.5
    """
    low, high, t = 0.0, math.inf, 1.0
    best, best_size = 0.0, abs(at_zero)
    for _ in range(evaluations):
        first, second = slope(t)
        if abs(first) < best_size:
            best, best_size = t, abs(first)
        if abs(first) <= accuracy * abs(at_zero):
            return t
        low, high = (t, high) if first < 0.0 else (low, t)
        if low > _LONGEST:
            raise UnboundedBelow("the slope stays negative")
        beyond = first > _FAR * abs(at_zero)
        t = 0.5 * (low + high) if beyond else _next(t, first, second, low, high)
        narrow = accuracy > 0.0 and high <= max(_SHORTEST, (1.0 + _NARROW) * low)
        if narrow or not low < t < high:
            break
    return best


def _next(t: float, first: float, second: float, low: float, high: float) -> float:
    """Return the Newton step, or one inside the bracket where that leaves it."""
    newton = t - first / second if second > 0.0 else math.nan
    # A curvature that is about to grow would send the step beyond all numbers.
    longest = _STRETCH * t if high == math.inf else high
    if low < newton < high:
        return min(newton, longest)
    return _STRETCH * low if high == math.inf else 0.5 * (low + high)
