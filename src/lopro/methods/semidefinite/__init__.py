"""Methods for linear and quadratic objectives over positive semidefinite matrices that satisfy rows."""

from lopro.methods.semidefinite.engines import SemidefiniteEngines
from lopro.methods.semidefinite.form import nearest_form, semidefinite_form
from lopro.methods.semidefinite.low_rank import LowRankFactors
from lopro.methods.semidefinite.nearest import NearestSemidefinite

__all__ = [
    "LowRankFactors",
    "NearestSemidefinite",
    "SemidefiniteEngines",
    "nearest_form",
    "semidefinite_form",
]
