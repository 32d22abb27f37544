"""Methods for `lopro.solve`: only methods may project, and only through the workbench."""

from lopro.methods.auto import Auto
from lopro.methods.multipliers import MultiplierMethod
from lopro.methods.nearest_point import NearestPoint
from lopro.methods.paper.low_projection import LoPGD, LoPNAG
from lopro.methods.paper.one_projection import OneProjection
from lopro.methods.second_order import NewtonMultipliers, ProgramEngines
from lopro.methods.semidefinite import LowRankFactors, NearestSemidefinite, SemidefiniteEngines
from lopro.methods.splitting import ADMM
from lopro.methods.splitting.alternating import AlternatingDirections

__all__ = [
    "ADMM",
    "AlternatingDirections",
    "Auto",
    "LoPGD",
    "LoPNAG",
    "LowRankFactors",
    "MultiplierMethod",
    "NearestPoint",
    "NearestSemidefinite",
    "NewtonMultipliers",
    "OneProjection",
    "ProgramEngines",
    "SemidefiniteEngines",
]
