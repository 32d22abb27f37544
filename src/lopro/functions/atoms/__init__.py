"""Atoms: convex functions of an array without data but their parameters, one file each."""

from lopro.functions.atoms.ball import Ball
from lopro.functions.atoms.base import Atom, Enclosed, Step
from lopro.functions.atoms.group_norm import GroupNorm
from lopro.functions.atoms.half_square import HalfSquare
from lopro.functions.atoms.huber import Huber
from lopro.functions.atoms.interval import Interval
from lopro.functions.atoms.l1 import L1
from lopro.functions.atoms.l1_ball import L1Ball
from lopro.functions.atoms.linear import Linear
from lopro.functions.atoms.linf import LInf
from lopro.functions.atoms.logistic import Logistic
from lopro.functions.atoms.nuclear import Nuclear
from lopro.functions.atoms.opaque import Opaque
from lopro.functions.atoms.poisson import Poisson
from lopro.functions.atoms.quadratic import Quadratic
from lopro.functions.atoms.second_order_cone import SecondOrderCone
from lopro.functions.atoms.squared_hinge import SquaredHinge

__all__ = [
    "L1",
    "Atom",
    "Ball",
    "Enclosed",
    "GroupNorm",
    "HalfSquare",
    "Huber",
    "Interval",
    "L1Ball",
    "LInf",
    "Linear",
    "Logistic",
    "Nuclear",
    "Opaque",
    "Poisson",
    "Quadratic",
    "SecondOrderCone",
    "SquaredHinge",
    "Step",
]
