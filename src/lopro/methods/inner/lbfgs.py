"""Unconstrained L-BFGS, one step at a time, for arrays of any library and shape."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from lopro.core.arrays import Array, inner, norm

__all__ = ["LBFGS"]

#: Number of stored steps: the largest recommended one (3 to 20) of Nocedal and Wright, Numerical Optimization
#: (2006), section 7.2.
MEMORY = 20
#: The constant of sufficient decrease (Nocedal and Wright (2006), section 3.1).
SUFFICIENT = 1e-4
#: Largest number of trial steps, each between a tenth and half of the last one (Nocedal and Wright (2006),
#: section 3.5): the last one is at most 2^-11 times as long as the first.
TRIALS = 12
#: Least cosine of the angle between a step and the change of the gradient for the pair to be stored: the root
#: of the unit of rounding, below which the curvature is rounding error.
FLAT = 1e-8


class LBFGS:
    """L-BFGS as an iteration that the caller controls.

    SciPy's implementation is a single call on host vectors in double precision. Here the arrays keep their
    library, device and precision, and the caller may use the point between two steps without a restart.

    Parameters
    ----------
    function : callable
        Returns value and gradient; a sum of squares, whose least value is about zero.
    x : array
        The start.

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
        """Make one step; return False if no step decreases the function."""
        while True:
            direction = self._direction()
            if self._along(direction):
                return True
            if not self._memory:
                return False
            self._memory.clear()

    def _direction(self) -> Array:
        """Return minus the gradient times the inverse Hessian that the stored steps estimate."""
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
        """Make a step along a direction by backtracking; return False if no trial step is accepted."""
        slope = inner(self.gradient, direction)
        if not slope < 0.0:
            return False
        # Without stored steps the first trial is the minimiser of a parabola with the minimum zero.
        size = 1.0 if self._memory else min(1.0, 2.0 * self.value / -slope)
        for _ in range(TRIALS):
            x = self.x + size * direction
            value, gradient = self.function(x)
            # A strict inequality: a step without any decrease is not accepted.
            if value < self.value + SUFFICIENT * size * slope:
                self._remember(size * direction, gradient - self.gradient)
                self.x, self.value, self.gradient = x, value, gradient
                return True
            # The minimiser of the parabola through both values and the slope, with safeguards.
            fitted = -0.5 * slope * size**2 / (value - self.value - slope * size)
            size = min(max(fitted, 0.1 * size), 0.5 * size)
        return False

    def _remember(self, step: Array, change: Array) -> None:
        """Store a step with the change of the gradient if the function has curvature along it."""
        curvature = inner(step, change)
        if curvature > FLAT * norm(step) * norm(change):
            self._memory.append((step, change, curvature))
