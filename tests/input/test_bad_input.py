"""Bad input: a clear error that names the argument (or a true status), and nothing is changed.

The tables lie in ``bad_input_runs`` and ``bad_input_parts``; objectives have tests of their own. A
row gives the call, the exception it raises, and the part of the message that names the argument.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from support.bad_input_data import INF, NAN, Data
from support.bad_input_parts import CONSTRAINTS, PARTS
from support.bad_input_runs import RUNS

import lopro
from lopro import Problem, Status, penalties
from lopro.constraints import FunctionConstraint, Intersection, Polyhedron, ResidualBall
from lopro.functions import Ball
from lopro.methods.theory import ProblemConstants
from lopro.objectives import SquaredDistance

CASES = RUNS + CONSTRAINTS + PARTS


def test_the_table_is_long_and_its_names_are_unique():
    assert len(CASES) >= 40
    assert len({name for name, *_ in CASES}) == len(CASES)


@pytest.mark.parametrize(
    ("act", "error", "message"), [pytest.param(*case[1:], id=case[0]) for case in CASES]
)
def test_bad_input_is_named_and_nothing_is_changed(act, error, message):
    data = Data()
    before = [array.copy() for array in data.arrays()]
    with np.errstate(all="ignore"), pytest.raises(error, match=message):
        act(data)
    for array, kept in zip(data.arrays(), before, strict=True):
        np.testing.assert_array_equal(array, kept)
    # The watched problem is valid: the error is found before any of its functions is called.
    assert data.f.calls == data.c.calls == {}


# Functions with bad output are found when they are called.


def disc(x):
    return float(x @ x) - 0.5


MISBEHAVING = {
    "value-nan": (FunctionConstraint(lambda x: NAN, np.sign), ValueError, "value .*finite"),
    "value-array": (FunctionConstraint(lambda x: x, np.sign), ValueError, "value .*scalar"),
    "value-text": (FunctionConstraint(lambda x: "no", np.sign), TypeError, "value .*'no'"),
    "slope-shape": (
        FunctionConstraint(disc, lambda x: np.zeros(3)),
        ValueError,
        r"subgradient .*\(2,\)",
    ),
    "slope-none": (FunctionConstraint(disc, lambda x: None), TypeError, "subgradient .*None"),
}


@pytest.mark.parametrize(
    ("constraint", "error", "message"), MISBEHAVING.values(), ids=MISBEHAVING.keys()
)
@pytest.mark.parametrize("method", [lopro.Auto(), lopro.LoPGD()], ids=["auto", "lopgd"])
def test_a_constraint_function_that_misbehaves(constraint, error, message, method):
    x0 = np.ones(2)
    with pytest.raises(error, match=message):
        lopro.solve(Problem(SquaredDistance(np.full(2, 2.0)), constraint), x0, method, max_iter=200)
    np.testing.assert_array_equal(x0, 1.0)


def test_a_projection_that_does_not_project_is_a_status_with_a_reason():
    liar = FunctionConstraint(disc, lambda x: 2.0 * x, project=lambda x: x, smooth=True)
    result = lopro.solve(Problem(SquaredDistance(np.full(2, 2.0)), liar), np.ones(2))
    assert result.status is Status.PROJECTION_FAILED and not result.success
    assert "project must return a feasible point" in result.warnings[0]


EMPTY = {
    "polyhedron": (Polyhedron([[1.0, 0.0], [-1.0, 0.0]], [-1.0, -1.0]), "set is empty: result.ray"),
    "zero-row": (Polyhedron([[0.0, 0.0]], [-1.0]), "set is empty: result.ray"),
    "residual-ball": (
        ResidualBall(np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([1.0, -1.0]), 0.5),
        "result.ray",
    ),
    "intersection": (
        Intersection(Polyhedron([[1.0, 0.0]], [-1.0]), Polyhedron([[-1.0, 0.0]], [-1.0])),
        "empty",
    ),
}


@pytest.mark.parametrize(("constraint", "reason"), EMPTY.values(), ids=EMPTY.keys())
def test_an_empty_set_is_a_status_with_a_reason(constraint, reason):
    x0 = np.ones(2)
    x0.flags.writeable = False
    result = lopro.solve(Problem(SquaredDistance(np.zeros(2)), constraint), x0)
    assert result.status is Status.INFEASIBLE and not result.success
    assert reason in " ".join(result.warnings)
    assert math.isnan(result.fun) and result.certificate.gap == INF


def test_a_callback_that_raises_leaves_the_start_unchanged():
    x0, data = np.zeros(2), Data()

    def callback(iterate):
        iterate.x[:] = 5.0
        raise ValueError("from the callback")

    with pytest.raises(ValueError, match="from the callback"):
        lopro.solve(data.problem, x0, callback=callback)
    np.testing.assert_array_equal(x0, 0.0)


def test_good_input_at_the_edge_is_not_refused():
    """Negative control: the checks do not refuse what is allowed."""
    data = Data()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lopro.solve(
            data.problem, [0, 0], tol=0, max_iter=1, time_limit=1, max_projections=1, seed=0
        )
    ResidualBall(data.eye, data.zero, 0.0)
    penalties.Hinge(0)
    Ball(data.zero, INF)
    ProblemConstants(0, INF, 1e-9)
    assert Polyhedron.box([-INF, 0.0], [1.0, 0.0]).value(data.zero) == 0.0
