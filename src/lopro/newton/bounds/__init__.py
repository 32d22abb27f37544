"""Bounds that multipliers prove, with their rounding subtracted, and checks of certificates."""

from lopro.newton.bounds.certificates import Descent, Emptiness, check_descent, check_empty
from lopro.newton.bounds.lower import LowerBound, lagrangian, lower_bound
from lopro.newton.bounds.strict import can_be_strict, strictly_feasible
from lopro.newton.bounds.violation import relative_violation, violation_charge

__all__ = [
    "Descent",
    "Emptiness",
    "LowerBound",
    "can_be_strict",
    "check_descent",
    "check_empty",
    "lagrangian",
    "lower_bound",
    "relative_violation",
    "strictly_feasible",
    "violation_charge",
]
