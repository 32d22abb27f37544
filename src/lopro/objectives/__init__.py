"""Objectives: values, slopes, proximal maps and constants, one file for each."""

from __future__ import annotations

from lopro.objectives.base import Objective
from lopro.objectives.classification import HingeLoss, Logistic, SquaredHingeLoss
from lopro.objectives.function import FunctionObjective
from lopro.objectives.group_norm import GroupNorm, TotalVariation
from lopro.objectives.huber import Huber
from lopro.objectives.l1 import L1Norm, L1NormOfImage
from lopro.objectives.least_squares import LeastSquares
from lopro.objectives.linear import Linear
from lopro.objectives.linf_norm import LInfNorm
from lopro.objectives.nuclear_norm import NuclearNorm
from lopro.objectives.of_atom import OfAtom
from lopro.objectives.off_diagonal import OffDiagonalL1
from lopro.objectives.quadratic import Quadratic
from lopro.objectives.regression import PinballLoss, Poisson
from lopro.objectives.scaled import Scaled
from lopro.objectives.squared_distance import SquaredDistance
from lopro.objectives.sums import Sum

__all__ = [
    "FunctionObjective",
    "GroupNorm",
    "HingeLoss",
    "Huber",
    "L1Norm",
    "L1NormOfImage",
    "LInfNorm",
    "LeastSquares",
    "Linear",
    "Logistic",
    "NuclearNorm",
    "Objective",
    "OfAtom",
    "OffDiagonalL1",
    "PinballLoss",
    "Poisson",
    "Quadratic",
    "Scaled",
    "SquaredDistance",
    "SquaredHingeLoss",
    "Sum",
    "TotalVariation",
]
