"""Parts of objectives with an easy prox: sets and norms."""

from lopro.newton.parts.ball import Ball, SecondOrderCone
from lopro.newton.parts.base import Complement, Part, Steps
from lopro.newton.parts.complements import BlockMask, Mask, MaskAndRows
from lopro.newton.parts.interval import Interval
from lopro.newton.parts.norms import L1, GroupNorms

__all__ = [
    "L1",
    "Ball",
    "BlockMask",
    "Complement",
    "GroupNorms",
    "Interval",
    "Mask",
    "MaskAndRows",
    "Part",
    "SecondOrderCone",
    "Steps",
]
