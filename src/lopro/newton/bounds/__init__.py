"""Lower bounds from multipliers, less their rounding; violations, and points with smaller ones."""

from lopro.newton.bounds.feasible import (
    made_feasible,
    relative_violation,
    violation_charge,
    within_bounds,
)
from lopro.newton.bounds.lower import lagrangian, lower_bound

__all__ = [
    "lagrangian",
    "lower_bound",
    "made_feasible",
    "relative_violation",
    "violation_charge",
    "within_bounds",
]
