"""A linear function over a long thin polygon with many sides: every constant is known.

The sides touch an ellipse, their normals have length 1, and two neighbours meet at an angle delta; a
point outside is at most ``max_i c_i(x) / cos(delta / 2)`` away, so that ``rho = min cos(delta / 2)``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.optimize

from lopro.constraints import Polyhedron
from lopro.methods.theory import ProblemConstants
from lopro.objectives import Linear
from lopro.problem import Problem

AXES = np.array([3.0, 0.5])


def rows(m: int) -> tuple[Any, Any]:
    """Return unit normals and offsets of m tangents of the ellipse."""
    angles = 2.0 * np.pi * (np.arange(m) + 0.3) / m
    normals = np.column_stack([np.cos(angles), np.sin(angles)])
    return normals, np.linalg.norm(normals * AXES, axis=1)


@dataclass(frozen=True)
class Polygon:
    """The problem with m sides."""

    m: int

    @property
    def a(self) -> Any:
        """The objective's slope, a unit vector: G = 1."""
        return np.array([-0.6, 0.8])

    @property
    def constants(self) -> ProblemConstants:
        """Slopes of length 1 everywhere, and rho from the angle at the corners."""
        return ProblemConstants(G=1.0, Gc=1.0, rho=math.cos(np.pi / self.m))

    @property
    def weight(self) -> float:
        """``lam = G / rho``."""
        return self.constants.weight

    @property
    def problem(self) -> Problem:
        return Problem(Linear(self.a), Polyhedron(*rows(self.m)))

    @property
    def best(self) -> float:
        """The optimal value, by HiGHS."""
        C, b = rows(self.m)
        answer = scipy.optimize.linprog(self.a, A_ub=C, b_ub=b, bounds=(None, None))
        return float(answer.fun)

    @property
    def radius(self) -> float:
        """The radius of the ball around the centre: that of the set, from the constraint."""
        bound = self.problem.constraint.radius()
        assert bound is not None
        return bound.value
