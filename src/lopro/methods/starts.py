"""Where a method starts."""

from __future__ import annotations

from lopro.core.arrays import Array
from lopro.protocol import Workbench
from lopro.protocol.certificates import feasibility_tolerance

__all__ = ["feasible_start"]


def feasible_start(bench: Workbench, x: Array) -> Array:
    """Return ``x`` if it is feasible, else its projection (which counts)."""
    with bench.observe():
        inside = bench.constraint.violation(x) <= feasibility_tolerance(x)
    return x if inside else bench.project(x)
