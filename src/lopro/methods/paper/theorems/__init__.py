"""The parameters of the paper's theorems, with their guarantees.

Corollaries 1 and 2 are functions that return a method with one projection; Theorems 2 and 3 are schedules for
`lopro.LoPGD` and `lopro.LoPNAG`, and so are the halving schedules of the paper's experiments.
"""

from lopro.methods.paper.theorems.corollaries import (
    balanced,
    corollary_1,
    corollary_2a,
    corollary_2b,
    solution_ball,
    weighted_average,
)
from lopro.methods.paper.theorems.error_bounds import Theorem2, Theorem3
from lopro.methods.paper.theorems.halving import HalvingSmoothing, HalvingSteps

__all__ = [
    "HalvingSmoothing",
    "HalvingSteps",
    "Theorem2",
    "Theorem3",
    "balanced",
    "corollary_1",
    "corollary_2a",
    "corollary_2b",
    "solution_ball",
    "weighted_average",
]
