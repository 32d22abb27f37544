"""The judge of projections accepts the nearest point and no other."""

from __future__ import annotations

import numpy as np
import pytest

from fuzz.general.balls import L1Ball, ResidualBall
from fuzz.general.matrix_sets import PSDCone
from fuzz.general.model import Model
from fuzz.general.objectives import Linear
from fuzz.general.projection import ProjectCase
from fuzz.general.sets import Box, Polyhedron, Simplex
from fuzz.judge.claims import Outcome, Raised
from fuzz.judge.verdict import Class

NONE = (np.zeros((0, 2)), np.zeros(0))


def case(member, x, inside):
    x = np.asarray(x, float)
    return ProjectCase(
        Model(Linear(0.0 * x), (member,), x.shape, inside=np.asarray(inside, float)), x
    )


RIGHT = {
    "box": (case(Box(-np.ones(2), np.ones(2)), [3.0, 0.5], [0, 0]), [1.0, 0.5]),
    "half-space": (
        case(Polyhedron(np.ones((1, 2)), np.ones(1), *NONE), [1.0, 2.0], [0, 0]),
        [0.0, 1.0],
    ),
    "simplex": (case(Simplex(2, 1.0, True), [2.0, -1.0], [0.5, 0.5]), [1.0, 0.0]),
    "l1": (case(L1Ball(2, 1.0), [3.0, 0.0], [0, 0]), [1.0, 0.0]),
    "ball": (case(ResidualBall(np.eye(2), np.zeros(2), 1.0), [3.0, 4.0], [0, 0]), [0.6, 0.8]),
    "cone": (case(PSDCone(2), np.diag([2.0, -1.0]), np.eye(2)), np.diag([2.0, 0.0])),
    "inside": (case(Box(-np.ones(2), np.ones(2)), [0.3, 0.5], [0, 0]), [0.3, 0.5]),
}


def judged(case, z):
    return case.judge(Outcome(value=np.asarray(z, float)))


@pytest.mark.parametrize("name", RIGHT)
def test_the_nearest_point_is_certified(name):
    assert judged(*RIGHT[name]).kind is Class.CERTIFIED


@pytest.mark.parametrize("name", RIGHT)
def test_other_feasible_points_are_not_the_nearest(name):
    right, z = RIGHT[name]
    inside = right.model.inside
    wrong = np.asarray(z) + 1e-4 * (inside - np.asarray(z))
    assert judged(right, wrong).label in ("not the nearest point", "moved a feasible point")


@pytest.mark.parametrize("name", [name for name in RIGHT if name != "inside"])
def test_points_outside_are_found(name):
    right, z = RIGHT[name]
    wrong = np.asarray(z) + 1e-6 * (right.x - np.asarray(z))
    assert judged(right, wrong).label == "infeasible projection"


def test_an_error_is_judged_as_well():
    right, _ = RIGHT["box"]
    empty = Raised("InfeasibleError", "empty", "", ("ValueError",))
    assert right.excuse(empty).label == "false INFEASIBLE"
    assert right.excuse(Raised("ProjectionError", "", "")).kind is Class.HONEST
    assert right.excuse(Raised("IndexError", "", "")) is None
