"""Constraints ``c(x) <= 0``: each with its slope, its regularity constant and its projection."""

from lopro.constraints.affine import Affine
from lopro.constraints.base import Constraint, ValidInequality
from lopro.constraints.function import FunctionConstraint
from lopro.constraints.intersection import Intersection
from lopro.constraints.l1_ball import L1Ball
from lopro.constraints.polyhedron import Box, Polyhedron
from lopro.constraints.psd import PSDCone
from lopro.constraints.psd_forms import Distance, KyFan, MinEigenvalue, NegativeSum
from lopro.constraints.residual_ball import ResidualBall
from lopro.constraints.residual_forms import ResidualNorm, SquaredResidual
from lopro.constraints.row_forms import MaxForm, NormForm
from lopro.constraints.second_order_cone import SecondOrderCone
from lopro.constraints.simplex import Simplex
from lopro.constraints.spectrahedron import Spectrahedron
from lopro.constraints.whole_space import WholeSpace

__all__ = [
    "Affine",
    "Box",
    "Constraint",
    "Distance",
    "FunctionConstraint",
    "Intersection",
    "KyFan",
    "L1Ball",
    "MaxForm",
    "MinEigenvalue",
    "NegativeSum",
    "NormForm",
    "PSDCone",
    "Polyhedron",
    "ResidualBall",
    "ResidualNorm",
    "SecondOrderCone",
    "Simplex",
    "Spectrahedron",
    "SquaredResidual",
    "ValidInequality",
    "WholeSpace",
]
