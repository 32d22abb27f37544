"""Constraints ``c(x) <= 0``: each with its slope, its regularity constant and its projection."""

from lopro.constraints.base import Constraint, Normal
from lopro.constraints.box import Box
from lopro.constraints.function import FunctionConstraint
from lopro.constraints.intersection import Intersection
from lopro.constraints.polyhedron import MaxForm, NormForm, Polyhedron
from lopro.constraints.psd import Distance, KyFan, MinEigenvalue, NegativeSum, PSDCone
from lopro.constraints.residual_ball import ResidualBall, ResidualNorm, SquaredResidual

__all__ = [
    "Box",
    "Constraint",
    "Distance",
    "FunctionConstraint",
    "Intersection",
    "KyFan",
    "MaxForm",
    "MinEigenvalue",
    "NegativeSum",
    "NormForm",
    "Normal",
    "PSDCone",
    "Polyhedron",
    "ResidualBall",
    "ResidualNorm",
    "SquaredResidual",
]
