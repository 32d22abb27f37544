"""From the proofs of the kernels to the certificates of the driver: every charge as an exact number."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import lopro
from lopro import NewtonMultipliers, Problem
from lopro.certificates import Bound, Certificate, Units
from lopro.certificates.certificate import Outcome, Status
from lopro.constraints import Polyhedron
from lopro.driver.incumbent import Incumbent
from lopro.errors import InfeasibleError, UnboundedError
from lopro.methods.answers import answer, member_multipliers
from lopro.methods.second_order.forms import composite
from lopro.objectives import Linear
from lopro.protocol import Candidate, ProvedBound, Target

#: -x - 2 y over x + y <= 1, x <= 3: the evidence below is invented; the problem only gives the shapes.
ROWS = Polyhedron([[1.0, 1.0], [2.0, 0.0]], [1.0, 6.0])


def make_evidence(
    *, slope: float = 0.0, charge: float = 0.0, x: Any = (0.6, -0.8), norm: float | None = None
) -> ProvedBound:
    """Return the evidence for a bound of -7 with this slope around (3, 4), the units being 3."""
    problem = Problem(Linear(np.array([-1.0, -2.0])), ROWS, solution_norm=norm)
    bench = lopro.iterate(problem).bench
    slopes = np.array([0.6, 0.8]) * slope  # of norm `slope`
    units = Units.given(np.array([3.0, 3.0]))
    bound = Bound(-7.0, slopes, np.array([3.0, 4.0]), units)
    multipliers = (np.array([2.0, -5.0]),)
    point = np.array(x, dtype=float)
    outcome = Outcome(Status.STOPPED, point, multipliers, 7.0, bound, charge, 0.0, 1)
    candidate = answer(composite(problem).terms, outcome, bench, np.zeros(2), member_multipliers)
    np.testing.assert_array_equal(candidate.x, point)
    assert candidate.before is None
    assert isinstance(candidate.evidence, ProvedBound)
    return candidate.evidence


def certified(evidence: ProvedBound, x: Any) -> Certificate:
    """Return the certificate that the evidence makes at a point."""
    problem = Problem(Linear(np.array([-1.0, -2.0])), ROWS)
    known = Incumbent(problem, Target(0.0), [], lambda: problem.typical_size(np.zeros(2)))
    point = np.array(x, dtype=float)
    known.update(Candidate(point, evidence), known.judge(point).fun, None)
    return known.certificate


def test_a_flat_bound_holds_everywhere() -> None:
    found = make_evidence()
    assert (found.value, found.local, found.radius) == (-7.0, None, math.inf)


def test_what_a_violation_may_have_gained_is_charged() -> None:
    """The charge is separate from the bound of the optimum, and is a part of the gap."""
    found = make_evidence(charge=0.25)
    assert (found.value, found.gained) == (-7.0, 0.25)


def test_a_slope_larger_than_rounding_proves_nothing() -> None:
    """Within the largest distance of a solution the bound may lose as much as the value, 7, and no more."""
    per_slope = 0.6 * (2.4 + 3e4) + 0.8 * (4.8 + 3e4)
    found = make_evidence(slope=6.99 / per_slope).local
    assert found is not None and found.slope == pytest.approx(6.99 / per_slope, rel=1e-13)
    with pytest.raises(AssertionError):
        make_evidence(slope=7.01 / per_slope)


def test_the_bound_loses_the_slope_over_ten_thousand_sizes() -> None:
    """Both entries of (0.6, -0.8) are less than their unit, 3; those of (-30, -40) are more."""
    found = certified(make_evidence(slope=2.0**-20), (0.6, -0.8))
    assert found.radius == pytest.approx(3e4, rel=1e-15)
    lost = 0.6 * (2.4 + 3e4) + 0.8 * (
        4.8 + 3e4
    )  # the way from the centre of the bound, and 1e4 sizes
    assert found.lower_bound == pytest.approx(-7.0 - 2.0**-20 * lost, rel=1e-14)
    far = certified(make_evidence(slope=2.0**-20, charge=0.5, x=(-30.0, -40.0)), (-30.0, -40.0))
    assert far.radius == pytest.approx(3e5, rel=1e-15)
    lost = 0.6 * (33.0 + 3e5) + 0.8 * (44.0 + 4e5)
    assert far.lower_bound == pytest.approx(-7.0 - 2.0**-20 * lost, rel=1e-14)
    assert far.charge == 0.5
    assert "within a distance of 3e+05 from x" in far.source


def test_a_given_norm_of_solutions_is_converted_to_a_distance_from_the_centre() -> None:
    """Solutions within 10 of zero are within 15 of (3, 4)."""
    found = make_evidence(slope=0.01, norm=10.0)
    assert found.radius == math.inf
    assert (found.value, found.local) == (pytest.approx(-7.0 - 0.15, rel=1e-14), None)
    assert "|x*| <= 10 (given)" in found.source


def test_the_multiplier_is_moved_into_its_cone() -> None:
    """Rows with an upper side only have no negative multipliers: (2, -5) counts as (2, 0)."""
    v = make_evidence().inequality
    assert v is not None and v.dual is not None
    np.testing.assert_array_equal(v.dual[0], [2.0, 0.0])
    np.testing.assert_array_equal(v.direction, [2.0, 2.0])
    assert v.support == 2.0


def test_an_infeasible_point_is_projected_and_its_bound_kept() -> None:
    """The charge for its violation is dropped: the driver measures the violation of the projection."""
    problem = Problem(Linear(np.array([-1.0, -2.0])), ROWS)
    bench = lopro.iterate(problem).bench
    bound = Bound.everywhere(7.0)
    outcome = Outcome(Status.STOPPED, np.array([1.0, 1.0]), (np.zeros(2),), 0.0, bound, 0.5, 0.3, 1)
    candidate = answer(composite(problem).terms, outcome, bench, np.zeros(2), member_multipliers)
    assert candidate.x == pytest.approx([0.5, 0.5])
    np.testing.assert_array_equal(candidate.before, [1.0, 1.0])
    assert (candidate.evidence.value, candidate.evidence.gained) == (7.0, 0.0)


@pytest.mark.parametrize(
    ("status", "error"), [(Status.INFEASIBLE, InfeasibleError), (Status.UNBOUNDED, UnboundedError)]
)
def test_no_solution_is_an_error_that_carries_its_proof(status: Any, error: Any) -> None:
    problem = Problem(Linear(np.array([-1.0, -2.0])), ROWS)
    bound = Bound.everywhere(0.0)
    ray = (np.ones(2),) if status is Status.INFEASIBLE else np.ones(2)
    outcome = Outcome(status, np.zeros(2), (np.zeros(2),), 0.0, bound, 0.0, 0.0, 1, ray=ray)
    with pytest.raises(error) as caught:
        answer(
            composite(problem).terms,
            outcome,
            lopro.iterate(problem).bench,
            np.zeros(2),
            member_multipliers,
        )
    np.testing.assert_array_equal(np.ravel(caught.value.ray), np.ones(2))


def test_a_certificate_states_its_radius() -> None:
    """A linear program in general position keeps a slope of rounding: the radius is part of the claim."""
    rng = np.random.default_rng(0)
    C, v = rng.standard_normal((30, 12)), np.zeros(30)
    v[:12] = rng.uniform(1.0, 2.0, 12)
    x = rng.standard_normal(12)
    b = C @ x + np.where(v > 0.0, 0.0, 1.0)
    result = lopro.solve(
        Problem(Linear(-(v @ C)), Polyhedron(C, b)), method=NewtonMultipliers(), tol=1e-6
    )
    assert result.success and result.x == pytest.approx(x, abs=1e-5)
    assert result.fun == pytest.approx(-(v @ C @ x), rel=1e-6)
    radius = result.certificate.radius
    if math.isfinite(radius):
        # In every variable 1e4 times its size or its unit, a mean over the rows.
        units = np.exp(np.log(np.abs(b)[:, None] / np.abs(C) / np.sqrt(12.0)).mean(axis=0))
        sizes = np.maximum(np.abs(result.x), units)
        assert radius == pytest.approx(1e4 * float(sizes.min()), rel=1e-6)
        assert f"within a distance of {radius:.3g}" in result.message
    else:
        assert "among the points" not in result.message
