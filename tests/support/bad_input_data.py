"""Parts of the tables of bad input: the form of a row, and valid data to modify."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from support.driver_cases import watched

from lopro import Problem
from lopro.constraints import Polyhedron, ResidualBall
from lopro.methods.theory import ProblemConstants
from lopro.objectives import FunctionObjective, SquaredDistance

NAN, INF = math.nan, math.inf


@dataclass
class Data:
    """Valid data of which a test replaces one piece; arrays are read-only, calls of oracles are counted."""

    def __post_init__(self) -> None:
        self.eye, self.zero, self.one = np.eye(2), np.zeros(2), np.ones(2)
        self.skew = np.array([[0.0, 1.0], [0.0, 0.0]])
        for array in self.arrays():
            array.flags.writeable = False
        self.box = Polyhedron.box(-self.one, self.one)
        self.ball = ResidualBall(self.eye, self.zero, 1.0)
        self.problem, self.f, self.c = watched(Problem(SquaredDistance(self.one), self.box))
        self.rough = FunctionObjective(lambda x: 0.0, subgradient=lambda x: 0.0 * x, shape=(2,))
        self.constants = ProblemConstants(G=1.0, Gc=1.0, rho=1.0, Lf=1.0, Lc=1.0)

    def arrays(self) -> list[np.ndarray]:
        return [self.eye, self.zero, self.one, self.skew]


Case = tuple[str, Callable[[Data], Any], type[Exception], str]


def flat(x):
    return 0.0
