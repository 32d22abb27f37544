"""L-BFGS without bounds, one step at a time, for arrays of any library and shape."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from lopro.core.arrays import Array, inner, norm

__all__ = ["LBFGS"]

#: Stored steps: the largest number of those advised (3 to 20) by Nocedal and Wright, Numerical Optimization
#: (2006), section 7.2.
MEMORY = 20
#: The constant of sufficient decrease (Nocedal and Wright (2006), section 3.1).
SUFFICIENT = 1e-4
#: Trial steps at most, each between a tenth and half of the last one.
TRIALS = 12
#: The least cosine between a step and the change of the gradient along it with which the step is stored: the
#: root of the unit of rounding, below which the curvature is noise.
FLAT = 1e-8


class LBFGS:
    """The state of L-BFGS; the caller decides when to stop.

    SciPy's is one call on vectors of the host in double precision. Here the arrays keep library, device and
    precision, and the caller may use the point between two steps without a restart.

    Parameters
    ----------
    function : callable
        Returns value and gradient; a sum of squares, whose least value is about zero.
    x : array
        Where to begin.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.methods.inner.lbfgs import LBFGS
    >>> scales = np.array([1.0, 10.0, 100.0])
    >>> search = LBFGS(lambda x: (0.5 * scales @ x**2, scales * x), np.ones(3))
    >>> while search.step() and search.value > 1e-12:
    ...     pass
    >>> bool(search.value <= 1e-12)
    True
    """

    def __init__(self, function: Callable[[Array], tuple[float, Array]], x: Array) -> None:
        self.function = function
        self.x = x
        self.value, self.gradient = function(x)
        self._memory: deque[tuple[Array, Array, float]] = deque(maxlen=MEMORY)

    def step(self) -> bool:
        """Make one step; return False if no step lowers the function any more."""
        while True:
            direction = self._direction()
            if self._along(direction):
                return True
            if not self._memory:
                return False
            self._memory.clear()

    def _direction(self) -> Array:
        """Return minus the inverse Hessian, as the last steps estimate it, times the gradient."""
        q, factors = self.gradient, []
        for step, change, curvature in reversed(self._memory):
            factors.append(inner(step, q) / curvature)
            q = q - factors[-1] * change
        if self._memory:
            _, change, curvature = self._memory[-1]
            q = (curvature / inner(change, change)) * q
        for (step, change, curvature), factor in zip(self._memory, reversed(factors), strict=True):
            q = q + (factor - inner(change, q) / curvature) * step
        return -q

    def _along(self, direction: Array) -> bool:
        slope = inner(self.gradient, direction)
        if not slope < 0.0:
            return False
        # Without a memory the unit of length is unknown: that of a quadratic with the minimum zero is taken.
        size = 1.0 if self._memory else min(1.0, 2.0 * self.value / -slope)
        for _ in range(TRIALS):
            x = self.x + size * direction
            value, gradient = self.function(x)
            # Strictly: where decreases are below rounding, no step counts.
            if value < self.value + SUFFICIENT * size * slope:
                self._remember(size * direction, gradient - self.gradient)
                self.x, self.value, self.gradient = x, value, gradient
                return True
            # The parabola through both values and the slope, within reason.
            fitted = -0.5 * slope * size**2 / (value - self.value - slope * size)
            size = min(max(fitted, 0.1 * size), 0.5 * size)
        return False

    def _remember(self, step: Array, change: Array) -> None:
        curvature = inner(step, change)
        # Where the function is not convex, the curvature along a step may not be positive.
        if curvature > FLAT * norm(step) * norm(change):
            self._memory.append((step, change, curvature))
