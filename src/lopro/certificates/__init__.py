"""The arithmetic of claims: bounds, violations, emptiness, rays, rounding, and the tolerances of all of them.

This package imports no solver. Engines, methods, projections and interfaces obtain all their claims from it.
"""

from lopro.certificates.bound import Bound, bound_from
from lopro.certificates.box import VariableBounds
from lopro.certificates.certificate import Certificate
from lopro.certificates.emptiness import Emptiness, check_empty, exclude, exclude_cones
from lopro.certificates.rays import DescentRay, begins_a_ray, check_descent
from lopro.certificates.tolerances import (
    BEYOND,
    FARTHER,
    FEASIBLE,
    NOISE,
    REMNANTS,
    TOUCHING,
    Target,
    feasibility_tolerance,
)
from lopro.certificates.units import Units, column_units, reach_units
from lopro.certificates.violation import Violation, noise_rows, of_rows

__all__ = [
    "BEYOND",
    "FARTHER",
    "FEASIBLE",
    "NOISE",
    "REMNANTS",
    "TOUCHING",
    "Bound",
    "Certificate",
    "DescentRay",
    "Emptiness",
    "Target",
    "Units",
    "VariableBounds",
    "Violation",
    "begins_a_ray",
    "bound_from",
    "check_descent",
    "check_empty",
    "column_units",
    "exclude",
    "exclude_cones",
    "feasibility_tolerance",
    "noise_rows",
    "of_rows",
    "reach_units",
]
