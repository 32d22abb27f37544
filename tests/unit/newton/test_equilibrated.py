"""Problems in units of their columns: what is proved for the scaled variables holds for the others."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from lopro.certificates import Bound, Emptiness, Units
from lopro.certificates.certificate import Outcome, Status
from lopro.functions.atoms import HalfSquare, Interval, Linear
from lopro.functions.term import Term
from lopro.maps import linear_map
from lopro.newton import Composite
from lopro.newton.equilibrated import Equilibrated
from lopro.newton.quadratic_form import QuadraticForm
from lopro.newton.solve import prove, solve


def bounded() -> Composite:
    """|x_1 - 2|^2 / 2 + |5e11 x_2 - 1|^2 / 2 with x_1 <= 1, the units being 1.5 and 3e-12."""
    square = Term(HalfSquare(), linear_map(np.diag([1.0, 5e11])), np.array([2.0, 1.0]))
    box = Term(Interval(np.full(2, -np.inf), np.array([1.0, np.inf])))
    return Composite.of([square, box], 2)


def outcome(**changes: Any) -> Outcome:
    bound = Bound(-1.0, np.array([0.5, 0.25]), np.array([1.0, 2.0]), Units.given(np.ones(2)))
    made: dict[str, Any] = {
        "status": Status.STOPPED, "x": np.array([3.0, 4.0]), "multipliers": (np.array([6.0, 8.0]),),
        "fun": 1.0, "bound": bound, "charge": 0.0, "violation": 0.0, "steps": 1,
    }  # fmt: skip
    return Outcome(**{**made, **changes})


def test_all_fields_are_converted_back() -> None:
    scaled = Equilibrated.of(bounded())
    assert scaled is not None
    s = scaled.sizes
    # Offsets have the median 1.5: the units are 1.5 and 3e-12, and 2 and 2^-38 are nearest.
    np.testing.assert_array_equal(s, [2.0, 2.0**-38])
    found = scaled.back(outcome())
    np.testing.assert_array_equal(found.x, [3.0 * s[0], 4.0 * s[1]])
    np.testing.assert_array_equal(found.multipliers[0], [6.0 / s[0], 8.0 / s[1]])
    np.testing.assert_array_equal(found.bound.slopes, [0.5 / s[0], 0.25 / s[1]])
    np.testing.assert_array_equal(found.bound.centre, [1.0 * s[0], 2.0 * s[1]])
    # What it proves is the same number.
    assert found.bound.around(found.x) == outcome().bound.around(outcome().x)
    np.testing.assert_array_equal(scaled.multipliers(found.multipliers)[0], [6.0, 8.0])


def test_a_radius_of_emptiness_is_that_of_the_least_unit() -> None:
    scaled = Equilibrated.of(bounded())
    assert scaled is not None
    given = outcome(certificate=Emptiness(8.0, 2.0), ray=(np.array([6.0, 8.0]),))
    found = scaled.back(given)
    assert isinstance(found.certificate, Emptiness) and isinstance(found.ray, tuple)
    assert found.certificate.radius == 4.0 * float(scaled.sizes.min())
    np.testing.assert_array_equal(found.ray[0], np.array([6.0, 8.0]) / scaled.sizes)


def test_the_solution_and_its_multipliers() -> None:
    found = solve(bounded(), tol=1e-10)
    assert found.status is Status.CONVERGED
    assert found.fun == pytest.approx(0.5, rel=1e-9)
    np.testing.assert_allclose(found.x, [1.0, 2e-12], rtol=1e-6)
    np.testing.assert_allclose(found.multipliers[0], [1.0, 0.0], atol=1e-6)


def test_a_worse_answer_in_other_units_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where units mislead, what was proved before is kept."""
    back = Equilibrated.back

    def worse(scaled: Equilibrated, found: Outcome) -> Outcome:
        return replace(back(scaled, found), status=Status.STOPPED, fun=1e9, violation=1.0)

    monkeypatch.setattr(Equilibrated, "back", worse)
    x, multipliers = np.array([1.0, 1.9e-12]), [np.array([1.0, 0.0])]
    found = prove(bounded(), x, multipliers, tol=1e-6, convexity=0.0)
    assert found.fun == pytest.approx(0.5, rel=1e-8) and found.violation == 0.0


def test_an_empty_set_is_found_empty_in_the_units_of_the_user() -> None:
    """x_1 + 1e12 x_2 >= 2 and <= 1."""
    A = linear_map(np.array([[1.0, 1e12], [1.0, 1e12], [3.0, 0.0]]))
    rows = Term(Interval(np.array([2.0, -np.inf, 1.0]), np.array([np.inf, 1.0, np.inf])), A)
    problem = Composite.of([Term(Linear(np.ones(2))), rows], 2)
    assert Equilibrated.of(problem) is not None
    found = solve(problem)
    assert found.status is Status.INFEASIBLE and isinstance(found.certificate, Emptiness)
    assert math.isinf(found.certificate.radius)


def test_comparable_units_are_not_scaled() -> None:
    square = Term(HalfSquare(), linear_map(np.diag([1.0, 1e3])), np.ones(2))
    assert Equilibrated.of(Composite.of([square], 2)) is None


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array])
def test_a_quadratic_form_is_scaled_from_both_sides(kind: Any) -> None:
    P, q = np.array([[4.0, 1e12], [1e12, 1e24]]), np.array([-1.0, 3e12])
    box = Term(Interval(np.full(2, -np.inf), np.array([1.0, np.inf])))
    problem = Composite(QuadraticForm(kind(P), q, 2.0), [box])
    scaled = Equilibrated.of(problem)
    assert scaled is not None and scaled.sizes.max() > 1e6 * scaled.sizes.min()
    for z in np.random.default_rng(0).standard_normal((5, 2)):
        expected = problem.smooth.value(scaled.sizes * z)
        assert scaled.problem.smooth.value(z) == pytest.approx(expected, rel=1e-12)
