"""The judge of metric learning accepts what is right and rejects every forgery."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fuzz.judge.claims import Claims
from fuzz.judge.contract import SLACK, feasible_up_to
from fuzz.judge.verdict import Class
from fuzz.judge.wide import wide
from fuzz.metric.judge import judge_metric
from fuzz.metric.problem import MetricProblem

# Pairs that differ in one feature each: A is diagonal and meets both targets.
EASY = MetricProblem(wide(np.diag([1.0, 2.0])), np.array([2.0, 4.0]), 0.1)
# Two pairs with the same difference and targets 0 and 2: the best distance is 1, the loss 1/2.
TORN = MetricProblem(wide(np.array([[1.0], [1.0]])), np.array([0.0, 2.0]), 0.1)
TOL = 1e-6


def claims_at(A, fun, bound, status="CONVERGED", **fields):
    A = np.asarray(A, float)
    gap = max(fun - bound, 0.0)
    unit = max(fun, 1e-9)
    return Claims(status, status == "CONVERGED", A, fun, bound, gap, gap / unit, 0.0, **fields)


RIGHT = claims_at([[1.0]], 0.5, 0.5, extra={"loss": 0.5, "factor": np.array([[1.0]])})


def verdict(claims, problem=TORN):
    return judge_metric(problem, TOL, np.float64, claims)


def test_right_claims_are_certified():
    assert verdict(RIGHT).kind is Class.CERTIFIED
    assert verdict(claims_at(np.diag([2.0, 1.0]), 0.0, 0.0), EASY).kind is Class.CERTIFIED
    assert verdict(claims_at([[0.5]], 0.625, 0.1, "TIME_LIMIT")).kind is Class.HONEST


FORGERIES = {
    "bound above optimum": claims_at([[0.5]], 0.625, 0.5 + 1e-9, "TIME_LIMIT"),
    "bound above optimum, success": claims_at([[0.5]], 0.625, 0.625),
    "infeasible success": claims_at([[-1e-3]], 0.25 * (1e-6 + 2.001**2), 0.25 * (1e-6 + 2.001**2)),
    "value misstated": replace(RIGHT, fun=0.5 + 1e-9, gap=1e-9, relative_gap=2e-9),
    "value misstated, loss": replace(RIGHT, extra={"loss": 0.4}),
    "factor misstated": replace(RIGHT, extra={"factor": np.array([[0.9]])}),
    "false INFEASIBLE": replace(RIGHT, status="INFEASIBLE", success=False),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forgeries_are_found(name):
    found = verdict(FORGERIES[name])
    assert (found.kind, found.label) == (Class.WRONG, name.split(",")[0]), found


def test_the_cone_is_measured_in_the_units_of_each_feature():
    """A matrix that is not psd stays so, however small one of its features is."""
    Z = wide(np.eye(2))
    A = np.array([[1.0, 1.1], [1.1, 1.0]])
    for unit in (1.0, 1e-6, 1e6):
        problem = MetricProblem(Z * np.array([1.0, unit]), np.array([1.0, 1.0]), 0.0)
        scaled = A / np.outer([1.0, unit], [1.0, unit])
        assert problem.violation(scaled) == pytest.approx(0.1, rel=0.5)
        assert problem.violation(scaled * np.array([[1, 0.5], [0.5, 1]])) == 0.0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_an_unused_feature_has_rounding_on_its_diagonal(dtype):
    """A tenth of a rounding unit below zero is psd in either precision, a hundred of them are not."""
    eps = float(np.finfo(dtype).eps)
    problem = MetricProblem(wide(np.eye(2)), np.array([2.0, 0.0]), 0.0)
    allowed = SLACK * feasible_up_to(eps)
    for unit, within in ((0.1, True), (100.0, False)):
        A = np.diag([2.0, -2.0 * unit * eps]).astype(dtype)
        assert (problem.violation(A) <= allowed) is within


@pytest.mark.parametrize("l1", [0.0, 0.01, 10.0])
def test_reference_and_psd_points_meet(rng, l1):
    X = rng.standard_normal((6, 3)) * np.array([1.0, 1e-4, 1e4])
    first, second = np.triu_indices(6, 1)
    targets = np.where((first + second) % 2 == 0, 0.0, 2.0)
    problem = MetricProblem(wide(X)[first] - wide(X)[second], targets, l1)
    A, lower = problem.reference()
    best = float(problem.value(problem.inside(A)))
    assert lower <= best <= lower * (1 + 1e-6) + 1e-7
