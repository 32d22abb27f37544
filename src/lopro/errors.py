"""The errors lopro raises on purpose."""

from __future__ import annotations

__all__ = ["InfeasibleError", "MissingCapabilityError", "ProjectionError", "StalledError"]


class MissingCapabilityError(TypeError):
    """A method needs something (a gradient, a prox, a constant) the problem does not offer."""


class InfeasibleError(ValueError):
    """The constraint set is empty."""


class ProjectionError(RuntimeError):
    """A projection could not be computed to the accuracy that feasibility needs."""


class StalledError(RuntimeError):
    """A scheme sees no further progress; the driver turns it into a status."""
