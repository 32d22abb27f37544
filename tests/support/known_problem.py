"""A problem together with its solution and all its constants, as theorems need them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lopro.constraints import Constraint
from lopro.methods.theory import ProblemConstants
from lopro.objectives import Objective
from lopro.problem import Problem

Vector = Any


@dataclass(frozen=True)
class Known:
    """A problem with its solution and all its constants (infinite where there is none)."""

    name: str
    objective: Objective
    constraint: Constraint
    x0: Vector  # feasible, not optimal, not on an axis
    solution: Vector
    optimum: float
    zeta: float  # the Lagrange multiplier of c
    G: float
    Gc: float
    rho: float
    Lf: float = math.inf
    Lc: float = math.inf
    mu: float = 0.0
    c_min: float = -math.inf
    theta: float = 1.0
    sigma: float = math.nan
    directions: tuple[Vector, ...] = field(default=(), repr=False)  # where rho is attained

    @property
    def problem(self) -> Problem:
        """The problem for `lopro.solve`."""
        return Problem(self.objective, self.constraint)

    @property
    def constants(self) -> ProblemConstants:
        """The constants of Assumption 1 and of smoothness."""
        return ProblemConstants(
            G=self.G,
            Gc=self.Gc,
            rho=self.rho,
            Lf=self.Lf,
            Lc=self.Lc,
            mu=self.mu,
            c_min=self.c_min,
        )

    @property
    def eps0(self) -> float:
        """The gap of the start, as Assumption 2 requires it."""
        return self.gap(self.x0)

    @property
    def distance(self) -> float:
        """The distance of the start from the solution."""
        return float(np.linalg.norm(self.x0 - self.solution))

    def gap(self, x: Vector) -> float:
        """Return ``f(x) - f_*``."""
        return float(self.objective.value(x)) - self.optimum
