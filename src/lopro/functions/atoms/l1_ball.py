"""The l1 ball."""

from __future__ import annotations

import math

import numpy as np

from lopro.core.arrays import Array, namespace
from lopro.functions.atoms.base import SetAtom, Step
from lopro.functions.complements import DiagonalPlusRows
from lopro.functions.simplex import l1_ball_jacobian, project_l1_ball
from lopro.linalg.rounding import Estimate

__all__ = ["L1Ball"]


class L1Ball(SetAtom):
    """The set ``sum |z_i| <= radius``; its centre is the offset of the term.

    Parameters
    ----------
    radius : float
        Nonnegative.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.functions.atoms import L1Ball
    >>> L1Ball(2.0).prox(np.array([2.0, -2.0]), 1.0), L1Ball(2.0).conjugate(np.array([3.0, -4.0]))
    (array([ 1., -1.]), 8.0)
    """

    def __init__(self, radius: float) -> None:
        self.radius = self.extent = radius

    def value(self, z: Array) -> float:
        xp = namespace(z)
        return 0.0 if float(xp.sum(xp.abs(z))) <= self.radius else math.inf

    def prox(self, w: Array, step: Step) -> Array:
        return project_l1_ball(w, self.radius)

    def complement(self, w: Array, step: Step) -> DiagonalPlusRows:
        values, row, weight = l1_ball_jacobian(w, self.radius)
        return DiagonalPlusRows(1.0 - values, row, weight)

    def conjugate(self, v: Array) -> float:
        xp = namespace(v)
        return self.radius * float(xp.max(xp.abs(v)))

    def into_domain(self, v: Array) -> Array:
        return v

    def enclose_conjugate(self, v: Array) -> Estimate:
        return Estimate(float(np.abs(v).max())) * self.radius
