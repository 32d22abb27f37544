"""Feasible starting points, and candidates at feasible points."""

from __future__ import annotations

from lopro.constraints.base import ValidInequality
from lopro.core.arrays import Array
from lopro.protocol import Candidate, Multiplier, Workbench
from lopro.protocol.certificates import feasibility_tolerance

__all__ = ["feasible_candidate", "feasible_start", "is_feasible"]


def feasible_start(bench: Workbench, x: Array) -> Array:
    """Return ``x`` if it is feasible, else its projection (which counts)."""
    return x if is_feasible(bench, x) else bench.project(x)


def is_feasible(bench: Workbench, x: Array) -> bool:
    """Whether ``x`` violates the constraint by rounding error at most; not counted."""
    with bench.observe():
        return bool(bench.constraint.violation(x) <= feasibility_tolerance(x))


def feasible_candidate(x: Array, inequality: ValidInequality | None = None) -> Candidate:
    """Return a feasible point with its multiplier; by default the multiplier 0, which leaves ``inf f``."""
    return Candidate(
        x, Multiplier(ValidInequality.trivial(x) if inequality is None else inequality)
    )
