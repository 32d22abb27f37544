"""Second-order kernels: semismooth Newton on augmented Lagrangians, and proofs of their answers."""

from lopro.newton.multipliers import OuterIterate, Settings, iterate
from lopro.newton.problem import Composite
from lopro.newton.solve import Outcome, Status, outcomes, prove, solve

__all__ = [
    "Composite",
    "Outcome",
    "OuterIterate",
    "Settings",
    "Status",
    "iterate",
    "outcomes",
    "prove",
    "solve",
]
