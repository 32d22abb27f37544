"""The exceptions of lopro."""

from __future__ import annotations

import math

__all__ = [
    "BoundContradictionWarning",
    "InfeasibleError",
    "MissingCapabilityError",
    "NonFiniteError",
    "PrecisionWarning",
    "ProjectionError",
    "StalledError",
    "UnboundedError",
    "ZeroRowWarning",
]


class MissingCapabilityError(TypeError):
    """A method needs something that the problem does not provide: a gradient, a prox, a constant."""


class InfeasibleError(ValueError):
    """The constraint set is empty; ``ray`` holds the multipliers that prove it, where they are known.

    With a finite ``radius`` they only prove that no point within this distance of zero is feasible.
    """

    def __init__(self, message: str, ray: object = None, radius: float = math.inf) -> None:
        super().__init__(message)
        self.ray = ray
        self.radius = radius


class UnboundedError(ValueError):
    """The objective is unbounded below on the set, along ``ray`` from any feasible point."""

    def __init__(self, message: str, ray: object) -> None:
        super().__init__(message)
        self.ray = ray


class NonFiniteError(ValueError):
    """A function returned NaN or inf, or an iterate is not finite; the driver turns it into a status."""


class ProjectionError(RuntimeError):
    """A projection could not be computed to the accuracy that feasibility requires."""


class ZeroRowWarning(UserWarning):
    """Rows whose coefficients are all zero have sides of the size of rounding; they count as satisfied."""


class PrecisionWarning(UserWarning):
    """The tolerance is smaller than the precision of the data allows to prove."""


class BoundContradictionWarning(UserWarning):
    """A lower bound is above the value of a feasible point: its assumptions are false, and it was dropped."""


class StalledError(RuntimeError):
    """A method makes no further progress; the driver turns it into a status."""
