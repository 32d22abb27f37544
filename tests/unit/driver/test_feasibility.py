"""Which points count as feasible, as exact numbers, and which point of a run is returned.

The problem is ``min -x`` over ``x <= 0``, whose optimum is 0; a deliberately wrong projection determines
where each epoch ends. The typical size of points of the set is given as 1, so that the relative violation of
``0 < x < 1`` is ``x`` itself; and gaps are relative to 1, because the optimum has no scale of its own.
"""

from __future__ import annotations

import numpy as np
import pytest

import lopro
from lopro import Problem, Status
from lopro.constraints import FunctionConstraint
from lopro.methods.paper.theorems import HalvingSteps
from lopro.objectives import Linear


def solve_ending_at(points, tol=1e-6, dtype=np.float64) -> lopro.Result:
    """Solve from 0 with one epoch for each point; every epoch proves the lower bound 0."""
    given = iter(points)
    half_line = FunctionConstraint(
        lambda x: float(x[0]),
        lambda x: np.ones(1, dtype),
        project=lambda x: np.array([next(given)], dtype),
        x_scale=1.0,
    )
    problem = Problem(Linear(-np.ones(1, dtype)), half_line, solution_norm=1.0, gap_scale=1.0)
    method = lopro.LoPGD(HalvingSteps(lam=1.0, eta=0.1, steps=4, epochs=len(points)))
    return lopro.solve(problem, np.zeros(1, dtype), method, tol=tol)


@pytest.mark.parametrize("excess", [0.0, 0.9e-9])
def test_a_violation_within_rounding_is_no_obstacle(excess):
    result = solve_ending_at([excess])
    assert result.status is Status.CONVERGED
    assert result.certificate.violation == pytest.approx(excess, rel=1e-8)
    assert result.certificate.lower_bound == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize("excess", [1.1e-9, 5e-8])
def test_a_point_that_is_not_feasible_is_never_a_success(excess):
    # Its value is below the optimum, so that its gap alone would look like convergence.
    result = solve_ending_at([excess])
    assert result.status is Status.SCHEDULE_DONE and not result.success
    assert result.certificate.violation == pytest.approx(excess, rel=1e-7)
    assert result.fun == -excess


def test_feasibility_in_single_precision_is_sixty_four_roundings():
    unit = 2.0**-23
    assert solve_ending_at([63.0 * unit], dtype=np.float32).success
    assert not solve_ending_at([66.0 * unit], dtype=np.float32).success


def test_a_feasible_point_is_preferred_to_a_lower_one_outside():
    result = solve_ending_at([-0.2, 5e-8, -0.1, -0.3], tol=0.0)
    assert (result.fun, result.x[0], result.certificate.violation) == (0.1, -0.1, 0.0)
    assert result.history["fun"] == [0.2, -5e-8, 0.1, 0.3]


def test_violations_within_rounding_do_not_count_against_a_lower_point():
    result = solve_ending_at([-0.1, 4e-10, 0.0], tol=0.0)
    assert result.fun == -4e-10


def test_without_a_feasible_point_the_one_of_least_violation_is_returned():
    result = solve_ending_at([5e-8, 2e-8, 3e-8], tol=0.0)
    assert result.fun == -2e-8
    assert result.certificate.violation == pytest.approx(2e-8, rel=1e-7)


class Fickle(lopro.constraints.Polyhedron):
    """A set whose second projection claims that it is empty."""

    projections_made = 0

    def project(self, x):
        self.projections_made += 1
        if self.projections_made > 1:
            raise lopro.InfeasibleError("the set is empty, or so it is said")
        return super().project(x)


def test_a_feasible_point_refutes_that_the_set_is_empty():
    f = lopro.objectives.SquaredDistance(np.array([3.0, 4.0]))
    set_ = Fickle(np.array([[1.0, 1.0]]), np.array([1.0]))
    result = lopro.solve(lopro.Problem(f, set_), method=lopro.LoPGD(), tol=1e-12)
    assert set_.projections_made > 1
    assert result.status is lopro.Status.PROJECTION_FAILED
    assert result.certificate.violation <= 1e-9
    assert any("so it is said" in text for text in result.warnings)
